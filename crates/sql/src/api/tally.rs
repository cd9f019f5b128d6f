//! Counts of a session's statements so far: work on rows, tables read as a whole, time in lock waits. Who wants to know it of
//! one statement (the slow query log, digests) takes the difference.
//!
//! Written by the thread that runs the statement, at a load and a store each; the atomics only make a session movable.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A step of a statement's work on rows, as MySQL's `Handler_*` count them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowWork {
    /// A row of a table that is read as it lies.
    Scanned,
    /// A row of an index that is read forwards.
    Forward,
    /// A row of an index that is read backwards.
    Backward,
    /// A row that was looked up by a complete unique key.
    Found,
    /// The reading of a whole table or index begins.
    First,
    /// The same, backwards.
    Last,
    /// A place in an index is looked up.
    Key,
    /// A table that is read as it lies has no more.
    End,
    /// A row is inserted.
    Written,
    /// A row is changed.
    Updated,
    /// A row is deleted.
    Deleted,
    /// A transaction that has read or changed rows commits.
    Committed,
    /// One rolls back.
    RolledBack,
}

/// How many steps there are.
const STEPS: usize = RowWork::RolledBack as usize + 1;
/// Those that examine a row are the first.
const EXAMINING: usize = RowWork::Found as usize + 1;

/// The counters of a session.
#[derive(Debug, Default)]
pub struct Tally {
    work: [AtomicU64; STEPS],
    /// `work` when the present attempt began.
    before: [AtomicU64; STEPS],
    whole: AtomicU64,
    waited_us: AtomicU64,
    reprepared: AtomicU64,
}

/// Their values at one time, or between two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tallied {
    work: [u64; STEPS],
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
        let (from, to) = if again { (&self.before, &self.work) } else { (&self.work, &self.before) };
        for (from, to) in from.iter().zip(to) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// A step was made.
    #[inline]
    pub fn step(&self, step: RowWork) {
        add(&self.work[step as usize], 1);
    }

    /// So many steps were made.
    #[inline]
    pub fn steps(&self, step: RowWork, times: u64) {
        add(&self.work[step as usize], times);
    }

    /// Rows that tables and indexes gave.
    #[must_use]
    pub fn examined(&self) -> u64 {
        self.read().examined()
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
            work: std::array::from_fn(|step| load(&self.work[step])),
            whole: load(&self.whole),
            waited_us: load(&self.waited_us),
            reprepared: load(&self.reprepared),
        }
    }
}

impl Tallied {
    /// Rows that tables and indexes gave.
    #[must_use]
    pub fn examined(&self) -> u64 {
        self.work[..EXAMINING].iter().sum()
    }

    /// How often a step was made.
    #[must_use]
    pub fn times(&self, step: RowWork) -> u64 {
        self.work[step as usize]
    }

    /// The counts since `before`.
    #[must_use]
    pub fn since(self, before: Tallied) -> Tallied {
        Tallied {
            work: std::array::from_fn(|step| self.work[step].wrapping_sub(before.work[step])),
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
        tally.step(RowWork::Scanned);
        let before = tally.read();
        tally.begin(false);
        tally.steps(RowWork::Forward, 5);
        tally.begin(true);
        tally.steps(RowWork::Forward, 3);
        tally.step(RowWork::Written);
        let done = tally.read().since(before);
        assert_eq!((done.examined(), done.times(RowWork::Forward), done.times(RowWork::Scanned)), (3, 3, 0));
    }
}
