//! The counters themselves.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

macro_rules! counters {
    ($($variant:ident = $name:literal,)*) => {
        /// The counters of a session.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)] // the names are those of the status variables
        pub enum Counter { $($variant),* }
        impl Counter {
            /// All, with the names in SHOW STATUS.
            pub const ALL: &'static [(Counter, &'static str)] = &[$((Counter::$variant, $name)),*];
        }
    };
}

counters! {
    BytesReceived = "Bytes_received",
    BytesSent = "Bytes_sent",
    Queries = "Queries",
    Questions = "Questions",
    SlowQueries = "Slow_queries",
    LockWaits = "Table_locks_waited",
    HandlerCommit = "Handler_commit",
    HandlerDelete = "Handler_delete",
    HandlerReadFirst = "Handler_read_first",
    HandlerReadKey = "Handler_read_key",
    HandlerReadLast = "Handler_read_last",
    HandlerReadNext = "Handler_read_next",
    HandlerReadPrev = "Handler_read_prev",
    HandlerReadRndNext = "Handler_read_rnd_next",
    HandlerRollback = "Handler_rollback",
    HandlerUpdate = "Handler_update",
    HandlerWrite = "Handler_write",
    StmtPrepare = "Com_stmt_prepare",
    StmtExecute = "Com_stmt_execute",
    StmtClose = "Com_stmt_close",
    StmtReprepare = "Com_stmt_reprepare",
    StmtReset = "Com_stmt_reset",
    StmtFetch = "Com_stmt_fetch",
    StmtSendLongData = "Com_stmt_send_long_data",
    StatementCacheHits = "Omnibus_statement_cache_hits",
    Restarts = "Omnibus_statement_restarts",
    Blocking = "Omnibus_statement_blocking",
    CommitWaits = "Omnibus_commit_waits",
    StatementTime = "Omnibus_statement_time_us",
    Unindexed = "Omnibus_statements_without_index",
}

const N: usize = Counter::ALL.len();

/// Names behind `Com_`, from the parser's statement kinds and a few that MySQL lists besides.
pub static COM_NAMES: &[&str] = &[
    "admin_commands",
    "alter_db",
    "alter_table",
    "alter_user",
    "alter_user_default_role",
    "analyze",
    "backup",
    "begin",
    "binlog",
    "alter_function",
    "alter_procedure",
    "call_procedure",
    "create_function",
    "create_procedure",
    "create_trigger",
    "drop_event",
    "drop_function",
    "drop_procedure",
    "drop_trigger",
    "get_diagnostics",
    "resignal",
    "signal",
    "change_db",
    "change_repl_filter",
    "change_replication_source",
    "check",
    "checksum",
    "commit",
    "create_db",
    "create_index",
    "create_role",
    "create_table",
    "create_user",
    "create_view",
    "dealloc_sql",
    "delete",
    "delete_multi",
    "do",
    "drop_db",
    "drop_index",
    "drop_role",
    "drop_table",
    "drop_user",
    "drop_view",
    "empty_query",
    "execute_sql",
    "explain_other",
    "flush",
    "grant",
    "ha_close",
    "ha_open",
    "ha_read",
    "help",
    "insert",
    "insert_select",
    "kill",
    "load",
    "lock_instance",
    "lock_tables",
    "optimize",
    "prepare_sql",
    "purge",
    "release_savepoint",
    "rename_table",
    "rename_user",
    "repair",
    "replace",
    "replace_select",
    "replica_reset",
    "replica_start",
    "replica_stop",
    "reset",
    "restart",
    "revoke",
    "rollback",
    "rollback_to_savepoint",
    "savepoint",
    "select",
    "set_option",
    "set_role",
    "show_authors",
    "show_binary_log_status",
    "show_binlog_events",
    "show_binlogs",
    "show_charsets",
    "show_collations",
    "show_contributors",
    "show_create_db",
    "show_create_event",
    "show_create_func",
    "show_create_proc",
    "show_create_table",
    "show_create_trigger",
    "show_create_user",
    "show_databases",
    "show_engine_status",
    "show_errors",
    "show_events",
    "show_explain",
    "show_fields",
    "show_function_code",
    "show_function_status",
    "show_generic",
    "show_grants",
    "show_keys",
    "show_open_tables",
    "show_package_status",
    "show_plugins",
    "show_privileges",
    "show_procedure_code",
    "show_procedure_status",
    "show_processlist",
    "show_profile",
    "show_profiles",
    "show_relaylog_events",
    "show_replica_status",
    "show_replicas",
    "show_status",
    "show_storage_engines",
    "show_table_status",
    "show_tables",
    "show_triggers",
    "show_variables",
    "show_warnings",
    "shutdown",
    "truncate",
    "unlock_instance",
    "unlock_tables",
    "update",
    "update_multi",
    "xa_commit",
    "xa_end",
    "xa_prepare",
    "xa_recover",
    "xa_rollback",
    "xa_start",
    "unsupported",
];

