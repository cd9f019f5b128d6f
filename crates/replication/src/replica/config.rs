//! The settings of CHANGE REPLICATION SOURCE for a channel, and their form in the data directory.
//!
//! The form is `key=value` lines: a later version adds keys, and an older one ignores unknown ones.

use super::position::SourcePosition;
use crate::client::{CompressionChoice, Endpoint, TlsSettings};
use omnibus_format::gtid::GtidParseError;
use omnibus_format::{ServerUuid, Unnamed};
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

/// How the replica asks a MariaDB source for its log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GtidUse {
    /// By file and position.
    #[default]
    No,
    /// From `gtid_slave_pos`.
    SlavePos,
    /// From `gtid_current_pos`.
    CurrentPos,
}

impl GtidUse {
    /// The value's name in SHOW output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            GtidUse::No => "No",
            GtidUse::SlavePos => "Slave_Pos",
            GtidUse::CurrentPos => "Current_Pos",
        }
    }
}

/// A channel's settings.
#[derive(Clone, PartialEq, Eq)]
pub struct ChannelConfig {
    /// SOURCE_HOST.
    pub host: String,
    /// SOURCE_PORT.
    pub port: u16,
    /// SOURCE_USER.
    pub user: String,
    /// SOURCE_PASSWORD. Never shown.
    pub password: String,
    /// The position to begin at when nothing is applied yet.
    pub start: SourcePosition,
    /// SOURCE_AUTO_POSITION.
    pub auto_position: bool,
    /// MASTER_USE_GTID.
    pub gtid_use: GtidUse,
    /// SOURCE_CONNECT_RETRY, seconds.
    pub connect_retry: u32,
    /// SOURCE_RETRY_COUNT; 0 for ever.
    pub retry_count: u64,
    /// SOURCE_DELAY, seconds.
    pub delay: u32,
    /// ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS.
    pub assign_gtids: AssignGtids,
    /// SOURCE_HEARTBEAT_PERIOD, milliseconds; `None` for half of replica_net_timeout.
    pub heartbeat_ms: Option<u64>,
    /// SOURCE_SSL and its kind.
    pub tls: TlsSettings,
    /// SOURCE_BIND, SOURCE_SSL_CAPATH, SOURCE_SSL_CIPHER, SOURCE_TLS_VERSION and other settings that are kept as given.
    pub shown: Vec<(String, String)>,
    /// GET_SOURCE_PUBLIC_KEY.
    pub ask_public_key: bool,
    /// SOURCE_PUBLIC_KEY_PATH.
    pub public_key: Option<PathBuf>,
    /// SOURCE_COMPRESSION_ALGORITHMS and SOURCE_ZSTD_COMPRESSION_LEVEL.
    pub compression: CompressionChoice,
    /// IGNORE_SERVER_IDS.
    pub ignore_server_ids: Vec<u32>,
    /// MariaDB: DO_DOMAIN_IDS.
    pub do_domains: Vec<u32>,
    /// MariaDB: IGNORE_DOMAIN_IDS.
    pub ignore_domains: Vec<u32>,
    /// Whether the receiver should run, also after a restart of the server.
    pub io_wanted: bool,
    /// Whether the applier should run, also after a restart of the server.
    pub sql_wanted: bool,
}

/// ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS: the GTID of a transaction that arrives without one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AssignGtids {
    /// None.
    #[default]
    Off,
    /// One with this server's UUID.
    Local,
    /// One with this UUID.
    Uuid(ServerUuid),
}

impl AssignGtids {
    /// The log's treatment of such a transaction.
    #[must_use]
    pub fn unnamed(self) -> Unnamed {
        match self {
            AssignGtids::Off => Unnamed::Anonymous,
            AssignGtids::Local => Unnamed::Automatic,
            AssignGtids::Uuid(uuid) => Unnamed::NextOf(uuid.into()),
        }
    }
}

impl std::fmt::Display for AssignGtids {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AssignGtids::Off => f.write_str("OFF"),
            AssignGtids::Local => f.write_str("LOCAL"),
            AssignGtids::Uuid(uuid) => uuid.fmt(f),
        }
    }
}

