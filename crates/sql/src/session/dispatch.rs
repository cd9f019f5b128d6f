//! The dispatch of statements.

use super::programs::{ProgramDdl, conditions, event};
use super::{
    Call, SqlSession, StatementContext, binlog, create_select, explain, handler, load, maintenance, prepared,
    query, show, show_query, table_locks, temporary, xa,
};
use crate::api::{Mode, Outcome};
use crate::ddl::{self, Ddl};
use crate::error::{ExecResult, Interrupt, SqlError};
use crate::state::{Inside, SessionState};
use crate::store::tables_are_locked;
use bytes::Bytes;
use omnibus_commit::Ticket;
use omnibus_parser::ast::{
    Commits, Completion, CreateTable, CreateView, ProgramKind, StartTransaction, Statement, TableOption,
};

impl SqlSession {
    pub(super) fn dispatch(&mut self, statement: &Statement, call: &mut Call<'_>) -> ExecResult<Outcome> {
        call.access.check_statement(statement)?;
        // The session's own.
        match statement {
            Statement::Prepare { .. }
            | Statement::Execute { .. }
            | Statement::Deallocate(_)
            | Statement::ExecuteImmediate { .. } => return prepared::execute(self, statement, call),
            _ => {}
        }
        let cx = &mut self.context();
        match statement {
            Statement::Select(_) | Statement::Do(_) => query::select(cx, statement, call),
            Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) => {
                query::write(cx, statement, call)
            }
            Statement::LoadData(tree) => load::load_data(cx, tree, call),
            Statement::Binlog(text) => binlog::execute(cx, text, call),
            Statement::Begin(how) => start_transaction(cx, *how, call.mode),
            Statement::Commit(how) => commit(cx, *how),
            Statement::Rollback(how) => rollback(cx, *how),
            Statement::Savepoint(name) => {
                let inside = cx.state.programs.inside == Inside::Statement;
                if inside {
                    // The events of the statement around so far are not undone with those that follow.
                    cx.trx.end_statement()?;
                }
                if inside || cx.trx.is_open() || !cx.state.settings.transactions.autocommit {
                    cx.enter();
                    cx.trx.savepoint(name)?;
                }
                Ok(Outcome::ok())
            }
            Statement::RollbackTo(name) => {
                cx.trx.rollback_to_savepoint(name)?;
                Ok(Outcome::ok())
            }
            Statement::ReleaseSavepoint(name) => {
                cx.trx.transaction.savepoints.release(name)?;
                Ok(Outcome::ok())
            }
            Statement::Xa(xa) => xa::execute(cx, xa, call),
            Statement::Use(name) => cx.use_database(name, call),
            Statement::LockTables(tables) => table_locks::lock_tables(cx, tables, call),
            Statement::UnlockTables => table_locks::unlock_tables(cx),
            Statement::LockInstance => table_locks::lock_instance(cx, call),
            Statement::UnlockInstance => {
                cx.trx.locks.backup.release();
                Ok(Outcome::ok())
            }
            Statement::Flush(flush) => table_locks::flush_with_read_lock(cx, flush, call),
            Statement::Show(show) => show::execute(cx, show, call),
            Statement::Explain(explain) => explain::execute(cx, explain, call),
            Statement::Describe { table, column } => show_query::describe(cx, table, column.as_ref(), call),
            Statement::Maintenance(what) => maintenance::maintain(cx, what, call),
            Statement::Handler(tree) => handler::execute(cx, tree, call),
            Statement::Signal(signal) => conditions::signal(cx, signal, call),
            Statement::GetDiagnostics(get) => conditions::get_diagnostics(cx, get, call),
            statement if statement.is_definition() => {
                let result = define(cx, statement, call);
                tell_defined(cx.state, statement, call.text, &result);
                result
            }
            Statement::Unsupported(what) => Err(SqlError::not_supported_yet(what.what).into()),
            other => Err(SqlError::not_supported_yet(other.kind().replace('_', " ").to_uppercase()).into()),
        }
    }
}

