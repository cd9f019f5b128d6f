//! A transaction as the lock manager sees it: what it holds, and its one wait slot (LOCK-3).

use crate::bulk::MANY;
use crate::gate::GATE;
use crate::interval::Interval;
use crate::manager::LockManager;
use crate::mode::{Mode, RowMode, TableMode};
use crate::stats::LockTarget;
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, thread};
use crate::wait::{Request, WaitOutcome};
use bytes::Bytes;
use std::ops::{Bound, Deref};
use std::sync::{Arc, Weak};
use std::task::Waker;

/// What a record lock takes: its key, its queue, and its place among the transaction's own; and in bulk.
const RECORD_BYTES: usize = 256;
const BULK_BYTES: usize = 64;

/// Who is to be woken when a wait ends.
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
pub(crate) enum Target {
    Record(u32, Bytes),
    Range(u32, Interval),
    Table(u64),
}

impl Target {
    /// As callers know it.
    pub(crate) fn told(self) -> LockTarget {
        match self {
            Target::Record(space, key) => LockTarget::Record { space, key },
            Target::Range(space, _) => LockTarget::Range { space },
            Target::Table(GATE) => LockTarget::Gate,
            Target::Table(table) => LockTarget::Table { table },
        }
    }
}

/// The one wait of a transaction. `target` is set exactly while it is queued.
#[derive(Default)]
pub(crate) struct Slot {
    pub(crate) ticket: u64,
    pub(crate) target: Option<Target>,
    pub(crate) mode: &'static str,
    pub(crate) since: Option<std::time::Instant>,
    outcome: Option<WaitOutcome>,
    parked: Option<Parked>,
    killed: bool,
}

#[derive(Default)]
pub(crate) struct Held {
    /// Those with a queue.
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
    /// What is certainly held, if it was granted at once.
    pub(crate) mode: Option<Mode>,
}

pub(crate) struct Trx {
    pub(crate) id: u64,
    /// Distinguishes transactions of one id.
    pub(crate) serial: u64,
    pub(crate) weight: AtomicU64,
    /// The last deadlock search that came by. Only meaningful under the detector.
    pub(crate) mark: AtomicU64,
    pub(crate) slot: Mutex<Slot>,
    pub(crate) held: Mutex<Held>,
    /// Further records are locked in bulk. Changed by the transaction's own thread, or when it is over.
    many: AtomicBool,
    /// How many are.
    pub(crate) bulk: AtomicUsize,
    /// The other transaction of the same session.
    beside: Mutex<Weak<Trx>>,
}

impl Trx {
    pub(crate) fn new(id: u64, serial: u64) -> Trx {
        Trx {
            id,
            serial,
            weight: AtomicU64::new(0),
            mark: AtomicU64::new(0),
            slot: Mutex::default(),
            held: Mutex::default(),
            many: AtomicBool::new(false),
            bulk: AtomicUsize::new(0),
            beside: Mutex::default(),
        }
    }

    /// Whether it has so many record locks that it should keep further ones together.
    #[inline]
    pub(crate) fn has_many(&self) -> bool {
        self.many.load(Ordering::Relaxed)
    }

    /// It has a record's queue to leave at its end.
    pub(crate) fn note_record(&self, space: u32, key: &Bytes) {
        let mut held = self.held.lock();
        held.records.push((space, key.clone()));
        if held.records.len() == MANY {
            self.many.store(true, Ordering::Relaxed);
        }
    }

    /// One more of its records in this space is in a bulk.
    pub(crate) fn note_bulk(&self, space: u32) {
        self.bulk.fetch_add(1, Ordering::Relaxed);
        let bulks = &mut self.held.lock().bulks;
        if !bulks.contains(&space) {
            bulks.push(space);
        }
    }

    /// It has no record locks any more.
    pub(crate) fn forget_many(&self) {
        self.many.store(false, Ordering::Relaxed);
        self.bulk.store(0, Ordering::Relaxed);
    }

    pub(crate) fn beside(&self) -> Option<Arc<Trx>> {
        self.beside.lock().upgrade()
    }

    /// Of this transaction and the one beside it, the one that waits, if one does.
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
    pub(crate) fn begin_wait(&self, target: Target, mode: Mode) -> (u64, bool) {
        let mut slot = self.slot.lock();
        slot.ticket += 1;
        slot.parked = None;
        slot.mode = if matches!(target, Target::Range(..)) { "X,GAP" } else { mode.name() };
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

    /// What the transaction waits for now, and the ticket of that wait.
    pub(crate) fn waiting_for(&self) -> Option<(u64, Target)> {
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

/// What other threads may do to a transaction: the commit leader, KILL. Clones are cheap.
#[derive(Clone)]
pub struct TrxHandle {
    pub(crate) manager: Arc<LockManager>,
    pub(crate) trx: Arc<Trx>,
}

impl std::fmt::Debug for TrxHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TrxHandle").field("id", &self.trx.id).finish_non_exhaustive()
    }
}

impl TrxHandle {
    /// The number given at `LockManager::begin`.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.trx.id
    }

    /// See [`LockManager::anyone_waits`].
    #[must_use]
    #[inline]
    pub fn anyone_waits(&self) -> bool {
        self.manager.anyone_waits()
    }

