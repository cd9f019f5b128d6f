//! A session: what it holds, how it is opened, reset and closed. How it runs a statement is in `run`.

use super::Database;
use super::binlog::BinlogInput;
use super::given::{Given, GivenCommit};
use super::statements::StatementCache;
use crate::api::{Budget, Isolation, KillFlag};
use crate::catalog::Catalog;
use crate::error::{SqlError, SqlResult};
use crate::load::LoadInput;
use crate::memory::SessionMemory;
use crate::session::programs::{Interpreter, Machine};
use crate::state::{NamedLocks, NewInsertId, ProgramState, SessionState};
use crate::store::{LockWaiter, Trx};
use bytes::Bytes;
use omnibus_parser::ast::{Spanned, Statement};
use std::sync::Arc;

/// One client's session. Used by one thread at a time.
pub struct SqlSession {
    /// What expressions and the server see of it.
    pub state: SessionState,
    pub(crate) database: Arc<Database>,
    pub(crate) trx: Trx,
    pub(crate) kill: Arc<KillFlag>,
    pub(super) statements: StatementCache,
    pub(super) binlog_input: BinlogInput,
    /// The file that the running LOAD DATA was given.
    pub(super) load_input: Option<LoadInput>,
    /// `gtid_next`.
    pub(super) given: Given,
    pub(super) commits_given: GivenCommit,
    /// SET TRANSACTION: for the next transaction only.
    pub(super) next_isolation: Option<Isolation>,
    pub(super) next_read_only: Option<bool>,
    /// The statement is being run again after an interrupt: it began at the first attempt.
    pub(super) resumed: bool,
    /// How often it has met a lock.
    pub(super) waits: u8,
    /// It executes what others logged: statements that write read the newest versions, under locks.
    pub(super) reads_newest: bool,
    /// A statement that fails with this error keeps what it did before.
    pub(super) keep_failed: Option<u16>,
    /// CREATE TABLE is the first part of a transaction: its rows follow.
    pub(crate) leaves_open: bool,
    pub(crate) interpreter: Arc<Interpreter>,
    /// Procedures that wait for the server, innermost last, and what it has to say to that one.
    pub(crate) suspended: Vec<Machine>,
    pub(crate) answer: Option<SqlResult<()>>,
}

impl SqlSession {
    /// A session without a transaction. `id` is its connection id.
    #[must_use]
    pub fn new(database: Arc<Database>, id: u32, kill: Arc<KillFlag>) -> SqlSession {
        let budget = Arc::new(Budget::new(kill.clone(), database.shared.turns.clone()));
        let mut trx = Trx::new(database.shared.clone(), u64::from(id), budget.clone());
        let memory = Arc::new(SessionMemory::of(database.shared.memory.clone()));
        trx.count_with(&memory);
        let mut state = SessionState { connection_id: id, budget, ..SessionState::default() };
        let interpreter = Interpreter::new(&database);
        state.programs = ProgramState::new(interpreter.clone(), &memory);
        state.count_with(memory);
        let collation = Database::default_collation();
        state.settings.collation_connection = collation;
        state.settings.collation_client = collation;
        state.settings.collation_results = collation;
        state.settings.collation_server = collation;
        state.named_locks = Some(NamedLocks::new(&database.shared.locks, id, trx.lock_handle_owner()));
        SqlSession {
            state,
            database,
            trx,
            kill,
            statements: StatementCache::default(),
            binlog_input: BinlogInput::default(),
            load_input: None,
            given: Given::Automatic,
            commits_given: GivenCommit::None,
            next_isolation: None,
            next_read_only: None,
            resumed: false,
            waits: 0,
            reads_newest: false,
            keep_failed: None,
            leaves_open: false,
            interpreter,
            suspended: Vec::new(),
            answer: None,
        }
    }

    /// Writing statements of this session read rows under shared locks from now on, and so see what is committed but not
    /// durable yet: an applier's transactions follow each other without waiting for the device.
    pub(crate) fn read_newest(&mut self) {
        self.reads_newest = true;
        self.state.budget.take_no_turns();
    }

