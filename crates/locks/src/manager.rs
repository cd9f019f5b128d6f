//! The lock manager: shards of spaces and tables, and the steps of a request.
//!
//! A request looks under one shard. If it must wait it is queued there, and then, outside, the
//! waits-for graph is searched from it (`detect`).

use crate::detect::{Detector, Reach};
use crate::interval::Interval;
use crate::mode::Mode;
use crate::queue::{Queue, Waiter};
use crate::space::{Asked, Space};
use crate::stats::{Counters, LockStats};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use crate::trx::{Held, HeldTable, Target, Trx, TrxHandle, TrxLocks, Wakes};
use crate::wait::{LockWait, Request, WaitOutcome};
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

const SHARDS: usize = 64;
/// Records released under one hold of a shard, so that a big transaction keeps nobody waiting.
const RELEASE_BATCH: usize = 64;

#[derive(Default)]
#[repr(align(128))]
struct Shard<T>(Mutex<T>);

/// All locks of a server. Shared by `Arc`.
pub struct LockManager {
    spaces: Box<[Shard<HashMap<u32, Space>>]>,
    tables: Box<[Shard<HashMap<u64, Queue>>]>,
    pub(crate) detector: Detector,
    pub(crate) counters: Counters,
    /// Requests queued on tables: nearly always none.
    pub(crate) table_waits: AtomicUsize,
    /// How often the gate was closed (`gate`).
    pub(crate) gate: AtomicUsize,
    serial: AtomicU64,
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
            tables: (0..SHARDS).map(|_| Shard::default()).collect(),
            detector: Detector::default(),
            counters: Counters::default(),
            table_waits: AtomicUsize::new(0),
            gate: AtomicUsize::new(0),
            serial: AtomicU64::new(0),
        })
    }

    /// A transaction without locks. `id` is what introspection shows (a session's id).
    #[must_use]
    pub fn begin(self: &Arc<Self>, id: u64) -> TrxLocks {
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        TrxLocks(TrxHandle { manager: Arc::clone(self), trx: Arc::new(Trx::new(id, serial)) })
    }

    /// Figures for SHOW STATUS.
    #[must_use]
    pub fn stats(&self) -> LockStats {
        self.counters.read()
    }

    /// Whether anybody waits for a lock now. A hint: it may have changed by the time that it is known.
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

    fn with_space<T>(&self, space: u32, f: impl FnOnce(&mut Space) -> T) -> T {
        let shard = &self.spaces[space as usize % SHARDS];
        f(shard.0.lock().entry(space).or_default())
    }

    pub(crate) fn table_shard(&self, table: u64) -> &Mutex<HashMap<u64, Queue>> {
        &self.tables[(table % SHARDS as u64) as usize].0
    }

    pub(crate) fn table_shards(&self) -> impl Iterator<Item = &Mutex<HashMap<u64, Queue>>> {
        self.tables.iter().map(|shard| &shard.0)
    }

    pub(crate) fn request_record(
        self: &Arc<Self>,
        trx: &Arc<Trx>,
        space: u32,
        key: &Bytes,
        mode: Mode,
    ) -> Request {
        let asked = self.with_space(space, |s| {
            let asked = s.request_record(trx, key, mode);
            let Asked::Blocked { mode, upgrade } = asked else { return Ok(asked) };
            let (ticket, queue) = self.begin_wait(trx, Target::Record(space, key.clone()), mode);
            if queue {
                s.queue_record(trx, key, mode, upgrade);
            }
            Err((ticket, upgrade))
        });
        match asked {
            Ok(Asked::Granted { fresh: false }) | Err((_, true)) => {}
            Ok(Asked::InBulk) => trx.note_bulk(space),
            _ => trx.note_record(space, key),
        }
        self.answer(trx, asked)
    }

    pub(crate) fn try_record(&self, trx: &Arc<Trx>, space: u32, key: &Bytes, mode: Mode) -> Option<bool> {
        match self.with_space(space, |s| s.request_record(trx, key, mode)) {
            Asked::Blocked { .. } => None,
            Asked::Granted { fresh: false } => Some(false),
            Asked::InBulk => {
                trx.note_bulk(space);
                Some(true)
            }
            Asked::Granted { fresh: true } => {
                trx.note_record(space, key);
                Some(true)
            }
        }
    }

    pub(crate) fn request_range(self: &Arc<Self>, trx: &Arc<Trx>, space: u32, interval: Interval) -> Request {
        // With a range in this space already, somebody may be waiting for it.
        let upgrade = trx.held.lock().ranges.contains(&space);
        let asked = self.with_space(space, |s| {
            let asked = s.request_range(trx, &interval);
            let Asked::Blocked { mode, .. } = asked else { return Ok(asked) };
            let (ticket, queue) = self.begin_wait(trx, Target::Range(space, interval.clone()), mode);
            if queue {
                s.queue_range(trx, interval);
            }
            Err((ticket, upgrade))
        });
        if !upgrade && !matches!(asked, Ok(Asked::Granted { fresh: false })) {
            trx.held.lock().ranges.push(space);
        }
        self.answer(trx, asked)
    }

    pub(crate) fn request_table(self: &Arc<Self>, trx: &Arc<Trx>, table: u64, wanted: Mode) -> Request {
        let known = trx.held.lock().tables.iter().find(|held| held.table == table).map(|held| held.mode);
        if let Some(Some(mode)) = known
            && mode.join(wanted) == mode
        {
            return Request::Granted { fresh: false };
        }
        let mut shard = self.table_shard(table).lock();
        if self.gated(table, wanted) {
            drop(shard);
            match self.pass_gate(trx) {
                Request::Granted { .. } => shard = self.table_shard(table).lock(),
                wait => return wait,
            }
        }
        let queue = shard.entry(table).or_default();
        // A look through all holders, which a first request need not take.
        let own = known.and_then(|_| queue.mode_of(trx));
        let mode = own.map_or(wanted, |own| own.join(wanted));
        if own == Some(mode) {
            return Request::Granted { fresh: false };
        }
        let upgrade = own.is_some();
        let asked = if queue.held_against(trx, mode) || (!upgrade && queue.awaited_against(mode)) {
            let (ticket, waits) = self.begin_wait(trx, Target::Table(table), mode);
            if waits {
                queue.push_waiter(Waiter { trx: Arc::clone(trx), mode, upgrade, seq: 0 });
                self.table_waits.fetch_add(1, Ordering::SeqCst);
                fence(Ordering::SeqCst);
            }
            Err((ticket, upgrade))
        } else {
            match own {
                Some(_) => queue.add_hold(trx, mode),
                None => queue.add_new_hold(trx, mode),
            }
            Ok(Asked::Granted { fresh: !upgrade })
        };
        drop(shard);
        note_table(trx, table, asked.is_ok().then_some(mode));
        self.answer(trx, asked)
    }

    /// Opens the transaction's slot for a wait and counts it, under the shard that it is to be queued in: whoever is queued
    /// there later knows of it (`break_deadlocks`).
    fn begin_wait(&self, trx: &Trx, target: Target, mode: Mode) -> (u64, bool) {
        self.counters.waits.fetch_add(1, Ordering::Relaxed);
        self.counters.current.fetch_add(1, Ordering::SeqCst);
        trx.begin_wait(target, mode)
    }

    fn answer(self: &Arc<Self>, trx: &Arc<Trx>, asked: Result<Asked, (u64, bool)>) -> Request {
        match asked {
            Err((ticket, upgrade)) => {
                let wait = LockWait::new(Arc::clone(self), Arc::clone(trx), ticket, upgrade);
                self.break_deadlocks(trx, upgrade);
                Request::Wait(wait)
            }
            Ok(Asked::Granted { fresh }) => Request::Granted { fresh },
            Ok(Asked::InBulk) => Request::Granted { fresh: true },
            Ok(Asked::Blocked { .. }) => Request::Granted { fresh: false },
        }
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
            Target::Record(space, key) => self.with_space(*space, |s| {
                let ended = s.withdraw_record(trx, key);
                if ended {
                    trx.resolve(outcome, &mut wakes);
                    s.after_withdrawal(key, &mut wakes);
                }
                ended
            }),
            Target::Range(space, _) => self.with_space(*space, |s| {
                let ended = s.withdraw_range(trx);
                if ended {
                    trx.resolve(outcome, &mut wakes);
                    s.after_range_withdrawal(&mut wakes);
                }
                ended
            }),
            Target::Table(table) => self.withdraw_table(trx, *table, outcome, &mut wakes),
        };
        wakes.wake();
        ended
    }

    fn withdraw_table(&self, trx: &Arc<Trx>, table: u64, outcome: WaitOutcome, wakes: &mut Wakes) -> bool {
        let mut shard = self.table_shard(table).lock();
        let Some(queue) = shard.get_mut(&table) else { return false };
        if queue.remove_waiter(trx).is_none() {
            return false;
        }
        trx.resolve(outcome, wakes);
        self.table_waits.fetch_sub(1, Ordering::SeqCst);
        self.promote_table(queue, wakes);
        true
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
        let mut wakes = Wakes::default();
        self.with_space(space, |s| {
            s.release_record(trx, key, &mut wakes);
            s.settle(&mut wakes);
        });
        wakes.wake();
    }

    pub(crate) fn release_records(&self, trx: &Arc<Trx>) {
        let mut held = trx.held.lock();
        let Held { records, ranges, bulks, .. } = &mut *held;
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

    pub(crate) fn release_tables(&self, trx: &Arc<Trx>) {
        let mut held = trx.held.lock();
        while let Some(held) = held.tables.pop() {
            self.free_table(trx, held.table);
        }
    }

    pub(crate) fn release_table(&self, trx: &Arc<Trx>, table: u64) {
        trx.held.lock().tables.retain(|held| held.table != table);
        self.free_table(trx, table);
    }

    fn free_table(&self, trx: &Arc<Trx>, table: u64) {
        let mut wakes = Wakes::default();
        let mut shard = self.table_shard(table).lock();
        if let Some(queue) = shard.get_mut(&table) {
            queue.remove_hold(trx);
            self.promote_table(queue, &mut wakes);
            // Empty queues of tables stay: tables are few, and used again at once.
        }
        drop(shard);
        wakes.wake();
    }

    fn promote_table(&self, queue: &mut Queue, wakes: &mut Wakes) {
        let before = queue.waiters().count();
        queue.promote(wakes, |_| false);
        self.table_waits.fetch_sub(before - queue.waiters().count(), Ordering::SeqCst);
    }

    /// Whom a waiting transaction waits for; nobody if it does not wait.
    pub(crate) fn blockers(&self, trx: &Arc<Trx>, reach: &mut Reach<'_>) {
        match trx.waiting_for() {
            None => {}
            Some((_, Target::Record(space, key))) => {
                self.with_space(space, |s| s.record_blockers(trx, &key, reach));
            }
            Some((_, Target::Range(space, interval))) => {
                self.with_space(space, |s| s.range_blockers(trx, &interval, reach));
            }
            Some((_, Target::Table(table))) => {
                if let Some(queue) = self.table_shard(table).lock().get(&table) {
                    queue.blockers(trx, reach);
                }
            }
        }
    }
}

/// Remembers a table in the transaction's list, with the mode if it is held for certain.
fn note_table(trx: &Trx, table: u64, mode: Option<Mode>) {
    let mut held = trx.held.lock();
    match held.tables.iter_mut().find(|held| held.table == table) {
        Some(known) => known.mode = mode.or(known.mode),
        None => held.tables.push(HeldTable { table, mode }),
    }
}
