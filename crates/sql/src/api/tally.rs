//! Counts of a session's statements so far: rows examined, tables read as a whole, time in lock waits. Who wants to know it of
//! one statement (the slow query log, digests) takes the difference.
//!
//! Written by the thread that runs the statement, at a load and a store each; the atomics only make a session movable.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The counters of a session.
#[derive(Debug, Default)]
pub struct Tally {
    examined: AtomicU64,
    /// `examined` when the present attempt began.
    before: AtomicU64,
    whole: AtomicU64,
    waited_us: AtomicU64,
    reprepared: AtomicU64,
}

/// Their values at one time, or between two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tallied {
    /// Rows that tables and indexes gave.
    pub examined: u64,
    /// Readings of a whole table or index.
    pub whole: u64,
    /// Time in lock waits, in microseconds.
    pub waited_us: u64,
    /// Prepared statements that were prepared again, because a definition had changed.
    pub reprepared: u64,
}

fn add(cell: &AtomicU64, n: u64) {
    cell.store(cell.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
}

impl Tally {
    /// An attempt begins; what one before it of the same statement read is read again, and counts once.
    pub(super) fn begin(&self, again: bool) {
        if again {
            self.examined.store(self.before.load(Ordering::Relaxed), Ordering::Relaxed);
        } else {
            self.before.store(self.examined.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// A row was read.
    #[inline]
    pub fn examine(&self) {
        add(&self.examined, 1);
    }

    /// Rows were read.
    pub fn examine_all(&self, rows: u64) {
        add(&self.examined, rows);
    }

    /// A whole table, or index, is to be read.
    pub fn read_whole(&self) {
        add(&self.whole, 1);
    }

    /// A lock wait is over.
    pub fn waited(&self, took: Duration) {
        add(&self.waited_us, u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }

    /// A prepared statement was prepared again.
    pub fn reprepare(&self) {
        add(&self.reprepared, 1);
    }

    /// All up to now.
    #[must_use]
    pub fn read(&self) -> Tallied {
        let load = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        Tallied {
            examined: load(&self.examined),
            whole: load(&self.whole),
            waited_us: load(&self.waited_us),
            reprepared: load(&self.reprepared),
        }
    }
}

impl Tallied {
    /// The counts since `before`.
    #[must_use]
    pub fn since(self, before: Tallied) -> Tallied {
        Tallied {
            examined: self.examined.wrapping_sub(before.examined),
            whole: self.whole.wrapping_sub(before.whole),
            waited_us: self.waited_us.wrapping_sub(before.waited_us),
            reprepared: self.reprepared.wrapping_sub(before.reprepared),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_again_counts_once() {
        let tally = Tally::default();
        tally.begin(false);
        tally.examine();
        let before = tally.read();
        tally.begin(false);
        (0..5).for_each(|_| tally.examine());
        tally.begin(true);
        (0..3).for_each(|_| tally.examine());
        assert_eq!(tally.read().since(before).examined, 3);
    }
}
