//! Figures for SHOW STATUS (`Innodb_row_lock_*`) and who waits for whom.

use crate::sync::atomic::{AtomicU64, Ordering};
use bytes::Bytes;
use std::time::Duration;

/// Counters since start, unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockStats {
    /// Requests that had to wait.
    pub waits: u64,
    /// Requests waiting now (a gauge).
    pub current_waits: u64,
    /// Time spent in ended waits, in microseconds.
    pub wait_us_total: u64,
    /// The longest ended wait, in microseconds.
    pub wait_us_max: u64,
    /// Deadlocks broken.
    pub deadlocks: u64,
    /// Waits given up by their callers.
    pub timeouts: u64,
}

/// The lock that a transaction waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockTarget {
    /// A key of a space.
    Record {
        /// The space.
        space: u32,
        /// The key.
        key: Bytes,
    },
    /// An interval of a space.
    Range {
        /// The space.
        space: u32,
    },
    /// A table.
    Table {
        /// The caller's table number.
        table: u64,
    },
    /// The gate in front of all writers (`TrxLocks::close_gate`).
    Gate,
}

/// One waiting transaction.
#[derive(Clone, Debug)]
pub struct WaitInfo {
    /// The waiting transaction's owner.
    pub waiter: u64,
    /// The owners that it waits for, directly or through a transaction ahead of it in the queue.
    pub blockers: Vec<u64>,
    /// The lock that it waits for.
    pub target: LockTarget,
    /// The mode it asked for, as the field writes it: `S`, `X`, `X,INSERT_INTENTION`, `X,GAP`, `IX`...
    pub mode: &'static str,
    /// The duration so far.
    pub waited: Duration,
}

/// A table lock that is held or requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableLockInfo {
    /// The caller's table number; `None`: the gate in front of all writers.
    pub table: Option<u64>,
    /// The owner's number.
    pub owner: u64,
    /// `IS`, `IX`, `S`, `SIX` or `X`.
    pub mode: &'static str,
    /// Whether it is held rather than only requested.
    pub granted: bool,
}

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) waits: AtomicU64,
    pub(crate) current: AtomicU64,
    pub(crate) us_total: AtomicU64,
    pub(crate) us_max: AtomicU64,
    pub(crate) deadlocks: AtomicU64,
    pub(crate) timeouts: AtomicU64,
}

impl Counters {
    pub(crate) fn ended(&self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.current.fetch_sub(1, Ordering::Relaxed);
        self.us_total.fetch_add(us, Ordering::Relaxed);
        self.us_max.fetch_max(us, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> LockStats {
        LockStats {
            waits: self.waits.load(Ordering::Relaxed),
            current_waits: self.current.load(Ordering::Relaxed),
            wait_us_total: self.us_total.load(Ordering::Relaxed),
            wait_us_max: self.us_max.load(Ordering::Relaxed),
            deadlocks: self.deadlocks.load(Ordering::Relaxed),
            timeouts: self.timeouts.load(Ordering::Relaxed),
        }
    }
}
