//! The steps of a request: a look under one shard, and if it must wait a place in the queue there; then, outside, the search for a
//! deadlock (`detect`), and a wait for the caller. A write to a table goes through the gate first (`gate`).

use crate::interval::Interval;
use crate::manager::LockManager;
use crate::mode::Mode;
use crate::queue::Waiter;
use crate::released::Taken;
use crate::space::Asked;
use crate::sync::atomic::{Ordering, fence};
use crate::trx::{GATE, HeldTable, Trx, WaitTarget};
use crate::wait::{LockWait, Request};
use bytes::Bytes;
use std::sync::Arc;

impl LockManager {
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
            let (ticket, queue) = self.begin_wait(trx, WaitTarget::Record(space, key.clone()), mode);
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
        self.answer(trx, asked, Taken::record(space, key, mode))
    }

    pub(crate) fn request_range(self: &Arc<Self>, trx: &Arc<Trx>, space: u32, interval: Interval) -> Request {
        // With a range in this space already, somebody may be waiting for it.
        let upgrade = trx.held.lock().ranges.contains(&space);
        let asked = self.with_space(space, |s| {
            let asked = s.request_range(trx, &interval);
            let Asked::Blocked { mode, .. } = asked else { return Ok(asked) };
            let (ticket, queue) = self.begin_wait(trx, WaitTarget::Range(space, interval.clone()), mode);
            if queue {
                s.queue_range(trx, interval);
            }
            Err((ticket, upgrade))
        });
        if !upgrade && !matches!(asked, Ok(Asked::Granted { fresh: false })) {
            trx.held.lock().ranges.push(space);
        }
        self.answer(trx, asked, Taken::Newest)
    }

    pub(crate) fn request_table(self: &Arc<Self>, trx: &Arc<Trx>, table: u64, wanted: Mode) -> Request {
        let known = trx.held.lock().tables.iter().find(|held| held.table == table).map(|held| held.mode);
        if let Some(Some(mode)) = known
            && mode.join(wanted) == mode
        {
            return Request::Granted { fresh: false };
        }
        let mut shard = self.tables.shard(table).lock();
        if self.tables.gated(table, wanted) {
            drop(shard);
            match self.pass_gate(trx) {
                Request::Granted { .. } => shard = self.tables.shard(table).lock(),
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
            let (ticket, waits) = self.begin_wait(trx, WaitTarget::Table(table), mode);
            if waits {
                queue.push_waiter(Waiter { trx: Arc::clone(trx), mode, upgrade, seq: 0 });
                self.tables.waits.fetch_add(1, Ordering::SeqCst);
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
        self.answer(trx, asked, Taken::table(table, mode))
    }

    /// Opens the transaction's slot for a wait and counts it, under the shard in which it is to be queued: transactions
    /// queued there later see it (`break_deadlocks`).
    fn begin_wait(&self, trx: &Trx, target: WaitTarget, mode: Mode) -> (u64, bool) {
        self.counters.waits.fetch_add(1, Ordering::Relaxed);
        self.counters.current.fetch_add(1, Ordering::SeqCst);
        trx.begin_wait(target, mode)
    }

    fn answer(self: &Arc<Self>, trx: &Arc<Trx>, asked: Result<Asked, (u64, bool)>, taken: Taken) -> Request {
        let fresh = match asked {
            Err((ticket, upgrade)) => {
                let wait = LockWait::new(Arc::clone(self), Arc::clone(trx), ticket, upgrade, taken);
                self.break_deadlocks(trx, upgrade);
                return Request::Wait(wait);
            }
            Ok(Asked::Granted { fresh }) => fresh,
            Ok(Asked::InBulk) => true,
            Ok(Asked::Blocked { .. }) => false,
        };
        self.given(trx, taken);
        Request::Granted { fresh }
    }

    /// The lock of the gate, unless the transaction writes already. Takes one shard after the other.
    pub(crate) fn pass_gate(self: &Arc<Self>, trx: &Arc<Trx>) -> Request {
        let tables: Vec<u64> = trx.held.lock().tables.iter().map(|held| held.table).collect();
        let writes = |table: &u64| {
            let shard = self.tables.shard(*table).lock();
            shard.get(table).and_then(|queue| queue.mode_of(trx)).is_some_and(Mode::writes)
        };
        if tables.iter().any(writes) {
            return Request::Granted { fresh: false };
        }
        self.request_table(trx, GATE, Mode::IX)
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
