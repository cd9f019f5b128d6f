//! A session: what it holds, how it is opened, reset and closed. How it runs a statement is in `run`.

use super::Database;
use super::ReadText;
use super::attempt::Attempts;
use super::binlog::BinlogInput;
use super::evaluate;
use super::next_gtid::{Given, NextGtid};
use super::statements::StatementCache;
use crate::api::{AccessCheck, Budget, Isolation, KillFlag, SessionSettings};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::load::LoadInput;
use crate::memory::SessionMemory;
use crate::session::programs::{Interpreter, Machine};
use crate::state::{ClientConnection, NamedLocks, ProgramState, SessionState};
use crate::store::{SessionWatch, Trx};
use bytes::Bytes;
use omnibus_commit::Ticket;
use omnibus_engine::CommitNo;
use omnibus_parser::ast::{Expr, Spanned, Statement};
use omnibus_value::{ColumnType, Value};
use std::sync::Arc;

/// One client's session. Used by one thread at a time.
pub struct SqlSession {
    /// The state that expressions and the server see.
    pub state: SessionState,
    pub(crate) database: Arc<Database>,
    pub(crate) trx: Trx,
    pub(super) statements: StatementCache,
    /// `gtid_next`.
    pub(super) gtid: NextGtid,
    /// SET TRANSACTION: for the next transaction only.
    pub(super) next: NextTransaction,
    /// The running statement.
    pub(super) attempts: Attempts,
    /// How changes are run that others logged.
    pub(crate) replayed: Replayed,
    pub(crate) interpreter: Arc<Interpreter>,
    pub(crate) waiting: WaitingCalls,
}

/// The characteristics that SET TRANSACTION without a scope gives the next transaction.
#[derive(Default)]
pub(super) struct NextTransaction {
    isolation: Option<Isolation>,
    read_only: Option<bool>,
}

impl NextTransaction {
    /// A transaction begins: it has the characteristics that it was given, and those of `settings` else.
    pub(super) fn take(&mut self, settings: &SessionSettings) -> (Isolation, bool) {
        let next = std::mem::take(self);
        (next.isolation.unwrap_or(settings.isolation), next.read_only.unwrap_or(settings.read_only))
    }

    /// The characteristics, for a statement that is a transaction of its own.
    pub(super) fn said(&self) -> (Option<Isolation>, Option<bool>) {
        (self.isolation, self.read_only)
    }

    /// It was for a transaction that is over.
    pub(super) fn forget(&mut self) {
        *self = NextTransaction::default();
    }

    fn set(&mut self, isolation: Option<Isolation>, read_only: Option<bool>) {
        self.isolation = isolation.or(self.isolation);
        self.read_only = read_only.or(self.read_only);
    }
}

/// How statements and rows are run that others logged.
#[derive(Default)]
pub(crate) struct Replayed {
    pub(super) binlog_input: BinlogInput,
    /// Statements that write read rows under shared locks, and so see what is committed but not durable yet: an applier's transactions
    /// follow each other without waiting for the device.
    pub(crate) reads_newest: bool,
    /// A statement that fails with this error keeps what it did before: changes of tables without transactions, as their source kept
    /// them.
    pub(crate) keep_failed: Option<u16>,
    /// CREATE TABLE is the first part of a transaction: its rows follow.
    pub(crate) leaves_open: bool,
}

/// The calls of a session that wait for the server to run a statement of theirs.
#[derive(Default)]
pub(crate) struct WaitingCalls {
    /// Procedures that wait for the server, innermost last.
    pub(crate) suspended: Vec<Machine>,
    /// The server's result for the innermost of them.
    pub(crate) answer: Option<SqlResult<()>>,
}

impl SqlSession {
    /// A session without a transaction. `id` is its connection id.
    #[must_use]
    pub fn new(database: Arc<Database>, id: u32, kill: Arc<KillFlag>) -> SqlSession {
        let budget = Arc::new(Budget::new(kill.clone(), database.shared.turns.clone()));
        let memory = SessionMemory::of_client(database.shared.memory.clone(), kill.clone());
        let trx = Trx::new(database.shared.clone(), u64::from(id), budget.clone(), &memory);
        let mut state = SessionState::new(ClientConnection::new(id, memory.clone()), budget);
        let interpreter = Interpreter::new(&database, &memory);
        let named_locks = NamedLocks::new(&database.shared.locks, trx.locks.rows.owner(), &memory);
        state.programs = ProgramState::new(interpreter.clone(), &memory);
        let collation = Database::default_collation();
        state.settings.collation_connection = collation;
        state.settings.collation_client = collation;
        state.settings.collation_results = collation;
        state.settings.collation_server = collation;
        state.held.locks = Some(named_locks);
        SqlSession {
            state,
            database,
            trx,
            statements: StatementCache::new(&kill),
            gtid: NextGtid::default(),
            next: NextTransaction::default(),
            attempts: Attempts::default(),
            replayed: Replayed::default(),
            interpreter,
            waiting: WaitingCalls::default(),
        }
    }