impl std::str::FromStr for AssignGtids {
    type Err = GtidParseError;

    fn from_str(text: &str) -> Result<AssignGtids, GtidParseError> {
        match text {
            _ if text.eq_ignore_ascii_case("OFF") => Ok(AssignGtids::Off),
            _ if text.eq_ignore_ascii_case("LOCAL") => Ok(AssignGtids::Local),
            _ => text.parse().map(AssignGtids::Uuid),
        }
    }
}

impl Default for ChannelConfig {
    fn default() -> ChannelConfig {
        ChannelConfig {
            host: String::new(),
            port: 3306,
            user: String::new(),
            password: String::new(),
            start: SourcePosition::default(),
            auto_position: false,
            gtid_use: GtidUse::No,
            connect_retry: 60,
            retry_count: 10,
            delay: 0,
            assign_gtids: AssignGtids::Off,
            heartbeat_ms: None,
            tls: TlsSettings::default(),
            shown: Vec::new(),
            ask_public_key: false,
            public_key: None,
            compression: CompressionChoice::default(),
            ignore_server_ids: Vec::new(),
            do_domains: Vec::new(),
            ignore_domains: Vec::new(),
            io_wanted: false,
            sql_wanted: false,
        }
    }
}

impl std::fmt::Debug for ChannelConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}:{}", self.user, self.host, self.port)
    }
}

fn path_text(path: Option<&PathBuf>) -> String {
    path.map(|p| p.display().to_string()).unwrap_or_default()
}

fn path_of(text: &str) -> Option<PathBuf> {
    (!text.is_empty()).then(|| PathBuf::from(text))
}

fn list_text(ids: &[u32]) -> String {
    ids.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

fn list_of(text: &str) -> Vec<u32> {
    text.split(',').filter_map(|id| id.trim().parse().ok()).collect()
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n")
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some(other) => out.push(other),
                None => {}
            },
            other => out.push(other),
        }
    }
    out
}

impl ChannelConfig {
    /// Returns the stored form, without the password.
    #[must_use]
    pub fn encode(&self) -> String {
        let flag = |b: bool| u8::from(b).to_string();
        let mut lines = vec![
            ("host", self.host.clone()),
            ("port", self.port.to_string()),
            ("user", self.user.clone()),
            ("log_file", self.start.file.to_string()),
            ("log_pos", self.start.position.to_string()),
            ("auto_position", flag(self.auto_position)),
            ("use_gtid", self.gtid_use.name().to_owned()),
            ("connect_retry", self.connect_retry.to_string()),
            ("retry_count", self.retry_count.to_string()),
            ("delay", self.delay.to_string()),
            ("assign_gtids", self.assign_gtids.to_string()),
            ("heartbeat_ms", self.heartbeat_ms.map(|n| n.to_string()).unwrap_or_default()),
            ("ssl", flag(self.tls.required)),
            ("ssl_ca", path_text(self.tls.ca.as_ref())),
            ("ssl_crl", path_text(self.tls.crl.as_ref())),
            ("ssl_cert", path_text(self.tls.cert.as_ref())),
            ("ssl_key", path_text(self.tls.key.as_ref())),
            ("ssl_verify", flag(self.tls.verify_host)),
            ("get_public_key", flag(self.ask_public_key)),
            ("public_key_path", path_text(self.public_key.as_ref())),
            ("compression_algorithms", self.compression.names()),
            ("zstd_compression_level", self.compression.zstd_level.to_string()),
            ("ignore_server_ids", list_text(&self.ignore_server_ids)),
            ("do_domains", list_text(&self.do_domains)),
            ("ignore_domains", list_text(&self.ignore_domains)),
            ("io_wanted", flag(self.io_wanted)),
            ("sql_wanted", flag(self.sql_wanted)),
        ];
        lines.extend(self.shown.iter().map(|(name, value)| (name.as_str(), value.clone())));
        let mut out = String::new();
        for (key, value) in lines {
            let _ = writeln!(out, "{key}={}", escape(&value));
        }
        out
    }

