//! A program that runs: a frame for each procedure that was called, with its place, its blocks and its handlers.
//!
//! No execution: `run` asks here where to go on.

use super::compile::{Compiled, CompiledHandler, Instruction};
use super::cursor::Cursor;
use crate::api::AccessCheck;
use crate::catalog::Column;
use crate::error::{ExecResult, Level, SqlError};
use crate::state::{DefinerRole, Inside, Locals, SessionState, TriggerRows};
use omnibus_parser::ast::{AssignTarget, Condition, HandlerKind};
use omnibus_value::Value;
use std::sync::Arc;

/// A block that is open, or a handler that runs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scope {
    Block(usize),
    /// Handlers of the scopes from `hidden` on do not see what happens in it. `resume`: where CONTINUE goes on.
    Handler {
        hidden: usize,
        resume: usize,
        kind: HandlerKind,
        stacked: usize,
    },
}

/// The caller's state, which a frame puts back when it ends.
pub(super) struct Saved {
    pub locals: Locals,
    pub database: Option<Arc<str>>,
    pub sql_mode: u64,
    pub select_limit: u64,
    pub client: u16,
    pub connection: u16,
    pub account: String,
    pub access: Option<Arc<dyn AccessCheck>>,
    pub role: DefinerRole,
    pub inside: Inside,
    pub trigger: Option<TriggerRows>,
    /// Diagnostics of handlers that ran then.
    pub stacked: usize,
}

/// A program that was called.
pub(super) struct Frame {
    pub program: Arc<Compiled>,
    pub at: usize,
    pub scopes: Vec<Scope>,
    pub cursors: Vec<Option<Cursor>>,
    pub saved: Saved,
    /// RETURN was reached: a function that goes on behind one that failed gives NULL.
    pub returns: bool,
    /// Where OUT and INOUT parameters go in the caller: their place, and what it is there.
    pub outs: Vec<(usize, Out)>,
}

/// Where an OUT parameter goes.
#[derive(Clone, Debug)]
pub(super) enum Out {
    Variable(AssignTarget),
    /// `?` number so-and-so: to the client.
    Param(usize),
}

/// All frames of one call, innermost last.
#[derive(Default)]
pub(crate) struct Machine {
    pub(super) frames: Vec<Frame>,
    /// Rows affected by the last statement.
    pub(super) affected: u64,
    /// NEW, as a trigger left it.
    pub(super) row: Vec<Value>,
    /// OUT parameters that go to the client: their `?`, type and value.
    pub(super) to_client: Vec<(usize, Column, Value)>,
}

/// How well a handler fits: the number is greater the more it says.
fn fit(condition: Condition, level: Level, error: &SqlError) -> u8 {
    let class = &error.state[..2];
    match condition {
        Condition::Code(code) if error.code == code => 3,
        Condition::State(state) if error.state == state => 2,
        Condition::Warning if class == b"01" || (level == Level::Warning && class != b"02") => 1,
        Condition::NotFound if class == b"02" => 1,
        Condition::Exception if level == Level::Error && class != b"01" && class != b"02" => 1,
        _ => 0,
    }
}

impl Frame {
    /// The handler for a condition, and the place of its block among the scopes: of the innermost block that has one, the one
    /// that says the most.
    pub(super) fn handler(&self, level: Level, error: &SqlError) -> Option<(usize, usize)> {
        let mut at = self.scopes.len();
        while at > 0 {
            at -= 1;
            match self.scopes[at] {
                Scope::Handler { hidden, .. } => at = hidden,
                Scope::Block(block) => {
                    let handlers = &self.program.blocks[block].handlers;
                    let best = |handler: &CompiledHandler| {
                        handler.conditions.iter().map(|c| fit(*c, level, error)).max().unwrap_or(0)
                    };
                    let found = (0..handlers.len()).max_by_key(|n| (best(&handlers[*n]), usize::MAX - n));
                    if let Some(handler) = found.filter(|n| best(&handlers[*n]) > 0) {
                        return Some((at, handler));
                    }
                }
            }
        }
        None
    }

    /// Closes so many blocks.
    pub(super) fn leave(&mut self, count: usize) {
        for _ in 0..count {
            if let Some(Scope::Block(block)) = self.scopes.pop() {
                self.close_cursors(block);
            }
        }
    }

