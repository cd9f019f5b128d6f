//! The state of the programs that a session runs, as expressions and statements see it. What runs them is above: see
//! [`Programs`].

use super::SessionState;
use crate::api::{AccessCheck, Priv, SessionSettings};
use crate::catalog::{Column, ProgramDef, Table};
use crate::error::{Diagnostics, ExecResult, SqlError, SqlResult};
use crate::memory::{Account, SessionMemory, memory_of};
use crate::store::Trx;
use bytes::Bytes;
use omnibus_parser::ast::{ConditionItem, ParamMode};
use omnibus_value::{ColumnType, Value};
use std::sync::Arc;

/// A routine's parameters, and what a function gives.
#[derive(Clone, Debug, Default)]
pub(crate) struct Signature {
    pub params: Vec<(ParamMode, Column)>,
    pub returns: Option<Column>,
}

/// Runs programs inside of a statement. On the session's thread, where it may block.
pub(crate) trait Programs: Send + Sync {
    /// A routine's parameters and what it gives.
    fn signature(&self, def: &Arc<ProgramDef>, settings: &SessionSettings) -> SqlResult<Signature>;
    /// Fires a trigger for a row: `new` is the row that it may change.
    fn fire(
        &self,
        def: &Arc<ProgramDef>,
        table: &Arc<Table>,
        old: Option<&[Value]>,
        new: Option<&mut Vec<Value>>,
        state: &mut SessionState,
        trx: &mut Trx,
    ) -> ExecResult<()>;
    /// A function's value. The session's state and transaction are its own for that time.
    fn call(
        &self,
        def: &Arc<ProgramDef>,
        args: Vec<(Value, ColumnType)>,
        state: &mut SessionState,
        trx: &mut Trx,
    ) -> ExecResult<Value>;
}

/// The variables of the running program.
#[derive(Default)]
pub(crate) struct Locals {
    pub values: Vec<Value>,
    /// Those that were declared; behind them come values that the program itself keeps.
    pub columns: Arc<[Column]>,
    /// The types of those.
    pub hidden: Vec<ColumnType>,
}

impl Locals {
    /// The bytes of the places of all.
    pub(crate) fn places(&self) -> usize {
        self.values.len() * size_of::<Value>()
    }

    /// A variable's type.
    pub(crate) fn ty(&self, number: u32) -> Option<&ColumnType> {
        let number = number as usize;
        match self.columns.get(number) {
            Some(column) => Some(&column.ty),
            None => self.hidden.get(number - self.columns.len()),
        }
    }
}

/// Where NEW and OLD of the running trigger are among its variables.
#[derive(Clone, Debug)]
pub(crate) struct TriggerRows {
    pub table: Arc<Table>,
    pub from: usize,
}

impl TriggerRows {
    /// The variable of a column.
    pub(crate) fn local(&self, new: bool, name: &str) -> Option<u32> {
        let at = self.table.column_index(name)?;
        let row = if new { 0 } else { self.table.columns().len() };
        u32::try_from(self.from + row + at).ok()
    }
}

/// Items that SIGNAL gave an error.
#[derive(Clone, Debug)]
pub(crate) struct Signalled {
    pub error: SqlError,
    pub items: Vec<(ConditionItem, Bytes)>,
    /// It is no RESIGNAL of a condition that was there.
    pub new: bool,
}

/// Where statements run that a program has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Inside {
    /// In no program.
    #[default]
    Nothing,
    /// In a procedure that was called as a statement.
    Procedure,
    /// In a function or trigger, inside of a statement.
    Statement,
}

/// The role that CURRENT_ROLE() gives, in MariaDB's dialect.
#[derive(Clone, Default)]
pub(crate) enum DefinerRole {
    /// The session's.
    #[default]
    OfSession,
    /// The definer's of the running program: what it is, if it is one.
    Of(Option<Arc<str>>),
}

/// See the module's text.
#[derive(Default)]
pub(crate) struct ProgramState {
    pub locals: Locals,
    /// The memory of the variables of all running programs.
    pub memory: Option<Account>,
    /// Diagnostics that running handlers were entered with, innermost last.
    pub stacked: Vec<Diagnostics>,
    /// Programs that run, innermost last.
    pub running: Vec<Arc<ProgramDef>>,
    /// The rows of the running trigger.
    pub trigger: Option<TriggerRows>,
    /// The statement around the running function can not go on.
    pub doomed: bool,
    pub signalled: Option<Arc<Signalled>>,
    pub inside: Inside,
    /// Tables of the running statement.
    pub tables: Vec<u64>,
    /// Tables of the statements around the running function.
    pub used: Vec<u64>,
    /// In whose name the running program acts, if not in the client's.
    pub access: Option<Arc<dyn AccessCheck>>,
    pub role: DefinerRole,
    /// The interpreter of functions and triggers; none outside of a session.
    pub runner: Option<Arc<dyn Programs>>,
}

impl ProgramState {
    /// Of a session.
    pub(crate) fn new(runner: Arc<dyn Programs>, memory: &Arc<SessionMemory>) -> ProgramState {
        let memory = Some(Account::new(memory));
        ProgramState { runner: Some(runner), memory, ..ProgramState::default() }
    }
}

impl SessionState {
    /// Gives a variable of the running program a value of its type.
    ///
    /// # Errors
    /// 3170: there is no memory for it.
    pub(crate) fn set_local(&mut self, number: u32, value: Value) -> SqlResult<()> {
        let locals = &mut self.programs.locals;
        let Some(place) = locals.values.get_mut(number as usize) else {
            return Err(SqlError::internal("a variable that is not there"));
        };
        let (more, less) = (local_memory(&value), local_memory(place));
        if let Some(account) = &mut self.programs.memory {
            if more > less {
                account.grow(more - less, &self.settings)?;
            } else {
                account.shrink(less - more);
            }
        }
        *place = value;
        Ok(())
    }

    /// Exchanges the variables for those of another program; the others are given.
    pub(crate) fn swap_locals(&mut self, locals: Locals) -> Locals {
        std::mem::replace(&mut self.programs.locals, locals)
    }

    /// The variables of a program that has ended are gone.
    pub(crate) fn forget_locals(&mut self, locals: &Locals) {
        let bytes = locals.places() + locals.values.iter().map(local_memory).sum::<usize>();
        if let Some(account) = &mut self.programs.memory {
            account.shrink(bytes);
        }
    }
}

/// Bytes of a variable beside its place.
pub(crate) fn local_memory(value: &Value) -> usize {
    match value {
        Value::Bytes(_) | Value::Json(_) => memory_of(std::slice::from_ref(value)),
        _ => 0,
    }
}

/// Fails unless whoever made the running trigger may do this with a column of NEW or OLD.
///
/// # Errors
/// 1143.
pub(crate) fn may_use_row(state: &SessionState, column: &str, privilege: Priv) -> SqlResult<()> {
    let programs = &state.programs;
    let (Some(rows), Some(access), Some(def)) =
        (&programs.trigger, &programs.access, programs.running.last())
    else {
        return Ok(());
    };
    let table = &rows.table.def;
    let denied = |_| {
        let definer = def.definer();
        let (user, host) = (&definer.user, &definer.host);
        SqlError::columnaccess_denied(privilege.name(), user, host, column, &table.name)
    };
    access.columns(&table.db, &table.name, privilege).map_err(denied)?.check(column)
}
