//! Transactions, locks, replication control and other administration.

use bytes::Bytes;

use super::{Expr, Ident, ObjectName};

/// START TRANSACTION and BEGIN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StartTransaction {
    pub consistent_snapshot: bool,
    /// READ ONLY: Some(true); READ WRITE: Some(false).
    pub read_only: Option<bool>,
}

/// `AND [NO] CHAIN`, `[NO] RELEASE`; `None` leaves it to `completion_type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    pub chain: Option<bool>,
    pub release: Option<bool>,
}

/// A global transaction identifier of XA.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct XaId {
    pub gtrid: Bytes,
    pub bqual: Bytes,
    /// 1 when it was not written.
    pub format_id: u32,
}

/// XA statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Xa {
    Start { xid: XaId, join: bool, resume: bool },
    End { xid: XaId, suspend: bool, for_migrate: bool },
    Prepare(XaId),
    Commit { xid: XaId, one_phase: bool },
    Rollback(XaId),
    Recover { convert_xid: bool },
}

/// One member of LOCK TABLES.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableLock {
    pub table: ObjectName,
    pub alias: Option<Ident>,
    pub write: bool,
    /// READ LOCAL, LOW_PRIORITY WRITE.
    pub local: bool,
}

/// KILL.
#[derive(Clone, Debug, PartialEq)]
pub struct Kill {
    /// KILL QUERY: the statement only.
    pub query: bool,
    /// MariaDB HARD / SOFT; `true` is SOFT.
    pub soft: bool,
    pub target: KillTarget,
}

/// The target of KILL.
#[derive(Clone, Debug, PartialEq)]
pub enum KillTarget {
    Connection(Expr),
    /// MariaDB KILL USER.
    User(super::UserName),
    /// MariaDB KILL QUERY ID n.
    QueryId(Expr),
}

/// FLUSH.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flush {
    /// NO_WRITE_TO_BINLOG or LOCAL.
    pub local: bool,
    pub targets: Vec<FlushTarget>,
}

impl Flush {
    /// Whether it locks tables for its session.
    pub fn takes_locks(&self) -> bool {
        let locks = |target: &FlushTarget| {
            matches!(
                target,
                FlushTarget::Tables { read_lock: true, .. } | FlushTarget::Tables { for_export: true, .. }
            )
        };
        self.targets.iter().any(locks)
    }
}

/// The target of FLUSH.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlushTarget {
    BinaryLogs,
    EngineLogs,
    ErrorLogs,
    GeneralLogs,
    SlowLogs,
    RelayLogs {
        channel: Option<Bytes>,
    },
    Logs,
    Privileges,
    Status,
    Hosts,
    UserResources,
    OptimizerCosts,
    QueryCache,
    DesKeyFile,
    Tables {
        tables: Vec<ObjectName>,
        read_lock: bool,
        for_export: bool,
    },
    Master,
    Replica,
    Ssl,
    /// MariaDB's TABLE_STATISTICS, INDEX_STATISTICS, USER_STATISTICS and CLIENT_STATISTICS.
    Statistics,
    /// MariaDB and anything newer, by its words.
    Other(Ident),
}

/// RESET.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reset {
    /// `RESET MASTER [TO n]`, `RESET BINARY LOGS AND GTIDS [TO n]`.
    BinaryLogs {
        to: Option<u64>,
    },
    Replica {
        all: bool,
        channel: Option<Bytes>,
    },
    QueryCache,
    Persist {
        if_exists: bool,
        name: Option<Ident>,
    },
}

/// PURGE BINARY LOGS.
#[derive(Clone, Debug, PartialEq)]
pub enum Purge {
    To(Bytes),
    Before(Expr),
}

/// CHANGE MASTER TO and CHANGE REPLICATION SOURCE TO.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeSource {
    /// MariaDB's connection name, or MySQL's FOR CHANNEL.
    pub channel: Option<Bytes>,
    /// Upper-case MySQL 8.4 names (SOURCE_HOST, SOURCE_LOG_FILE, SOURCE_USE_GTID, ...) whatever
    /// was written, in order.
    pub options: Vec<(Ident, SourceValue)>,
}

/// Value of a CHANGE SOURCE option.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceValue {
    Str(Bytes),
    Int(u64),
    Decimal(Bytes),
    /// A word: NULL, current_pos, slave_pos, no, ON, LOCAL, AUTO, ...
    Word(Ident),
    /// IGNORE_SERVER_IDS and the MariaDB domain-id lists.
    Ids(Vec<u64>),
}

/// START REPLICA.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StartReplica {
    pub io_thread: bool,
    pub sql_thread: bool,
    /// UNTIL conditions, as in `ChangeSource`.
    pub until: Vec<(Ident, SourceValue)>,
    /// USER, PASSWORD, DEFAULT_AUTH, PLUGIN_DIR.
    pub connection: Vec<(Ident, SourceValue)>,
    pub channel: Option<Bytes>,
    /// MariaDB START ALL SLAVES.
    pub all: bool,
}

/// STOP REPLICA; neither thread named is both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StopReplica {
    pub io_thread: bool,
    pub sql_thread: bool,
    pub channel: Option<Bytes>,
    /// MariaDB STOP ALL SLAVES.
    pub all: bool,
}

/// BACKUP statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backup {
    To(Bytes),
    /// MariaDB BACKUP STAGE x.
    Stage(Ident),
    Lock(ObjectName),
    Unlock,
}

/// ANALYZE, CHECK, CHECKSUM, OPTIMIZE, REPAIR TABLE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Maintenance {
    pub kind: MaintenanceKind,
    /// NO_WRITE_TO_BINLOG or LOCAL.
    pub local: bool,
    pub tables: Vec<ObjectName>,
    /// QUICK, EXTENDED, FOR UPGRADE, ...: upper case.
    pub options: Vec<Ident>,
    /// The change of columns' histograms.
    pub histograms: Option<Histograms>,
}

/// UPDATE HISTOGRAM or DROP HISTOGRAM of ANALYZE TABLE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histograms {
    pub columns: Vec<Ident>,
    pub change: HistogramChange,
}

/// The change of a histogram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistogramChange {
    /// UPDATE .. [WITH n BUCKETS] [AUTO UPDATE].
    Update {
        buckets: Option<u64>,
        auto: bool,
    },
    /// UPDATE .. USING DATA 'document'.
    Given(Bytes),
    Drop,
}

/// The kind of maintenance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaintenanceKind {
    Analyze,
    Check,
    Checksum,
    Optimize,
    Repair,
}
