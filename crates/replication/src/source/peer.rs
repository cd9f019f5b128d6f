//! The properties of a client that it sets before it asks for the log: user variables that MySQL's and MariaDB's
//! replicas, and programs that act as one, set on their connection.

use std::time::Duration;

/// The heartbeat interval of a client that sets none, which is the default of replicas.
const DEFAULT_HEARTBEAT: Duration = Duration::from_secs(30);

/// The client's request about checksums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WantedChecksum {
    /// It did not say: it may not know them.
    #[default]
    Unsaid,
    /// It wants no checksums.
    None,
    /// It accepts the log's checksums.
    Crc32,
}

/// The properties of a client; see the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    /// `@source_binlog_checksum`.
    pub checksum: WantedChecksum,
    /// `@source_heartbeat_period`; `None`: no heartbeats.
    pub heartbeat: Option<Duration>,
    /// `@mariadb_slave_capability`; 0 for a client that is not MariaDB's.
    pub mariadb_capability: u32,
    /// `@replica_uuid`, lower case; empty without.
    pub uuid: String,
    /// `@rpl_semi_sync_replica`: it acknowledges what it received.
    pub semi_sync: bool,
    /// `@slave_connect_state`: MariaDB's GTID position, if it uses one.
    pub connect_state: Option<String>,
    /// `@slave_until_gtid`.
    pub until_gtid: Option<String>,
    /// `@slave_gtid_strict_mode`.
    pub strict: bool,
    /// `@omnibus_whole_files`: it copies the files, including private events.
    pub whole_files: bool,
}

impl Peer {
    /// Reads the variables. `variable` returns the text of one, by its lower-case name, if it is set and not NULL.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Peer {
        let either = |names: [&str; 2]| names.into_iter().find_map(&variable);
        let checksum = match either(["source_binlog_checksum", "master_binlog_checksum"]) {
            Some(text) if text.eq_ignore_ascii_case("CRC32") || text == "1" => WantedChecksum::Crc32,
            Some(text) if text.eq_ignore_ascii_case("NONE") || text == "0" => WantedChecksum::None,
            _ => WantedChecksum::Unsaid,
        };
        let number = |text: String| text.split('.').next().and_then(|whole| whole.parse::<u64>().ok());
        let heartbeat = match either(["source_heartbeat_period", "master_heartbeat_period"]).and_then(number)
        {
            None => Some(DEFAULT_HEARTBEAT),
            Some(0) => None,
            Some(nanoseconds) => Some(Duration::from_nanos(nanoseconds)),
        };
        let truth = |text: Option<String>| text.is_some_and(|text| !matches!(&*text, "" | "0"));
        let capability = variable("mariadb_slave_capability").and_then(number).unwrap_or(0);
        Peer {
            checksum,
            heartbeat,
            mariadb_capability: u32::try_from(capability).unwrap_or(u32::MAX),
            uuid: either(["replica_uuid", "slave_uuid"]).unwrap_or_default().to_ascii_lowercase(),
            semi_sync: truth(either(["rpl_semi_sync_replica", "rpl_semi_sync_slave"])),
            connect_state: variable("slave_connect_state"),
            until_gtid: variable("slave_until_gtid").filter(|text| !text.is_empty()),
            strict: truth(variable("slave_gtid_strict_mode")),
            whole_files: truth(variable("omnibus_whole_files")),
        }
    }

    /// Returns whether it is a MariaDB replica, or acts as one.
    #[must_use]
    pub fn is_mariadb(&self) -> bool {
        self.mariadb_capability > 0
    }
}
