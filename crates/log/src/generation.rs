//! Sync generations: how much of a file is in the page cache only, and which sync makes it durable.
//!
//! "Unsynced" is a number. A write that does not go through to the device raises it when it has returned; a sync that
//! *succeeded* covers what was there when it *began*. So a job that finds another's sync under way waits for it, and
//! syncs again unless its own writes were there before that one began (COMMIT-2).
//!
//! A job that promises durability vouches for every earlier job that was written without a sync: it waits until those
//! have returned before it syncs ([`Generations::wait_for_earlier`]). Which of the jobs sealed before it are of that kind it learns when
//! they begin, so whoever seals jobs runs or drops each of them without waiting for a later one.
//!
//! One sync at a time, and none after one that failed: the operating system tells of a lost page once per descriptor, and
//! a second sync under way at once could take the error that the first should have had. Any thread.

use super::sync::atomic::{AtomicU64, Ordering};
use super::sync::{Condvar, Mutex};
use crate::error::IoFailure;
use crate::mutant::{self, Mutant};
use std::collections::BTreeSet;

#[derive(Debug, Default)]
pub(crate) struct Generations {
    /// Writes that went to the page cache.
    written: AtomicU64,
    /// How many of them a sync has covered.
    covered: AtomicU64,
    /// Held while syncing; the first failure stays.
    failed: Mutex<Option<IoFailure>>,
    jobs: Mutex<Jobs>,
    returned: Condvar,
}

#[derive(Debug, Default)]
struct Jobs {
    sealed: u64,
    /// Those that have not begun, or that write without a sync and have not returned.
    open: BTreeSet<u64>,
}

impl Generations {
    /// Notes a sealed job; gives its place in the order.
    pub(crate) fn seal(&self) -> u64 {
        let mut jobs = self.jobs.lock();
        jobs.sealed += 1;
        let order = jobs.sealed;
        jobs.open.insert(order);
        order
    }

    /// Nobody has to wait for this job: it vouches for itself, or it has returned, or it was dropped.
    pub(crate) fn release(&self, order: u64) {
        if self.jobs.lock().open.remove(&order) {
            self.returned.notify_all();
        }
    }

    /// Waits for the jobs sealed before that write without a sync.
    pub(crate) fn wait_for_earlier(&self, order: u64) {
        let mut jobs = self.jobs.lock();
        if mutant::is(Mutant::SyncAlone) {
            return;
        }
        while jobs.open.first().is_some_and(|first| *first < order) {
            self.returned.wait(&mut jobs);
        }
    }

    /// A write to the page cache has returned.
    pub(crate) fn wrote(&self) {
        self.written.fetch_add(1, Ordering::AcqRel);
    }

    /// Has everything that was written so far covered by a sync that began afterwards.
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

    /// Runs what may be told of a lost page, with no other such call under way and not after one that failed.
    pub(crate) fn alone(&self, work: impl FnOnce() -> Result<(), IoFailure>) -> Result<(), IoFailure> {
        let mut failed = self.failed.lock();
        if let Some(failure) = &*failed {
            return Err(failure.clone());
        }
        // No room for a write is no failure of the device.
        work().inspect_err(|failure| *failed = Some(failure.clone()).filter(|failure| !failure.is_no_room()))
    }
}