fn start_transaction(
    cx: &mut StatementContext<'_>,
    how: StartTransaction,
    mode: Mode,
) -> ExecResult<Outcome> {
    cx.trx.branch.check_none()?;
    let waits = cx.trx.is_open() || cx.trx.locks.has_locked_tables() || cx.trx.view.is_ahead();
    if how.consistent_snapshot && waits && mode == Mode::Inline {
        return Err(Interrupt::NeedBlocking);
    }
    let mut ticket = commit_for_new(cx)?;
    if how.consistent_snapshot {
        // The snapshot has what was committed just now.
        cx.finish_commit(ticket.take())?;
        cx.trx.view.catch_up()?;
    }
    let (isolation, read_only) = cx.next_characteristics();
    cx.trx.open(isolation, how.read_only.unwrap_or(read_only));
    if how.consistent_snapshot && isolation >= crate::api::Isolation::RepeatableRead {
        cx.trx.view.take_with_position();
    }
    Ok(Outcome { wait: ticket, ..Outcome::ok() })
}

/// Commits before START TRANSACTION without forgetting SET TRANSACTION.
fn commit_for_new(cx: &mut StatementContext<'_>) -> ExecResult<Option<Ticket>> {
    if cx.trx.locks.has_locked_tables() {
        // As the manuals say: a new transaction ends LOCK TABLES, and not FLUSH TABLES WITH READ LOCK.
        if !cx.trx.locks.has_read_lock() {
            cx.trx.locks.unlock_tables();
        }
        return Ok(cx.commit_now()?);
    }
    Ok(if cx.trx.is_open() { cx.commit_now()? } else { None })
}

fn commit(cx: &mut StatementContext<'_>, how: Completion) -> ExecResult<Outcome> {
    cx.trx.branch.check_none()?;
    let characteristics = cx.trx.transaction.characteristics();
    let ticket = cx.commit_now()?;
    if cx.state.settings.transactions.completion.chains(how) {
        cx.trx.open(characteristics.0, characteristics.1);
    }
    Ok(Outcome { wait: ticket, ..Outcome::ok() })
}

fn rollback(cx: &mut StatementContext<'_>, how: Completion) -> ExecResult<Outcome> {
    cx.trx.branch.check_none()?;
    let characteristics = cx.trx.transaction.characteristics();
    cx.trx.rollback();
    if cx.state.settings.transactions.completion.chains(how) {
        cx.trx.open(characteristics.0, characteristics.1);
    }
    Ok(Outcome::ok())
}

