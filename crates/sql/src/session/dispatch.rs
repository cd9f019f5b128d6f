//! Which statement does what.

use super::programs::ProgramDdl;
use super::{Call, SqlSession};
use crate::api::{Mode, Outcome, Priv};
use crate::ddl::Ddl;
use crate::error::{ExecResult, Interrupt, SqlError};
use crate::state::SessionState;
use bytes::Bytes;
use omnibus_commit::Ticket;
use omnibus_parser::ast::{
    Completion, CreateTable, CreateView, ObjectName, StartTransaction, Statement, TableOption,
};

impl SqlSession {
    pub(super) fn dispatch(&mut self, statement: &Statement, call: &mut Call<'_>) -> ExecResult<Outcome> {
        call.access.check_statement(statement)?;
        match statement {
            Statement::Select(_) | Statement::Do(_) => self.query(statement, call),
            Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) => self.write(statement, call),
            Statement::LoadData(tree) => self.load_data(tree, call),
            Statement::Begin(how) => self.start_transaction(*how, call.mode),
            Statement::Commit(how) => self.commit(*how),
            Statement::Rollback(how) => self.rollback(*how),
            Statement::Savepoint(name) => {
                if self.trx.is_open() || !self.state.settings.autocommit {
                    self.enter();
                    self.trx.savepoint(name)?;
                }
                Ok(Outcome::ok())
            }
            Statement::RollbackTo(name) => {
                self.trx.rollback_to_savepoint(name)?;
                Ok(Outcome::ok())
            }
            Statement::ReleaseSavepoint(name) => {
                self.trx.savepoints.release(name)?;
                Ok(Outcome::ok())
            }
            Statement::Xa(xa) => self.xa(xa, call),
            Statement::Binlog(text) => self.binlog(text, call),
            Statement::Use(name) => self.use_database(name, call),
            Statement::LockTables(tables) => self.lock_tables(tables, call),
            Statement::UnlockTables => self.unlock_tables(),
            Statement::LockInstance => self.lock_instance(call),
            Statement::UnlockInstance => {
                self.trx.locks.unlock_instance();
                Ok(Outcome::ok())
            }
            Statement::Flush(flush) => self.flush_with_read_lock(flush, call),
            Statement::Prepare { .. }
            | Statement::Execute { .. }
            | Statement::Deallocate(_)
            | Statement::ExecuteImmediate { .. } => self.prepared_statement(statement, call),
            Statement::Show(show) => self.show(show, call),
            Statement::Explain(explain) => self.explain(explain, call),
            Statement::Describe { table, column } => self.describe(table, column.as_ref(), call),
            Statement::Maintenance(what) => self.maintain(what, call),
            Statement::Signal(signal) => self.signal(signal, call),
            Statement::GetDiagnostics(get) => self.get_diagnostics(get, call),
            statement if statement.is_definition() => {
                let result = self.define(statement, call);
                tell_defined(&self.state, statement, call.text, &result);
                result
            }
            Statement::Unsupported(what) => Err(SqlError::not_supported_yet(what.what).into()),
            other => Err(SqlError::not_supported_yet(other.kind().replace('_', " ").to_uppercase()).into()),
        }
    }

    fn start_transaction(&mut self, how: StartTransaction, mode: Mode) -> ExecResult<Outcome> {
        self.trx.branch.check_none()?;
        let waits = self.trx.is_open() || self.trx.locks.has_locked_tables() || self.trx.is_ahead();
        if how.consistent_snapshot && waits && mode == Mode::Inline {
            return Err(Interrupt::NeedBlocking);
        }
        let mut ticket = self.commit_for_new()?;
        if how.consistent_snapshot {
            // The snapshot has what was committed just now.
            self.finish_commit(ticket.take())?;
            self.trx.catch_up()?;
        }
        let (isolation, read_only) = self.next_characteristics();
        self.trx.open(isolation, how.read_only.unwrap_or(read_only));
        if how.consistent_snapshot && isolation >= crate::api::Isolation::RepeatableRead {
            self.trx.view.take_with_position();
        }
        Ok(Outcome { wait: ticket, ..Outcome::ok() })
    }

    /// Commits before START TRANSACTION without forgetting SET TRANSACTION.
    fn commit_for_new(&mut self) -> ExecResult<Option<Ticket>> {
        if self.trx.locks.has_locked_tables() {
            // As the manuals say: a new transaction ends LOCK TABLES, and not FLUSH TABLES WITH READ LOCK.
            if !self.trx.locks.has_read_lock() {
                self.trx.locks.unlock_tables();
            }
            return Ok(self.commit_now()?);
        }
        Ok(if self.trx.is_open() { self.commit_now()? } else { None })
    }

    fn commit(&mut self, how: Completion) -> ExecResult<Outcome> {
        self.trx.branch.check_none()?;
        let characteristics = self.trx.characteristics();
        let ticket = self.commit_now()?;
        if how.chain == Some(true) {
            self.trx.open(characteristics.0, characteristics.1);
        }
        Ok(Outcome { wait: ticket, ..Outcome::ok() })
    }

    fn rollback(&mut self, how: Completion) -> ExecResult<Outcome> {
        self.trx.branch.check_none()?;
        let characteristics = self.trx.characteristics();
        self.trx.rollback();
        if how.chain == Some(true) {
            self.trx.open(characteristics.0, characteristics.1);
        }
        Ok(Outcome::ok())
    }

    pub(super) fn use_database(&mut self, name: &str, call: &Call<'_>) -> ExecResult<Outcome> {
        let catalog = self.catalog();
        let known = ["information_schema", "performance_schema", "sys"]
            .iter()
            .find(|known| name.eq_ignore_ascii_case(known));
        if let Some(known) = known {
            self.state.database = Some((*known).into());
            return Ok(Outcome::ok());
        }
        call.access.check(name, None, Priv::Any)?;
        self.state.database = Some(catalog.schema(name)?.name.clone());
        Ok(Outcome::ok())
    }

    pub(crate) fn schema_of(&self, name: &ObjectName) -> Result<String, SqlError> {
        match (&name.schema, &self.state.database) {
            (Some(schema), _) => Ok(schema.to_string()),
            (None, Some(current)) => Ok(current.to_string()),
            (None, None) => Err(SqlError::no_db()),
        }
    }

    /// Definition statements commit what is open, then are a transaction of their own.
    fn define(&mut self, statement: &Statement, call: &mut Call<'_>) -> ExecResult<Outcome> {
        if call.mode == Mode::Inline {
            return Err(Interrupt::NeedBlocking);
        }
        if let Some(result) = self.define_temporary(statement, call) {
            return result;
        }
        if self.state.settings.server_read_only {
            return Err(SqlError::option_prevents_statement("--read-only").into());
        }
        self.commit_before_definition()?;
        must_write(&self.state)?;
        if let Statement::CreateView(tree) = statement {
            return self.create_view(tree, call);
        }
        let schedule = match statement {
            Statement::CreateEvent(tree) => tree.clauses.schedule.as_ref(),
            Statement::AlterEvent(tree) => tree.clauses.schedule.as_ref(),
            _ => None,
        };
        let times = self.event_times(schedule, call)?;
        let Call { access, text, .. } = call;
        let sql = statement_text(text);
        let mut ddl = Ddl { trx: &mut self.trx, state: &mut self.state, access: *access, sql };
        let result = match statement {
            Statement::CreateDatabase(tree) => ddl.create_database(tree),
            Statement::AlterDatabase(tree) => ddl.alter_database(tree),
            Statement::DropDatabase { if_exists, name } => ddl.drop_database(name, *if_exists),
            Statement::CreateTable(tree) => return self.create_table(tree, call),
            Statement::DropTable(tree) => match ddl.drop_shadowing(tree)? {
                Some(rest) => ddl.drop_tables(&rest),
                None => Ok(Outcome::ok()),
            },
            Statement::DropView(tree) => ddl.drop_views(tree),
            Statement::Truncate(name) => ddl.truncate(name),
            Statement::RenameTable(pairs) => ddl.rename_tables(pairs),
            Statement::CreateSequence(tree) => ddl.create_sequence(tree),
            Statement::AlterSequence(tree) => ddl.alter_sequence(tree),
            Statement::DropSequence(tree) => ddl.drop_sequences(tree),
            Statement::AlterTable(tree) => ddl.alter_table(tree),
            Statement::CreateIndex(tree) => ddl.create_index(tree),
            Statement::DropIndex(tree) => ddl.drop_index(tree),
            Statement::CreateRoutine(_)
            | Statement::AlterRoutine(_)
            | Statement::CreateTrigger(_)
            | Statement::CreateEvent(_)
            | Statement::AlterEvent(_)
            | Statement::DropProgram(_) => ProgramDdl { ddl: &mut ddl }.run(statement, times),
            _ => Err(SqlError::not_supported_yet(statement.kind().replace('_', " ")).into()),
        };
        self.end_definition(result)
    }

    fn create_view(&mut self, tree: &CreateView, call: &mut Call<'_>) -> ExecResult<Outcome> {
        let (catalog, database) = (self.catalog(), self.database.clone());
        let sql = statement_text(call.text);
        let mut ddl = Ddl { trx: &mut self.trx, state: &mut self.state, access: call.access, sql };
        let result = ddl.create_view(tree, &catalog, database.virtual_tables());
        self.end_definition(result)
    }

    fn create_table(&mut self, tree: &CreateTable, call: &mut Call<'_>) -> ExecResult<Outcome> {
        if let Some(query) = &tree.query {
            return self.create_table_select(tree, query, call);
        }
        let sql = statement_text(call.text);
        let mut ddl = Ddl { trx: &mut self.trx, state: &mut self.state, access: call.access, sql };
        if !starts_transaction(tree) && !self.replayed.leaves_open {
            let result = ddl.create_table(tree);
            return self.end_definition(result);
        }
        let result = ddl.create_table_open(tree);
        let outcome = self.end_definition(result)?;
        let isolation = self.state.settings.isolation;
        self.trx.open(isolation, false);
        Ok(outcome)
    }

    /// What is open becomes durable before a definition begins, whatever becomes of that. LOCK TABLES stays in force.
    pub(super) fn commit_before_definition(&mut self) -> ExecResult<()> {
        self.trx.branch.check_none()?;
        self.trx.locks.check_no_read_lock()?;
        let ticket = self.commit_now()?;
        self.finish_commit(ticket)
    }

    /// Waits for a commit within a statement that goes on (`KillFlag::finish`). Blocks.
    pub(crate) fn finish_commit(&mut self, ticket: Option<Ticket>) -> ExecResult<()> {
        let Some(ticket) = ticket else { return Ok(()) };
        let Some(done) = self.state.budget.kill().finish(ticket) else {
            // It gives its locks back itself.
            return Err(SqlError::query_interrupted().into());
        };
        self.trx.commit_is_over(done.is_ok());
        Ok(done.map(drop)?)
    }

    pub(super) fn end_definition(&mut self, result: ExecResult<Outcome>) -> ExecResult<Outcome> {
        self.state.budget.progress.end();
        if result.is_err() {
            self.trx.rollback();
            // What it found in the way may not be durable yet.
            self.trx.see_everything();
        }
        result
    }
}

