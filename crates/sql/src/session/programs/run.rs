//! The interpreter. Each step ends with a place to go on at, or with a condition for which a handler is looked for: in the
//! program's frame, then in those of its callers.

use super::check;
use super::compile::{Compiled, Instruction};
use super::cursor::CursorSink;
use super::machine::{Frame, Machine, Scope, changes_nothing};
use crate::api::{AccessCheck, Assignment, Mode, Outcome, Priv, RowSink};
use crate::error::{ExecResult, Interrupt, Level, SqlError, SqlResult};
use crate::expr::{assign, eval};
use crate::session::run::{run_statement, run_within};
use crate::session::{Call, SqlSession, evaluate};
use crate::state::{Inside, SessionState, may_use_row, start_clock};
use omnibus_parser::ast::{Expr, InnerStatement, RunsIn, SetItem, SetValue, Statement, VarScope};
use omnibus_value::{ColumnType, Value};
use std::sync::Arc;

/// Where a program goes on.
enum Flow {
    Next,
    To(usize),
    /// CALL: in another program.
    Into(Box<Frame>),
    /// Out of it, with a function's value.
    Return(Value),
    /// When the server has run the statement.
    Server(Arc<InnerStatement>),
}

/// A run of programs on a session: their statements go through `run_statement`, and all else is in its statement's context.
pub(crate) struct Execution<'s, 'c> {
    pub(super) session: &'s mut SqlSession,
    /// The call that the programs run for.
    pub(super) call: &'s mut Call<'c>,
    pub(super) machine: Machine,
}

impl Execution<'_, '_> {
    /// Runs a machine until its first frame has ended; a function's value.
    pub(super) fn advance(&mut self) -> ExecResult<Value> {
        let mut returned = Value::Null;
        while let Some(frame) = self.machine.frames.last_mut() {
            let (program, at) = (frame.program.clone(), frame.at);
            let Some(instruction) = program.code.get(at) else {
                match self.machine.end_frame(&mut self.session.state, None) {
                    Err(error) => self.machine.raise(&mut self.session.state, Level::Error, error)?,
                    // What its last statement warned of is the warning of CALL.
                    Ok(()) => self.machine.look_for_warnings(&mut self.session.state, 0),
                }
                continue;
            };
            let before = match instruction {
                Instruction::Statement(_) => 0,
                _ => self.session.state.diagnostics.conditions().len(),
            };
            let done = self.session.state.budget.step().and_then(|()| self.step(instruction));
            let flow = match done {
                Ok(flow) => flow,
                Err(Interrupt::Error(error)) => {
                    self.machine.raise(&mut self.session.state, Level::Error, error)?;
                    continue;
                }
                Err(other) => {
                    self.machine.unwind(&mut self.session.state);
                    return Err(other);
                }
            };
            let Some(frame) = self.machine.frames.last_mut() else { break };
            match flow {
                Flow::Next => {
                    frame.at += 1;
                    if may_warn(instruction) {
                        self.machine.look_for_warnings(&mut self.session.state, before);
                    }
                }
                Flow::To(to) => frame.at = to,
                Flow::Into(called) => self.machine.frames.push(*called),
                Flow::Return(value) => {
                    returned = value;
                    if let Err(error) = self.machine.end_frame(&mut self.session.state, Some(())) {
                        self.machine.raise(&mut self.session.state, Level::Error, error)?;
                    }
                }
                Flow::Server(inner) => {
                    let frame_access = frame.program.as_definer().then(|| frame.program.def.definer());
                    let account = frame_access
                        .map(|definer| (definer.account().0.to_owned(), definer.account().1.to_owned()));
                    let text = frame.program.text.slice_ref(inner.statement.span.of(&frame.program.text));
                    return Err(Interrupt::Server(Box::new(crate::error::ServerStatement {
                        statement: inner.statement.clone(),
                        text,
                        account,
                    })));
                }
            }
        }
        Ok(returned)
    }

