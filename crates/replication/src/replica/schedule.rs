//! Decides which transactions may run in parallel, and the order of their commits.
//!
//! A transaction runs when everything that it depends on has its place in the commit order, and takes its own place in
//! the source's order: replicas never show a state that the source did not have (REPLICA-1). Fewer dependencies follow
//! from the source's logical clock, or from the rows that the transaction writes; either is enough. A turn ends when a
//! commit is enrolled, not when it is durable, so that the pipeline forms groups.

use super::group::Received;
use super::writeset::WriteSet;
use parking_lot::{Condvar, Mutex};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::time::Duration;

/// The maximum number of remembered keys, after which all of them are forgotten.
const MAX_KEYS: usize = 100_000;
/// The maximum number of remembered values of the source's clock.
const MAX_CLOCK: usize = 10_000;

/// The place of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Its number, from 1, which is its turn to commit.
    pub number: u64,
    /// The number of the transaction whose turn must have ended before it begins.
    pub after: u64,
}

/// A hasher for keys that are hashes already.
#[derive(Clone, Copy, Debug, Default)]
struct AsIs(u64);

type Hashed = BuildHasherDefault<AsIs>;

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// Assigns places. Used by one thread.
#[derive(Debug, Default)]
pub struct Schedule {
    last: u64,
    /// Nothing may begin before this one.
    floor: u64,
    /// By rows, nothing may begin before this one.
    rows_floor: u64,
    writers: HashMap<u64, u64, Hashed>,
    /// Pairs of the source's number and the local one, ascending.
    clock: VecDeque<(u64, u64)>,
    /// The group commit of a MariaDB source that is still open, and the number before its first transaction.
    group: Option<(u64, u64)>,
}

impl Schedule {
    /// The number assigned last.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Assigns the next place.
    pub fn place(&mut self, received: &Received, writes: &WriteSet) -> Turn {
        self.last += 1;
        let number = self.last;
        let by_clock = self.by_clock(received, number);
        let by_rows = self.by_rows(writes, number);
        // Statements may read anything; an applier wants everything before them enrolled.
        let after =
            if *writes == WriteSet::Unknown { number - 1 } else { by_clock.min(by_rows).max(self.floor) };
        if *writes == WriteSet::Alone || received.trx.standalone {
            self.floor = number;
            return Turn { number, after: number - 1 };
        }
        Turn { number, after }
    }

    /// Assigns a place to an item that changes nothing.
    pub fn place_nothing(&mut self) -> Turn {
        self.last += 1;
        Turn { number: self.last, after: self.last - 1 }
    }

    /// Assigns a place to a transaction that must run alone.
    pub fn place_alone(&mut self) -> Turn {
        self.last += 1;
        self.floor = self.last;
        self.clock.clear();
        self.group = None;
        Turn { number: self.last, after: self.last - 1 }
    }

    fn by_rows(&mut self, writes: &WriteSet, number: u64) -> u64 {
        let WriteSet::Keys(keys) = writes else {
            self.rows_floor = number;
            self.writers.clear();
            return number - 1;
        };
        if self.writers.len() + keys.len() > MAX_KEYS {
            self.writers.clear();
            self.rows_floor = number - 1;
        }
        let mut after = self.rows_floor;
        for key in keys {
            if let Some(writer) = self.writers.insert(*key, number) {
                // A key twice in one transaction is its own.
                after = after.max(if writer == number { 0 } else { writer });
            }
        }
        after
    }

    fn by_clock(&mut self, received: &Received, number: u64) -> u64 {
        if let Some(group) = received.trx.group_commit_id {
            let before = match self.group {
                Some((id, before)) if id == group => before,
                _ => number - 1,
            };
            self.group = Some((group, before));
            return before;
        }
        self.group = None;
        let (committed, sequence) = (received.trx.last_committed, received.trx.sequence_number);
        if sequence == 0 {
            return number - 1;
        }
        if self.clock.back().is_some_and(|&(last, _)| sequence <= last) {
            // Another file: the clock began again.
            self.clock.clear();
        }
        let first = self.clock.front().map(|&(_, ours)| ours);
        let at = self.clock.partition_point(|&(theirs, _)| theirs <= committed);
        let after = match (at, first) {
            // On the same clock, but before what is remembered of it.
            (0, Some(ours)) => ours - 1,
            (0, None) => number - 1,
            _ => self.clock[at - 1].1,
        };
        self.clock.push_back((sequence, number));
        if self.clock.len() > MAX_CLOCK {
            self.clock.pop_front();
        }
        after
    }
}

/// The present turn, shared by the workers of a channel.
#[derive(Debug, Default)]
pub struct Turns {
    state: Mutex<TurnState>,
    /// Conditions by the number that is waited for, so that threads waiting for other numbers are not woken.
    changed: [Condvar; CONDITIONS],
}

/// The number of conditions: usually more than there are numbers waited for at once. Two numbers that share a condition
/// wake each other needlessly.
const CONDITIONS: usize = 32;

#[derive(Debug, Default)]
struct TurnState {
    /// The number up to which everything is enrolled.
    enrolled: u64,
    /// No later turn comes: an earlier transaction failed, or applying ends.
    ended: bool,
}

impl Turns {
    fn condition(&self, number: u64) -> &Condvar {
        &self.changed[(number % CONDITIONS as u64) as usize]
    }

    /// Waits until `number` is enrolled. `None`: it will not be. `Some(false)`: not within `patience`.
    #[must_use]
    pub fn wait(&self, number: u64, patience: Duration) -> Option<bool> {
        let mut state = self.state.lock();
        loop {
            if state.enrolled >= number {
                return Some(true);
            }
            if state.ended {
                return None;
            }
            if self.condition(number).wait_for(&mut state, patience).timed_out() {
                return Some(state.enrolled >= number);
            }
        }
    }

    /// Records that `number`, whose turn it was, is enrolled.
    pub fn advance(&self, number: u64) {
        let before = {
            let mut state = self.state.lock();
            let before = state.enrolled;
            state.enrolled = before.max(number);
            before
        };
        for reached in (before..number).take(CONDITIONS) {
            self.condition(reached + 1).notify_all();
        }
    }

    /// The number enrolled last.
    #[must_use]
    pub fn enrolled(&self) -> u64 {
        self.state.lock().enrolled
    }

    /// Ends all waiting.
    pub fn end(&self) {
        self.state.lock().ended = true;
        for condition in &self.changed {
            condition.notify_all();
        }
    }
}
