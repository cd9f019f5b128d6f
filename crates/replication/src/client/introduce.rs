//! The exchange between a replica and its source before a dump, in the form that the source's kind expects.
//!
//! MySQL's replicas and MariaDB's ask different questions; a source that plays one of them knows only that kind's
//! questions.

use super::connection::Connection;
use super::dump::DumpStart;
use super::error::ClientError;
use omnibus_format::{Checksum, GtidMode};
use std::time::Duration;

/// The replica's properties that it tells the source.
#[derive(Clone, Debug, Default)]
pub struct Introduction {
    /// The server id of this server; sources refuse 0.
    pub server_id: u32,
    /// The UUID of this server.
    pub uuid: String,
    /// `report_host`, which the source shows in SHOW REPLICAS; empty if it is not to be reported.
    pub report_host: String,
    /// `report_user`; empty if it is not to be reported.
    pub report_user: String,
    /// `report_port`, the port of this server.
    pub report_port: u16,
    /// The maximum time without a packet, after which the source sends a heartbeat; zero for none.
    pub heartbeat: Duration,
    /// Offer semi-synchronous replication.
    pub semi_sync: bool,
    /// Accept a source with this server's own id.
    pub same_server_id: bool,
    /// MariaDB: do not send events marked with `skip_replication`.
    pub skip_marked: bool,
    /// MariaDB: refuse GTIDs that are out of order.
    pub gtid_strict_mode: bool,
    /// This server's `gtid_mode`; `None` if its GTIDs are MariaDB's, which are compatible with every source.
    pub gtid_mode: Option<GtidMode>,
    /// Transactions that arrive without a GTID are given one.
    pub assigns_gtids: bool,
}

/// The source's properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFacts {
    /// Version string.
    pub version: String,
    /// It is a MariaDB server, or speaks like one.
    pub mariadb: bool,
    /// Its server id.
    pub server_id: u32,
    /// Its UUID; MariaDB has none.
    pub uuid: Option<String>,
    /// The number of seconds that its clock is ahead.
    pub clock_ahead_s: i64,
    /// The checksum algorithm of events that it makes for the stream.
    pub checksum: Checksum,
    /// Packets of the dump carry a semi-synchronous header.
    pub semi_sync: bool,
}

/// The properties of a reader of the log that is not a replica.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reader {
    /// The maximum time without a packet, after which the server sends a heartbeat.
    pub heartbeat: Option<Duration>,
    /// For a server of this kind: send the files unchanged, including events that only recovery reads.
    pub whole_files: bool,
}

/// The advice for a replica that requires GTIDs and a source that has none.
const ASSIGN_ADVICE: &str =
    " CHANGE REPLICATION SOURCE TO ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS = LOCAL makes it possible.";

/// Returns whether an error only means that the source does not have the variable.
fn unknown_thing(error: &ClientError) -> bool {
    // Unknown system variable, read only, unknown function, syntax.
    matches!(error, ClientError::Server { code: 1193 | 1238 | 1305 | 1064 | 1054, .. })
}

fn optional<T>(result: Result<T, ClientError>) -> Result<Option<T>, ClientError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if unknown_thing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn now_s() -> i64 {
    (omnibus_log::now_us() / 1_000_000) as i64
}

impl Connection {
    /// Exchanges everything that precedes COM_REGISTER_SLAVE, and registers.
    ///
    /// # Errors
    /// The connection's; [`ClientError::Unfit`] if the two must not replicate.
    pub fn introduce(&mut self, me: &Introduction, start: &DumpStart) -> Result<SourceFacts, ClientError> {
        let version = self.version();
        let mariadb = version.contains("MariaDB");
        let major = version.split('.').next().and_then(|m| m.parse::<u32>().ok());
        if major.is_none_or(|m| m < 5) {
            return Err(ClientError::Unfit(format!(
                "the source reports the version '{version}', which is not known"
            )));
        }
        let theirs = self.ask("SELECT UNIX_TIMESTAMP()")?.and_then(|t| t.parse::<i64>().ok());
        let clock_ahead_s = theirs.map_or(0, |t| t - now_s());
        let server_id = self.source_server_id(mariadb)?;
        if server_id == me.server_id && !me.same_server_id {
            return Err(ClientError::Unfit(format!(
                "source and replica have the same server_id, {server_id}: give one of them another \
                 (or set replicate_same_server_id, if that is meant)"
            )));
        }
        self.set_heartbeat(me, mariadb)?;
        let checksum = self.agree_on_checksum(mariadb)?;
        let mut facts = SourceFacts {
            version,
            mariadb,
            server_id,
            uuid: None,
            clock_ahead_s,
            checksum,
            semi_sync: false,
        };
        if mariadb {
            self.introduce_mariadb(me, start)?;
        } else {
            facts.uuid = self.introduce_mysql(me, start)?;
        }
        if me.semi_sync {
            facts.semi_sync = self.offer_semi_sync(mariadb)?;
        }
        self.register(me)?;
        Ok(facts)
    }

