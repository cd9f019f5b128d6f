//! Programs that run inside of a statement: functions, and what triggers share with them.
//!
//! They have a session of their own, which is given the caller's state and transaction for that time: so their statements
//! go through the same entry as all others, and are undone with the statement that they are part of.

use super::compile::Compiled;
use super::machine::Machine;
use super::run::Execution;
use crate::api::{AccessCheck, AllowAll, Mode, SessionSettings};
use crate::catalog::{ProgramDef, Table};
use crate::error::{ExecResult, Interrupt, SqlError, SqlResult};
use crate::memory::{Account, MemoryLimits, SessionMemory};
use crate::session::{Call, Database, Nowhere, SqlSession};
use crate::state::{Inside, Programs, SessionState, Signature, StatementResults, TriggerRows};
use crate::store::Trx;
use bytes::Bytes;
use omnibus_value::{ColumnType, Value};
use parking_lot::Mutex;
use std::sync::Arc;

/// Compiled programs that a session keeps.
const KEPT: usize = 256;

/// Runs a session's functions and triggers.
pub(crate) struct Interpreter {
    database: Arc<Database>,
    spares: Mutex<Vec<SqlSession>>,
    compiled: Mutex<Vec<(Arc<ProgramDef>, Arc<Compiled>)>>,
    memory: Arc<SessionMemory>,
}

impl Interpreter {
    /// Of a session on a database.
    pub(crate) fn new(database: &Arc<Database>, memory: &Arc<SessionMemory>) -> Arc<Interpreter> {
        let (spares, compiled) = (Mutex::default(), Mutex::default());
        Arc::new(Interpreter { database: database.clone(), spares, compiled, memory: memory.clone() })
    }

    /// A program's instructions; `table`: the trigger's.
    ///
    /// # Errors
    /// Its text does not parse any more, or says what is not had; 3170: a limit says no, and no other is kept.
    pub(super) fn compiled(
        &self,
        def: &Arc<ProgramDef>,
        settings: &SessionSettings,
        table: Option<&Arc<Table>>,
    ) -> SqlResult<Arc<Compiled>> {
        let mut kept = self.compiled.lock();
        let same = |rows: &TriggerRows| table.is_some_and(|table| Arc::ptr_eq(table, &rows.table));
        if let Some(at) = kept.iter().position(|(known, _)| Arc::ptr_eq(known, def)) {
            let compiled = kept[at].1.clone();
            if compiled.rows.as_ref().is_none_or(same) {
                return Ok(compiled);
            }
            kept.swap_remove(at);
        }
        if kept.len() >= KEPT {
            kept.clear();
        }
        let bytes = usize::try_from(crate::catalog::memory::of_program(def)).unwrap_or(usize::MAX);
        let mut account = Account::new(&self.memory);
        if account.grow_exactly(bytes, MemoryLimits::of(settings)).is_err() {
            // Those that do not run go.
            kept.clear();
            account.grow_exactly(bytes, MemoryLimits::of(settings))?;
        }
        let compiled = Compiled { _account: Some(account), ..Compiled::new(def, settings, table)? };
        let compiled = Arc::new(compiled);
        kept.push((def.clone(), compiled.clone()));
        Ok(compiled)
    }

    /// Runs something on a session that has the caller's state and transaction.
    fn inside<T>(
        &self,
        state: &mut SessionState,
        trx: &mut Trx,
        run: impl FnOnce(&mut SqlSession) -> ExecResult<T>,
    ) -> ExecResult<T> {
        if trx.statement.is_inline() {
            return Err(Interrupt::NeedBlocking);
        }
        let (id, kill) = (state.connection.id, state.budget.kill().clone());
        let spare = self.spares.lock().pop();
        let mut session = spare.unwrap_or_else(|| SqlSession::new(self.database.clone(), id, kill));
        std::mem::swap(&mut session.state, state);
        std::mem::swap(&mut session.trx, trx);
        let result = run(&mut session);
        std::mem::swap(&mut session.state, state);
        std::mem::swap(&mut session.trx, trx);
        self.spares.lock().push(session);
        result
    }
}

