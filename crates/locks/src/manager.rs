//! The lock manager: shards of spaces, how waits end there, and how record and range locks go. Table locks are in `tables`.

use crate::mode::Mode;
use crate::outcome::WaitOutcome;
use crate::reach::{Detector, Reach};
use crate::released::{self, Released, Taken};
use crate::space::{Asked, Space};
use crate::stats::{Counters, LockStats, TableLockInfo};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::tables::Tables;
use crate::trx::{Held, Trx, WaitTarget, Wakes};
use bytes::Bytes;
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

const SHARDS: usize = 64;
/// The number of records released under one hold of a shard, so that a big transaction does not block others.
const RELEASE_BATCH: usize = 64;

#[derive(Default)]
#[repr(align(128))]
struct Shard(Mutex<HashMap<u32, Space, RandomState>>);

/// All locks of a server. Shared by `Arc`.
pub struct LockManager {
    spaces: Box<[Shard]>,
    pub(crate) tables: Tables,
    pub(crate) detector: Detector,
    pub(crate) counters: Counters,
    pub(crate) serial: AtomicU64,
    pub(crate) released: Released,
}

impl std::fmt::Debug for LockManager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LockManager").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

impl LockManager {
    /// A manager with no locks in it.
    #[must_use]
    pub fn new() -> Arc<LockManager> {
        Arc::new(LockManager {
            spaces: (0..SHARDS).map(|_| Shard::default()).collect(),
            tables: Tables::default(),
            detector: Detector::default(),
            counters: Counters::default(),
            serial: AtomicU64::new(0),
            released: Released::default(),
        })
    }

    /// Figures for SHOW STATUS.
    #[must_use]
    pub fn stats(&self) -> LockStats {
        self.counters.read()
    }

    /// All table locks, as of one moment for each shard.
    #[must_use]
    pub fn table_locks(&self) -> Vec<TableLockInfo> {
        self.tables.list()
    }

    /// Returns whether anybody waits for a lock now. It is a hint, which may be stale at once.
    #[must_use]
    #[inline]
    pub fn anyone_waits(&self) -> bool {
        self.counters.current.load(Ordering::Relaxed) > 0
    }

    /// The `id` of a transaction that holds a record.
    #[must_use]
    pub fn record_holder(&self, space: u32, key: &[u8]) -> Option<u64> {
        self.with_space(space, |s| s.holder(key))
    }

    pub(crate) fn with_space<T>(&self, space: u32, f: impl FnOnce(&mut Space) -> T) -> T {
        let shard = &self.spaces[space as usize % SHARDS];
        f(shard.0.lock().entry(space).or_default())
    }

    pub(crate) fn try_record(&self, trx: &Arc<Trx>, space: u32, key: &Bytes, mode: Mode) -> Option<bool> {
        let fresh = match self.with_space(space, |s| s.request_record(trx, key, mode)) {
            Asked::Blocked { .. } => return None,
            Asked::Granted { fresh: false } => false,
            Asked::InBulk => {
                trx.note_bulk(space);
                true
            }
            Asked::Granted { fresh: true } => {
                trx.note_record(space, key);
                true
            }
        };
        self.given(trx, Taken::record(space, key, mode));
        Some(fresh)
    }

    /// The transaction has a lock: what it must see is noted.
    pub(crate) fn given(&self, trx: &Trx, taken: Taken) {
        trx.stamp.raise(self.released.take(taken));
    }

    /// Ends a transaction's wait (that of `ticket`, if given) unless it has ended. Tells whether it
    /// did so.
    pub(crate) fn resolve_wait(&self, trx: &Arc<Trx>, ticket: Option<u64>, outcome: WaitOutcome) -> bool {
        let Some((current, target)) = trx.waiting_for() else { return false };
        if ticket.is_some_and(|ticket| ticket != current) {
            return false;
        }
        let mut wakes = Wakes::default();
        let ended = match &target {
            WaitTarget::Record(space, key) => self.with_space(*space, |s| {
                let ended = s.withdraw_record(trx, key);
                if ended {
                    trx.resolve(outcome, &mut wakes);
                    s.after_withdrawal(key, &mut wakes);
                }
                ended
            }),
            WaitTarget::Range(space, _) => self.with_space(*space, |s| {
                let ended = s.withdraw_range(trx);
                if ended {
                    trx.resolve(outcome, &mut wakes);
                    s.after_range_withdrawal(&mut wakes);
                }
                ended
            }),
            WaitTarget::Table(table) => self.tables.withdraw(trx, *table, outcome, &mut wakes),
        };
        wakes.wake();
        ended
    }

