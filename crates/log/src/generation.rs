//! Sync generations: which writes are in the page cache only, and which sync makes them durable.
//!
//! A write that does not go through to the device raises the number of unsynced writes when it has returned. A sync
//! that *succeeded* covers the writes that had returned when it *began*. So a job that finds another's sync under way
//! waits for it, and syncs again unless its own writes had returned before that one began (COMMIT-2).
//!
//! A job that promises durability answers for every earlier job that was written without a sync: it waits until those
//! have returned before it syncs ([`Generations::wait_for_earlier`]). Each job's kind is known only when it begins, so
//! whoever seals jobs must run or drop each of them without waiting for a later one.
//!
//! Only one sync runs at a time, and none after one that failed: the operating system reports a lost page once per
//! descriptor, and a second concurrent sync could take the error that the first one should have received. Any thread.

use super::sync::atomic::{AtomicU64, Ordering};
use super::sync::{Condvar, Mutex};
use crate::error::IoFailure;
use crate::mutant::{self, Mutant};
use std::collections::BTreeSet;

#[derive(Debug, Default)]
pub(crate) struct Generations {
    /// The number of writes that went to the page cache.
    written: AtomicU64,
    /// The number of these that a sync has covered.
    covered: AtomicU64,
    /// Held while syncing; the first failure stays.
    failed: Mutex<Option<IoFailure>>,
    jobs: Mutex<Jobs>,
    returned: Condvar,
}

#[derive(Debug, Default)]
struct Jobs {
    sealed: u64,
    /// The jobs that have not begun, or that write without a sync and have not returned.
    open: BTreeSet<u64>,
}

impl Generations {
    /// Registers a sealed job and returns its place in the order.
    pub(crate) fn seal(&self) -> u64 {
        let mut jobs = self.jobs.lock();
        jobs.sealed += 1;
        let order = jobs.sealed;
        jobs.open.insert(order);
        order
    }

    /// Removes a job that nobody has to wait for: it makes itself durable, has returned, or was dropped.
    pub(crate) fn release(&self, order: u64) {
        if self.jobs.lock().open.remove(&order) {
            self.returned.notify_all();
        }
    }

    /// Waits for the earlier sealed jobs that write without a sync.
    pub(crate) fn wait_for_earlier(&self, order: u64) {
        let mut jobs = self.jobs.lock();
        if mutant::is(Mutant::SyncAlone) {
            return;
        }
        while jobs.open.first().is_some_and(|first| *first < order) {
            self.returned.wait(&mut jobs);
        }
    }

    /// Counts a write to the page cache that has returned.
    pub(crate) fn wrote(&self) {
        self.written.fetch_add(1, Ordering::AcqRel);
    }

    /// Ensures that a sync which began after all writes so far has succeeded.
    #[inline]
    pub(crate) fn cover(&self, sync: impl FnOnce() -> Result<(), IoFailure>) -> Result<(), IoFailure> {
        let wanted = self.written.load(Ordering::Acquire);
        if self.covered.load(Ordering::Acquire) >= wanted {
            return Ok(());
        }
        if mutant::is(Mutant::SyncForgetsEarly) {
            self.covered.fetch_max(wanted, Ordering::AcqRel);
            return self.alone(sync);
        }
        self.alone(|| {
            // The sync that was under way may have begun late enough.
            if self.covered.load(Ordering::Acquire) >= wanted {
                return Ok(());
            }
            let there = self.written.load(Ordering::Acquire);
            sync()?;
            self.covered.fetch_max(there, Ordering::AcqRel);
            Ok(())
        })
    }

    /// Runs an operation that may receive the error of a lost page. No other such call runs at the same time, and none
    /// after one that failed.
    pub(crate) fn alone(&self, work: impl FnOnce() -> Result<(), IoFailure>) -> Result<(), IoFailure> {
        let mut failed = self.failed.lock();
        if let Some(failure) = &*failed {
            return Err(failure.clone());
        }
        // No room for a write is no failure of the device.
        work().inspect_err(|failure| *failed = Some(failure.clone()).filter(|failure| !failure.is_no_room()))
    }
}
