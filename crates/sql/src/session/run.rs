//! The frame of every statement of a session: it begins, runs, is undone or committed, and may have to wait or move to
//! another thread and run again.

use super::SqlSession;
use super::prepared::{is_planned, run_read};
use super::programs::{Execution, takes_call};
use crate::api::{AccessCheck, Mode, Outcome, RowSink};
use crate::error::{ExecResult, Interrupt, Level, SqlError};
use crate::memory::MemoryLimits;
use crate::state::Inside;
use crate::store::wait_failure;
use bytes::Bytes;
use omnibus_locks::WaitOutcome;
use omnibus_parser::ast::{Expr, InnerStatement, Spanned, Statement};
use omnibus_value::Value;
use std::sync::Arc;

/// How often a statement is planned anew because a definition changed under it.
const REPLANS: usize = 20;

/// The surroundings of a statement that runs: where it runs, for whom, and where its rows go.
pub(crate) struct Call<'a> {
    pub mode: Mode,
    pub access: &'a dyn AccessCheck,
    pub sink: &'a mut dyn RowSink,
    pub text: &'a Bytes,
    pub params: &'a [Value],
    /// The statement of a program that it is.
    pub inner: Option<&'a InnerStatement>,
}

impl SqlSession {
    /// Runs a statement, with the values that the text has in the places of its parameters ([`super::ReadText`]). On `LockWait` and
    /// `NeedBlocking` its effects are undone: wait, or move to a thread that may block, and call again with the same arguments.
    ///
    /// # Errors
    /// See [`Interrupt`].
    pub fn execute(
        &mut self,
        statement: &Arc<Spanned<Statement>>,
        text: &Bytes,
        values: &[Value],
        mode: Mode,
        access: &dyn AccessCheck,
        sink: &mut dyn RowSink,
    ) -> ExecResult<Outcome> {
        if self.waiting.answer.is_some() {
            let mut call = Call { mode, access, sink, text, params: &[], inner: None };
            return Execution::resume(self, &mut call);
        }
        let mut call = Call { mode, access, sink, text, params: values, inner: None };
        if takes_call(&statement.node) {
            return execute_plain(self, statement, &mut call);
        }
        self.with_given_gtid(&statement.node, |session| execute_plain(session, statement, &mut call))
    }

    /// A lock wait that `execute` asked for ended without the lock: the statement's error. After a
    /// deadlock the transaction is gone.
    pub fn wait_failed(&mut self, outcome: WaitOutcome) -> SqlError {
        let error = wait_failure(outcome, self.state.budget.kill());
        if outcome == WaitOutcome::Deadlock {
            self.trx.branch.deadlocked();
        }
        if outcome == WaitOutcome::Deadlock || !self.trx.is_open() {
            self.trx.rollback();
        }
        self.give_up(&error);
        error
    }

    /// A statement that was interrupted will not be run again.
    pub fn give_up(&mut self, error: &SqlError) {
        self.attempts.give_up();
        self.state.results.row_count = -1;
        self.state.diagnostics.push(Level::Error, error.clone());
        self.gtid.failed(&mut self.trx);
    }
}

