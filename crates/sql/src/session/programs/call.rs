//! CALL: arguments, the frame that a program runs in, and what it leaves behind.

use super::compile::Compiled;
use super::machine::{Frame, Machine, Out, Saved};
use super::run::Execution;
use crate::api::{Mode, Outcome, Priv, ResultColumn, Routine, VariableScope};
use crate::catalog::ProgramDef;
use crate::error::{ExecResult, Interrupt, Level, SqlError, SqlResult};
use crate::expr::{ExprType, assign};
use crate::session::{Call, SqlSession, evaluate};
use crate::state::{DefinerRole, Inside, Locals, SessionState, may_use_row};
use crate::store::Trx;
use omnibus_parser::ast::{
    AssignTarget, ColumnRef, Expr, ObjectName, ParamMode, ProgramKind, Statement, TriggerTime,
};
use omnibus_value::{ColumnType, Value};
use std::sync::Arc;

/// Whether a statement is CALL or an event's run, which are no statements of a transaction themselves.
pub(crate) fn takes_call(statement: &Statement) -> bool {
    matches!(statement, Statement::Call { .. } | Statement::RunEvent(_))
}

impl Execution<'_, '_> {
    /// CALL as a client's statement; again after [`Interrupt::Server`].
    pub(crate) fn call(
        session: &mut SqlSession,
        name: &ObjectName,
        args: &[Expr],
        call: &mut Call<'_>,
    ) -> ExecResult<Outcome> {
        Execution::run(session, call, |execution| {
            let frame = execution.open_call(name, args)?;
            execution.machine.frames.push(frame);
            Ok(())
        })
    }

    /// CALL goes on with what the server has made of a statement.
    pub(crate) fn resume(session: &mut SqlSession, call: &mut Call<'_>) -> ExecResult<Outcome> {
        Execution::run(session, call, |_| Err(SqlError::internal("a call that is not there").into()))
    }

    /// Runs a program that `open` makes ready, or goes on with the one that waits for the server.
    pub(super) fn run(
        session: &mut SqlSession,
        call: &mut Call<'_>,
        open: impl FnOnce(&mut Execution<'_, '_>) -> ExecResult<()>,
    ) -> ExecResult<Outcome> {
        if call.mode == Mode::Inline {
            return Err(Interrupt::NeedBlocking);
        }
        let answer = session.waiting.answer.take();
        let suspended = if answer.is_some() { session.waiting.suspended.pop() } else { None };
        let mut execution = Execution { session, call, machine: suspended.unwrap_or_default() };
        let state = &execution.session.state;
        let begun = match answer {
            Some(answer) => {
                state.budget.go_on(false);
                execution.answered(answer)
            }
            None => {
                match state.programs.inside {
                    Inside::Nothing => state.budget.begin(Mode::Blocking, false),
                    _ => state.budget.go_on(false),
                }
                open(&mut execution)
            }
        };
        let result = begun.and_then(|()| execution.advance());
        let Execution { session, call, machine } = execution;
        if let Err(Interrupt::Server(_)) = &result {
            session.waiting.suspended.push(machine);
            return result.map(|_| Outcome::ok());
        }
        let result = result.and_then(|_| Ok(give_to_client(&machine, call)?));
        let result = result.map(|()| Outcome { affected: machine.affected, ..Outcome::ok() });
        end_call(&mut session.state, &session.trx, &result);
        result
    }

