//! The conditions that a session keeps for SHOW WARNINGS and handlers, as many as its variables and its memory allow.
//!
//! Each statement of a session writes to its area; handlers of programs keep copies of those that they were entered with.

use super::SqlError;
use std::sync::Arc;

/// Level of an entry in SHOW WARNINGS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Information only.
    Note,
    /// Something was adjusted.
    Warning,
    /// The statement failed.
    Error,
}

impl Level {
    /// As SHOW WARNINGS prints it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Level::Note => "Note",
            Level::Warning => "Warning",
            Level::Error => "Error",
        }
    }
}

/// The conditions that a session keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptConditions {
    /// `sql_notes`: without it there are no notes.
    pub notes: bool,
    /// `max_error_count`: how many are listed; those past it are counted only.
    pub most: usize,
    /// `connection_memory_limit`, as the session has it.
    pub connection_memory: u64,
    /// `global_connection_memory_limit`.
    pub server_memory: u64,
}

impl Default for KeptConditions {
    fn default() -> KeptConditions {
        KeptConditions { notes: true, most: 1024, connection_memory: u64::MAX, server_memory: u64::MAX }
    }
}

/// Where the memory of conditions comes from.
pub trait ConditionMemory: std::fmt::Debug + Send + Sync {
    /// Whether so many bytes more are there.
    fn take(&self, bytes: usize, wanted: KeptConditions) -> bool;
    /// Gives bytes back.
    fn give_back(&self, bytes: usize);
}

/// The diagnostics area of a session: what SHOW WARNINGS lists. Conditions that there is no memory for are counted only.
#[derive(Debug, Default)]
pub struct Diagnostics {
    conditions: Vec<(Level, SqlError)>,
    wanted: KeptConditions,
    /// All conditions, also those past the limit.
    total: u64,
    /// Those of them that the statement before left for this one to show.
    before: u64,
    /// Bytes of the kept conditions.
    bytes: usize,
    memory: Option<Arc<dyn ConditionMemory>>,
}

/// Bytes of a message that are kept: some have the value that they complain of.
const LONGEST_MESSAGE: usize = 512;
/// Bytes of conditions that nobody counts: most statements have few.
const FREE: usize = 4 << 10;

/// The part of a message that is kept.
pub(super) fn kept(message: &str) -> &str {
    &message[..message.floor_char_boundary(LONGEST_MESSAGE)]
}

fn bytes_of((_, condition): &(Level, SqlError)) -> usize {
    // A list has grown by doubling.
    2 * size_of::<(Level, SqlError)>() + condition.message.len()
}

impl Clone for Diagnostics {
    fn clone(&self) -> Diagnostics {
        let mut copy = self.emptied();
        (copy.total, copy.before) = (self.total, self.before);
        for condition in &self.conditions {
            if !copy.has_room(bytes_of(condition)) {
                break;
            }
            copy.conditions.push(condition.clone());
        }
        copy
    }
}

impl Drop for Diagnostics {
    fn drop(&mut self) {
        self.holds(0);
    }
}

impl Diagnostics {
    /// One without conditions that keeps what this one does.
    #[must_use]
    pub fn emptied(&self) -> Diagnostics {
        let mut empty = Diagnostics::default();
        (empty.wanted, empty.memory) = (self.wanted, self.memory.clone());
        empty
    }

    /// Takes the memory of its conditions there from now on.
    pub fn count_with(&mut self, memory: Arc<dyn ConditionMemory>) {
        self.clear();
        self.memory = Some(memory);
    }

    fn has_room(&mut self, more: usize) -> bool {
        let (before, now) = (self.bytes.saturating_sub(FREE), (self.bytes + more).saturating_sub(FREE));
        let taken = |memory: &Arc<dyn ConditionMemory>| memory.take(now - before, self.wanted);
        let there = now == before || self.memory.as_ref().is_none_or(taken);
        self.bytes += if there { more } else { 0 };
        there
    }

    /// Has no more than so many bytes of conditions from now on.
    fn holds(&mut self, bytes: usize) {
        let less = self.bytes.saturating_sub(FREE) - bytes.saturating_sub(FREE);
        if let Some(memory) = self.memory.as_ref().filter(|_| less > 0) {
            memory.give_back(less);
        }
        self.bytes = bytes;
    }

