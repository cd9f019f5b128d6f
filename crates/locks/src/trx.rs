//! A transaction as the lock manager sees it: what it holds, and its one wait slot (LOCK-3).

use crate::interval::Interval;
use crate::mode::Mode;
use crate::outcome::WaitOutcome;
use crate::released::Stamp;
use crate::stats::LockTarget;
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, thread};
use bytes::Bytes;
use std::sync::{Arc, Weak};
use std::task::Waker;

/// Record locks that a transaction has in queues before more go here.
#[cfg(not(test))]
const MANY: usize = 1000;
#[cfg(test)]
const MANY: usize = 2;

/// The table number of the gate (`gate`).
pub(crate) const GATE: u64 = u64::MAX;

/// The thread or task to wake when a wait ends.
pub(crate) enum Parked {
    Thread(thread::Thread),
    Task(Waker),
}

/// Collected under a shard, woken outside.
#[derive(Default)]
pub(crate) struct Wakes(Vec<Parked>);

impl Wakes {
    pub(crate) fn wake(self) {
        for parked in self.0 {
            match parked {
                Parked::Thread(thread) => thread.unpark(),
                Parked::Task(waker) => waker.wake(),
            }
        }
    }
}

#[derive(Clone)]
pub(crate) enum WaitTarget {
    Record(u32, Bytes),
    Range(u32, Interval),
    Table(u64),
}

impl WaitTarget {
    /// The form for callers.
    pub(crate) fn told(self) -> LockTarget {
        match self {
            WaitTarget::Record(space, key) => LockTarget::Record { space, key },
            WaitTarget::Range(space, _) => LockTarget::Range { space },
            WaitTarget::Table(GATE) => LockTarget::Gate,
            WaitTarget::Table(table) => LockTarget::Table { table },
        }
    }
}

/// The one wait of a transaction. `target` is set exactly while it is queued.
#[derive(Default)]
pub(crate) struct Slot {
    pub(crate) ticket: u64,
    pub(crate) target: Option<WaitTarget>,
    pub(crate) mode: &'static str,
    pub(crate) since: Option<std::time::Instant>,
    outcome: Option<WaitOutcome>,
    parked: Option<Parked>,
    pub(crate) killed: bool,
}

#[derive(Default)]
pub(crate) struct Held {
    /// The records with a queue.
    pub(crate) records: Vec<(u32, Bytes)>,
    /// Spaces with many others (`bulk`).
    pub(crate) bulks: Vec<u32>,
    pub(crate) ranges: Vec<u32>,
    pub(crate) tables: Vec<HeldTable>,
}

impl Held {
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.bulks.is_empty() && self.ranges.is_empty() && self.tables.is_empty()
    }
}

/// A table that is held, or was asked for.
pub(crate) struct HeldTable {
    pub(crate) table: u64,
    /// The mode that is certainly held, if it was granted at once.
    pub(crate) mode: Option<Mode>,
}

pub(crate) struct Trx {
    pub(crate) id: u64,
    /// Distinguishes transactions of one id.
    pub(crate) serial: u64,
    pub(crate) weight: AtomicU64,
    /// The largest stamp that it committed under or was given (`released`). All transactions of a session share it.
    pub(crate) stamp: Stamp,
    /// The last deadlock search that came by. Only meaningful under the detector.
    pub(crate) mark: AtomicU64,
    pub(crate) slot: Mutex<Slot>,
    pub(crate) held: Mutex<Held>,
    /// Further records are locked in bulk. Changed by the transaction's own thread, or when it is over.
    many: AtomicBool,
    /// The number of record locks in bulks.
    pub(crate) bulk: AtomicUsize,
    /// The other transaction of the same session.
    pub(crate) beside: Mutex<Weak<Trx>>,
}