    /// The server has run the statement that the machine waits for.
    pub(super) fn answered(&mut self, answer: SqlResult<()>) -> ExecResult<()> {
        let Some(frame) = self.machine.frames.last_mut() else { return Ok(()) };
        // SET makes the settings anew; the server had the program's own `sql_mode` meanwhile.
        let settings = &mut self.session.state.settings;
        settings.collation_client = frame.program.def.client;
        match answer {
            Ok(()) => {
                frame.at += 1;
                Ok(())
            }
            Err(error) => self.machine.raise(&mut self.session.state, Level::Error, error),
        }
    }

    fn step(&mut self, instruction: &Instruction) -> ExecResult<Flow> {
        let Some(frame) = self.machine.frames.last_mut() else { return Ok(Flow::Next) };
        match instruction {
            Instruction::Statement(inner) => return self.inner(inner),
            Instruction::Assign { local, value } => {
                let (value, ty) = match value {
                    Some(value) => self.value_of(value, true)?,
                    None => (Value::Null, crate::expr::ExprType::null().column),
                };
                assign::to_local(&mut self.session.state, *local, value, &ty)?;
            }
            Instruction::Keep { local, value, .. } => {
                let (value, ty) = self.value_of(value, false)?;
                self.session.state.set_local(*local, eval::own(value))?;
                let locals = &mut self.session.state.programs.locals;
                let at = *local as usize - locals.columns.len();
                if let Some(place) = locals.hidden.get_mut(at) {
                    *place = ty;
                }
            }
            Instruction::AssignUser { name, value } => {
                let given = self.value_of(value, false)?;
                assign_user(&mut self.session.state, name, given, &mut self.machine.affected)?;
            }
            Instruction::AssignNew { column, value } => {
                may_use_row(&self.session.state, column, Priv::Update)?;
                let (value, ty) = self.value_of(value, true)?;
                assign::to_new(&mut self.session.state, column, value, &ty)?;
            }
            Instruction::Jump(to) => return Ok(Flow::To(*to)),
            Instruction::JumpUnless { condition, to, .. } => {
                let holds = self.truth_of(condition)?;
                return Ok(if holds { Flow::Next } else { Flow::To(*to) });
            }
            Instruction::Enter(block) => frame.scopes.push(Scope::Block(*block)),
            Instruction::Leave(count) => frame.leave(*count),
            Instruction::EndHandler => return Ok(Flow::To(frame.end_handler(&mut self.session.state))),
            Instruction::Open(cursor) => self.open_cursor(*cursor as usize)?,
            Instruction::Fetch { cursor, into } => {
                let types_and_row = match frame.cursors.get_mut(*cursor as usize) {
                    Some(Some(open)) if open.types.len() != into.len() => {
                        return Err(SqlError::sp_wrong_no_of_fetch_args().into());
                    }
                    Some(Some(open)) => open.next().map(|row| (open.types.clone(), row)),
                    _ => return Err(SqlError::sp_cursor_not_open().into()),
                };
                let Some((types, row)) = types_and_row else {
                    return Err(SqlError::sp_fetch_no_data().into());
                };
                for ((target, value), ty) in into.iter().zip(row).zip(&types) {
                    assign::to_target(&mut self.session.state, target, value, ty)?;
                }
            }
            Instruction::Close(cursor) => match frame.cursors.get_mut(*cursor as usize) {
                Some(open @ Some(_)) => *open = None,
                _ => return Err(SqlError::sp_cursor_not_open().into()),
            },
            Instruction::Return(value) => {
                frame.returns = true;
                let (value, ty) = self.value_of(value, true)?;
                let Some(frame) = self.machine.frames.last() else { return Ok(Flow::Next) };
                let Some(column) = frame.program.returns.clone() else { return Ok(Flow::Next) };
                let value = assign::as_column(&mut self.session.state, value, &ty, &column)?;
                return Ok(Flow::Return(value));
            }
            Instruction::NoCase => return Err(SqlError::sp_case_not_found().into()),
        }
        Ok(Flow::Next)
    }

