//! SHOW, every form of MySQL 8.4 and the MariaDB ones that clients send.

use bytes::Bytes;

use super::{Expr, Ident, Limit, ObjectName, UserName, VarScope};

/// LIKE or WHERE of SHOW.
#[derive(Clone, Debug, PartialEq)]
pub enum ShowFilter {
    /// A pattern with `%` and `_`, raw bytes.
    Like(Bytes),
    Where(Expr),
}

/// SHOW BINLOG EVENTS / RELAYLOG EVENTS.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShowEvents {
    pub file: Option<Bytes>,
    pub position: Option<u64>,
    pub limit: Option<Limit>,
    pub channel: Option<Bytes>,
}

/// SHOW.
#[derive(Clone, Debug, PartialEq)]
pub enum Show {
    Databases(Option<ShowFilter>),
    Tables {
        extended: bool,
        full: bool,
        schema: Option<Ident>,
        filter: Option<ShowFilter>,
    },
    TableStatus {
        schema: Option<Ident>,
        filter: Option<ShowFilter>,
    },
    OpenTables {
        schema: Option<Ident>,
        filter: Option<ShowFilter>,
    },
    Columns {
        extended: bool,
        full: bool,
        table: ObjectName,
        filter: Option<ShowFilter>,
    },
    Index {
        extended: bool,
        table: ObjectName,
        filter: Option<Expr>,
    },
    Triggers {
        schema: Option<Ident>,
        filter: Option<ShowFilter>,
    },
    Events {
        schema: Option<Ident>,
        filter: Option<ShowFilter>,
    },
    CreateTable(ObjectName),
    CreateView(ObjectName),
    /// MariaDB's.
    CreateSequence(ObjectName),
    CreateDatabase {
        if_not_exists: bool,
        name: Ident,
    },
    CreateUser(UserName),
    CreateProcedure(ObjectName),
    CreateFunction(ObjectName),
    CreateTrigger(ObjectName),
    CreateEvent(ObjectName),
    ProcedureStatus(Option<ShowFilter>),
    FunctionStatus(Option<ShowFilter>),
    ProcedureCode(ObjectName),
    FunctionCode(ObjectName),
    /// MariaDB.
    PackageStatus(Option<ShowFilter>),
    Variables {
        scope: VarScope,
        filter: Option<ShowFilter>,
    },
    Status {
        scope: VarScope,
        filter: Option<ShowFilter>,
    },
    ProcessList {
        full: bool,
    },
    Engines,
    EngineStatus {
        engine: Ident,
        what: EngineReport,
    },
    CharacterSet(Option<ShowFilter>),
    Collation(Option<ShowFilter>),
    /// `count` is SHOW COUNT(*) WARNINGS.
    Warnings {
        count: bool,
        limit: Option<Limit>,
    },
    Errors {
        count: bool,
        limit: Option<Limit>,
    },
    Privileges,
    Plugins,
    /// MariaDB: SHOW PLUGINS SONAME.
    PluginsSoname(Option<Bytes>),
    /// No user is the current one.
    Grants {
        user: Option<UserName>,
        /// USING: as if these roles were in force.
        using: Vec<UserName>,
    },
    /// SHOW BINARY LOGS, SHOW MASTER LOGS
    BinaryLogs,
    /// SHOW BINARY LOG STATUS, SHOW MASTER STATUS, MariaDB SHOW BINLOG STATUS
    BinaryLogStatus,
    BinlogEvents(ShowEvents),
    RelayLogEvents(ShowEvents),
    /// SHOW REPLICA STATUS, SHOW SLAVE STATUS; `all` is MariaDB's SHOW ALL SLAVES STATUS.
    ReplicaStatus {
        all: bool,
        channel: Option<Bytes>,
        old_names: bool,
    },
    /// SHOW REPLICAS, SHOW SLAVE HOSTS
    Replicas {
        old_names: bool,
    },
    Profile,
    Profiles,
    /// MariaDB.
    Authors,
    Contributors,
    Explain {
        connection: u64,
    },
    Locales,
    UserStatistics(Ident),
}

/// SHOW ENGINE x STATUS | MUTEX | LOGS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineReport {
    Status,
    Mutex,
    Logs,
}