    /// Gives everything back, grants and wakes those who can go on. The transaction may then
    /// start over. Takes about 0.2 us a lock, so a leader should leave a big transaction's locks
    /// (see `held_count`) to its own session.
    pub fn release_all(&self) {
        self.release_records();
        self.manager.release_tables(&self.trx);
        self.trx.weight.store(0, Ordering::Relaxed);
    }

    /// Gives record and range locks back and keeps table locks (a commit under LOCK TABLES).
    pub fn release_records(&self) {
        self.manager.release_records(&self.trx);
    }

    /// How many locks are held, more or less: a withdrawn request still counts.
    #[must_use]
    pub fn held_count(&self) -> usize {
        let held = self.trx.held.lock();
        held.records.len() + self.trx.bulk.load(Ordering::Relaxed) + held.ranges.len() + held.tables.len()
    }

    /// About how many bytes the record locks take.
    #[must_use]
    pub fn memory(&self) -> usize {
        RECORD_BYTES * self.trx.held.lock().records.len() + BULK_BYTES * self.trx.bulk.load(Ordering::Relaxed)
    }

    /// What it, or what is beside it, waits for now.
    #[must_use]
    pub fn waits_for(&self) -> Option<LockTarget> {
        self.trx.that_waits().waiting_for().map(|(_, target)| target.told())
    }

    /// Ends the present wait, if any, with `Killed`, and every later one at once until
    /// `clear_kill`. Tells whether it waited.
    pub fn kill(&self) -> bool {
        self.trx.slot.lock().killed = true;
        self.manager.resolve_wait(&self.trx, None, WaitOutcome::Killed)
    }

    /// Makes the transaction able to wait again (KILL QUERY ends with its statement).
    pub fn clear_kill(&self) {
        self.trx.slot.lock().killed = false;
    }
}

/// A transaction's locks, owned by its session, which may use it for one transaction after another
/// (`release_all` in between). Dropping it releases everything.
#[derive(Debug)]
pub struct TrxLocks(pub(crate) TrxHandle);

impl Deref for TrxLocks {
    type Target = TrxHandle;

    fn deref(&self) -> &TrxHandle {
        &self.0
    }
}

impl Drop for TrxLocks {
    fn drop(&mut self) {
        self.release_all();
    }
}

impl TrxLocks {
    /// A handle for other threads.
    #[must_use]
    pub fn handle(&self) -> TrxHandle {
        self.0.clone()
    }

    /// Says that this and `other` are one session's, which waits for one thing at a time (LOCK-3): a wait for either is
    /// a wait for both. Undoes what was said of them before.
    pub fn set_beside(&self, other: &TrxLocks) {
        for trx in [&self.trx, &other.trx] {
            if let Some(former) = trx.beside() {
                *former.beside.lock() = Weak::new();
            }
        }
        *self.trx.beside.lock() = Arc::downgrade(&other.trx);
        *other.trx.beside.lock() = Arc::downgrade(&self.trx);
    }

    /// Puts this in the place of `former` beside whatever that is beside.
    pub fn replace_beside(&self, former: &TrxLocks) {
        let Some(other) = former.trx.beside() else { return };
        *former.trx.beside.lock() = Weak::new();
        *self.trx.beside.lock() = Arc::downgrade(&other);
        *other.beside.lock() = Arc::downgrade(&self.trx);
    }

    /// How much work would be lost by rolling back, in any unit (rows changed will do). The
    /// lightest transaction of a deadlock is its victim; the requester, if equal.
    pub fn set_weight(&self, weight: u64) {
        self.trx.weight.store(weight, Ordering::Relaxed);
    }

    /// Locks a key, whether it exists or not. `key` is kept by reference count, not copied.
    pub fn lock_record(&self, space: u32, key: &Bytes, mode: RowMode) -> Request {
        self.manager.request_record(&self.trx, space, key, mode.into())
    }

    /// As `lock_record` if that is possible at once; `None` (and no lock) if it would have to wait.
    /// Else tells whether the lock is fresh. For NOWAIT and SKIP LOCKED.
    #[must_use]
    pub fn try_lock_record(&self, space: u32, key: &Bytes, mode: RowMode) -> Option<bool> {
        self.manager.try_record(&self.trx, space, key, mode.into())
    }

    /// Locks a key that the transaction is about to put and that is not there yet, in any index.
    pub fn lock_insert(&self, space: u32, key: &Bytes) -> Request {
        self.manager.request_record(&self.trx, space, key, Mode::INSERT)
    }

    /// Keeps an interval free of other transactions' inserts. Granted once their uncommitted
    /// inserts within are gone, so take it before scanning. Locks no row that exists.
    pub fn lock_range(&self, space: u32, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Request {
        self.manager.request_range(&self.trx, space, Interval::new(from, to))
    }

    /// Locks a table (see `TableMode`). A wait that was granted may have been for the gate: ask again until this grants.
    pub fn lock_table(&self, table: u64, mode: TableMode) -> Request {
        self.manager.request_table(&self.trx, table, mode.into())
    }

    /// Gives one record back early: a row that did not match at READ COMMITTED. Only for a lock
    /// whose request was fresh.
    pub fn release_record(&self, space: u32, key: &Bytes) {
        self.manager.release_record(&self.trx, space, key);
    }

    /// Gives one table back early.
    pub fn release_table(&self, table: u64) {
        self.manager.release_table(&self.trx, table);
    }
}
