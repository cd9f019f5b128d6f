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

use crate::error::IoFailure;
use crate::mutant::{self, Mutant};
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

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
        // No room for a write is no failure of the device, and is tried again.
        work().inspect_err(|failure| {
            *failed = Some(failure.clone()).filter(|failure| !failure.is_full_on_write())
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    /// COMMIT-2: it vouches for what another's sync, not finished yet, is to make durable.
    #[test]
    fn a_job_waits_for_the_sync_under_way_that_covers_it() {
        let generations = Generations::default();
        generations.wrote();
        let (done, is_done) = mpsc::channel();
        std::thread::scope(|scope| {
            generations
                .cover(|| {
                    scope.spawn(|| {
                        generations.cover(|| panic!("the sync under way covers it")).unwrap();
                        done.send(()).unwrap();
                    });
                    assert!(
                        is_done.recv_timeout(Duration::from_millis(30)).is_err(),
                        "not before it has ended"
                    );
                    Ok(())
                })
                .unwrap();
        });
        is_done.try_recv().unwrap();
    }

    #[test]
    fn a_sync_covers_what_was_there_when_it_began() {
        let generations = Generations::default();
        generations.wrote();
        generations
            .cover(|| {
                generations.wrote();
                Ok(())
            })
            .unwrap();
        let synced = std::cell::Cell::new(false);
        let sync = || {
            synced.set(true);
            Ok(())
        };
        generations.cover(sync).unwrap();
        assert!(synced.get());
        generations.cover(|| panic!("nothing is unsynced")).unwrap();
    }

    #[test]
    fn after_a_sync_that_failed_no_other_succeeds() {
        let generations = Generations::default();
        let eio = std::io::Error::from_raw_os_error(libc::EIO);
        let failure = IoFailure::new("sync", std::path::Path::new("binlog.000001"), &eio);
        generations.wrote();
        generations.cover(|| Err(failure.clone())).unwrap_err();
        let again = generations.cover(|| panic!("the kernel has forgotten the error")).unwrap_err();
        assert_eq!(again.to_string(), failure.to_string());
    }

    #[test]
    fn a_job_that_is_made_durable_waits_for_earlier_ones_that_are_not() {
        let generations = Generations::default();
        let (unsynced, synced, later) = (generations.seal(), generations.seal(), generations.seal());
        generations.release(synced);
        let (done, is_done) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                generations.wait_for_earlier(synced);
                done.send(()).unwrap();
            });
            assert!(is_done.recv_timeout(Duration::from_millis(30)).is_err());
            generations.release(unsynced);
            is_done.recv().unwrap();
        });
        generations.wait_for_earlier(later);
    }
}
