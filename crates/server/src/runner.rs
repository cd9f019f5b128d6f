//! What a session asks of the SQL layer. One implementation adapts `omnibus_sql`; tests have a small one.

use bytes::Bytes;
use omnibus_locks::{LockTarget, WaitOutcome};
use omnibus_parser::ast::{Spanned, Statement};
use omnibus_sql::{
    AccessCheck, ExecResult, Floor, GivenGtid, Isolation, KillFlag, Mode, Outcome, ProgramDef, ResultColumn,
    RowSink, SessionHost, SessionSettings, SessionState, SqlError, SqlResult,
};
use omnibus_value::Value;
use std::any::Any;
use std::sync::Arc;

/// A parsed statement and its text.
#[derive(Debug)]
pub struct Parsed {
    /// The text of this one statement.
    pub text: bytes::Bytes,
    /// Its tree.
    pub statement: Arc<Spanned<Statement>>,
    /// `Com_` counter.
    pub kind: usize,
}

/// Longer texts are parsed, planned and run where that may take long: a byte costs some ten nanoseconds.
const INLINE_TEXT: usize = 32 << 10;

/// Where a text may be parsed, and where its statement is tried first.
#[must_use]
pub fn first_mode(text: &[u8]) -> Mode {
    if text.len() > INLINE_TEXT { Mode::Blocking } else { Mode::Inline }
}

impl Parsed {
    /// Where it is tried first.
    #[must_use]
    pub fn first_mode(&self) -> Mode {
        first_mode(&self.text)
    }
}

/// What surrounds an execution.
pub struct RunContext<'a> {
    /// Whether it may block.
    pub mode: Mode,
    /// What the account may do.
    pub access: &'a dyn AccessCheck,
}

/// The state of the session's transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrxState {
    /// One is open.
    pub open: bool,
    /// It is READ ONLY.
    pub read_only: bool,
}

/// Where a snapshot is in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotPlace {
    /// File name without its folder.
    pub file: String,
    /// Offset behind the last transaction in it.
    pub position: u64,
    /// That transaction's commit number.
    pub number: u64,
}

/// What the SQL layer keeps of a prepared statement: plans and the like.
pub type PreparedHandle = Box<dyn Any + Send>;

/// What the client is told of one.
pub struct PreparedInfo {
    /// The SQL layer's part.
    pub handle: PreparedHandle,
    /// Result columns, none for statements without rows.
    pub columns: Vec<ResultColumn>,
}

/// Ends a lock wait. Called on other sessions' threads; does not block.
pub type KillHook = Box<dyn Fn() + Send + Sync>;

/// The lock that a thread is parked for. Called on other sessions' threads; does not block.
pub type WaitProbe = Box<dyn Fn() -> Option<LockTarget> + Send + Sync>;