/// Runs `body` as a statement: undone on errors and interrupts, committed under autocommit.
pub(super) fn run(
    session: &mut SqlSession,
    call: &mut Call<'_>,
    mut body: impl FnMut(&mut SqlSession, &mut Call<'_>) -> ExecResult<Outcome>,
) -> ExecResult<Outcome> {
    let mut replans = 0;
    let result = loop {
        let before = session.state.checkpoint();
        let again = session.attempts.resumed || replans > 0;
        match (session.state.programs.inside, call.mode) {
            (Inside::Nothing, mode) | (_, mode @ Mode::Inline) => session.state.budget.begin(mode, again),
            (_, Mode::Blocking) => session.state.budget.go_on(again),
        }
        let marks = session.context().begin_statement(call, again);
        // What a large transaction writes goes to disk as it comes, and any statement may end it.
        let result = session
            .trx
            .may_run_here()
            .and_then(|()| body(session, call))
            .and_then(|outcome| session.trx.complete_statement().map(|()| outcome));
        let Err(interrupt) = result else { break result };
        let again = matches!(&interrupt, Interrupt::Error(error) if error.code == 1615) && replans < REPLANS;
        let interrupt = session.context().undo(marks, interrupt);
        if again || !matches!(interrupt, Interrupt::Error(_)) {
            session.state.restore(before);
        }
        if !again {
            break Err(interrupt);
        }
        replans += 1;
    };
    let cx = &mut session.context();
    let result = result.and_then(|outcome| cx.autocommit(outcome));
    cx.finish(result)
}

/// As `run`, or as a part of the statement that a program runs in.
pub(crate) fn run_within(
    session: &mut SqlSession,
    inside: Inside,
    call: &mut Call<'_>,
    writes: bool,
    body: impl FnMut(&mut SqlSession, &mut Call<'_>) -> ExecResult<Outcome>,
) -> ExecResult<Outcome> {
    match inside {
        Inside::Statement => run_part(session, call, writes, body),
        _ => run(session, call, body),
    }
}

/// Runs a part of a statement so that it can be undone by itself. `writes`: it changes rows.
pub(crate) fn run_part(
    session: &mut SqlSession,
    call: &mut Call<'_>,
    writes: bool,
    mut body: impl FnMut(&mut SqlSession, &mut Call<'_>) -> ExecResult<Outcome>,
) -> ExecResult<Outcome> {
    if writes {
        // Events that the statement around has not given to the cache yet are not this one's to undo.
        session.trx.end_statement()?;
    }
    let marks = session.trx.marks();
    let mut replans = 0;
    let result = loop {
        let result = body(session, call).and_then(|outcome| {
            if writes {
                session.trx.end_statement()?;
            }
            Ok(outcome)
        });
        match result {
            Err(Interrupt::Error(error)) if error.code == 1615 && replans < REPLANS => replans += 1,
            result => break result,
        }
        if writes {
            session.trx.rollback_statement(marks)?;
        }
    };
    if writes && session.trx.statement.take_forced() {
        // The number that was given is for the rows of one statement.
        session.state.settings.insert_id = None;
    }
    match &result {
        Ok(outcome) if outcome.result_set => session.state.results.row_count = -1,
        Ok(outcome) => session.state.results.row_count = i64::try_from(outcome.affected).unwrap_or(i64::MAX),
        Err(Interrupt::Error(error)) => {
            if writes {
                session.trx.rollback_statement(marks)?;
            }
            // What a function of it wrote can not be taken out by itself: no handler may go on.
            session.state.programs.doomed |= !writes && session.trx.marks().has_writes_since(marks);
            session.state.results.row_count = -1;
            session.state.diagnostics.push(Level::Error, error.clone());
        }
        Err(_) => {}
    }
    result
}

fn execute_plain(
    session: &mut SqlSession,
    statement: &Arc<Spanned<Statement>>,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    // The caller may have cut this statement out of a longer text already, as it has if the statement is another text's.
    let (span, text) = (statement.span, call.text);
    let whole = !call.params.is_empty() || span.end.saturating_sub(span.start) as usize == text.len();
    let text = &if whole { text.clone() } else { text.slice_ref(span.of(text)) };
    let Call { mode, access, params, .. } = *call;
    let mut call = Call { mode, access, sink: &mut *call.sink, text, params, inner: None };
    session.context().begin(text, statement.node.traits().keeps_diagnostics);
    session.hinted(&statement.node, access, |session| execute_begun(session, statement, &mut call))
}

fn execute_begun(
    session: &mut SqlSession,
    statement: &Arc<Spanned<Statement>>,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    session.context().bound_time(&statement.node);
    if let Some(result) = called(session, &statement.node, call) {
        return result;
    }
    let (database, of_template) = (session.state.database.as_ref(), !call.params.is_empty());
    if is_planned(&statement.node)
        && let Some(mut plan) = session.statements.take_plan(statement, call.text, of_template, database)
    {
        let result = run(session, call, |session, call| match of_template {
            true => run_read(session, &mut plan, call),
            false => plan.run(session, call),
        });
        session.statements.keep_plan(plan);
        return result;
    }
    run(session, call, |session, call| session.dispatch(&statement.node, call))
}

/// The arguments of a prepared CALL: what goes out goes into the variable that was given.
fn given_args(args: &[Expr], using: &[Expr]) -> Vec<Expr> {
    let given = |arg: &Expr| match arg {
        Expr::Param(number) => using.get(*number as usize).unwrap_or(arg).clone(),
        arg => arg.clone(),
    };
    args.iter().map(given).collect()
}

/// A statement that is CALL, or EXECUTE of one: run here, for none of them is a statement of a transaction itself.
pub(super) fn called(
    session: &mut SqlSession,
    statement: &Statement,
    call: &mut Call<'_>,
) -> Option<ExecResult<Outcome>> {
    match statement {
        Statement::Call { name, args } => Some(match call.access.check_statement(statement) {
            Ok(()) => Execution::call(session, name, args, call),
            Err(error) => Err(error.into()),
        }),
        Statement::RunEvent(name) => Some(Execution::run_event(session, name, call)),
        Statement::Execute { name, using } => {
            let prepared = session.statements.prepared.get(&name.to_lowercase())?;
            let statement = prepared.statement.clone();
            let Statement::Call { name, args } = &statement.node else { return None };
            if using.len() != prepared.params {
                return Some(Err(SqlError::wrong_arguments("EXECUTE").into()));
            }
            let name = prepared.qualified(name);
            Some(Execution::call(session, &name, &given_args(args, using), call))
        }
        Statement::ExecuteImmediate { source: source @ (Expr::Literal(_) | Expr::UserVar(_)), using } => {
            let (value, ty) = session.evaluate(source, call.access).ok()?;
            let (statement, _) = session.parse(&value.to_bytes(&ty), true).ok()?;
            let Statement::Call { name, args } = &statement.node else { return None };
            Some(match using.len() == statement.params as usize {
                true => Execution::call(session, name, &given_args(args, using), call),
                false => Err(SqlError::wrong_arguments("EXECUTE").into()),
            })
        }
        _ => None,
    }
}

/// One statement of a program, with the plan that it had before.
pub(crate) fn run_statement(
    session: &mut SqlSession,
    statement: &Arc<Spanned<Statement>>,
    inside: Inside,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    let node = &statement.node;
    let mut begin_and_run = |session: &mut SqlSession| {
        session.context().begin(call.text, node.traits().keeps_diagnostics);
        session.hinted(node, call.access, |session| run_hinted(session, statement, inside, call))
    };
    match inside {
        Inside::Procedure => session.with_given_gtid(node, begin_and_run),
        Inside::Nothing | Inside::Statement => begin_and_run(session),
    }
}

fn run_hinted(
    session: &mut SqlSession,
    statement: &Arc<Spanned<Statement>>,
    inside: Inside,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    let node = &statement.node;
    let writes = matches!(node, Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_));
    if !is_planned(node) {
        return run_within(session, inside, call, writes, |session, call| session.dispatch(node, call));
    }
    let mut plan = session.statements.take_program(statement, call.text, session.state.database.as_ref());
    let result = run_within(session, inside, call, writes, |session, call| plan.run(session, call));
    let limits = MemoryLimits::of(&session.state.settings);
    session.statements.keep_program(plan, &session.state.connection.memory, limits);
    result
}
