//! Options that name a server: host, socket, account, TLS. Their names are those of MySQL's programs.

use clap::{Args, ValueEnum};
use omnibus_replication::client::{CompressionChoice, Endpoint, TlsSettings};
use std::ffi::OsString;
use std::io::{self, BufRead};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// A server to ask.
#[derive(Args, Clone, Debug, Default)]
pub struct ServerArgs {
    /// The server's host; 127.0.0.1 without.
    #[arg(short = 'h', long, value_name = "HOST")]
    host: Option<String>,
    /// Its port; 3306 without.
    #[arg(short = 'P', long, value_name = "PORT")]
    port: Option<u16>,
    /// Its Unix socket, instead of host and port.
    #[arg(short = 'S', long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// The account. Without: the name in USER, or root.
    #[arg(short = 'u', long, value_name = "NAME")]
    user: Option<String>,
    /// Its password: `--password=SECRET`, `-pSECRET`, or without a value to be asked for it. Better not to be seen in a list of
    /// processes: the variable MYSQL_PWD.
    #[arg(long, value_name = "SECRET", num_args = 0..=1, require_equals = true, default_missing_value = "\0")]
    password: Option<String>,
    /// Whether the connection is encrypted and the server's certificate checked.
    #[arg(long, value_name = "MODE", value_enum, ignore_case = true)]
    ssl_mode: Option<SslMode>,
    /// Authorities whose certificates are trusted (PEM): the server's is checked.
    #[arg(long, value_name = "FILE")]
    ssl_ca: Option<PathBuf>,
    /// Certificates that are revoked.
    #[arg(long, value_name = "FILE")]
    ssl_crl: Option<PathBuf>,
    /// Our own certificate.
    #[arg(long, value_name = "FILE", requires = "ssl_key")]
    ssl_cert: Option<PathBuf>,
    /// Its key.
    #[arg(long, value_name = "FILE", requires = "ssl_cert")]
    ssl_key: Option<PathBuf>,
    /// Ask the server for its RSA key, for `caching_sha2_password` without TLS.
    #[arg(long)]
    get_server_public_key: bool,
    /// The server's RSA key, in a file.
    #[arg(long, value_name = "FILE")]
    server_public_key_path: Option<PathBuf>,
}

/// MySQL's modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SslMode {
    Disabled,
    Preferred,
    Required,
    #[value(alias = "VERIFY_CA")]
    VerifyCa,
    #[value(alias = "VERIFY_IDENTITY")]
    VerifyIdentity,
}

/// `-pSECRET` and `-p`, which mean more to MySQL's programs than an argument parser knows, as `--password`.
#[must_use]
pub fn with_password_option(arguments: Vec<OsString>) -> Vec<OsString> {
    const COMMANDS: [&str; 3] = ["binlog", "archive", "stream"];
    if arguments.get(1).is_none_or(|command| COMMANDS.iter().all(|known| command != known)) {
        return arguments;
    }
    let long = |argument: OsString| match argument.to_str().and_then(|text| text.strip_prefix("-p")) {
        Some("") => "--password".into(),
        Some(secret) => format!("--password={secret}").into(),
        None => argument,
    };
    arguments.into_iter().map(long).collect()
}

impl ServerArgs {
    /// Returns whether any of the options is given.
    #[must_use]
    pub fn is_given(&self) -> bool {
        let paths = [&self.socket, &self.ssl_ca, &self.ssl_crl, &self.ssl_cert, &self.server_public_key_path];
        self.host.is_some()
            || self.port.is_some()
            || self.user.is_some()
            || self.password.is_some()
            || self.ssl_mode.is_some()
            || self.get_server_public_key
            || paths.iter().any(|path| path.is_some())
    }

    /// Returns the server's address and credentials, and whether to continue without TLS where the server has none.
    ///
    /// # Errors
    /// The password cannot be read from the terminal.
    pub fn endpoint(&self) -> io::Result<(Endpoint, bool)> {
        let password = match self.password.as_deref() {
            Some("\0") => ask_password()?,
            Some(given) => given.to_owned(),
            None => std::env::var("MYSQL_PWD").unwrap_or_default(),
        };
        let by_default = if self.ssl_ca.is_some() { SslMode::VerifyCa } else { SslMode::Preferred };
        let mode = self.ssl_mode.unwrap_or(by_default);
        let tls = TlsSettings {
            required: mode != SslMode::Disabled && self.socket.is_none(),
            ca: self.ssl_ca.clone(),
            crl: self.ssl_crl.clone(),
            cert: self.ssl_cert.clone(),
            key: self.ssl_key.clone(),
            verify_host: mode == SslMode::VerifyIdentity,
            ..TlsSettings::default()
        };
        let user = || std::env::var("USER").unwrap_or_else(|_| "root".into());
        let endpoint = Endpoint {
            host: self.host.clone().unwrap_or_else(|| "127.0.0.1".into()),
            bind: None,
            port: self.port.unwrap_or(3306),
            socket: self.socket.clone(),
            user: self.user.clone().unwrap_or_else(user),
            password,
            tls,
            ask_public_key: self.get_server_public_key,
            public_key: self.server_public_key_path.clone(),
            compression: CompressionChoice::default(),
            connect_timeout: Duration::from_secs(30),
            net_timeout: Duration::from_secs(60),
        };
        Ok((endpoint, mode == SslMode::Preferred))
    }
}

/// A line from the terminal that it does not show.
fn ask_password() -> io::Result<String> {
    let echo = |how: &str| Command::new("stty").args(["-F", "/dev/tty", how]).status();
    let mut terminal = io::BufReader::new(std::fs::File::open("/dev/tty").map_err(|error| {
        io::Error::new(
            error.kind(),
            "there is no terminal to ask for the password: use --password=.. or MYSQL_PWD",
        )
    })?);
    eprint!("Enter password: ");
    echo("-echo")?;
    let mut line = String::new();
    let read = terminal.read_line(&mut line);
    echo("echo")?;
    eprintln!();
    read?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
