//! The queues of tables, in shards, and how table locks go.
//!
//! A lock that keeps its table's users out leaves its holder's stamp behind when it goes (`released`).

use crate::mode::Mode;
use crate::outcome::WaitOutcome;
use crate::queue::Queue;
use crate::released::{self, Released};
use crate::stats::TableLockInfo;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::trx::{GATE, Trx, Wakes};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::sync::Arc;

const SHARDS: usize = 64;

type Queues = HashMap<u64, Queue, RandomState>;

#[derive(Default)]
#[repr(align(128))]
struct Shard(Mutex<Queues>);

/// See the module's text.
pub(crate) struct Tables {
    shards: Box<[Shard]>,
    /// Requests that are queued: nearly always none.
    pub(crate) waits: AtomicUsize,
    /// The number of times that the gate was closed (`gate`).
    pub(crate) gate: AtomicUsize,
}

impl Default for Tables {
    fn default() -> Tables {
        let shards = (0..SHARDS).map(|_| Shard::default()).collect();
        Tables { shards, waits: AtomicUsize::new(0), gate: AtomicUsize::new(0) }
    }
}

impl Tables {
    pub(crate) fn shard(&self, table: u64) -> &Mutex<Queues> {
        &self.shards[(table % SHARDS as u64) as usize].0
    }

    pub(crate) fn shards(&self) -> impl Iterator<Item = &Mutex<Queues>> {
        self.shards.iter().map(|shard| &shard.0)
    }

    /// All locks, as of one moment for each shard.
    pub(crate) fn list(&self) -> Vec<TableLockInfo> {
        let mut found = Vec::new();
        for shard in self.shards() {
            for (table, queue) in shard.lock().iter() {
                let lock = |trx: &Trx, mode: Mode, granted| {
                    let table = (*table != GATE).then_some(*table);
                    TableLockInfo { table, owner: trx.id, mode: mode.name(), granted }
                };
                found.extend(queue.holders().map(|hold| lock(&hold.trx, hold.mode, true)));
                found.extend(queue.waiters().map(|waiter| lock(&waiter.trx, waiter.mode, false)));
            }
        }
        found
    }

    /// Takes a waiter out of its queue; whether it was there.
    pub(crate) fn withdraw(
        &self,
        trx: &Arc<Trx>,
        table: u64,
        outcome: WaitOutcome,
        wakes: &mut Wakes,
    ) -> bool {
        let mut shard = self.shard(table).lock();
        let Some(queue) = shard.get_mut(&table) else { return false };
        if queue.remove_waiter(trx).is_none() {
            return false;
        }
        trx.resolve(outcome, wakes);
        self.waits.fetch_sub(1, Ordering::SeqCst);
        self.promote(queue, wakes);
        true
    }

    pub(crate) fn release_all(&self, trx: &Arc<Trx>, released: &Released) {
        let mut held = trx.held.lock();
        while let Some(held) = held.tables.pop() {
            self.free(trx, held.table, released);
        }
    }

    pub(crate) fn release(&self, trx: &Arc<Trx>, table: u64, released: &Released) {
        trx.held.lock().tables.retain(|held| held.table != table);
        self.free(trx, table, released);
    }

    /// Releases all tables but those that are `kept`.
    pub(crate) fn release_others(&self, trx: &Arc<Trx>, kept: impl Fn(u64) -> bool, released: &Released) {
        let mut held = trx.held.lock();
        let gone: Vec<u64> =
            held.tables.extract_if(.., |held| !kept(held.table)).map(|held| held.table).collect();
        drop(held);
        gone.into_iter().for_each(|table| self.free(trx, table, released));
    }

    /// Leaves a table locked in a mode that keeps fewer out.
    pub(crate) fn weaken(&self, trx: &Arc<Trx>, table: u64, mode: Mode, released: &Released) {
        let mut wakes = Wakes::default();
        let mut shard = self.shard(table).lock();
        if let Some(queue) = shard.get_mut(&table).filter(|queue| queue.mode_of(trx).is_some()) {
            queue.add_hold(trx, mode);
            released.leave(released::of_table(table), trx.stamp.get());
            self.promote(queue, &mut wakes);
        }
        drop(shard);
        if let Some(held) = trx.held.lock().tables.iter_mut().find(|held| held.table == table) {
            held.mode = Some(mode);
        }
        wakes.wake();
    }

    fn free(&self, trx: &Arc<Trx>, table: u64, released: &Released) {
        let mut wakes = Wakes::default();
        let mut shard = self.shard(table).lock();
        if let Some(queue) = shard.get_mut(&table) {
            if queue.remove_hold(trx).is_some_and(Mode::keeps_users_out) {
                released.leave(released::of_table(table), trx.stamp.get());
            }
            self.promote(queue, &mut wakes);
            // Empty queues of tables stay: tables are few, and used again at once.
        }
        drop(shard);
        wakes.wake();
    }

    fn promote(&self, queue: &mut Queue, wakes: &mut Wakes) {
        let before = queue.waiters().count();
        queue.promote(wakes, |_| false);
        self.waits.fetch_sub(before - queue.waiters().count(), Ordering::SeqCst);
    }
}
