//! The attempts at a statement: how one begins, and what its end leaves, be it done, undone, or to be run again.
//!
//! Here is what a statement's context alone is needed for; the frame around it, which runs it, is in `run`.

use super::hints::hinted_time;
use super::{Call, StatementContext};
use crate::api::{Mode, Outcome, TimeLimit};
use crate::error::{ExecResult, Interrupt, Level};
use crate::load::LoadInput;
use crate::state::{Inside, NewInsertId, start_clock};
use crate::store::Marks;
use bytes::Bytes;
use omnibus_parser::ast::Statement;

/// Lock waits after which an inline statement moves to a thread that may block.
const WAITS: u8 = 3;

/// How far a statement is that interrupts end and that is run again.
#[derive(Default)]
pub(super) struct Attempts {
    /// It is being run again after an interrupt: it began at the first attempt.
    pub(super) resumed: bool,
    /// How often it has met a lock.
    waits: u8,
    /// The file that the running LOAD DATA was given.
    pub(super) load_input: Option<LoadInput>,
}

impl Attempts {
    /// An attempt has ended with this; what to do about it. Dropping a wait withdraws the request: the blocking run asks again.
    fn end<T>(&mut self, result: ExecResult<T>) -> ExecResult<T> {
        match result {
            Err(Interrupt::LockWait(_)) if self.waits >= WAITS => {
                self.waits = 0;
                Err(Interrupt::NeedBlocking)
            }
            Err(Interrupt::LockWait(wait)) => {
                self.waits += 1;
                Err(Interrupt::LockWait(wait))
            }
            result => {
                self.waits = 0;
                result
            }
        }
    }

    /// It will not be run again.
    pub(super) fn give_up(&mut self) {
        *self = Attempts::default();
    }
}

impl StatementContext<'_> {
    /// Readies the session's state for a statement, before its first attempt and before each further one.
    pub(super) fn begin(&mut self, text: &Bytes, keep_diagnostics: bool) {
        let outside = self.state.programs.inside == Inside::Nothing;
        if !self.attempts.resumed {
            // Who runs statements forgets a KILL of the one before, before it parses this one.
            if outside {
                self.state.budget.kill().clear_deadline();
            }
            if self.state.programs.inside != Inside::Statement {
                self.state.statement.conditions_before = Some(self.state.diagnostics.counts());
            }
            start_clock(self.state);
        }
        match (keep_diagnostics, self.attempts.resumed) {
            (false, false) => self.state.diagnostics.clear(),
            (true, false) if outside => self.state.diagnostics.keep(),
            _ => {}
        }
        self.state.programs.tables.clear();
        if self.state.held.locked.is_some() && !self.trx.locks.has_locked_tables() {
            self.state.held.locked = None;
        }
        self.state.results.last_insert_id_set = None;
        if self.state.results.new_insert_id == NewInsertId::Asked && !self.attempts.resumed {
            self.state.results.new_insert_id = NewInsertId::None;
        }
        self.state.command.text = text.clone();
    }

    /// Starts the time that a statement may take.
    pub(super) fn bound_time(&self, statement: &Statement) {
        // The time of a program's statements is the program's.
        if self.attempts.resumed || self.state.programs.inside != Inside::Nothing {
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
                self.state.budget.kill().set_deadline(ms, TimeLimit::Query)
            }
            (_, ms) => self.state.budget.kill().set_deadline(ms, TimeLimit::Statement),
        }
    }

    pub(super) fn begin_statement(&mut self, call: &Call<'_>, again: bool) -> Marks {
        let marks = self.trx.begin_statement(call.mode, again, &self.state.info(call.text));
        if !self.trx.is_open() {
            let (isolation, read_only) = self.next.said();
            self.trx.use_characteristics(isolation, read_only);
        }
        marks
    }

    /// Undoes a statement that did not succeed.
    pub(super) fn undo(&mut self, marks: Marks, interrupt: Interrupt) -> Interrupt {
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
    pub(super) fn autocommit(&mut self, mut outcome: Outcome) -> ExecResult<Outcome> {
        self.gtid.before_last_commit();
        let ticket = if self.trx.is_open() { None } else { self.commit_now()? };
        // The statement's own ticket is the later one, if it has one.
        outcome.wait = outcome.wait.or(ticket);
        Ok(outcome)
    }

    pub(super) fn finish(&mut self, result: ExecResult<Outcome>) -> ExecResult<Outcome> {
        self.attempts.resumed = false;
        self.state.budget.end();
        if !matches!(result, Err(Interrupt::LockWait(_) | Interrupt::NeedBlocking | Interrupt::NeedFile(_))) {
            if self.state.programs.inside == Inside::Nothing {
                self.state.budget.kill().clear_deadline();
            }
            if self.trx.statement.take_forced() {
                self.state.settings.insert_id = None;
            }
            self.state.statement.conditions_before = None;
            self.attempts.load_input = None;
        }
        match &result {
            Ok(outcome) if outcome.result_set => self.state.results.row_count = -1,
            Ok(outcome) => self.state.results.row_count = i64::try_from(outcome.affected).unwrap_or(i64::MAX),
            Err(Interrupt::Error(error)) => {
                // Hardly an error tells nothing of a definition that is there, or is not.
                self.trx.floor().see_definitions();
                self.state.results.row_count = -1;
                self.state.diagnostics.push(Level::Error, error.clone());
            }
            Err(_) => self.attempts.resumed = true,
        }
        self.attempts.end(result)
    }

    /// Readies the transaction for changes that no statement of ours makes, as `begin` and `run` do for a statement. `text` is as much as is
    /// known of the one that made them.
    pub(crate) fn begin_rows(&mut self, text: &[u8], mode: Mode) -> Marks {
        self.state.budget.begin(mode, false);
        self.trx.begin_statement(mode, false, &self.state.info(text))
    }
}
