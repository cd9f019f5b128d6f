//! A session: statements in, outcomes out; the rules of transactions around them.

use super::Database;
use super::binlog::BinlogInput;
use super::given::{Gate, Given};
use super::named_locks::NamedLocks;
use super::prepared::is_planned;
use super::state::{NewInsertId, SessionState};
use super::statements::StatementCache;
use crate::api::{AccessCheck, Isolation, KillFlag, Mode, Outcome, RowSink};
use crate::catalog::Catalog;
use crate::error::{ExecResult, Interrupt, Level, SqlError, SqlResult};
use crate::load::LoadInput;
use crate::store::{LockWaiter, Marks, StatementInfo, Trx, wait_failure};
use bytes::Bytes;
use omnibus_commit::Ticket;
use omnibus_locks::WaitOutcome;
use omnibus_parser::ast::{Spanned, Statement};
use std::sync::Arc;

/// Lock waits after which an inline statement moves to a thread that may block.
const WAITS: u8 = 3;

/// How often a statement is planned anew because a definition changed under it.
const REPLANS: usize = 20;

/// One client's session. Used by one thread at a time.
pub struct SqlSession {
    /// What expressions and the server see of it.
    pub state: SessionState,
    pub(crate) database: Arc<Database>,
    pub(crate) trx: Trx,
    pub(super) kill: Arc<KillFlag>,
    pub(super) statements: StatementCache,
    pub(super) binlog_input: BinlogInput,
    /// The file that the running LOAD DATA was given.
    pub(super) load_input: Option<LoadInput>,
    /// `gtid_next`.
    pub(super) given: Given,
    /// The running statement's commit uses it up.
    pub(super) commits_given: bool,
    /// SET TRANSACTION: for the next transaction only.
    next_isolation: Option<Isolation>,
    next_read_only: Option<bool>,
    /// The statement is being run again after an interrupt: it began at the first attempt.
    resumed: bool,
    /// How often it has met a lock.
    waits: u8,
    /// It executes what others logged: statements that write read the newest versions, under locks.
    pub(super) reads_newest: bool,
    /// A statement that fails with this error keeps what it did before.
    keep_failed: Option<u16>,
    /// CREATE TABLE is the first part of a transaction: its rows follow.
    pub(crate) leaves_open: bool,
}

/// What a statement is run with.
pub(crate) struct Call<'a> {
    pub mode: Mode,
    pub access: &'a dyn AccessCheck,
    pub sink: &'a mut dyn RowSink,
    pub text: &'a Bytes,
    pub params: &'a [omnibus_value::Value],
}

impl SqlSession {
    /// A session without a transaction. `id` is its connection id.
    #[must_use]
    pub fn new(database: Arc<Database>, id: u32, kill: Arc<KillFlag>) -> SqlSession {
        let trx = Trx::new(database.shared.clone(), u64::from(id), kill.clone());
        let mut state = SessionState { connection_id: id, ..SessionState::default() };
        let collation = Database::default_collation();
        state.settings.collation_connection = collation;
        state.settings.collation_client = collation;
        state.settings.collation_results = collation;
        state.settings.collation_server = collation;
        state.named_locks = Some(NamedLocks::new(&database.shared.locks, id));
        SqlSession {
            state,
            database,
            trx,
            kill,
            statements: StatementCache::default(),
            binlog_input: BinlogInput::default(),
            load_input: None,
            given: Given::Automatic,
            commits_given: false,
            next_isolation: None,
            next_read_only: None,
            resumed: false,
            waits: 0,
            reads_newest: false,
            keep_failed: None,
            leaves_open: false,
        }
    }