/// A statement's text without the rest of a multi-statement.
pub(super) fn statement_text(text: &[u8]) -> &[u8] {
    text.trim_ascii().strip_suffix(b";").unwrap_or(text.trim_ascii())
}

/// Whether rows that belong to the table follow: a statement of logs.
pub(super) fn starts_transaction(tree: &CreateTable) -> bool {
    tree.options.iter().any(|option| {
        matches!(option, TableOption::Other { name, .. } if name.eq_ignore_ascii_case("START TRANSACTION"))
    })
}

/// Whether a statement commits what is open before it does anything.
pub(super) fn commits_implicitly(statement: &Statement) -> bool {
    matches!(statement, Statement::Begin(_)) || statement.is_definition()
}

/// 1792 where transactions only read by default, as what is a transaction of its own is one of them. What was said for the
/// next transaction alone is not asked.
pub(super) fn must_write(state: &SessionState) -> Result<(), SqlError> {
    match state.settings.read_only {
        true => Err(SqlError::cant_execute_in_read_only_transaction()),
        false => Ok(()),
    }
}

/// Tells the server of a definition that has ended: nobody else sees those of procedures, events and EXECUTE.
fn tell_defined(state: &SessionState, statement: &Statement, text: &Bytes, result: &ExecResult<Outcome>) {
    let code = match result {
        Ok(_) => 0,
        Err(Interrupt::Error(error)) => error.code,
        // It runs again.
        Err(_) => return,
    };
    state.host.defined(statement, text, code);
}