    /// The frame of a procedure that is called with these arguments.
    pub(super) fn open_call(&mut self, name: &ObjectName, args: &[Expr]) -> ExecResult<Frame> {
        let db = self.session.context().schema_of(name)?;
        let found =
            self.session.context().catalog().program(ProgramKind::Procedure, &db, &name.name).cloned();
        let Some(def) = found else {
            return Err(SqlError::sp_does_not_exist("PROCEDURE", format!("{db}.{}", name.name)).into());
        };
        let access = self.session.state.programs.access.clone();
        access.as_deref().unwrap_or(self.call.access).check_routine(
            Routine { kind: ProgramKind::Procedure, db: &def.db, name: &def.name },
            Some(&def.definer()),
            Priv::Execute,
        )?;
        let program = self.session.interpreter.compiled(&def, &self.session.state.settings, None)?;
        if program.modes.len() != args.len() {
            let error =
                SqlError::sp_wrong_no_of_args("PROCEDURE", def.full_name(), program.modes.len(), args.len());
            return Err(error.into());
        }
        check_recursion(&self.session.state, &def)?;
        let (mut values, mut outs) = (Vec::with_capacity(args.len()), Vec::new());
        for (at, (mode, arg)) in program.modes.iter().zip(args).enumerate() {
            if *mode != ParamMode::In {
                outs.push((at, out_target(&self.session.state, arg, at, &def)?));
            }
            values.push(match mode {
                ParamMode::Out => (Value::Null, ExprType::null().column),
                _ => self.argument(arg)?,
            });
        }
        let mut frame = enter_program(&mut self.session.state, &program, values)?;
        frame.outs = outs;
        if self.session.state.programs.inside == Inside::Nothing {
            self.session.state.programs.inside = Inside::Procedure;
        }
        Ok(frame)
    }

    fn argument(&mut self, arg: &Expr) -> ExecResult<(Value, ColumnType)> {
        if let Expr::Param(number) = arg {
            let value = self.call.params.get(*number as usize).cloned().unwrap_or(Value::Null);
            let ty = crate::bind::value_type(&value, self.session.state.settings.collation_connection);
            return Ok((value, ty.column));
        }
        if self.call.params.is_empty() {
            return self.value_of(arg, true);
        }
        evaluate::value(&mut self.session.context(), arg, self.call.params, true, self.call.access)
    }
}

impl Machine {
    /// The innermost frame ends without a result.
    pub(super) fn drop_frame(&mut self, state: &mut SessionState) {
        if let Some(mut frame) = self.frames.pop() {
            leave_program(state, &mut frame);
        }
    }

    /// The innermost frame has come to its end, `returned` by RETURN: parameters go where the caller wants them.
    pub(super) fn end_frame(&mut self, state: &mut SessionState, returned: Option<()>) -> SqlResult<()> {
        let Some(frame) = self.frames.last() else { return Ok(()) };
        let def = frame.program.def.clone();
        let reached = frame.returns && !state.settings.mariadb;
        if def.kind() == ProgramKind::Function && returned.is_none() && !reached {
            return Err(SqlError::sp_noreturnend(&def.name));
        }
        let Some(mut frame) = self.frames.pop() else { return Ok(()) };
        let locals = leave_program(state, &mut frame);
        if let Some(rows) = &frame.program.rows {
            let to = rows.from + rows.table.columns().len();
            self.row = locals.values.get(rows.from..to).unwrap_or_default().to_vec();
        }
        if let Some(caller) = self.frames.last_mut() {
            caller.at += 1;
        }
        for (at, out) in &frame.outs {
            let (Some(value), Some(column)) = (locals.values.get(*at), locals.columns.get(*at)) else {
                continue;
            };
            match out {
                Out::Variable(target) => assign::to_target(state, target, value.clone(), &column.ty)?,
                Out::Param(number) => self.to_client.push((*number, column.clone(), value.clone())),
            }
        }
        Ok(())
    }
}

/// A call has ended with this.
fn end_call(state: &mut SessionState, trx: &Trx, result: &ExecResult<Outcome>) {
    state.budget.end();
    if state.programs.inside == Inside::Nothing {
        state.budget.kill().clear_deadline();
    }
    match result {
        Ok(outcome) => state.results.row_count = i64::try_from(outcome.affected).unwrap_or(i64::MAX),
        Err(Interrupt::Error(error)) => {
            trx.floor().see_definitions();
            state.results.row_count = -1;
            state.diagnostics.push_once(Level::Error, error);
        }
        Err(_) => {}
    }
}