static COM_INDEX: LazyLock<HashMap<&'static str, usize>> =
    LazyLock::new(|| COM_NAMES.iter().enumerate().map(|(i, n)| (*n, i)).collect());

/// The counter of a statement kind.
#[must_use]
pub fn com_index(kind: &str) -> usize {
    COM_INDEX.get(kind).copied().unwrap_or(COM_NAMES.len() - 1)
}

/// One session's figures.
#[derive(Debug)]
pub struct SessionCounters {
    values: [AtomicU64; N],
    com: Box<[AtomicU32]>,
}

impl Default for SessionCounters {
    fn default() -> Self {
        SessionCounters {
            values: std::array::from_fn(|_| AtomicU64::new(0)),
            com: COM_NAMES.iter().map(|_| AtomicU32::new(0)).collect(),
        }
    }
}

impl SessionCounters {
    /// Counts one.
    pub fn add(&self, counter: Counter, n: u64) {
        // Only the owning session writes, so a plain load and store is enough and is cheaper than an
        // atomic read-modify-write.
        let cell = &self.values[counter as usize];
        cell.store(cell.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    /// The value of a counter.
    #[must_use]
    pub fn get(&self, counter: Counter) -> u64 {
        self.values[counter as usize].load(Ordering::Relaxed)
    }

    /// Sets a figure that is kept elsewhere.
    pub fn set(&self, counter: Counter, n: u64) {
        self.values[counter as usize].store(n, Ordering::Relaxed);
    }

    /// Counts a statement of this kind.
    pub fn statement(&self, kind: usize) {
        if let Some(cell) = self.com.get(kind) {
            cell.store(cell.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
    }

    fn add_to(&self, totals: &mut Totals) {
        for (i, cell) in self.values.iter().enumerate() {
            totals.values[i] += cell.load(Ordering::Relaxed);
        }
        for (i, cell) in self.com.iter().enumerate() {
            totals.com[i] += u64::from(cell.load(Ordering::Relaxed));
        }
    }

    /// FLUSH STATUS.
    pub fn clear(&self) {
        self.values.iter().for_each(|c| c.store(0, Ordering::Relaxed));
        self.com.iter().for_each(|c| c.store(0, Ordering::Relaxed));
    }
}

/// Sums.
#[derive(Clone, Debug)]
pub struct Totals {
    /// By `Counter`.
    pub values: [u64; N],
    /// By `COM_NAMES`.
    pub com: Vec<u64>,
}

impl Default for Totals {
    fn default() -> Self {
        Totals { values: [0; N], com: vec![0; COM_NAMES.len()] }
    }
}

impl Totals {
    /// Of these sessions.
    pub fn of<'a>(sessions: impl Iterator<Item = &'a SessionCounters>) -> Totals {
        let mut totals = Totals::default();
        sessions.for_each(|s| s.add_to(&mut totals));
        totals
    }
}

/// The server's own counters, besides its sessions'.
#[derive(Debug, Default)]
pub struct ServerCounters {
    /// Connections attempted.
    pub connections: AtomicU64,
    /// Connections refused by max_connections.
    pub refused_max: AtomicU64,
    /// Logins that failed.
    pub aborted_connects: AtomicU64,
    /// Clients that went away without COM_QUIT.
    pub aborted_clients: AtomicU64,
    /// Sockets accepted.
    pub threads_created: AtomicU64,
    /// Connections at present, logged in or not.
    pub connected: AtomicU64,
    /// The most there ever were.
    pub max_used: AtomicU64,
    /// When `max_used` was reached, seconds since the epoch.
    pub max_used_us: AtomicU64,
    /// Prepared statements at present.
    pub prepared: AtomicU64,
    /// Start, microseconds since the epoch.
    pub started_us: std::sync::atomic::AtomicI64,
    /// Sums of the sessions that are gone.
    gone: parking_lot::Mutex<Totals>,
}

impl ServerCounters {
    /// A session ends: its figures are kept.
    pub fn retire(&self, session: &SessionCounters) {
        session.add_to(&mut self.gone.lock());
    }

    /// The server's sums.
    #[must_use]
    pub fn totals<'a>(&self, live: impl Iterator<Item = &'a SessionCounters>) -> Totals {
        let mut totals = self.gone.lock().clone();
        live.for_each(|s| s.add_to(&mut totals));
        totals
    }

    /// One more connection: the number now, this one included.
    pub fn connect(&self) -> u64 {
        let now = self.connected.fetch_add(1, Ordering::Relaxed) + 1;
        if self.max_used.fetch_max(now, Ordering::Relaxed) < now {
            self.max_used_us.store(crate::clock::now_us().unsigned_abs(), Ordering::Relaxed);
        }
        now
    }
}
