//! The frame of every statement of a session: it begins, runs, is undone or committed, and may have to wait or move to
//! another thread and run again.

use super::SqlSession;
use super::given::{Decision, Given};
use super::hints::hinted_time;
use super::prepared::{is_planned, run_read};
use crate::api::{AccessCheck, Mode, Outcome, RowSink, TimeLimit};
use crate::error::{ExecResult, Interrupt, Level, SqlError};
use crate::memory::MemoryLimits;
use crate::session::programs::takes_call;
use crate::state::Inside;
use crate::state::NewInsertId;
use crate::store::{Marks, wait_failure};
use bytes::Bytes;
use omnibus_locks::WaitOutcome;
use omnibus_parser::ast::{Expr, InnerStatement, QueryBody, SelectItem, Spanned, Statement};
use omnibus_value::Value;
use std::sync::Arc;

/// How often a statement is planned anew because a definition changed under it.
const REPLANS: usize = 20;

/// What a statement is run with.
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
        self.execute_read(statement, text, &[], mode, access, sink)
    }

    /// Runs a statement as `execute` does, with the values that the text has in the places of its parameters ([`super::ReadText`]).
    ///
    /// # Errors
    /// See [`Interrupt`].
    pub fn execute_read(
        &mut self,
        statement: &Arc<Spanned<Statement>>,
        text: &Bytes,
        values: &[Value],
        mode: Mode,
        access: &dyn AccessCheck,
        sink: &mut dyn RowSink,
    ) -> ExecResult<Outcome> {
        if self.programs.answer.is_some() {
            let mut call = Call { mode, access, sink, text, params: &[], inner: None };
            return self.resume_call(&mut call);
        }
        let mut call = Call { mode, access, sink, text, params: values, inner: None };
        if self.gtid.given == Given::Automatic || takes_call(&statement.node) {
            return execute_plain(self, statement, &mut call);
        }
        match self.gtid.decide(&statement.node, &mut self.state, &mut self.trx) {
            Decision::Done(result) => result,
            Decision::Run(class) => {
                let result = execute_plain(self, statement, &mut call);
                self.gtid.passed(class, &result, &mut self.trx);
                result
            }
        }
    }

    /// What every statement does before it runs.
    pub(super) fn begin(&mut self, text: &Bytes, keep_diagnostics: bool) {
        let outside = self.state.programs.inside == Inside::Nothing;
        if !self.attempt.resumed {
            // Who runs statements forgets a KILL of the one before, before it parses this one.
            if outside {
                self.kill.clear_deadline();
            }
            if self.state.programs.inside != Inside::Statement {
                self.state.conditions_before = Some(self.state.diagnostics.counts());
            }
            self.state.now_us = match self.state.settings.timestamp_us {
                Some(us) => us,
                None => omnibus_commit::now_us() as i64,
            };
        }
        match (keep_diagnostics, self.attempt.resumed) {
            (false, false) => self.state.diagnostics.clear(),
            (true, false) if outside => self.state.diagnostics.keep(),
            _ => {}
        }
        self.state.programs.tables.clear();
        if self.state.held.locked.is_some() && !self.trx.locks.has_locked_tables() {
            self.state.held.locked = None;
        }
        self.state.last_insert_id_set = None;
        if self.state.new_insert_id == NewInsertId::Asked && !self.attempt.resumed {
            self.state.new_insert_id = NewInsertId::None;
        }
        self.state.statement = text.clone();
    }

    /// Starts the time that a statement may take.
    pub(super) fn bound_time(&self, statement: &Statement) {
        // The time of a program's statements is the program's.
        if self.attempt.resumed || self.state.programs.inside != Inside::Nothing {
            return;
        }
        let settings = &self.state.settings;
        let query = match statement {
            Statement::Select(_) => {
                let hint = hinted_time(statement).map(u64::from);
                Some(hint.unwrap_or(settings.time_limits.query_ms))
            }
            _ => None,
        };
        match (query.filter(|ms| *ms != 0), settings.time_limits.statement_ms) {
            (Some(ms), statement) if statement == 0 || ms <= statement => {
                self.kill.set_deadline(ms, TimeLimit::Query)
            }
            (_, ms) => self.kill.set_deadline(ms, TimeLimit::Statement),
        }
    }

    /// Runs `body` as a statement: undone on errors and interrupts, committed under autocommit.
    pub(super) fn run(
        &mut self,
        call: &mut Call<'_>,
        mut body: impl FnMut(&mut SqlSession, &mut Call<'_>) -> ExecResult<Outcome>,
    ) -> ExecResult<Outcome> {
        let mut replans = 0;
        let result = loop {
            let before = self.state.checkpoint();
            let again = self.attempt.resumed || replans > 0;
            match (self.state.programs.inside, call.mode) {
                (Inside::Nothing, mode) | (_, mode @ Mode::Inline) => self.state.budget.begin(mode, again),
                (_, Mode::Blocking) => self.state.budget.go_on(again),
            }
            let marks = self.begin_statement(call, again);
            // What a large transaction writes goes to disk as it comes, and any statement may end it.
            let result = self.trx.may_run_here().and_then(|()| body(self, call)).and_then(|outcome| {
                self.trx.give_back_awaited()?;
                self.trx.end_statement()?;
                self.trx.may_run_here()?;
                Ok(outcome)
            });
            let Err(interrupt) = result else { break result };
            let again =
                matches!(&interrupt, Interrupt::Error(error) if error.code == 1615) && replans < REPLANS;
            let interrupt = self.undo(marks, interrupt);
            if again || !matches!(interrupt, Interrupt::Error(_)) {
                self.state.restore(before);
            }
            if !again {
                break Err(interrupt);
            }
            replans += 1;
        };
        let result = result.and_then(|outcome| self.autocommit(outcome));
        self.finish(result)
    }

    /// As `run`, or as a part of the statement that a program runs in.
    pub(crate) fn run_within(
        &mut self,
        inside: Inside,
        call: &mut Call<'_>,
        writes: bool,
        body: impl FnMut(&mut SqlSession, &mut Call<'_>) -> ExecResult<Outcome>,
    ) -> ExecResult<Outcome> {
        match inside {
            Inside::Statement => self.run_part(call, writes, body),
            _ => self.run(call, body),
        }
    }

    fn begin_statement(&mut self, call: &Call<'_>, again: bool) -> Marks {
        let marks = self.trx.begin_statement(call.mode, again, &self.state.info(call.text));
        if !self.trx.is_open() {
            let (isolation, read_only) = self.next.said();
            self.trx.use_characteristics(isolation, read_only);
        }
        marks
    }

    /// Undoes a statement that did not succeed.
    fn undo(&mut self, marks: Marks, interrupt: Interrupt) -> Interrupt {
        let Interrupt::Error(error) = &interrupt else {
            return match self.trx.rollback_statement(marks) {
                Ok(()) => interrupt,
                Err(error) => {
                    self.trx.rollback();
                    error.into()
                }
            };
        };
        // What a failed statement changed before stays, where it stayed at its source.
        if self.replayed.keep_failed == Some(error.code)
            && self.trx.is_open()
            && self.trx.end_statement().is_ok()
        {
            return interrupt;
        }
        // A deadlock's victim gives up everything; other errors only the statement.
        if error.code == 1213 {
            self.trx.branch.deadlocked();
        }
        if error.code == 1213 || !self.trx.is_open() || self.trx.rollback_statement(marks).is_err() {
            self.trx.rollback();
        }
        interrupt
    }

    /// Ends a statement's own transaction.
    fn autocommit(&mut self, mut outcome: Outcome) -> ExecResult<Outcome> {
        self.gtid.before_last_commit();
        let ticket = if self.trx.is_open() { None } else { self.context().commit_now()? };
        // The statement's own ticket is the later one, if it has one.
        outcome.wait = outcome.wait.or(ticket);
        Ok(outcome)
    }

    fn finish(&mut self, result: ExecResult<Outcome>) -> ExecResult<Outcome> {
        self.attempt.resumed = false;
        self.state.budget.end();
        if !matches!(result, Err(Interrupt::LockWait(_) | Interrupt::NeedBlocking | Interrupt::NeedFile(_))) {
            if self.state.programs.inside == Inside::Nothing {
                self.kill.clear_deadline();
            }
            if self.trx.statement.take_forced() {
                self.state.settings.insert_id = None;
            }
            self.state.conditions_before = None;
            self.attempt.load_input = None;
        }
        match &result {
            Ok(outcome) if outcome.result_set => self.state.row_count = -1,
            Ok(outcome) => self.state.row_count = i64::try_from(outcome.affected).unwrap_or(i64::MAX),
            Err(Interrupt::Error(error)) => {
                // Hardly an error tells nothing of a definition that is there, or is not.
                self.trx.floor().see_definitions();
                self.state.row_count = -1;
                self.state.diagnostics.push(Level::Error, error.clone());
            }
            Err(_) => self.attempt.resumed = true,
        }
        self.attempt.end(result)
    }

    /// A lock wait that `execute` asked for ended without the lock: the statement's error. After a
    /// deadlock the transaction is gone.
    pub fn wait_failed(&mut self, outcome: WaitOutcome) -> SqlError {
        let error = wait_failure(outcome, &self.kill);
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
        self.attempt.give_up();
        self.state.row_count = -1;
        self.state.diagnostics.push(Level::Error, error.clone());
        self.gtid.failed(&mut self.trx);
    }

    /// What `begin` and `run` do before a statement, for changes that no statement of ours makes. `text` is what is
    /// known of the one that made them.
    pub(crate) fn begin_rows(&mut self, text: &[u8], mode: Mode) -> Marks {
        self.state.budget.begin(mode, false);
        self.trx.begin_statement(mode, false, &self.state.info(text))
    }
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
    session.begin(text, keeps_diagnostics(&statement.node));
    session.hinted(&statement.node, access, |session| execute_begun(session, statement, &mut call))
}

fn execute_begun(
    session: &mut SqlSession,
    statement: &Arc<Spanned<Statement>>,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    session.bound_time(&statement.node);
    if let Some(result) = session.called(&statement.node, call) {
        return result;
    }
    let (database, of_template) = (session.state.database.as_ref(), !call.params.is_empty());
    if is_planned(&statement.node)
        && let Some(mut plan) = session.statements.take_plan(statement, call.text, of_template, database)
    {
        let result = session.run(call, |session, call| match of_template {
            true => run_read(session, &mut plan, call),
            false => session.run_prepared(&mut plan, call),
        });
        session.statements.keep_plan(plan);
        return result;
    }
    session.run(call, |session, call| session.dispatch(&statement.node, call))
}

/// The arguments of a prepared CALL: what goes out goes into the variable that was given.
fn given_args(args: &[Expr], using: &[Expr]) -> Vec<Expr> {
    let given = |arg: &Expr| match arg {
        Expr::Param(number) => using.get(*number as usize).unwrap_or(arg).clone(),
        arg => arg.clone(),
    };
    args.iter().map(given).collect()
}

/// Statements that show what the statement before left.
fn keeps_diagnostics(statement: &Statement) -> bool {
    use omnibus_parser::ast::Show;
    match statement {
        Statement::Show(show) => matches!(**show, Show::Warnings { .. } | Show::Errors { .. }),
        Statement::GetDiagnostics(_) => true,
        Statement::Signal(signal) => signal.resignal,
        Statement::Select(query) => match &query.body {
            QueryBody::Select(select) => select.from.is_empty() && select.items.iter().any(counts_conditions),
            _ => false,
        },
        _ => false,
    }
}

/// `@@warning_count` and `@@error_count`.
fn counts_conditions(item: &SelectItem) -> bool {
    let SelectItem::Expr { expr: Expr::SysVar { name, .. }, .. } = item else { return false };
    name.is("warning_count") || name.is("error_count")
}

impl SqlSession {
    /// A statement that is CALL, or EXECUTE of one: run here, for none of them is a statement of a transaction itself.
    pub(super) fn called(
        &mut self,
        statement: &Statement,
        call: &mut Call<'_>,
    ) -> Option<ExecResult<Outcome>> {
        match statement {
            Statement::Call { name, args } => Some(match call.access.check_statement(statement) {
                Ok(()) => self.call_statement(name, args, call),
                Err(error) => Err(error.into()),
            }),
            Statement::RunEvent(name) => Some(self.run_event(name, call)),
            Statement::Execute { name, using } => {
                let prepared = self.statements.prepared.get(&name.to_lowercase())?;
                let statement = prepared.statement.clone();
                let Statement::Call { name, args } = &statement.node else { return None };
                if using.len() != prepared.params {
                    return Some(Err(SqlError::wrong_arguments("EXECUTE").into()));
                }
                let name = prepared.qualified(name);
                Some(self.call_statement(&name, &given_args(args, using), call))
            }
            Statement::ExecuteImmediate { source: source @ (Expr::Literal(_) | Expr::UserVar(_)), using } => {
                let (value, ty) = self.evaluate(source, call.access).ok()?;
                let (statement, _) = self.parse(&value.to_bytes(&ty), true).ok()?;
                let Statement::Call { name, args } = &statement.node else { return None };
                Some(match using.len() == statement.params as usize {
                    true => self.call_statement(name, &given_args(args, using), call),
                    false => Err(SqlError::wrong_arguments("EXECUTE").into()),
                })
            }
            _ => None,
        }
    }

    /// One statement of a program, with the plan that it had before.
    pub(crate) fn run_statement(
        &mut self,
        statement: &Arc<Spanned<Statement>>,
        inside: Inside,
        call: &mut Call<'_>,
    ) -> ExecResult<Outcome> {
        let class = match inside {
            Inside::Procedure if self.gtid.given != Given::Automatic => {
                match self.gtid.decide(&statement.node, &mut self.state, &mut self.trx) {
                    Decision::Done(result) => return result,
                    Decision::Run(class) => Some(class),
                }
            }
            _ => None,
        };
        self.begin(call.text, keeps_diagnostics(&statement.node));
        let result =
            self.hinted(&statement.node, call.access, |session| session.run_hinted(statement, inside, call));
        if let Some(class) = class {
            self.gtid.passed(class, &result, &mut self.trx);
        }
        result
    }

    fn run_hinted(
        &mut self,
        statement: &Arc<Spanned<Statement>>,
        inside: Inside,
        call: &mut Call<'_>,
    ) -> ExecResult<Outcome> {
        let writes =
            matches!(statement.node, Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_));
        if is_planned(&statement.node) {
            let mut plan = self.statements.take_program(statement, call.text, self.state.database.as_ref());
            let result =
                self.run_within(inside, call, writes, |session, call| session.run_prepared(&mut plan, call));
            let limits = MemoryLimits::of(&self.state.settings);
            self.statements.keep_program(plan, &self.state.memory, limits);
            result
        } else {
            self.run_within(inside, call, writes, |session, call| session.dispatch(&statement.node, call))
        }
    }
}