    /// Parses the form of `encode`.
    #[must_use]
    pub fn decode(text: &str) -> ChannelConfig {
        let mut config = ChannelConfig::default();
        for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
            config.set(key, unescape(value));
        }
        config
    }

    fn set(&mut self, key: &str, value: String) {
        let flag = value == "1";
        let number = value.parse::<u64>().unwrap_or(0);
        match key {
            "host" => self.host = value,
            "port" => self.port = number as u16,
            "user" => self.user = value,
            "log_file" => self.start.file = value.into(),
            "log_pos" => self.start.position = number,
            "auto_position" => self.auto_position = flag,
            "use_gtid" => {
                self.gtid_use = match value.as_str() {
                    "Slave_Pos" => GtidUse::SlavePos,
                    "Current_Pos" => GtidUse::CurrentPos,
                    _ => GtidUse::No,
                }
            }
            "connect_retry" => self.connect_retry = number as u32,
            "retry_count" => self.retry_count = number,
            "delay" => self.delay = number as u32,
            "assign_gtids" => self.assign_gtids = value.parse().unwrap_or_default(),
            "heartbeat_ms" => self.heartbeat_ms = value.parse().ok(),
            "ssl" => self.tls.required = flag,
            "ssl_ca" => self.tls.ca = path_of(&value),
            "ssl_crl" => self.tls.crl = path_of(&value),
            "ssl_cert" => self.tls.cert = path_of(&value),
            "ssl_key" => self.tls.key = path_of(&value),
            "ssl_verify" => self.tls.verify_host = flag,
            "get_public_key" => self.ask_public_key = flag,
            "public_key_path" => self.public_key = path_of(&value),
            "compression_algorithms" => {
                let choice: CompressionChoice = value.parse().unwrap_or_default();
                self.compression = choice.at_level(self.compression.zstd_level);
            }
            "zstd_compression_level" => self.compression.zstd_level = number as u8,
            "ignore_server_ids" => self.ignore_server_ids = list_of(&value),
            "do_domains" => self.do_domains = list_of(&value),
            "ignore_domains" => self.ignore_domains = list_of(&value),
            "io_wanted" => self.io_wanted = flag,
            "sql_wanted" => self.sql_wanted = flag,
            other if other.starts_with("shown_") => self.shown.push((other.to_owned(), value)),
            _ => {}
        }
    }

    /// Returns a setting that is only kept, by its name in lower case.
    #[must_use]
    pub fn shown(&self, name: &str) -> &str {
        let found = self.shown.iter().find(|(key, _)| key.strip_prefix("shown_") == Some(name));
        found.map_or("", |(_, value)| value)
    }

    /// The interval after which a source with nothing to send sends a heartbeat.
    #[must_use]
    pub fn heartbeat(&self, net_timeout: Duration) -> Duration {
        self.heartbeat_ms.map_or(net_timeout / 2, Duration::from_millis)
    }

    /// The settings of SOURCE_SSL and SOURCE_TLS together.
    #[must_use]
    pub fn tls_settings(&self) -> TlsSettings {
        TlsSettings {
            ca_folder: path_of(self.shown("source_ssl_capath")),
            crl_folder: path_of(self.shown("source_ssl_crlpath")),
            ciphers: self.shown("source_ssl_cipher").to_owned(),
            cipher_suites: self.shown("source_tls_ciphersuites").to_owned(),
            versions: self.shown("source_tls_version").to_owned(),
            ..self.tls.clone()
        }
    }

    /// The source's address and credentials.
    #[must_use]
    pub fn endpoint(&self, net_timeout: Duration) -> Endpoint {
        Endpoint {
            socket: None,
            bind: Some(self.shown("source_bind").to_owned()).filter(|bind| !bind.is_empty()),
            host: self.host.clone(),
            port: self.port,
            user: self.user.clone(),
            password: self.password.clone(),
            tls: self.tls_settings(),
            ask_public_key: self.ask_public_key,
            public_key: self.public_key.clone(),
            compression: self.compression.clone(),
            connect_timeout: net_timeout.min(Duration::from_secs(10)),
            net_timeout,
        }
    }
}