    /// A statement of a body.
    fn inner(&mut self, inner: &Arc<InnerStatement>) -> ExecResult<Flow> {
        let Some(frame) = self.machine.frames.last_mut() else { return Ok(Flow::Next) };
        let node = &inner.statement.node;
        if let Statement::Call { name, args } = node {
            self.session.state.diagnostics.clear();
            let called = self.open_call(name, args)?;
            return Ok(Flow::Into(Box::new(called)));
        }
        if self.session.state.programs.inside == Inside::Statement {
            check::inside_statement(node)?;
        }
        if node.traits().runs_in == RunsIn::Session {
            if self.session.state.programs.inside == Inside::Statement
                && let Statement::Set(items) = node
                && let [SetItem::System { scope, name, value }] = &items[..]
            {
                self.set_inside(*scope, name, value)?;
                return Ok(Flow::Next);
            }
            if self.session.state.programs.inside == Inside::Statement {
                let what =
                    format!("{} in a function or trigger", node.kind().replace('_', " ").to_uppercase());
                return Err(SqlError::not_supported_yet(what).into());
            }
            return Ok(Flow::Server(inner.clone()));
        }
        if self.session.state.programs.inside == Inside::Statement && node.traits().gives_rows {
            return Err(SqlError::sp_no_retset("function").into());
        }
        let program = frame.program.clone();
        if self.session.state.programs.inside == Inside::Procedure {
            self.call.sink.result_begins();
        }
        let result = run_inner(self.session, &program, inner, self.call.access, &mut *self.call.sink);
        match result {
            Ok(mut outcome) => {
                let ticket = outcome.wait.take();
                self.session.context().finish_commit(ticket)?;
                if outcome.result_set {
                    self.call.sink.result_ends(self.session.state.diagnostics.count(), false)?;
                    self.machine.affected = 0;
                } else {
                    self.machine.affected = outcome.affected;
                }
                Ok(Flow::Next)
            }
            Err(error) => {
                if self.session.state.programs.inside == Inside::Procedure && !self.call.sink.result_fails() {
                    // The client has a part of its rows: nothing but this error can follow them.
                    self.machine.frames.iter_mut().for_each(|frame| frame.scopes.clear());
                }
                Err(error)
            }
        }
    }

    /// SET of a system variable in a function or trigger. The server's own SET would need the session, which runs this.
    fn set_inside(&mut self, scope: Option<VarScope>, name: &str, value: &SetValue) -> ExecResult<()> {
        let value = match value {
            SetValue::Default => None,
            SetValue::Word(word) => Some(Value::Bytes(word.as_str().to_owned().into())),
            SetValue::Expr(expr) => Some(self.value_of(expr, false)?.0),
        };
        let access = self.session.state.programs.access.clone();
        let access = access.as_deref().unwrap_or(self.call.access);
        let settings = &self.session.state.settings;
        let (settings, warning) = self.session.state.connection.host.assign(&Assignment {
            scope,
            name,
            value,
            access,
            settings,
        })?;
        self.session.state.settings = settings;
        if let Some(warning) = warning {
            self.session.state.diagnostics.warn(warning);
        }
        Ok(())
    }

    fn open_cursor(&mut self, number: usize) -> ExecResult<()> {
        let Some(frame) = self.machine.frames.last() else { return Ok(()) };
        if matches!(frame.cursors.get(number), Some(Some(_))) {
            return Err(SqlError::sp_cursor_already_open().into());
        }
        let program = frame.program.clone();
        let Some(cursor) = program.cursors.get(number) else { return Ok(()) };
        let settings = self.session.state.settings.clone();
        let mut sink = CursorSink::new(&self.session.state.connection.memory, &settings);
        let outcome = run_inner(self.session, &program, &cursor.query, self.call.access, &mut sink)?;
        self.session.context().finish_commit(outcome.wait)?;
        let open = sink.open();
        if let Some(place) = self.machine.frames.last_mut().and_then(|frame| frame.cursors.get_mut(number)) {
            *place = Some(open);
        }
        Ok(())
    }