impl Programs for Interpreter {
    fn fire(
        &self,
        def: &Arc<ProgramDef>,
        table: &Arc<Table>,
        old: Option<&[Value]>,
        new: Option<&mut Vec<Value>>,
        state: &mut SessionState,
        trx: &mut Trx,
    ) -> ExecResult<()> {
        self.inside(state, trx, |session| {
            let beside = std::mem::replace(&mut session.trx.locks.beside, true);
            let done = self.run_trigger(session, def, table, old, new);
            session.trx.locks.beside = beside;
            done
        })
    }

    fn signature(&self, def: &Arc<ProgramDef>, settings: &SessionSettings) -> SqlResult<Signature> {
        let compiled = self.compiled(def, settings, None)?;
        let params = compiled.modes.iter().copied().zip(compiled.columns.iter().cloned()).collect();
        Ok(Signature { params, returns: compiled.returns.clone() })
    }

    fn call(
        &self,
        def: &Arc<ProgramDef>,
        args: Vec<(Value, ColumnType)>,
        state: &mut SessionState,
        trx: &mut Trx,
    ) -> ExecResult<Value> {
        self.inside(state, trx, |session| {
            if session.state.programs.running.iter().any(|running| Arc::ptr_eq(running, def)) {
                return Err(SqlError::sp_no_recursion().into());
            }
            let program = self.compiled(def, &session.state.settings, None)?;
            Execution::inside(session, |execution| {
                let frame = super::call::enter_program(&mut execution.session.state, &program, args)?;
                execution.machine.frames.push(frame);
                execution.advance()
            })
        })
    }
}

impl Execution<'_, '_> {
    /// Runs a function or trigger, which leaves nothing behind but the rows that it wrote.
    pub(super) fn inside<T>(
        session: &mut SqlSession,
        run: impl FnOnce(&mut Execution<'_, '_>) -> ExecResult<T>,
    ) -> ExecResult<T> {
        session.context().enter();
        // It does not see the savepoints of who calls it, and leaves none of its own.
        let savepoints = std::mem::take(&mut session.trx.transaction.savepoints);
        let empty = session.state.diagnostics.emptied();
        let diagnostics = std::mem::replace(&mut session.state.diagnostics, empty);
        let results = session.state.results;
        session.state.results.last_insert_id_set = None;
        let inside = std::mem::replace(&mut session.state.programs.inside, Inside::Statement);
        if inside != Inside::Statement {
            session.state.programs.doomed = false;
        }
        let (tables, used) = (session.state.programs.tables.clone(), session.state.programs.used.len());
        session.state.programs.used.extend(&tables);
        let access: Arc<dyn AccessCheck> = match session.state.programs.access.clone() {
            Some(access) => access,
            None => session.state.connection.host.own_access().unwrap_or_else(|| Arc::new(AllowAll)),
        };
        let text = session.state.command.text.clone();
        let mut call = Call {
            mode: Mode::Blocking,
            access: &*access,
            sink: &mut Nowhere,
            text: &text,
            params: &[],
            inner: None,
        };
        let mut execution =
            Execution { session: &mut *session, call: &mut call, machine: Machine::default() };
        let result = run(&mut execution);
        // One that failed before its first step is still in its place.
        execution.machine.unwind(&mut execution.session.state);
        // A transaction that was rolled back has none.
        session.trx.transaction.savepoints =
            if session.trx.is_open() { savepoints } else { Default::default() };
        session.state.programs.inside = inside;
        session.state.programs.tables = tables;
        session.state.programs.used.truncate(used);
        session.state.command.text = text;
        session.state.diagnostics = diagnostics;
        let new_insert_id = session.state.results.new_insert_id;
        session.state.results = StatementResults { new_insert_id, ..results };
        result
    }
}

/// The text that errors and the process list show of a program's statement.
pub(super) fn text_of(program: &super::Compiled, span: omnibus_parser::ast::Span) -> Bytes {
    program.text.slice_ref(span.of(&program.text))
}