    /// From now on keeps only what the session's variables ask for.
    pub fn keep_only(&mut self, wanted: KeptConditions) {
        self.wanted = wanted;
    }

    /// Forgets everything, as the start of a statement does.
    pub fn clear(&mut self) {
        match self.bytes > FREE {
            true => self.conditions = Vec::new(),
            false => self.conditions.clear(),
        }
        self.holds(0);
        (self.total, self.before) = (0, 0);
    }

    /// Keeps everything for a statement that shows it, and that is not told of it as its own.
    pub fn keep(&mut self) {
        self.before = self.total;
    }

    /// Adds a condition.
    pub fn push(&mut self, level: Level, mut condition: SqlError) {
        if level == Level::Note && !self.wanted.notes {
            return;
        }
        self.total += 1;
        if self.conditions.len() < self.wanted.most {
            if condition.message.len() > LONGEST_MESSAGE {
                condition.message = kept(&condition.message).to_owned();
            }
            let condition = (level, condition);
            if self.has_room(bytes_of(&condition)) {
                self.conditions.push(condition);
            }
        }
    }

    /// Adds a warning.
    pub fn warn(&mut self, condition: SqlError) {
        self.push(Level::Warning, condition);
    }

    /// Adds a note.
    pub fn note(&mut self, condition: SqlError) {
        self.push(Level::Note, condition);
    }

    /// Whether it has this condition.
    #[must_use]
    pub fn has(&self, condition: &SqlError) -> bool {
        self.conditions.iter().any(|(_, known)| known.is_same(condition))
    }

    /// Adds a condition that it does not have yet.
    pub fn push_once(&mut self, level: Level, condition: &SqlError) {
        if !self.has(condition) {
            self.push(level, condition.clone());
        }
    }

    /// Keeps the condition that a handler runs for, even where the session keeps none: RESIGNAL is about it.
    pub(crate) fn keep_handled(&mut self, (level, condition): (Level, &SqlError)) {
        if self.conditions.is_empty() {
            self.conditions.push((level, condition.clone()));
            self.bytes += bytes_of(&self.conditions[0]);
        }
    }

    /// Takes the last condition that is like this one out.
    pub fn take_out(&mut self, condition: &SqlError) {
        if let Some(at) = self.conditions.iter().rposition(|(_, known)| known.is_same(condition)) {
            let taken = self.conditions.remove(at);
            self.holds(self.bytes - bytes_of(&taken));
            self.total = self.total.saturating_sub(1);
        }
    }

    /// The kept conditions, in order.
    #[must_use]
    pub fn conditions(&self) -> &[(Level, SqlError)] {
        &self.conditions
    }

    /// `@@warning_count`: every condition, kept or not, capped as in the OK packet.
    #[must_use]
    pub fn count(&self) -> u16 {
        u16::try_from(self.total).unwrap_or(u16::MAX)
    }

    /// `@@warning_count` and `@@error_count`.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        (u64::from(self.count()), self.error_count())
    }

    /// Adds what another one has.
    pub fn append(&mut self, mut other: Diagnostics) {
        self.total += other.total - other.conditions.len() as u64;
        let conditions = std::mem::take(&mut other.conditions);
        drop(other);
        conditions.into_iter().for_each(|(level, condition)| self.push(level, condition));
    }

    /// The count in a reply: the statement's own.
    #[must_use]
    pub fn own_count(&self) -> u16 {
        u16::try_from(self.total.saturating_sub(self.before)).unwrap_or(u16::MAX)
    }

    /// `@@error_count`.
    #[must_use]
    pub fn error_count(&self) -> u64 {
        self.conditions.iter().filter(|(level, _)| *level == Level::Error).count() as u64
    }

    /// Drops conditions added after there were `count` (a statement that will run again).
    pub fn truncate(&mut self, count: usize) {
        self.conditions.truncate(count);
        self.holds(self.conditions.iter().map(bytes_of).sum());
        self.total = self.conditions.len() as u64;
    }
}