    /// Writing statements of this session read rows under shared locks from now on, and so see what is committed but not
    /// durable yet: an applier's transactions follow each other without waiting for the device.
    pub(crate) fn read_newest(&mut self) {
        self.reads_newest = true;
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

    /// Runs a statement. On `LockWait` and `NeedBlocking` its effects are undone: wait, or move to a
    /// thread that may block, and call again with the same arguments.
    ///
    /// # Errors
    /// See [`Interrupt`].
    pub fn execute(
        &mut self,
        statement: &Arc<Spanned<Statement>>,
        text: &Bytes,
        mode: Mode,
        access: &dyn AccessCheck,
        sink: &mut dyn RowSink,
    ) -> ExecResult<Outcome> {
        if self.given == Given::Automatic {
            return self.execute_plain(statement, text, mode, access, sink);
        }
        match self.gate(&statement.node) {
            Gate::Done(result) => result,
            Gate::Run(class) => {
                let result = self.execute_plain(statement, text, mode, access, sink);
                self.passed(class, &result);
                result
            }
        }
    }

    fn execute_plain(
        &mut self,
        statement: &Arc<Spanned<Statement>>,
        text: &Bytes,
        mode: Mode,
        access: &dyn AccessCheck,
        sink: &mut dyn RowSink,
    ) -> ExecResult<Outcome> {
        // The caller may have cut this statement out of a longer text already.
        let span = statement.span;
        let whole = span.end.saturating_sub(span.start) as usize == text.len();
        let text = &if whole { text.clone() } else { text.slice_ref(span.of(text)) };
        let mut call = Call { mode, access, sink, text, params: &[] };
        self.begin(text, keeps_diagnostics(&statement.node));
        if is_planned(&statement.node)
            && let Some(mut plan) = self.statements.take_plan(statement, self.state.database.as_ref())
        {
            let result = self.run(&mut call, |session, call| session.run_prepared(&mut plan, call));
            self.statements.keep_plan(plan);
            return result;
        }
        self.run(&mut call, |session, call| session.dispatch(&statement.node, call))
    }

    /// What every statement does before it runs.
    pub(super) fn begin(&mut self, text: &Bytes, keep_diagnostics: bool) {
        if !self.resumed {
            self.kill.reset();
            self.trx.lock_handle_owner().clear_kill();
            self.state.now_us = match self.state.settings.timestamp_us {
                Some(us) => us,
                None => super::wall_clock_us() as i64,
            };
        }
        if !keep_diagnostics {
            self.state.diagnostics.clear();
        }
        self.state.last_insert_id_set = None;
        if self.state.new_insert_id == NewInsertId::Asked && !self.resumed {
            self.state.new_insert_id = NewInsertId::None;
        }
        self.state.statement = text.clone();
    }

    /// Runs `body` as a statement: undone on errors and interrupts, committed under autocommit.
    pub(super) fn run(
        &mut self,
        call: &mut Call<'_>,
        mut body: impl FnMut(&mut SqlSession, &mut Call<'_>) -> ExecResult<Outcome>,
    ) -> ExecResult<Outcome> {
        let mut replans = 0;
        let result = loop {
            self.trx.again(self.resumed || replans > 0);
            let marks = self.begin_statement(call);
            // What a large transaction writes goes to disk as it comes, and any statement may end it.
            let result = self.trx.may_run_here().and_then(|()| body(self, call)).and_then(|outcome| {
                self.trx.end_statement()?;
                self.trx.may_run_here()?;
                Ok(outcome)
            });
            let Err(interrupt) = result else { break result };
            let again =
                matches!(&interrupt, Interrupt::Error(error) if error.code == 1615) && replans < REPLANS;
            let interrupt = self.undo(marks, interrupt);
            if !again {
                break Err(interrupt);
            }
            replans += 1;
        };
        let result = result.and_then(|outcome| self.autocommit(outcome));
        self.finish(result)
    }

    fn begin_statement(&mut self, call: &Call<'_>) -> Marks {
        let database = self.state.database.clone();
        let info = StatementInfo {
            settings: &self.state.settings,
            database: database.as_deref().unwrap_or_default(),
            sql: call.text,
            timestamp: (self.state.now_us / 1_000_000) as u32,
            connection_id: self.state.thread_id(),
        };
        let marks = self.trx.begin_statement(call.mode, &info);
        if !self.trx.is_open() {
            self.trx.use_characteristics(self.next_isolation, self.next_read_only);
        }
        marks
    }

    /// Undoes a statement that did not succeed.
    fn undo(&mut self, marks: Marks, interrupt: Interrupt) -> Interrupt {
        let Interrupt::Error(error) = &interrupt else {
            self.state.diagnostics.clear();
            return match self.trx.rollback_statement(marks) {
                Ok(()) => interrupt,
                Err(error) => {
                    self.trx.rollback();
                    error.into()
                }
            };
        };
        // What a failed statement changed before stays, where it stayed at its source.
        if self.keep_failed == Some(error.code) && self.trx.is_open() && self.trx.end_statement().is_ok() {
            return interrupt;
        }
        // A deadlock's victim gives up everything; other errors only the statement.
        if error.code == 1213 {
            self.trx.deadlocked();
        }
        if error.code == 1213 || !self.trx.is_open() || self.trx.rollback_statement(marks).is_err() {
            self.trx.rollback();
        }
        interrupt
    }

    /// Opens a transaction if autocommit is off and the statement needs one.
    pub(super) fn enter(&mut self) {
        if !self.trx.is_open() && !self.state.settings.autocommit {
            let isolation = self.next_isolation.take().unwrap_or(self.state.settings.isolation);
            let read_only = self.next_read_only.take().unwrap_or(self.state.settings.read_only);
            self.trx.open(isolation, read_only);
        }
    }

    /// Ends a statement's own transaction, or says what an open one must wait for.
    fn autocommit(&mut self, mut outcome: Outcome) -> ExecResult<Outcome> {
        let ticket = if self.trx.is_open() { self.trx.read_ticket() } else { self.commit_now()? };
        // The statement's own ticket is the later one, if it has one.
        outcome.wait = outcome.wait.or(ticket);
        Ok(outcome)
    }

    /// Commits what is open.
    pub(crate) fn commit_now(&mut self) -> SqlResult<Option<Ticket>> {
        self.next_isolation = None;
        self.next_read_only = None;
        if self.given != Given::Automatic && self.commits_given {
            self.trx.finish_applied()?;
        }
        self.trx.commit(super::wall_clock_us())
    }

    fn finish(&mut self, result: ExecResult<Outcome>) -> ExecResult<Outcome> {
        self.resumed = false;
        if !matches!(result, Err(Interrupt::LockWait(_) | Interrupt::NeedBlocking | Interrupt::NeedFile(_))) {
            self.state.settings.insert_id = None;
            self.load_input = None;
        }
        match &result {
            Ok(outcome) if outcome.result_set => self.state.row_count = -1,
            Ok(outcome) => self.state.row_count = i64::try_from(outcome.affected).unwrap_or(i64::MAX),
            Err(Interrupt::Error(error)) => {
                self.state.row_count = -1;
                self.state.diagnostics.push(Level::Error, error.clone());
            }
            Err(_) => self.resumed = true,
        }
        match result {
            // Dropping the wait withdraws the request; the blocking run asks again.
            Err(Interrupt::LockWait(_)) if self.waits >= WAITS => {
                self.waits = 0;
                Err(Interrupt::NeedBlocking)
            }
            Err(Interrupt::LockWait(wait)) => {
                self.waits += 1;
                Err(Interrupt::LockWait(wait))
            }
            result => {
                self.waits = 0;
                result
            }
        }
    }

    /// A lock wait that `execute` asked for ended without the lock: the statement's error. After a
    /// deadlock the transaction is gone.
    pub fn wait_failed(&mut self, outcome: WaitOutcome) -> SqlError {
        let error = wait_failure(outcome, &self.kill);
        if outcome == WaitOutcome::Deadlock {
            self.trx.deadlocked();
        }
        if outcome == WaitOutcome::Deadlock || !self.trx.is_open() {
            self.trx.rollback();
        }
        self.give_up(&error);
        error
    }

    /// A statement that was interrupted will not be run again.
    pub fn give_up(&mut self, error: &SqlError) {
        self.load_input = None;
        self.resumed = false;
        self.waits = 0;
        self.state.row_count = -1;
        self.state.diagnostics.push(Level::Error, error.clone());
        self.given_after_error();
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
        self.state.user_variables.clear();
        self.state.diagnostics.clear();
        self.state.last_insert_id = 0;
        self.state.new_insert_id = NewInsertId::None;
        self.state.row_count = 0;
        self.state.found_rows = 0;
        self.next_isolation = None;
        self.next_read_only = None;
        self.resumed = false;
    }

    /// The state and the transaction at once, for changes that no statement of ours makes.
    pub(crate) fn parts(&mut self) -> (&mut SessionState, &mut Trx) {
        (&mut self.state, &mut self.trx)
    }

    /// What `begin` and `run` do before a statement, for changes that no statement of ours makes. `text` is what is
    /// known of the one that made them.
    pub(crate) fn begin_rows(&mut self, text: &[u8], mode: Mode) -> Marks {
        self.trx.again(false);
        let database = self.state.database.clone();
        let info = StatementInfo {
            settings: &self.state.settings,
            database: database.as_deref().unwrap_or_default(),
            sql: text,
            timestamp: (self.state.now_us / 1_000_000) as u32,
            connection_id: self.state.thread_id(),
        };
        self.trx.begin_statement(mode, &info)
    }

    /// Exchanges the session's temporary tables for others, between transactions.
    pub fn swap_temporary_tables(&mut self, others: &mut crate::store::TemporaryTables) {
        self.trx.swap_temporary_tables(others);
    }

    /// The catalog now, this session's temporary tables in front.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.trx.with_temporary_tables(self.stored_catalog())
    }

    /// Whether the open transaction makes no table.
    pub(crate) fn has_no_open_definition(&self) -> bool {
        self.trx.open_catalog().is_none()
    }

    /// The catalog now, or as the open transaction makes it.
    pub(crate) fn stored_catalog(&self) -> Arc<Catalog> {
        self.trx.open_catalog().cloned().unwrap_or_else(|| self.database.catalog())
    }

    pub(super) fn next_characteristics(&mut self) -> (Isolation, bool) {
        let isolation = self.next_isolation.take().unwrap_or(self.state.settings.isolation);
        let read_only = self.next_read_only.take().unwrap_or(self.state.settings.read_only);
        (isolation, read_only)
    }
}

/// Statements that show what the statement before left.
fn keeps_diagnostics(statement: &Statement) -> bool {
    use omnibus_parser::ast::Show;
    matches!(statement, Statement::Show(show) if matches!(**show, Show::Warnings { .. } | Show::Errors { .. }))
}