/// Where an OUT argument goes.
fn out_target(state: &SessionState, arg: &Expr, at: usize, def: &ProgramDef) -> SqlResult<Out> {
    match arg {
        Expr::Column(column) => match new_column(state, column)? {
            Some(local) => Ok(Out::Variable(AssignTarget::Local(local))),
            None => Err(SqlError::sp_not_var_arg(at + 1, def.full_name())),
        },
        Expr::UserVar(name) => Ok(Out::Variable(AssignTarget::User(name.clone()))),
        Expr::Local(local) => Ok(Out::Variable(AssignTarget::Local(*local))),
        Expr::Param(number) => Ok(Out::Param(*number as usize)),
        _ => Err(SqlError::sp_not_var_arg(at + 1, def.full_name())),
    }
}

/// The variable of `NEW.column`, which a BEFORE trigger may change.
fn new_column(state: &SessionState, column: &ColumnRef) -> SqlResult<Option<u32>> {
    let (Some(trigger), Some(running)) = (&state.programs.trigger, state.programs.running.last()) else {
        return Ok(None);
    };
    let is_new = column.schema().is_none() && column.table().is_some_and(|row| row.is("NEW"));
    if !is_new || crate::catalog::of_trigger(running, |tree| tree.time)? != TriggerTime::Before {
        return Ok(None);
    }
    let local = trigger.local(true, &column.name);
    may_use_row(state, &column.name, Priv::Update)?;
    Ok(local)
}

/// OUT parameters in the places of `?`, as a result set of one row.
fn give_to_client(machine: &Machine, call: &mut Call<'_>) -> SqlResult<()> {
    if machine.to_client.is_empty() {
        return Ok(());
    }
    let empty: Arc<str> = Arc::from("");
    let mut given: Vec<_> = machine.to_client.iter().collect();
    given.sort_by_key(|(number, ..)| *number);
    let columns: Vec<ResultColumn> = given
        .iter()
        .map(|(_, column, _)| ResultColumn {
            schema: empty.clone(),
            table: empty.clone(),
            org_table: empty.clone(),
            name: column.name.clone(),
            org_name: empty.clone(),
            ty: column.ty.clone(),
            flags: 0,
        })
        .collect();
    let row: Vec<Value> = given.iter().map(|(.., value)| value.clone()).collect();
    call.sink.result_begins();
    call.sink.columns(&columns)?;
    call.sink.row(&row)?;
    call.sink.result_ends(0, true)
}

fn check_recursion(state: &SessionState, def: &Arc<ProgramDef>) -> SqlResult<()> {
    let depth = state.programs.running.iter().filter(|running| Arc::ptr_eq(running, def)).count();
    if depth == 0 {
        return Ok(());
    }
    let limit = state.connection.host.variable(VariableScope::Either, "max_sp_recursion_depth");
    let limit = match limit {
        Ok((Value::UInt(limit), _)) => limit,
        Ok((Value::Int(limit), _)) => limit as u64,
        _ => 0,
    };
    if depth as u64 > limit {
        return Err(SqlError::sp_recursion_limit(limit, &def.name));
    }
    Ok(())
}