    /// The value of an expression. One that reads tables or calls functions runs as a statement does.
    /// `strict`: it goes into a variable of a program, or another thing that has a type.
    pub(super) fn value_of(&mut self, expr: &Expr, strict: bool) -> ExecResult<(Value, ColumnType)> {
        let access = self.session.state.programs.access.clone();
        let access = access.as_deref().unwrap_or(self.call.access);
        if self.session.state.programs.inside == Inside::Procedure {
            start_clock(&mut self.session.state);
        }
        if let Some(plain) = evaluate::plain_value(&mut self.session.context(), expr, strict, access)? {
            return Ok(plain);
        }
        let mut found = None;
        let mut inner = Call {
            mode: Mode::Blocking,
            access,
            sink: &mut crate::session::Nowhere,
            text: self.call.text,
            params: &[],
            inner: None,
        };
        let keep = self.session.state.diagnostics.clone();
        let (row_count, inside) = (self.session.state.results.row_count, self.session.state.programs.inside);
        let outcome = run_within(self.session, inside, &mut inner, false, |session, call| {
            let cx = &mut session.context();
            cx.enter();
            found = Some(evaluate::value(cx, expr, &[], strict, call.access)?);
            Ok(Outcome::ok())
        });
        self.session.state.results.row_count = row_count;
        if outcome.is_ok() && self.session.state.diagnostics.count() == 0 {
            self.session.state.diagnostics = keep;
        }
        self.session.context().finish_commit(outcome?.wait)?;
        found.ok_or_else(|| SqlError::internal("an expression without a value").into())
    }

    fn truth_of(&mut self, expr: &Expr) -> ExecResult<bool> {
        let (value, _) = self.value_of(expr, false)?;
        // The condition is judged as in IF(): a document counts as the number in it.
        if let Value::Json(document) = &value {
            return Ok(
                omnibus_value::convert::document::to_f64(&crate::expr::json::decode(document)).value != 0.0
            );
        }
        let mut exec = crate::expr::Context::new(&mut self.session.state, &mut self.session.trx, &[]);
        let constant = crate::expr::Expr::constant(value, crate::expr::ExprType::null());
        Ok(constant.eval_bool(&mut exec)? == Some(true))
    }
}

/// SET of a user variable.
fn assign_user(
    state: &mut SessionState,
    name: &str,
    (value, ty): (Value, ColumnType),
    affected: &mut u64,
) -> SqlResult<()> {
    assign::to_user(state, name, value, &ty)?;
    changes_nothing(state, affected);
    Ok(())
}

/// Whether conditions that are there after a step are its own.
fn may_warn(instruction: &Instruction) -> bool {
    match instruction {
        Instruction::Statement(inner) => !matches!(inner.statement.node, Statement::GetDiagnostics(_)),
        Instruction::Assign { .. }
        | Instruction::AssignUser { .. }
        | Instruction::AssignNew { .. }
        | Instruction::Fetch { .. } => true,
        _ => false,
    }
}

/// Runs a statement of a program's body, other than CALL. The rows that it gives go to `sink`.
fn run_inner(
    session: &mut SqlSession,
    program: &Arc<Compiled>,
    inner: &InnerStatement,
    access: &dyn AccessCheck,
    sink: &mut dyn RowSink,
) -> ExecResult<Outcome> {
    let text = super::function::text_of(program, inner.statement.span);
    let own = session.state.programs.access.clone();
    let inside = session.state.programs.inside;
    let mut call = Call {
        mode: Mode::Blocking,
        access: own.as_deref().unwrap_or(access),
        sink,
        text: &text,
        params: &[],
        inner: Some(inner),
    };
    run_statement(session, &inner.statement, inside, &mut call)
}