/// A session of the SQL layer. One statement at a time.
pub trait Runner: Send {
    /// Session state.
    fn state(&self) -> &SessionState;
    /// The SQL layer's own session, for what the server does in its transactions; tests may have none.
    fn sql_session(&mut self) -> Option<&mut omnibus_sql::SqlSession> {
        None
    }
    /// What replies wait for; tests may have none.
    fn floor(&self) -> Option<Arc<Floor>> {
        None
    }
    /// Session state, to be changed between statements.
    fn state_mut(&mut self) -> &mut SessionState;
    /// Parses the first statement of a text and says where the next one starts.
    /// Only a text that is prepared may have `?`.
    fn parse(
        &mut self,
        text: &bytes::Bytes,
        to_prepare: bool,
    ) -> SqlResult<(Arc<Spanned<Statement>>, Option<usize>)>;
    /// SET TRANSACTION without a scope; error 1568 inside a transaction.
    fn set_next_transaction(
        &mut self,
        isolation: Option<Isolation>,
        read_only: Option<bool>,
    ) -> SqlResult<()>;
    /// The transaction.
    fn trx(&self) -> TrxState;
    /// Whether another session has LOCK INSTANCE FOR BACKUP.
    fn others_back_up(&self) -> bool {
        false
    }
    /// Runs a statement. An interrupt other than an error means: run it again later.
    fn execute(
        &mut self,
        parsed: &Arc<Parsed>,
        context: &RunContext<'_>,
        sink: &mut dyn RowSink,
    ) -> ExecResult<Outcome>;
    /// Checks and plans a statement. An error that `is_needs_blocking` asks for it again where it may block.
    fn prepare(&mut self, parsed: &Arc<Parsed>, context: &RunContext<'_>) -> SqlResult<PreparedInfo>;
    /// A statement's text with values as literals in the places of its `?`.
    fn with_params(&self, text: &Bytes, params: &[Value]) -> Bytes;
    /// The text of a statement that PREPARE has given a name.
    fn prepared_text(&self, name: &str) -> Option<Bytes>;
    /// Runs a prepared statement.
    fn execute_prepared(
        &mut self,
        parsed: &Arc<Parsed>,
        handle: &mut PreparedHandle,
        params: &[Value],
        context: &RunContext<'_>,
        sink: &mut dyn RowSink,
    ) -> ExecResult<Outcome>;
    /// A lock wait ended without the lock: what the statement fails with. A deadlock's victim is
    /// rolled back here.
    fn wait_failed(&mut self, outcome: WaitOutcome) -> SqlError;
    /// The client's file that an execution asked for (`Interrupt::NeedFile`), for the next one.
    fn supply_file(&mut self, _file: omnibus_sql::load::LoadInput) {}
    /// What the server has made of a statement that a procedure waits for.
    fn answer(&mut self, _answer: SqlResult<()>) {}
    /// A statement that was interrupted will not be run again.
    fn give_up(&mut self, _error: &SqlError) {}
    /// What ends a lock wait that parks a thread, for KILL from another session.
    fn kill_hook(&self) -> Option<KillHook> {
        None
    }
    /// What tells a lock wait that parks a thread, for SHOW PROCESSLIST.
    fn wait_probe(&self) -> Option<WaitProbe> {
        None
    }
    /// `gtid_next`: what id the next transaction has.
    fn give_gtid(&mut self, _given: GivenGtid) -> SqlResult<()> {
        Ok(())
    }
    /// Whether an id of `gtid_seq_no` waits for its transaction.
    fn gtid_waits(&self) -> bool {
        false
    }
    /// The commit that the last statement began did not come about: nothing of the transaction is left.
    fn commit_failed(&mut self) {}
    /// Whether the last statement has committed.
    fn has_committed(&mut self) -> bool {
        false
    }
    /// Forgets a KILL QUERY whose statement is over.
    fn clear_kill(&mut self) {}
    /// Where the open transaction's snapshot is in the log, if it was taken with that.
    fn snapshot_place(&mut self) -> Option<SnapshotPlace> {
        None
    }
    /// How long a writer should wait after its commit, because the engine cannot keep up.
    fn write_stall(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }
    /// Rolls back, releases table locks, drops temporary tables, forgets user variables. Blocks.
    fn reset(&mut self);
}

/// Who a new session is for.
pub struct RunnerIdentity {
    /// CONNECTION_ID().
    pub connection_id: u32,
    /// Name given at login.
    pub user: String,
    /// Where from.
    pub host_name: String,
    /// CURRENT_USER().
    pub account: String,
    /// Settings to start with.
    pub settings: SessionSettings,
    /// Callbacks.
    pub host: Arc<dyn SessionHost>,
    /// KILL.
    pub kill: Arc<KillFlag>,
}

/// A session that waits for a lock.
#[derive(Clone, Debug)]
pub struct LockedOut {
    /// Its connection.
    pub waiter: u64,
    /// Connections that it waits for.
    pub blockers: Vec<u64>,
    /// The lock's mode.
    pub mode: &'static str,
    /// The table's database; empty if it is gone.
    pub db: String,
    /// The table.
    pub table: String,
    /// The index whose entry it is, if it is no table's lock.
    pub index: Option<String>,
    /// Since when.
    pub waited: std::time::Duration,
}

impl LockedOut {
    /// `db.table`.
    #[must_use]
    pub fn table_name(&self) -> String {
        if self.table.is_empty() { String::new() } else { format!("{}.{}", self.db, self.table) }
    }
}

/// A table's lock, with the names that it stands for.
#[derive(Clone, Debug)]
pub struct TableLocked {
    /// `db` and name; `None`: all tables (FLUSH TABLES WITH READ LOCK).
    pub table: Option<(String, String)>,
    /// The connection.
    pub owner: u64,
    /// `IS`, `IX`, `S`, `SIX` or `X`.
    pub mode: &'static str,
    /// It has it.
    pub granted: bool,
}

/// Makes sessions of the SQL layer.
pub trait RunnerFactory: Send + Sync {
    /// A new one.
    fn open(&self, identity: RunnerIdentity) -> SqlResult<Box<dyn Runner>>;
    /// Whether a database is there.
    fn database_exists(&self, name: &str) -> bool;
    /// The events of all databases. Does not block.
    fn events(&self) -> Vec<Arc<ProgramDef>> {
        Vec::new()
    }
    /// Who waits for a lock now.
    fn lock_waits(&self) -> Vec<LockedOut> {
        Vec::new()
    }
    /// Who has, or wants, which table.
    fn table_locks(&self) -> Vec<TableLocked> {
        Vec::new()
    }
    /// Bytes that all statements and sessions hold.
    fn memory(&self) -> u64 {
        0
    }
    /// Lines for SHOW STATUS. Does not block.
    fn counters(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}