/// The frame of a program with its arguments; the session is in the program's place then.
///
/// # Errors
/// Arguments that do not fit; a definer that is gone (1449).
pub(super) fn enter_program(
    state: &mut SessionState,
    program: &Arc<Compiled>,
    args: Vec<(Value, ColumnType)>,
) -> SqlResult<Frame> {
    let def = program.def.clone();
    if state.programs.running.len() >= 200 || !omnibus_value::stack::has_room() {
        return Err(SqlError::stack_overrun());
    }
    let mut access = state.programs.access.clone();
    let mut account = state.login.account.clone();
    let mut role = state.programs.role.clone();
    if program.as_definer() {
        let own = access.clone().or_else(|| state.connection.host.own_access());
        if let Some(own) = own {
            let definer = def.definer();
            let gone = |_| SqlError::no_such_user(&definer.user, &definer.host);
            access = Some(own.of_definer(&definer).map_err(gone)?);
            // MariaDB's own definer keeps the role that is in force.
            if account != definer.plain() {
                role = DefinerRole::Of(definer.role().cloned());
            }
            account = definer.current_user();
        }
    }
    let mut locals = Locals {
        values: vec![Value::Null; program.columns.len() + program.hidden],
        columns: program.columns.clone(),
        hidden: vec![ExprType::null().column; program.hidden],
    };
    let saved_mode = state.settings.sql_mode;
    let taken = take_arguments(state, program, args, &mut locals);
    let kept = taken.and_then(|memory| match &mut state.programs.memory {
        Some(kept) => kept.grow(locals.places() + memory, &state.settings),
        None => Ok(()),
    });
    state.settings.sql_mode = if kept.is_ok() { def.sql_mode } else { saved_mode };
    kept?;
    let database = match &*def.db {
        "" => state.database.clone(),
        db => Some(Arc::from(db)),
    };
    let saved = Saved {
        locals: state.swap_locals(locals),
        database: std::mem::replace(&mut state.database, database),
        sql_mode: saved_mode,
        // What programs read is theirs, and not the client's to cut.
        select_limit: std::mem::replace(&mut state.settings.sql_select_limit, u64::MAX),
        client: std::mem::replace(&mut state.settings.collation_client, def.client),
        connection: std::mem::replace(&mut state.settings.collation_connection, def.connection),
        account: std::mem::replace(&mut state.login.account, account),
        access: std::mem::replace(&mut state.programs.access, access),
        role: std::mem::replace(&mut state.programs.role, role),
        inside: state.programs.inside,
        trigger: std::mem::replace(&mut state.programs.trigger, program.rows.clone()),
        stacked: state.programs.stacked.len(),
    };
    state.programs.running.push(def.clone());
    let cursors = program.cursors.iter().map(|_| None).collect();
    Ok(Frame {
        program: program.clone(),
        at: 0,
        scopes: Vec::new(),
        cursors,
        saved,
        returns: false,
        outs: Vec::new(),
    })
}

/// Puts the arguments into the program's variables; the memory that they take. They are the caller's to get right, in MariaDB the
/// program's.
fn take_arguments(
    state: &mut SessionState,
    program: &Compiled,
    args: Vec<(Value, ColumnType)>,
    locals: &mut Locals,
) -> SqlResult<usize> {
    if state.settings.mariadb {
        state.settings.sql_mode = program.def.sql_mode;
    }
    let mut memory = 0;
    for (at, (value, ty)) in args.into_iter().enumerate() {
        locals.values[at] = assign::as_column(state, value, &ty, &program.columns[at])?;
        memory += crate::state::local_memory(&locals.values[at]);
    }
    Ok(memory)
}

/// Puts back what was before the program; its variables.
fn leave_program(state: &mut SessionState, frame: &mut Frame) -> Locals {
    let saved = &mut frame.saved;
    let locals = state.swap_locals(std::mem::take(&mut saved.locals));
    state.forget_locals(&locals);
    state.database = saved.database.take();
    state.settings.sql_mode = saved.sql_mode;
    state.settings.sql_select_limit = saved.select_limit;
    state.settings.collation_client = saved.client;
    state.settings.collation_connection = saved.connection;
    state.login.account = std::mem::take(&mut saved.account);
    state.programs.access = saved.access.take();
    state.programs.role = std::mem::take(&mut saved.role);
    state.programs.inside = saved.inside;
    state.programs.trigger = saved.trigger.take();
    state.programs.stacked.truncate(saved.stacked);
    state.programs.running.pop();
    locals
}
