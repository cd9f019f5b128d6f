//! Programs that run inside of a statement: functions, and what triggers share with them.
//!
//! They have a session of their own, which is given the caller's state and transaction for that time: so their statements
//! go through the same entry as all others, and are undone with the statement that they are part of.

use super::compile::Compiled;
use super::machine::Machine;
use crate::api::{AccessCheck, AllowAll, Mode, Outcome, SessionSettings};
use crate::catalog::{ProgramDef, Table};
use crate::error::{ExecResult, Interrupt, Level, SqlError, SqlResult};
use crate::session::{Call, Database, Nowhere, SqlSession};
use crate::state::{Inside, Programs, SessionState, Signature, TriggerRows};
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
}

impl Interpreter {
    /// Of a session on a database.
    pub(crate) fn new(database: &Arc<Database>) -> Arc<Interpreter> {
        let (spares, compiled) = (Mutex::default(), Mutex::default());
        Arc::new(Interpreter { database: database.clone(), spares, compiled })
    }

    /// A program's instructions; `table`: the trigger's.
    ///
    /// # Errors
    /// Its text does not parse any more, or says what is not had.
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
        let compiled = Arc::new(Compiled::new(def, settings, table)?);
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.push((def.clone(), compiled.clone()));
        Ok(compiled)
    }

    /// Runs something on a session that has the caller's state and transaction.
    pub(super) fn inside<T>(
        &self,
        state: &mut SessionState,
        trx: &mut Trx,
        run: impl FnOnce(&mut SqlSession) -> ExecResult<T>,
    ) -> ExecResult<T> {
        if trx.statement.is_inline() {
            return Err(Interrupt::NeedBlocking);
        }
        let (id, kill) = (state.connection_id, state.budget.kill().clone());
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
        self.inside(state, trx, |session| session.run_trigger(def, table, old, new))
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
        self.inside(state, trx, |session| session.call_function(def, args))
    }
}

impl SqlSession {
    fn call_function(&mut self, def: &Arc<ProgramDef>, args: Vec<(Value, ColumnType)>) -> ExecResult<Value> {
        if self.state.programs.running.iter().any(|running| Arc::ptr_eq(running, def)) {
            return Err(SqlError::sp_no_recursion().into());
        }
        let program = self.programs.interpreter.compiled(def, &self.state.settings, None)?;
        self.run_inside(|session, call| {
            let frame = super::call::enter_program(&mut session.state, &program, args)?;
            let mut machine = Machine::default();
            machine.frames.push(frame);
            session.advance(&mut machine, call)
        })
    }

    /// What functions and triggers share: what they leave is nothing but what they wrote.
    pub(super) fn run_inside<T>(
        &mut self,
        run: impl FnOnce(&mut SqlSession, &mut Call<'_>) -> ExecResult<T>,
    ) -> ExecResult<T> {
        self.context().enter();
        // It does not see the savepoints of who calls it, and leaves none of its own.
        let savepoints = std::mem::take(&mut self.trx.transaction.savepoints);
        let empty = self.state.diagnostics.emptied();
        let diagnostics = std::mem::replace(&mut self.state.diagnostics, empty);
        let (row_count, found_rows) = (self.state.row_count, self.state.found_rows);
        let (last_insert_id, set) = (self.state.last_insert_id, self.state.last_insert_id_set.take());
        let inside = std::mem::replace(&mut self.state.programs.inside, Inside::Statement);
        if inside != Inside::Statement {
            self.state.programs.doomed = false;
        }
        let (tables, used) = (self.state.programs.tables.clone(), self.state.programs.used.len());
        self.state.programs.used.extend(&tables);
        let access: Arc<dyn AccessCheck> = match self.state.programs.access.clone() {
            Some(access) => access,
            None => self.state.host.own_access().unwrap_or_else(|| Arc::new(AllowAll)),
        };
        let text = self.state.statement.clone();
        let mut call = Call {
            mode: Mode::Blocking,
            access: &*access,
            sink: &mut Nowhere,
            text: &text,
            params: &[],
            inner: None,
        };
        let result = run(self, &mut call);
        // A transaction that was rolled back has none.
        self.trx.transaction.savepoints = if self.trx.is_open() { savepoints } else { Default::default() };
        self.state.programs.inside = inside;
        self.state.programs.tables = tables;
        self.state.programs.used.truncate(used);
        self.state.statement = text;
        self.state.diagnostics = diagnostics;
        (self.state.row_count, self.state.found_rows) = (row_count, found_rows);
        (self.state.last_insert_id, self.state.last_insert_id_set) = (last_insert_id, set);
        result
    }

    /// Runs a part of a statement so that it can be undone by itself. `writes`: it changes rows.
    pub(crate) fn run_part(
        &mut self,
        call: &mut Call<'_>,
        writes: bool,
        mut body: impl FnMut(&mut SqlSession, &mut Call<'_>) -> ExecResult<Outcome>,
    ) -> ExecResult<Outcome> {
        if writes {
            // Events that the statement around has not given to the cache yet are not this one's to undo.
            self.trx.end_statement()?;
        }
        let marks = self.trx.marks();
        let mut replans = 0;
        let result = loop {
            let result = body(self, call).and_then(|outcome| {
                if writes {
                    self.trx.end_statement()?;
                }
                Ok(outcome)
            });
            match result {
                Err(Interrupt::Error(error)) if error.code == 1615 && replans < 20 => replans += 1,
                result => break result,
            }
            if writes {
                self.trx.rollback_statement(marks)?;
            }
        };
        if writes && self.trx.statement.take_forced() {
            // The number that was given is for the rows of one statement.
            self.state.settings.insert_id = None;
        }
        match &result {
            Ok(outcome) if outcome.result_set => self.state.row_count = -1,
            Ok(outcome) => self.state.row_count = i64::try_from(outcome.affected).unwrap_or(i64::MAX),
            Err(Interrupt::Error(error)) => {
                if writes {
                    self.trx.rollback_statement(marks)?;
                }
                // What a function of it wrote can not be taken out by itself: no handler may go on.
                self.state.programs.doomed |= !writes && self.trx.has_written_since(marks);
                self.state.row_count = -1;
                self.state.diagnostics.push(Level::Error, error.clone());
            }
            Err(_) => {}
        }
        result
    }
}

/// The text that errors and the process list show of a program's statement.
pub(super) fn text_of(program: &super::Compiled, span: omnibus_parser::ast::Span) -> Bytes {
    program.text.slice_ref(span.of(&program.text))
}
