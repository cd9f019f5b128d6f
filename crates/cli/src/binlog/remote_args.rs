//! Where a log is read from, if not from files: `--read-from-remote-server` and what belongs to it.

use clap::{Args, ValueEnum};
use omnibus_replication::client::{Endpoint, TlsSettings};
use std::io::{self, BufRead};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// A server to read from.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct RemoteArgs {
    /// Ask a server for its log: Omnibus, MySQL or MariaDB. FILEs are names in its SHOW BINARY LOGS.
    #[arg(short = 'R', long = "read-from-remote-server")]
    pub(super) on: bool,
    /// The server's host.
    #[arg(short = 'h', long, value_name = "HOST", default_value = "127.0.0.1", requires = "on")]
    host: String,
    /// Its port.
    #[arg(short = 'P', long, value_name = "PORT", default_value_t = 3306, requires = "on")]
    port: u16,
    /// Its Unix socket, instead of host and port.
    #[arg(short = 'S', long, value_name = "PATH", requires = "on")]
    socket: Option<PathBuf>,
    /// The account; it needs REPLICATION SLAVE. Without: the name in USER, or root.
    #[arg(short = 'u', long, value_name = "NAME", requires = "on")]
    user: Option<String>,
    /// Its password: `--password=SECRET`, `-pSECRET`, or without a value to be asked for it. Better not to be seen in a list of
    /// processes: the variable MYSQL_PWD.
    #[arg(long, value_name = "SECRET", num_args = 0..=1, require_equals = true, default_missing_value = "\0", requires = "on")]
    password: Option<String>,
    /// Whether the connection is encrypted and the server's certificate checked.
    #[arg(long, value_name = "MODE", value_enum, ignore_case = true, requires = "on")]
    ssl_mode: Option<SslMode>,
    /// Authorities whose certificates are trusted (PEM): the server's is checked.
    #[arg(long, value_name = "FILE", requires = "on")]
    ssl_ca: Option<PathBuf>,
    /// Certificates that are revoked.
    #[arg(long, value_name = "FILE", requires = "on")]
    ssl_crl: Option<PathBuf>,
    /// Our own certificate.
    #[arg(long, value_name = "FILE", requires = "ssl_key")]
    ssl_cert: Option<PathBuf>,
    /// Its key.
    #[arg(long, value_name = "FILE", requires = "ssl_cert")]
    ssl_key: Option<PathBuf>,
    /// Ask the server for its RSA key, for `caching_sha2_password` without TLS.
    #[arg(long, requires = "on")]
    get_server_public_key: bool,
    /// The server's RSA key, in a file.
    #[arg(long, value_name = "FILE", requires = "on")]
    server_public_key_path: Option<PathBuf>,
    /// Copy the log byte for byte into files of the same names, instead of printing it. Of Omnibus this needs BACKUP_ADMIN
    /// or RELOAD, too: its files hold what only recovery reads.
    #[arg(long, requires = "on", conflicts_with_all = ["sql", "json"])]
    pub(super) raw: bool,
    /// Go on to the end of the server's last file.
    #[arg(short = 't', long, requires = "on")]
    to_last_log: bool,
    /// At the end wait for more, for ever.
    #[arg(long, requires = "on")]
    pub(super) stop_never: bool,
    /// The server id to appear under with --stop-never; no replica may have it.
    #[arg(long, alias = "stop-never-slave-server-id", value_name = "N", requires = "on")]
    connection_server_id: Option<u32>,
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

impl RemoteArgs {
    /// Whether files behind the one that was asked for are wanted.
    pub(super) fn to_last(&self) -> bool {
        self.to_last_log || self.stop_never
    }

    /// The id that the dump is asked for with; 0 from those who do not wait at the end.
    pub(super) fn server_id(&self) -> u32 {
        if self.stop_never { self.connection_server_id.unwrap_or(65535) } else { 0 }
    }

    /// Where to connect, and whether to try without TLS where there is none.
    ///
    /// # Errors
    /// The password cannot be asked for.
    pub(super) fn endpoint(&self) -> io::Result<(Endpoint, bool)> {
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
            host: self.host.clone(),
            bind: None,
            port: self.port,
            socket: self.socket.clone(),
            user: self.user.clone().unwrap_or_else(user),
            password,
            tls,
            ask_public_key: self.get_server_public_key,
            public_key: self.server_public_key_path.clone(),
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