/// Definition statements commit what is open, then are a transaction of their own.
fn define(cx: &mut StatementContext<'_>, statement: &Statement, call: &mut Call<'_>) -> ExecResult<Outcome> {
    if call.mode == Mode::Inline {
        return Err(Interrupt::NeedBlocking);
    }
    handler::close_changed(cx, statement);
    if let Some(result) = temporary::define_temporary(cx, statement, call) {
        return result;
    }
    if cx.state.settings.server_read_only && !temporary::drops_only_temporary(cx, statement) {
        return Err(SqlError::option_prevents_statement("--read-only").into());
    }
    if cx.trx.locks.has_locked_tables()
        && !cx.trx.locks.has_read_lock()
        && !cx.state.settings.mariadb
        && is_of_no_table(statement)
    {
        return Err(tables_are_locked().into());
    }
    cx.commit_before_definition()?;
    must_write(cx.state)?;
    if let Statement::CreateView(tree) = statement {
        return create_view(cx, tree, call);
    }
    let schedule = match statement {
        Statement::CreateEvent(tree) => tree.clauses.schedule.as_ref(),
        Statement::AlterEvent(tree) => tree.clauses.schedule.as_ref(),
        _ => None,
    };
    let times = event::event_times(cx, schedule, call)?;
    let Call { access, text, .. } = call;
    let sql = statement_text(text);
    let mut ddl = Ddl { trx: cx.trx, state: cx.state, access: *access, sql };
    let result = match statement {
        Statement::CreateDatabase(tree) => ddl::database::create_database(&mut ddl, tree),
        Statement::AlterDatabase(tree) => ddl::database::alter_database(&mut ddl, tree),
        Statement::DropDatabase { if_exists, name } => {
            ddl::database::drop_database(&mut ddl, name, *if_exists)
        }
        Statement::CreateTable(tree) => return create_table(cx, tree, call),
        Statement::DropTable(tree) => match ddl::temporary::drop_shadowing(&mut ddl, tree)? {
            Some(rest) => ddl::table::drop_tables(&mut ddl, &rest),
            None => Ok(Outcome::ok()),
        },
        Statement::DropView(tree) => ddl::view::drop_views(&mut ddl, tree),
        Statement::Truncate(name) => ddl::table::truncate(&mut ddl, name),
        Statement::RenameTable(pairs) => ddl::table::rename_tables(&mut ddl, pairs),
        Statement::CreateSequence(tree) => ddl::sequence::create_sequence(&mut ddl, tree),
        Statement::AlterSequence(tree) => ddl::sequence::alter_sequence(&mut ddl, tree),
        Statement::DropSequence(tree) => ddl::sequence::drop_sequences(&mut ddl, tree),
        Statement::AlterTable(tree) => ddl::alter::alter_table(&mut ddl, tree),
        Statement::CreateIndex(tree) => ddl::alter::create_index(&mut ddl, tree),
        Statement::DropIndex(tree) => ddl::alter::drop_index(&mut ddl, tree),
        Statement::CreateRoutine(_)
        | Statement::AlterRoutine(_)
        | Statement::CreateTrigger(_)
        | Statement::CreateEvent(_)
        | Statement::AlterEvent(_)
        | Statement::DropProgram(_) => ProgramDdl { ddl: &mut ddl }.run(statement, times),
        _ => Err(SqlError::not_supported_yet(statement.kind().replace('_', " ")).into()),
    };
    cx.end_definition(result)
}

/// Whether a definition is of what LOCK TABLES cannot have locked.
fn is_of_no_table(statement: &Statement) -> bool {
    match statement {
        Statement::CreateRoutine(_)
        | Statement::AlterRoutine(_)
        | Statement::CreateEvent(_)
        | Statement::AlterEvent(_)
        | Statement::CreateView(_)
        | Statement::DropView(_) => true,
        Statement::DropProgram(tree) => tree.kind != ProgramKind::Trigger,
        _ => false,
    }
}

fn create_view(cx: &mut StatementContext<'_>, tree: &CreateView, call: &mut Call<'_>) -> ExecResult<Outcome> {
    let (catalog, database) = (cx.catalog(), cx.database.clone());
    let sql = statement_text(call.text);
    let mut ddl = Ddl { trx: cx.trx, state: cx.state, access: call.access, sql };
    let result = ddl::view::create_view(&mut ddl, tree, &catalog, database.virtual_tables());
    cx.end_definition(result)
}

fn create_table(
    cx: &mut StatementContext<'_>,
    tree: &CreateTable,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    if let Some(query) = &tree.query {
        return create_select::create_table_select(cx, tree, query, call);
    }
    let sql = statement_text(call.text);
    let mut ddl = Ddl { trx: cx.trx, state: cx.state, access: call.access, sql };
    if !starts_transaction(tree) && !cx.replayed.leaves_open {
        let result = ddl::table::create_table(&mut ddl, tree);
        return cx.end_definition(result);
    }
    let result = ddl::table::create_table_open(&mut ddl, tree);
    let outcome = cx.end_definition(result)?;
    let isolation = cx.state.settings.isolation;
    cx.trx.open(isolation, false);
    Ok(outcome)
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
    statement.traits().commits == Commits::First
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
    state.connection.host.defined(statement, text, code);
}