    /// The database behind it.
    #[must_use]
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// The means by which KILL ends a lock wait, beside the kill flag, and others see the transaction.
    #[must_use]
    pub fn watch(&self) -> Arc<SessionWatch> {
        self.trx.locks.rows.watch()
    }

    /// SERVER_STATUS_IN_TRANS.
    #[must_use]
    pub fn in_transaction(&self) -> bool {
        self.trx.is_open()
    }

    /// Whether another session has LOCK INSTANCE FOR BACKUP.
    #[must_use]
    pub fn others_back_up(&self) -> bool {
        self.trx.locks.backup.is_others()
    }

    /// The transaction, for the server's own statements on system tables.
    pub fn trx(&mut self) -> &mut Trx {
        &mut self.trx
    }

    /// Parses the first statement of a text; also says where the next one begins. Only a text that is prepared may have `?`.
    ///
    /// # Errors
    /// 1064 and its kind.
    pub fn parse(
        &mut self,
        text: &Bytes,
        to_prepare: bool,
    ) -> SqlResult<(Arc<Spanned<Statement>>, Option<usize>)> {
        self.state.command.account.clear();
        let SessionState { settings, command, .. } = &mut self.state;
        self.statements.parse(text, settings, to_prepare, &mut command.account)
    }

    /// Reads a client's text: its first statement, which may be one that was prepared for texts with other values.
    ///
    /// # Errors
    /// 1064 and its kind.
    pub fn read(&mut self, text: &Bytes) -> SqlResult<ReadText> {
        self.state.command.account.clear();
        let SessionState { settings, command, .. } = &mut self.state;
        self.statements.read(text, settings, &mut command.account)
    }

    /// SET TRANSACTION without a scope.
    ///
    /// # Errors
    /// 1568 inside a transaction.
    pub fn set_next_transaction(
        &mut self,
        isolation: Option<Isolation>,
        read_only: Option<bool>,
    ) -> SqlResult<()> {
        if self.trx.is_open() {
            return Err(SqlError::cant_change_tx_characteristics());
        }
        self.next.set(isolation, read_only);
        Ok(())
    }

    /// The file for the LOAD DATA that is executed next, whatever file it names: a client's, or one
    /// that comes with a replicated statement.
    pub fn supply_file(&mut self, input: LoadInput) {
        self.attempts.load_input = Some(input);
    }

    /// Takes the server's result of the statement that a CALL waits for.
    pub fn answer(&mut self, answer: SqlResult<()>) {
        self.waiting.answer = Some(answer);
    }

    /// Waits for a commit of the session that has more to do once it is committed (`KillFlag::settle`). Blocks.
    ///
    /// # Errors
    /// KILL, what the commit ended with: it has left nothing behind.
    pub fn settle(&mut self, ticket: Ticket) -> SqlResult<CommitNo> {
        self.context().settle(ticket)
    }

    /// The value and type of an expression without tables: SET and its kind. Subqueries read what the open transaction sees.
    ///
    /// # Errors
    /// As any statement.
    pub fn evaluate(&mut self, expr: &Expr, access: &dyn AccessCheck) -> ExecResult<(Value, ColumnType)> {
        evaluate::value(&mut self.context(), expr, &[], false, access)
    }

    /// The client is gone: everything open is rolled back.
    pub fn close(&mut self) {
        if self.gtid.given != Given::Automatic {
            self.gtid.given = Given::Automatic;
            self.trx.log.take_applied();
        }
        self.trx.leave_branch();
        self.trx.locks.unlock_tables();
        self.trx.locks.backup.release();
        self.trx.abandon();
        self.state.held.handlers.close_all();
        if let Some(locks) = &mut self.state.held.locks {
            locks.release_all();
        }
        self.trx.temp.drop_tables();
        assert!(!self.trx.is_open() && self.trx.branch.get().is_none(), "SESSION-2: nothing stays open");
    }

    /// COM_RESET_CONNECTION and COM_CHANGE_USER: as `close`, and the session's own memory goes.
    /// Settings and the current database are the server's to reset.
    pub fn reset(&mut self) {
        self.close();
        self.state.reset();
        self.statements = StatementCache::new(self.state.budget.kill());
        self.replayed.binlog_input = BinlogInput::default();
        self.next = NextTransaction::default();
        self.attempts = Attempts::default();
        self.waiting = WaitingCalls::default();
    }
}
