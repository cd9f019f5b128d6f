//! A program that runs: a frame for each procedure that was called, with its place, its blocks and its handlers.
//!
//! No execution: `run` asks here where to go on.

use super::compile::{Compiled, CompiledHandler};
use super::cursor::Cursor;
use crate::api::AccessCheck;
use crate::catalog::Column;
use crate::error::{Level, SqlError};
use crate::state::{DefinerRole, Inside, Locals, TriggerRows};
use omnibus_parser::ast::{Condition, HandlerKind, Target};
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

/// What a frame puts back when it ends.
pub(super) struct Saved {
    pub locals: Locals,
    pub database: Option<Arc<str>>,
    pub sql_mode: u64,
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
    /// Where OUT and INOUT parameters go in the caller: their place, and what it is there.
    pub outs: Vec<(usize, Out)>,
}

/// Where an OUT parameter goes.
#[derive(Clone, Debug)]
pub(super) enum Out {
    Variable(Target),
    /// `?` number so-and-so: to the client.
    Param(usize),
}

/// All frames of one call, innermost last.
#[derive(Default)]
pub(crate) struct Machine {
    pub(super) frames: Vec<Frame>,
    /// Rows affected by the last statement.
    pub(super) affected: u64,
    /// OUT parameters that go to the client: their `?`, type and value.
    /// NEW, as a trigger left it.
    pub(super) row: Vec<Value>,
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
}