impl Trx {
    pub(crate) fn new(id: u64, serial: u64, stamp: Stamp) -> Trx {
        Trx {
            id,
            serial,
            weight: AtomicU64::new(0),
            stamp,
            mark: AtomicU64::new(0),
            slot: Mutex::default(),
            held: Mutex::default(),
            many: AtomicBool::new(false),
            bulk: AtomicUsize::new(0),
            beside: Mutex::default(),
        }
    }

    /// Returns whether it has so many record locks that further ones should be kept in bulks.
    #[inline]
    pub(crate) fn has_many(&self) -> bool {
        self.many.load(Ordering::Relaxed)
    }

    /// Records a queue that the transaction has to leave at its end.
    pub(crate) fn note_record(&self, space: u32, key: &Bytes) {
        let mut held = self.held.lock();
        held.records.push((space, key.clone()));
        if held.records.len() == MANY {
            self.many.store(true, Ordering::Relaxed);
        }
    }

    /// Counts one more of its records of this space in a bulk.
    pub(crate) fn note_bulk(&self, space: u32) {
        self.bulk.fetch_add(1, Ordering::Relaxed);
        let bulks = &mut self.held.lock().bulks;
        if !bulks.contains(&space) {
            bulks.push(space);
        }
    }

    /// Records that it has no record locks any more.
    pub(crate) fn forget_many(&self) {
        self.many.store(false, Ordering::Relaxed);
        self.bulk.store(0, Ordering::Relaxed);
    }

    pub(crate) fn beside(&self) -> Option<Arc<Trx>> {
        self.beside.lock().upgrade()
    }

    /// Of this transaction and the one beside it, returns the one that waits, if one does.
    pub(crate) fn that_waits(self: &Arc<Trx>) -> Arc<Trx> {
        if self.is_waiting() {
            return Arc::clone(self);
        }
        self.beside().filter(|beside| beside.is_waiting()).unwrap_or_else(|| Arc::clone(self))
    }

    fn is_waiting(&self) -> bool {
        self.slot.lock().target.is_some()
    }

    /// Opens the slot for a new wait; called under the shard that the request is queued in. A killed
    /// transaction gets an ended wait and must not be queued.
    pub(crate) fn begin_wait(&self, target: WaitTarget, mode: Mode) -> (u64, bool) {
        let mut slot = self.slot.lock();
        assert!(slot.target.is_none(), "LOCK-3: one wait at a time");
        slot.ticket += 1;
        slot.parked = None;
        slot.mode = if matches!(target, WaitTarget::Range(..)) { "X,GAP" } else { mode.name() };
        slot.since = Some(std::time::Instant::now());
        slot.outcome = slot.killed.then_some(WaitOutcome::Killed);
        slot.target = (!slot.killed).then_some(target);
        (slot.ticket, !slot.killed)
    }

    /// Ends the present wait; called under the shard it was queued in, when it is queued no more.
    pub(crate) fn resolve(&self, outcome: WaitOutcome, wakes: &mut Wakes) {
        let mut slot = self.slot.lock();
        slot.target = None;
        slot.outcome = Some(outcome);
        wakes.0.extend(slot.parked.take());
    }

    /// The lock that the transaction waits for now, and the ticket of that wait.
    pub(crate) fn waiting_for(&self) -> Option<(u64, WaitTarget)> {
        let slot = self.slot.lock();
        slot.target.clone().map(|target| (slot.ticket, target))
    }

    pub(crate) fn outcome_of(&self, ticket: u64) -> Option<WaitOutcome> {
        let slot = self.slot.lock();
        if slot.ticket == ticket { slot.outcome } else { Some(WaitOutcome::Timeout) }
    }

    /// The outcome, or else a promise to wake `parked` when there is one.
    pub(crate) fn poll(&self, ticket: u64, parked: Parked) -> Option<WaitOutcome> {
        let mut slot = self.slot.lock();
        if slot.ticket != ticket {
            return Some(WaitOutcome::Timeout);
        }
        if slot.outcome.is_none() {
            slot.parked = Some(parked);
        }
        slot.outcome
    }
}