    pub(crate) fn wait_ended(&self, trx: &Arc<Trx>, ticket: u64, took: Duration, outcome: WaitOutcome) {
        self.counters.ended(took);
        if outcome == WaitOutcome::Timeout {
            self.counters.timeouts.fetch_add(1, Ordering::Relaxed);
        }
        self.detector.forget(trx, ticket);
    }

    pub(crate) fn release_record(&self, trx: &Arc<Trx>, space: u32, key: &Bytes) {
        if trx.has_many() {
            self.released.leave(released::of_record(space, key), trx.stamp.get());
            let mut wakes = Wakes::default();
            let released = self.with_space(space, |s| {
                let released = s.release_from_bulk(trx, key, &mut wakes);
                s.settle(&mut wakes);
                released
            });
            wakes.wake();
            if released {
                trx.bulk.fetch_sub(1, Ordering::Relaxed);
                return;
            }
        }
        let mut held = trx.held.lock();
        let Some(at) = held.records.iter().rposition(|(s, k)| *s == space && k == key) else { return };
        let (_, key) = held.records.swap_remove(at);
        drop(held);
        self.released.leave(released::of_record(space, &key), trx.stamp.get());
        let mut wakes = Wakes::default();
        self.with_space(space, |s| {
            s.release_record(trx, key, &mut wakes);
            s.settle(&mut wakes);
        });
        wakes.wake();
    }

    /// Has the transaction's bulks stand for all records of their spaces. How many locks less it keeps.
    pub(crate) fn widen(&self, trx: &Arc<Trx>) -> usize {
        let mut held = trx.held.lock();
        let Held { records, bulks, .. } = &mut *held;
        let mut whole = Vec::new();
        let mut kept = 0;
        for space in bulks.iter() {
            let of_bulk = self.with_space(*space, |s| s.widen(trx));
            if of_bulk > 0 {
                kept += of_bulk;
                whole.push(*space);
            }
        }
        let _ = trx
            .bulk
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |bulk| Some(bulk.saturating_sub(kept)));
        let before = records.len();
        records.retain(|(space, key)| {
            !whole.contains(space) || !self.with_space(*space, |s| s.leave_to_bulk(trx, key))
        });
        kept + before - records.len()
    }

    pub(crate) fn release_records(&self, trx: &Arc<Trx>) {
        let mut held = trx.held.lock();
        let Held { records, ranges, bulks, .. } = &mut *held;
        let stamp = trx.stamp.get();
        if !bulks.is_empty() {
            self.released.leave_many(stamp);
        }
        for space in bulks.drain(..) {
            self.release_bulk(trx, space);
        }
        trx.forget_many();
        // From the end, which needs no second list; the order of release means nothing.
        while let Some((space, _)) = records.last() {
            let space = *space;
            let mut wakes = Wakes::default();
            self.with_space(space, |s| {
                for _ in 0..RELEASE_BATCH {
                    let Some((_, key)) = records.pop_if(|(next, _)| *next == space) else { break };
                    self.released.leave(released::of_record(space, &key), stamp);
                    s.release_record(trx, key, &mut wakes);
                }
                s.settle(&mut wakes);
            });
            wakes.wake();
        }
        if records.capacity() > 4096 {
            *records = Vec::new();
        }
        for space in ranges.drain(..) {
            self.released.leave(released::of_ranges(space), stamp);
            let mut wakes = Wakes::default();
            self.with_space(space, |s| s.release_ranges(trx, &mut wakes));
            wakes.wake();
        }
    }

    fn release_bulk(&self, trx: &Arc<Trx>, space: u32) {
        let mut wakes = Wakes::default();
        let bulk = self.with_space(space, |s| {
            let bulk = s.release_bulk(trx);
            s.settle(&mut wakes);
            bulk
        });
        wakes.wake();
        let Some(mut bulk) = bulk else { return };
        for out in bulk.out.drain(..) {
            let mut wakes = Wakes::default();
            self.with_space(space, |s| {
                s.release_record(trx, out, &mut wakes);
                s.settle(&mut wakes);
            });
            wakes.wake();
        }
    }

    /// Adds the transactions that a waiting transaction waits for; none if it does not wait.
    pub(crate) fn blockers(&self, trx: &Arc<Trx>, reach: &mut Reach<'_>) {
        match trx.waiting_for() {
            None => {}
            Some((_, WaitTarget::Record(space, key))) => {
                self.with_space(space, |s| s.record_blockers(trx, &key, reach));
            }
            Some((_, WaitTarget::Range(space, interval))) => {
                self.with_space(space, |s| s.range_blockers(trx, &interval, reach));
            }
            Some((_, WaitTarget::Table(table))) => {
                if let Some(queue) = self.tables.shard(table).lock().get(&table) {
                    queue.blockers(trx, reach);
                }
            }
        }
    }
}