    /// Closes all scopes from this one on.
    pub(super) fn leave_to(&mut self, len: usize) {
        while self.scopes.len() > len {
            if let Some(Scope::Block(block)) = self.scopes.pop() {
                self.close_cursors(block);
            }
        }
    }

    fn close_cursors(&mut self, block: usize) {
        for cursor in &self.program.blocks[block].cursors {
            if let Some(place) = self.cursors.get_mut(*cursor as usize) {
                *place = None;
            }
        }
    }

    /// A handler is through: where to go on.
    pub(super) fn end_handler(&mut self, state: &mut SessionState) -> usize {
        while let Some(scope) = self.scopes.pop() {
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
            let end = match self.scopes.get(hidden) {
                Some(Scope::Block(block)) => self.program.blocks[*block].end,
                _ => self.program.code.len(),
            };
            self.leave_to(hidden);
            return end;
        }
        self.program.code.len()
    }

    fn enter_handler(
        &mut self,
        state: &mut SessionState,
        (hidden, number): (usize, usize),
        resume: usize,
        condition: (Level, &SqlError),
    ) {
        let Some(Scope::Block(block)) = self.scopes.get(hidden) else { return };
        let handler = &self.program.blocks[*block].handlers[number];
        let stacked = state.programs.stacked.len();
        let mut handled = state.diagnostics.clone();
        handled.keep_handled(condition);
        state.programs.stacked.push(handled);
        self.scopes.push(Scope::Handler { hidden, resume, kind: handler.kind, stacked });
        self.at = handler.start;
    }
}

impl Machine {
    /// A statement succeeded with warnings: a handler for the last of them that has one.
    pub(super) fn look_for_warnings(&mut self, state: &mut SessionState, first: usize) {
        let conditions = state.diagnostics.conditions().get(first..).unwrap_or_default();
        let warnings: Vec<SqlError> = conditions
            .iter()
            .rev()
            .filter(|(level, _)| *level == Level::Warning)
            .map(|(_, condition)| condition.clone())
            .collect();
        let Some(frame) = self.frames.last_mut() else { return };
        for warning in warnings {
            if let Some(found) = frame.handler(Level::Warning, &warning) {
                let resume = frame.at;
                frame.enter_handler(state, found, resume, (Level::Warning, &warning));
                return;
            }
        }
    }

    /// A statement failed: goes on in the handler for it, or ends with the error.
    pub(super) fn raise(
        &mut self,
        state: &mut SessionState,
        level: Level,
        error: SqlError,
    ) -> ExecResult<()> {
        state.diagnostics.push_once(level, &error);
        // SIGNAL may give any number; KILL itself is seen by the next step.
        let signalled = state.programs.signalled.as_ref().is_some_and(|known| known.error.is_same(&error));
        while let Some(frame) = self.frames.last_mut() {
            let ends = ends_all(&error) && !signalled
                || state.programs.inside == Inside::Statement
                    && (state.programs.doomed || error.code == 1213);
            let found = if ends { None } else { frame.handler(level, &error) };
            if let Some(found) = found {
                let resume = match frame.program.code.get(frame.at) {
                    Some(Instruction::JumpUnless { after, .. } | Instruction::Keep { after, .. }) => *after,
                    _ => frame.at + 1,
                };
                frame.enter_handler(state, found, resume, (level, &error));
                if level == Level::Error {
                    changes_nothing(state, &mut self.affected);
                }
                return Ok(());
            }
            self.drop_frame(state);
        }
        Err(error.into())
    }

    /// Ends all frames without a result.
    pub(super) fn unwind(&mut self, state: &mut SessionState) {
        while !self.frames.is_empty() {
            self.drop_frame(state);
        }
    }
}

/// Whether no handler may catch an error of the server's: the session or its statement is to end.
fn ends_all(error: &SqlError) -> bool {
    matches!(error.code, 1317 | 3024 | 1969 | 1053 | 1927 | 1436)
}

/// A statement that changes no rows has run: in MySQL's dialect CALL tells of none, whatever was changed before.
pub(super) fn changes_nothing(state: &SessionState, affected: &mut u64) {
    if !state.settings.mariadb {
        *affected = 0;
    }
}