    /// Exchanges only the settings that are needed to read the log, without registering. Returns the checksum algorithm
    /// of events that the source makes for the stream.
    ///
    /// # Errors
    /// The connection's or the source's.
    pub fn introduce_reader(&mut self, reader: Reader) -> Result<Checksum, ClientError> {
        let version = self.version();
        let mariadb = version.contains("MariaDB");
        let checksum = self.agree_on_checksum(mariadb)?;
        if mariadb {
            optional(self.query("SET @mariadb_slave_capability=4"))?;
        }
        if let Some(heartbeat) = reader.heartbeat {
            self.set_heartbeat(&Introduction { heartbeat, ..Introduction::default() }, mariadb)?;
        }
        if reader.whole_files && version.contains("omnibus") {
            self.query("SET @omnibus_whole_files=1")?;
        }
        Ok(checksum)
    }

    fn source_server_id(&mut self, mariadb: bool) -> Result<u32, ClientError> {
        let id = if mariadb {
            let rows = self.query("SHOW VARIABLES LIKE 'SERVER_ID'")?;
            let value = rows.into_iter().next().and_then(|row| row.into_iter().nth(1)).flatten();
            value.map(|v| String::from_utf8_lossy(&v).into_owned())
        } else {
            self.ask("SELECT @@GLOBAL.SERVER_ID")?
        };
        id.and_then(|id| id.parse().ok())
            .ok_or_else(|| ClientError::Unfit("the source does not tell its server_id".into()))
    }

    fn set_heartbeat(&mut self, me: &Introduction, mariadb: bool) -> Result<(), ClientError> {
        let ns = me.heartbeat.as_nanos();
        let sql = if mariadb {
            format!("SET @master_heartbeat_period={ns}")
        } else {
            format!("SET @master_heartbeat_period={ns}, @source_heartbeat_period={ns}")
        };
        self.query(&sql).map(drop)
    }

    /// Tells the source that this client understands checksums; a source without checksums has no such variable.
    fn agree_on_checksum(&mut self, mariadb: bool) -> Result<Checksum, ClientError> {
        let (set, get) = if mariadb {
            ("SET @master_binlog_checksum=@@global.binlog_checksum", "SELECT @master_binlog_checksum")
        } else {
            (
                "SET @master_binlog_checksum=@@global.binlog_checksum, \
                 @source_binlog_checksum=@@global.binlog_checksum",
                "SELECT @source_binlog_checksum",
            )
        };
        if optional(self.query(set))?.is_none() {
            return Ok(Checksum::None);
        }
        match self.ask(get)?.as_deref() {
            None | Some("NONE" | "") => Ok(Checksum::None),
            Some("CRC32") => Ok(Checksum::Crc32),
            Some(other) => Err(ClientError::Unfit(format!("the source's checksum '{other}' is not known"))),
        }
    }

