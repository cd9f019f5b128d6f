//! The log and the commit pipeline as administration sees them. Implemented where the server is put together.
//!
//! Methods may block on a file; the server calls them from `block_in_place`, except the getters that
//! say otherwise.

use crate::backup::{BackupInfo, BackupTarget};
use crate::sysvars::VarValue;
use omnibus_commit::Coordinator;
use omnibus_format::Dialect;
use omnibus_log::LogHandle;
use omnibus_sql::{KillFlag, SqlError, SqlResult};
use std::sync::Arc;

/// Where the log ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogStatus {
    /// File name without its folder.
    pub file: String,
    /// Offset of the next event.
    pub position: u64,
}

/// One file of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFile {
    /// File name without its folder.
    pub name: String,
    /// Its length, as positions count: of the active file, up to the end of the log.
    pub size: u64,
    /// Whether it is encrypted.
    pub encrypted: bool,
}

/// One line of SHOW BINLOG EVENTS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEvent {
    /// File.
    pub file: String,
    /// Offset.
    pub position: u64,
    /// Kind, as MySQL names it.
    pub kind: String,
    /// The server that wrote it first.
    pub server_id: u32,
    /// Offset of the next event.
    pub end: u64,
    /// Its content, as SHOW BINLOG EVENTS tells it.
    pub info: String,
}

/// The log's administration.
pub trait LogAdmin: Send + Sync {
    /// The coordinator, if there is one: for what is about global transaction ids.
    fn coordinator(&self) -> Option<&Arc<Coordinator>> {
        None
    }
    /// The server family whose ids and events the log has.
    fn dialect(&self) -> Dialect {
        Dialect::Mysql
    }
    /// `gtid_executed`. Does not block.
    fn gtid_executed(&self) -> String;
    /// `gtid_executed` of a snapshot: everything up to a commit number. Does not block.
    fn gtid_executed_at(&self, _number: u64) -> String {
        self.gtid_executed()
    }
    /// `gtid_purged`. Does not block.
    fn gtid_purged(&self) -> String;
    /// The end of the log. Does not block.
    fn status(&self) -> LogStatus;
    /// The log itself, for those who read it. Does not block.
    fn handle(&self) -> Option<LogHandle> {
        None
    }
    /// The files, oldest first.
    fn files(&self) -> SqlResult<Vec<LogFile>>;
    /// Hands on the events of a file (the first one if none is named) from an offset on, until `each` fails or wants no more.
    fn events(
        &self,
        file: Option<&str>,
        from: u64,
        each: &mut dyn FnMut(LogEvent) -> SqlResult<bool>,
    ) -> SqlResult<()>;
    /// FLUSH BINARY LOGS: starts a new file.
    fn rotate(&self) -> SqlResult<()>;
    /// ALTER INSTANCE ROTATE BINLOG MASTER KEY.
    fn rotate_master_key(&self) -> SqlResult<()> {
        Err(SqlError::not_supported_yet("ALTER INSTANCE ROTATE BINLOG MASTER KEY"))
    }
    /// ALTER INSTANCE ROTATE INNODB MASTER KEY.
    fn rotate_table_key(&self) -> SqlResult<()> {
        Err(SqlError::not_supported_yet("ALTER INSTANCE ROTATE INNODB MASTER KEY"))
    }
    /// BACKUP TO: copies everything into a new folder, at one position of the log, at most until KILL.
    fn backup_to(&self, _target: &BackupTarget, _kill: &KillFlag) -> SqlResult<BackupInfo> {
        Err(SqlError::not_supported_yet("BACKUP"))
    }
    /// PURGE BINARY LOGS TO. Returns a warning if a reader made it end early.
    fn purge_to(&self, file: &str) -> SqlResult<Option<SqlError>>;
    /// PURGE BINARY LOGS BEFORE, seconds since the epoch. Warns likewise.
    fn purge_before(&self, unix: i64) -> SqlResult<Option<SqlError>>;
    /// RESET BINARY LOGS AND GTIDS.
    fn reset(&self, to: Option<u64>) -> SqlResult<()>;
    /// A variable of the log or of commit was set; refuse what cannot be done. Does not block.
    fn set_variable(&self, name: &str, value: &VarValue) -> SqlResult<()>;
    /// Lines for SHOW STATUS: counters and gauges, names in MySQL's style. Does not block.
    fn counters(&self) -> Vec<(String, String)>;
}