    /// Whether a statement that fails keeps what it did before, if it fails with this error: changes of tables without
    /// transactions, as their source kept them.
    pub(crate) fn keep_failed(&mut self, error: Option<u16>) {
        self.keep_failed = error;
    }

    /// The database behind it.
    #[must_use]
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// What KILL uses to end a lock wait, beside the kill flag.
    #[must_use]
    pub fn lock_waiter(&self) -> Arc<LockWaiter> {
        self.trx.lock_waiter()
    }

    /// SERVER_STATUS_IN_TRANS.
    #[must_use]
    pub fn in_transaction(&self) -> bool {
        self.trx.is_open()
    }

    /// Whether another session has LOCK INSTANCE FOR BACKUP.
    #[must_use]
    pub fn others_back_up(&self) -> bool {
        self.trx.others_back_up()
    }

    /// The transaction, for the server's own statements on system tables.
    pub fn trx(&mut self) -> &mut Trx {
        &mut self.trx
    }

    /// Parses the first statement of a text; also says where the next one begins.
    ///
    /// # Errors
    /// 1064 and its kind.
    pub fn parse(&mut self, text: &Bytes) -> SqlResult<(Arc<Spanned<Statement>>, Option<usize>)> {
        self.statements.parse(text, &self.state.settings)
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
        self.next_isolation = isolation.or(self.next_isolation);
        self.next_read_only = read_only.or(self.next_read_only);
        Ok(())
    }

    /// The file for the LOAD DATA that is executed next, whatever file it names: a client's, or one
    /// that comes with a replicated statement.
    pub fn supply_file(&mut self, input: LoadInput) {
        self.load_input = Some(input);
    }

    /// A commit that was handed over was refused: its locks are the session's to release.
    pub fn commit_failed(&mut self) {
        if !self.trx.is_open() {
            self.trx.commit_is_over();
            self.trx.rollback();
        }
    }

    /// The client is gone: everything open is rolled back.
    pub fn close(&mut self) {
        if self.given != Given::Automatic {
            self.given = Given::Automatic;
            self.trx.take_applied();
        }
        self.trx.leave_branch();
        self.trx.unlock_tables();
        self.trx.unlock_instance();
        self.trx.abandon();
        if let Some(locks) = &mut self.state.named_locks {
            locks.release_all();
        }
        self.trx.drop_temporary_tables();
    }

    /// COM_RESET_CONNECTION and COM_CHANGE_USER: as `close`, and the session's own memory goes.
    /// Settings and the current database are the server's to reset.
    pub fn reset(&mut self) {
        self.close();
        self.statements.clear_prepared();
        self.binlog_input = BinlogInput::default();
        self.state.set_user_variables(Arc::default());
        self.state.diagnostics.clear();
        self.state.sequence_values.clear();
        self.state.last_insert_id = 0;
        self.state.new_insert_id = NewInsertId::None;
        self.state.row_count = 0;
        self.state.found_rows = 0;
        self.next_isolation = None;
        self.next_read_only = None;
        self.resumed = false;
        self.suspended.clear();
        self.answer = None;
    }

    /// The state and the transaction at once, for changes that no statement of ours makes.
    pub(crate) fn parts(&mut self) -> (&mut SessionState, &mut Trx) {
        (&mut self.state, &mut self.trx)
    }

    /// Exchanges the session's temporary tables for others, between transactions.
    pub fn swap_temporary_tables(&mut self, others: &mut crate::store::TemporaryTables) {
        self.trx.swap_temporary_tables(others);
    }

    /// The catalog now, this session's temporary tables in front.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.trx.with_temporary_tables(self.trx.stored_catalog())
    }

    /// As `catalog`, for a plan: who finds something in it, or misses it, must see to it that the reply waits.
    pub(crate) fn catalog_to_plan(&self) -> Arc<Catalog> {
        let stored = self.trx.open_catalog().cloned().unwrap_or_else(|| self.database.catalog());
        self.trx.with_temporary_tables(stored)
    }

    /// What the session's replies wait for.
    #[must_use]
    pub fn floor(&self) -> &Arc<crate::store::Floor> {
        self.trx.floor()
    }
}