    fn introduce_mysql(
        &mut self,
        me: &Introduction,
        start: &DumpStart,
    ) -> Result<Option<String>, ClientError> {
        let mode = optional(self.ask("SELECT @@GLOBAL.GTID_MODE"))?.flatten();
        // A server that does not know the variable has no GTIDs.
        let mode = mode.as_deref().and_then(GtidMode::from_name).unwrap_or(GtidMode::Off);
        match start {
            DumpStart::Gtids(_) if mode != GtidMode::On => {
                return Err(ClientError::Unfit(format!(
                    "The replication receiver thread cannot start in AUTO_POSITION mode: the source has GTID_MODE = \
                     {mode} instead of ON."
                )));
            }
            DumpStart::MariadbGtids(_) => {
                return Err(ClientError::Unfit(
                    "MASTER_USE_GTID is for MariaDB sources and this one is not: use SOURCE_AUTO_POSITION=1"
                        .into(),
                ));
            }
            _ => {}
        }
        if let Some(mine) = me.gtid_mode.filter(|mine| !mine.can_follow(mode))
            && !(mine == GtidMode::On && me.assigns_gtids)
        {
            return Err(ClientError::Unfit(format!(
                "The replication receiver thread cannot start because the source has GTID_MODE = {mode} and this server \
                 has GTID_MODE = {mine}.{}",
                if mine == GtidMode::On { ASSIGN_ADVICE } else { "" }
            )));
        }
        let uuid = optional(self.ask("SELECT @@GLOBAL.SERVER_UUID"))?.flatten();
        if uuid.as_deref().is_some_and(|u| u.eq_ignore_ascii_case(&me.uuid)) {
            return Err(ClientError::Unfit(
                "source and replica have the same server_uuid: remove auto.cnf of the one that was copied"
                    .into(),
            ));
        }
        self.query(&format!("SET @slave_uuid= '{0}', @replica_uuid= '{0}'", me.uuid))?;
        Ok(uuid)
    }

    fn introduce_mariadb(&mut self, me: &Introduction, start: &DumpStart) -> Result<(), ClientError> {
        // 4: we understand MariaDB's GTID events.
        optional(self.query("SET @mariadb_slave_capability=4"))?;
        if me.skip_marked {
            // A source that does not know it sends what is marked, and it is left out here.
            optional(self.query("SET skip_replication=1"))?;
        }
        match start {
            DumpStart::Gtids(_) => {
                return Err(ClientError::Unfit(
                    "SOURCE_AUTO_POSITION is for MySQL's GTIDs and the source is MariaDB: use MASTER_USE_GTID=slave_pos"
                        .into(),
                ));
            }
            DumpStart::File { .. } => return Ok(()),
            DumpStart::MariadbGtids(position) => {
                self.ask("SELECT @@GLOBAL.gtid_domain_id")?;
                let plain = position.bytes().all(|b| b.is_ascii_digit() || b == b'-' || b == b',');
                if !plain {
                    return Err(ClientError::Unfit(format!("'{position}' is not a GTID position")));
                }
                self.query(&format!("SET @slave_connect_state='{position}'"))?;
            }
        }
        let strict = u8::from(me.gtid_strict_mode);
        self.query(&format!("SET @slave_gtid_strict_mode={strict}"))?;
        self.query("SET @slave_gtid_ignore_duplicates=0").map(drop)
    }

    /// Offers semi-synchronous replication. Returns whether the source will wait for acknowledgements.
    fn offer_semi_sync(&mut self, mariadb: bool) -> Result<bool, ClientError> {
        let rows = self.query(
            "SHOW VARIABLES WHERE Variable_name IN ('rpl_semi_sync_master_enabled','rpl_semi_sync_source_enabled')",
        );
        let Some(rows) = optional(rows)? else { return Ok(false) };
        if rows.is_empty() {
            return Ok(false);
        }
        let set = if mariadb {
            "SET @rpl_semi_sync_slave=1"
        } else {
            "SET @rpl_semi_sync_slave=1, @rpl_semi_sync_replica=1"
        };
        self.query(set)?;
        Ok(true)
    }

    fn register(&mut self, me: &Introduction) -> Result<(), ClientError> {
        self.expect_ok(|out| {
            out.push(0x15);
            out.extend_from_slice(&me.server_id.to_le_bytes());
            for text in [me.report_host.as_str(), me.report_user.as_str(), ""] {
                let text = &text.as_bytes()[..text.len().min(60)];
                out.push(text.len() as u8);
                out.extend_from_slice(text);
            }
            out.extend_from_slice(&me.report_port.to_le_bytes());
            // Rank and source id: nobody reads them.
            out.extend_from_slice(&[0; 8]);
        })
    }
}
