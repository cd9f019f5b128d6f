//! `omnibus stream`: a running server's changes into Kafka or NATS JetStream.

use crate::server_args::ServerArgs;
use clap::{Args, ValueEnum};
use omnibus_replication::client::{LogSource, Reader, without_secrets};
use omnibus_stream::{Form, Login, Mechanism, Note, Start, StreamError, StreamOptions, secret};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Under which server id the log is followed; of those that no server is given.
const SERVER_ID: u32 = 0xFFFF_0001;
/// The interval of heartbeats from a server that has nothing to send.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// Send a running server's changes to Kafka or NATS JetStream, at least once, as they are committed.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub struct StreamArgs {
    /// Target: kafka://host:9092,host:9092/name or nats://host:4222/name, with TLS kafka+tls:// or tls://; user:password@ may
    /// stand in front of the hosts. Topics and subjects begin with the name.
    #[arg(long, value_name = "URL")]
    to: String,
    #[command(flatten)]
    login: LoginArgs,
    #[command(flatten)]
    server: ServerArgs,
    /// Form of messages: JSON lines, or Debezium's envelopes.
    #[arg(long, value_enum, default_value = "json")]
    format: Format,
    /// Start if the target has no position: newest, oldest, or FILE:POSITION where a transaction begins.
    #[arg(long, value_name = "WHERE", default_value = "newest")]
    from: Start,
    /// Begin there although the target has a position.
    #[arg(long)]
    anew: bool,
    /// Send what there is and stop.
    #[arg(long)]
    once: bool,
    /// Say what happens as JSON, one object a line.
    #[arg(long)]
    json: bool,
    /// The server id to appear under; no replica may have it, and no second stream of the server.
    #[arg(long, value_name = "N", default_value_t = SERVER_ID, value_parser = clap::value_parser!(u32).range(1..))]
    connection_server_id: u32,
    /// Print this help.
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Json,
    Debezium,
}

/// The login at the target.
#[derive(Args, Debug)]
struct LoginArgs {
    /// Certificates, in PEM, of those who vouch for the target, instead of those that the system knows.
    #[arg(long, value_name = "FILE")]
    to_ca: Option<PathBuf>,
    /// The certificate to show to the target, in PEM.
    #[arg(long, value_name = "FILE", requires = "to_key")]
    to_cert: Option<PathBuf>,
    /// Its key.
    #[arg(long, value_name = "FILE", requires = "to_cert")]
    to_key: Option<PathBuf>,
    /// The account at the target. Its password is in OMNIBUS_TO_PASSWORD, or in a file.
    #[arg(long, value_name = "NAME")]
    to_user: Option<String>,
    /// A file whose first line is that password.
    #[arg(long, value_name = "FILE", requires = "to_user")]
    to_password_file: Option<PathBuf>,
    /// Kafka's SASL mechanism.
    #[arg(long, value_enum, default_value = "SCRAM-SHA-512")]
    to_mechanism: SaslMechanism,
    /// NATS: a file whose first line is a token.
    #[arg(long, value_name = "FILE")]
    to_token_file: Option<PathBuf>,
    /// NATS: a file of credentials, with a JWT and its key.
    #[arg(long, value_name = "FILE")]
    to_creds: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SaslMechanism {
    #[value(name = "PLAIN")]
    Plain,
    #[value(name = "SCRAM-SHA-256")]
    ScramSha256,
    #[value(name = "SCRAM-SHA-512")]
    ScramSha512,
}

impl LoginArgs {
    fn login(&self) -> Result<Login, StreamError> {
        let password = match &self.to_password_file {
            Some(path) => Some(secret(path)?),
            None => std::env::var("OMNIBUS_TO_PASSWORD").ok(),
        };
        Ok(Login {
            ca: self.to_ca.clone(),
            certificate: self.to_cert.clone().zip(self.to_key.clone()),
            user: self.to_user.clone(),
            password,
            mechanism: match self.to_mechanism {
                SaslMechanism::Plain => Mechanism::Plain,
                SaslMechanism::ScramSha256 => Mechanism::ScramSha256,
                SaslMechanism::ScramSha512 => Mechanism::ScramSha512,
            },
            token: self.to_token_file.clone(),
            credentials: self.to_creds.clone(),
            address_token: None,
        })
    }
}

/// Runs the command.
#[must_use]
pub fn run(args: &StreamArgs) -> ExitCode {
    match stream(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("omnibus stream: {}", without_secrets(&error.to_string()));
            ExitCode::FAILURE
        }
    }
}

fn stream(args: &StreamArgs) -> Result<(), StreamError> {
    let (endpoint, may_be_plain) =
        args.server.endpoint().map_err(|error| StreamError::Refused(error.to_string()))?;
    let options = StreamOptions {
        source: LogSource {
            endpoint,
            may_be_plain,
            program: "omnibus stream",
            reader: Reader { heartbeat: Some(HEARTBEAT), whole_files: false },
            server_id: if args.once { 0 } else { args.connection_server_id },
        },
        to: args.to.clone(),
        login: args.login.login()?,
        form: match args.format {
            Format::Json => Form::Json,
            Format::Debezium => Form::Debezium,
        },
        from: args.from.clone(),
        anew: args.anew,
    };
    omnibus_stream::run(&options, &mut |note| tell(&note, args.json))
}

fn tell(note: &Note, as_json: bool) {
    let (text, line) = match note {
        Note::Begins(place) => (
            format!("from {}:{}", place.file, place.position),
            json!({"type": "begins", "file": place.file, "position": place.position}),
        ),
        Note::Sent(messages, Some(place)) => (
            format!("{messages} messages, up to {}:{}", place.file, place.position),
            json!({"type": "sent", "messages": messages, "file": place.file, "position": place.position}),
        ),
        Note::Sent(messages, None) => {
            (format!("{messages} messages"), json!({"type": "sent", "messages": messages}))
        }
        Note::Trouble(what, pause) => {
            let what = without_secrets(what);
            let line = json!({"type": "trouble", "what": what, "attempt": pause.attempt, "again_s": pause.time.as_secs()});
            (format!("{what}; {pause}"), line)
        }
        _ => return,
    };
    match (as_json, note) {
        (true, _) => println!("{line}"),
        (false, Note::Trouble(..)) => eprintln!("omnibus stream: {text}"),
        (false, _) => println!("{text}"),
    }
}
