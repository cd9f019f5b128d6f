//! The interpreter. Each step ends with a place to go on at, or with a condition for which a handler is looked for: in the
//! program's frame, then in those of its callers.

use super::check;
use super::compile::Instruction;
use super::cursor::CursorSink;
use super::machine::{Frame, Machine, Scope};
use crate::api::{Assignment, Mode, Outcome};
use crate::error::{ExecResult, Interrupt, Level, SqlError, SqlResult};
use crate::expr::eval;
use crate::session::{Call, SqlSession, evaluate};
use crate::state::{Inside, SessionState};
use omnibus_parser::ast::{
    Expr, HandlerKind, InnerStatement, RunsIn, SetItem, SetValue, Statement, VarScope,
};
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

/// Whether no handler may catch an error of the server's: the session or its statement is to end.
fn ends_all(error: &SqlError) -> bool {
    matches!(error.code, 1317 | 3024 | 1969 | 1053 | 1927 | 1436)
}

impl SqlSession {
    /// Runs a machine until its first frame has ended; a function's value.
    pub(super) fn advance(&mut self, machine: &mut Machine, call: &mut Call<'_>) -> ExecResult<Value> {
        let mut returned = Value::Null;
        while let Some(frame) = machine.frames.last_mut() {
            let (program, at) = (frame.program.clone(), frame.at);
            let Some(instruction) = program.code.get(at) else {
                let end = self.end_frame(machine, None);
                if let Err(error) = end {
                    self.raise(machine, Level::Error, error)?;
                }
                continue;
            };
            let before = match instruction {
                Instruction::Statement(_) => 0,
                _ => self.state.diagnostics.conditions().len(),
            };
            let done = self.state.budget.step().and_then(|()| self.step(machine, instruction, call));
            let flow = match done {
                Ok(flow) => flow,
                Err(Interrupt::Error(error)) => {
                    self.raise(machine, Level::Error, error)?;
                    continue;
                }
                Err(other) => {
                    self.unwind(machine);
                    return Err(other);
                }
            };
            let Some(frame) = machine.frames.last_mut() else { break };
            match flow {
                Flow::Next => {
                    frame.at += 1;
                    if may_warn(instruction) {
                        self.look_for_warnings(machine, before);
                    }
                }
                Flow::To(to) => frame.at = to,
                Flow::Into(called) => machine.frames.push(*called),
                Flow::Return(value) => {
                    returned = value;
                    if let Err(error) = self.end_frame(machine, Some(())) {
                        self.raise(machine, Level::Error, error)?;
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
    pub(super) fn answered(&mut self, machine: &mut Machine, answer: SqlResult<()>) -> ExecResult<()> {
        let Some(frame) = machine.frames.last_mut() else { return Ok(()) };
        // SET makes the settings anew; the server had the program's own `sql_mode` meanwhile.
        let settings = &mut self.state.settings;
        settings.collation_client = frame.program.def.client;
        match answer {
            Ok(()) => {
                frame.at += 1;
                Ok(())
            }
            Err(error) => self.raise(machine, Level::Error, error),
        }
    }

    fn step(
        &mut self,
        machine: &mut Machine,
        instruction: &Instruction,
        call: &mut Call<'_>,
    ) -> ExecResult<Flow> {
        let Some(frame) = machine.frames.last_mut() else { return Ok(Flow::Next) };
        match instruction {
            Instruction::Statement(inner) => return self.inner(machine, inner, call),
            Instruction::Assign { local, value } => {
                let (value, ty) = match value {
                    Some(value) => self.value_of(value, true, call)?,
                    None => (Value::Null, crate::expr::ExprType::null().column),
                };
                self.state.assign_local(*local, value, &ty)?;
            }
            Instruction::Keep { local, value } => {
                let (value, ty) = self.value_of(value, false, call)?;
                self.state.set_local(*local, eval::own(value))?;
                let locals = &mut self.state.programs.locals;
                let at = *local as usize - locals.columns.len();
                if let Some(place) = locals.hidden.get_mut(at) {
                    *place = ty;
                }
            }
            Instruction::AssignUser { name, value } => {
                let given = self.value_of(value, false, call)?;
                assign_user(&mut self.state, name, given, &mut machine.affected)?;
            }
            Instruction::AssignNew { column, value } => {
                let (value, ty) = self.value_of(value, true, call)?;
                self.state.assign_new(column, value, &ty)?;
            }
            Instruction::Jump(to) => return Ok(Flow::To(*to)),
            Instruction::JumpUnless { condition, to, .. } => {
                let holds = self.truth_of(condition, call)?;
                return Ok(if holds { Flow::Next } else { Flow::To(*to) });
            }
            Instruction::Enter(block) => frame.scopes.push(Scope::Block(*block)),
            Instruction::Leave(count) => frame.leave(*count),
            Instruction::EndHandler => return Ok(Flow::To(end_handler(&mut self.state, frame))),
            Instruction::Open(cursor) => self.open_cursor(machine, *cursor as usize, call)?,
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
                    self.state.assign(target, value, ty)?;
                }
            }
            Instruction::Close(cursor) => match frame.cursors.get_mut(*cursor as usize) {
                Some(open @ Some(_)) => *open = None,
                _ => return Err(SqlError::sp_cursor_not_open().into()),
            },
            Instruction::Return(value) => {
                let (value, ty) = self.value_of(value, true, call)?;
                let Some(frame) = machine.frames.last() else { return Ok(Flow::Next) };
                let Some(column) = frame.program.returns.clone() else { return Ok(Flow::Next) };
                let value = self.state.as_column(value, &ty, &column)?;
                return Ok(Flow::Return(value));
            }
            Instruction::NoCase => return Err(SqlError::sp_case_not_found().into()),
        }
        Ok(Flow::Next)
    }

    /// A statement of a body.
    fn inner(
        &mut self,
        machine: &mut Machine,
        inner: &Arc<InnerStatement>,
        call: &mut Call<'_>,
    ) -> ExecResult<Flow> {
        let Some(frame) = machine.frames.last_mut() else { return Ok(Flow::Next) };
        let node = &inner.statement.node;
        if let Statement::Call { name, args } = node {
            let called = self.open_call(name, args, call)?;
            return Ok(Flow::Into(Box::new(called)));
        }
        if self.state.programs.inside == Inside::Statement {
            check::inside_statement(node)?;
        }
        if node.traits().runs_in == RunsIn::Session {
            if self.state.programs.inside == Inside::Statement
                && let Statement::Set(items) = node
                && let [SetItem::System { scope, name, value }] = &items[..]
            {
                self.set_inside(*scope, name, value, call)?;
                return Ok(Flow::Next);
            }
            if self.state.programs.inside == Inside::Statement {
                let what =
                    format!("{} in a function or trigger", node.kind().replace('_', " ").to_uppercase());
                return Err(SqlError::not_supported_yet(what).into());
            }
            return Ok(Flow::Server(inner.clone()));
        }
        if self.state.programs.inside == Inside::Statement && check::gives_rows(node) {
            return Err(SqlError::sp_no_retset("function").into());
        }
        let program = frame.program.clone();
        if self.state.programs.inside == Inside::Procedure {
            call.sink.result_begins();
        }
        let result = self.run_inner(&program, inner, call);
        match result {
            Ok(mut outcome) => {
                let ticket = outcome.wait.take();
                self.context().finish_commit(ticket)?;
                if outcome.result_set {
                    call.sink.result_ends(self.state.diagnostics.count(), false)?;
                    machine.affected = 0;
                } else {
                    machine.affected = outcome.affected;
                }
                Ok(Flow::Next)
            }
            Err(error) => {
                if self.state.programs.inside == Inside::Procedure && !call.sink.result_fails() {
                    // The client has a part of its rows: nothing but this error can follow them.
                    machine.frames.iter_mut().for_each(|frame| frame.scopes.clear());
                }
                Err(error)
            }
        }
    }

    /// SET of a system variable in a function or trigger. The server's own SET would need the session, which runs this.
    fn set_inside(
        &mut self,
        scope: Option<VarScope>,
        name: &str,
        value: &SetValue,
        call: &mut Call<'_>,
    ) -> ExecResult<()> {
        let value = match value {
            SetValue::Default => None,
            SetValue::Word(word) => Some(Value::Bytes(word.as_str().to_owned().into())),
            SetValue::Expr(expr) => Some(self.value_of(expr, false, call)?.0),
        };
        let access = self.state.programs.access.clone();
        let access = access.as_deref().unwrap_or(call.access);
        let settings = &self.state.settings;
        let (settings, warning) =
            self.state.host.assign(&Assignment { scope, name, value, access, settings })?;
        self.state.settings = settings;
        if let Some(warning) = warning {
            self.state.diagnostics.warn(warning);
        }
        Ok(())
    }

    fn open_cursor(&mut self, machine: &mut Machine, number: usize, call: &mut Call<'_>) -> ExecResult<()> {
        let Some(frame) = machine.frames.last() else { return Ok(()) };
        if matches!(frame.cursors.get(number), Some(Some(_))) {
            return Err(SqlError::sp_cursor_already_open().into());
        }
        let program = frame.program.clone();
        let Some(cursor) = program.cursors.get(number) else { return Ok(()) };
        let settings = self.state.settings.clone();
        let mut sink = CursorSink::new(&self.state.memory, &settings);
        let mut inner = Call {
            mode: call.mode,
            access: call.access,
            sink: &mut sink,
            text: call.text,
            params: &[],
            inner: None,
        };
        let outcome = self.run_inner(&program, &cursor.query, &mut inner)?;
        self.context().finish_commit(outcome.wait)?;
        let open = sink.open();
        if let Some(place) = machine.frames.last_mut().and_then(|frame| frame.cursors.get_mut(number)) {
            *place = Some(open);
        }
        Ok(())
    }

    /// The value of an expression. One that reads tables or calls functions runs as a statement does.
    /// `strict`: it goes into a variable of a program, or another thing that has a type.
    pub(super) fn value_of(
        &mut self,
        expr: &Expr,
        strict: bool,
        call: &mut Call<'_>,
    ) -> ExecResult<(Value, ColumnType)> {
        let access = self.state.programs.access.clone();
        let access = access.as_deref().unwrap_or(call.access);
        if let Some(plain) = evaluate::plain_value(&mut self.context(), expr, strict, access)? {
            return Ok(plain);
        }
        let mut found = None;
        let mut inner = Call {
            mode: Mode::Blocking,
            access,
            sink: &mut crate::session::Nowhere,
            text: call.text,
            params: &[],
            inner: None,
        };
        let keep = self.state.diagnostics.clone();
        let (row_count, inside) = (self.state.row_count, self.state.programs.inside);
        let outcome = self.run_within(inside, &mut inner, false, |session, call| {
            let cx = &mut session.context();
            cx.enter();
            found = Some(evaluate::value(cx, expr, &[], strict, call.access)?);
            Ok(Outcome::ok())
        });
        self.state.row_count = row_count;
        if outcome.is_ok() && self.state.diagnostics.count() == 0 {
            self.state.diagnostics = keep;
        }
        self.context().finish_commit(outcome?.wait)?;
        found.ok_or_else(|| SqlError::internal("an expression without a value").into())
    }

    fn truth_of(&mut self, expr: &Expr, call: &mut Call<'_>) -> ExecResult<bool> {
        let (value, _) = self.value_of(expr, false, call)?;
        // As IF() has it: a document is the number that it is.
        if let Value::Json(document) = &value {
            return Ok(
                omnibus_value::convert::document::to_f64(&crate::expr::json::decode(document)).value != 0.0
            );
        }
        let mut exec = crate::expr::Context::new(&mut self.state, &mut self.trx, &[]);
        let constant = crate::expr::Expr::constant(value, crate::expr::ExprType::null());
        Ok(constant.eval_bool(&mut exec)? == Some(true))
    }

    /// A statement succeeded with warnings: a handler for the last of them that has one.
    fn look_for_warnings(&mut self, machine: &mut Machine, first: usize) {
        let conditions = self.state.diagnostics.conditions().get(first..).unwrap_or_default();
        let warnings: Vec<SqlError> = conditions
            .iter()
            .rev()
            .filter(|(level, _)| *level == Level::Warning)
            .map(|(_, condition)| condition.clone())
            .collect();
        let Some(frame) = machine.frames.last_mut() else { return };
        for warning in warnings {
            if let Some(found) = frame.handler(Level::Warning, &warning) {
                let resume = frame.at;
                enter_handler(&mut self.state, frame, found, resume);
                return;
            }
        }
    }

    /// A statement failed: goes on in the handler for it, or ends with the error.
    fn raise(&mut self, machine: &mut Machine, level: Level, error: SqlError) -> ExecResult<()> {
        self.state.diagnostics.push_once(level, &error);
        // SIGNAL may give any number; KILL itself is seen by the next step.
        let signalled =
            self.state.programs.signalled.as_ref().is_some_and(|known| known.error.is_same(&error));
        while let Some(frame) = machine.frames.last_mut() {
            let ends = ends_all(&error) && !signalled
                || self.state.programs.inside == Inside::Statement
                    && (self.state.programs.doomed || error.code == 1213);
            let found = if ends { None } else { frame.handler(level, &error) };
            if let Some(found) = found {
                let resume = match frame.program.code.get(frame.at) {
                    Some(Instruction::JumpUnless { after, .. }) => *after,
                    _ => frame.at + 1,
                };
                enter_handler(&mut self.state, frame, found, resume);
                if level == Level::Error {
                    changes_nothing(&self.state, &mut machine.affected);
                }
                return Ok(());
            }
            self.drop_frame(machine);
        }
        Err(error.into())
    }

    /// Ends all frames without a result.
    pub(super) fn unwind(&mut self, machine: &mut Machine) {
        while !machine.frames.is_empty() {
            self.drop_frame(machine);
        }
    }
}

/// SET of a user variable.
fn assign_user(
    state: &mut SessionState,
    name: &str,
    (value, ty): (Value, ColumnType),
    affected: &mut u64,
) -> SqlResult<()> {
    state.assign_user(name, value, &ty)?;
    changes_nothing(state, affected);
    Ok(())
}

/// A statement that changes no rows has run: in MySQL's dialect CALL tells of none, whatever was changed before.
fn changes_nothing(state: &SessionState, affected: &mut u64) {
    if !state.settings.mariadb {
        *affected = 0;
    }
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

impl SqlSession {
    /// Runs a statement of a program's body, other than CALL.
    fn run_inner(
        &mut self,
        program: &Arc<super::Compiled>,
        inner: &InnerStatement,
        call: &mut Call<'_>,
    ) -> ExecResult<Outcome> {
        let text = super::function::text_of(program, inner.statement.span);
        let access = self.state.programs.access.clone();
        let inside = self.state.programs.inside;
        let mut own = Call {
            mode: Mode::Blocking,
            access: access.as_deref().unwrap_or(call.access),
            sink: &mut *call.sink,
            text: &text,
            params: &[],
            inner: Some(inner),
        };
        self.run_statement(&inner.statement, inside, &mut own)
    }
}

/// A handler is through: where to go on.
fn end_handler(state: &mut SessionState, frame: &mut Frame) -> usize {
    while let Some(scope) = frame.scopes.pop() {
        let Scope::Handler { hidden, resume, kind, stacked } = scope else { continue };
        // What was handled is nobody's condition any more.
        if let Some(handled) = state.programs.stacked.get(stacked) {
            let handled = handled.clone();
            handled.conditions().iter().for_each(|(_, known)| state.diagnostics.take_out(known));
        }
        state.programs.stacked.truncate(stacked);
        if kind == HandlerKind::Continue {
            return resume;
        }
        let end = match frame.scopes.get(hidden) {
            Some(Scope::Block(block)) => frame.program.blocks[*block].end,
            _ => frame.program.code.len(),
        };
        frame.leave_to(hidden);
        return end;
    }
    frame.program.code.len()
}

fn enter_handler(
    state: &mut SessionState,
    frame: &mut Frame,
    (hidden, number): (usize, usize),
    resume: usize,
) {
    let Some(Scope::Block(block)) = frame.scopes.get(hidden) else { return };
    let handler = &frame.program.blocks[*block].handlers[number];
    let stacked = state.programs.stacked.len();
    state.programs.stacked.push(state.diagnostics.clone());
    frame.scopes.push(Scope::Handler { hidden, resume, kind: handler.kind, stacked });
    frame.at = handler.start;
}
