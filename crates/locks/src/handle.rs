//! A transaction's locks as their owner has them, and as others may reach them.

use crate::interval::Interval;
use crate::manager::LockManager;
use crate::mode::{Mode, RowMode, TableMode};
use crate::outcome::WaitOutcome;
use crate::released::Stamp;
use crate::stats::LockTarget;
use crate::sync::atomic::Ordering;
use crate::trx::Trx;
use crate::wait::Request;
use bytes::Bytes;
use std::ops::{Bound, Deref};
use std::sync::{Arc, Weak};

/// The estimated bytes of a record lock: its key, its queue, and its place among the transaction's own; and in bulk.
const RECORD_BYTES: usize = 256;
const BULK_BYTES: usize = 64;

impl LockManager {
    /// A transaction without locks. `id` is what introspection shows (a session's id).
    #[must_use]
    pub fn begin(self: &Arc<Self>, id: u64) -> TrxLocks {
        self.begin_with(id, Stamp::default())
    }

    fn begin_with(self: &Arc<Self>, id: u64, stamp: Stamp) -> TrxLocks {
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        TrxLocks(TrxHandle { manager: Arc::clone(self), trx: Arc::new(Trx::new(id, serial, stamp)) })
    }
}

/// A handle to a transaction for other threads: the commit leader, KILL. Clones are cheap.
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

    /// The transaction has committed as `stamp`, whose effects are there for all to see; its locks go next. Stamps of all
    /// transactions are of one growing order.
    pub fn committed(&self, stamp: u64) {
        self.manager.released.committed(stamp);
        self.trx.stamp.raise(stamp);
    }

    /// The commits that the session must see: its own, and those of the former holders of its locks (SNAP-3).
    #[must_use]
    pub fn stamp(&self) -> &Stamp {
        &self.trx.stamp
    }

    /// Releases all locks, and grants and wakes the transactions that can continue. The transaction may then start
    /// over. Takes about 0.2 us per lock, so a leader should leave a big transaction's locks (see `held_count`) to its
    /// own session.
    pub fn release_all(&self) {
        self.release_records();
        self.manager.tables.release_all(&self.trx, &self.manager.released);
        self.trx.weight.store(0, Ordering::Relaxed);
    }

    /// Releases record and range locks and keeps table locks (a commit under LOCK TABLES).
    pub fn release_records(&self) {
        self.manager.release_records(&self.trx);
    }

    /// The approximate number of locks held: a withdrawn request still counts.
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

    /// Replaces many record locks by a lock on all records of their spaces, except those that other transactions hold until
    /// they release them. For a transaction whose locks do not fit memory. Has no effect in a space where another
    /// transaction has many, too.
    /// Returns the reduction in the number of stored locks.
    pub fn widen(&self) -> usize {
        self.manager.widen(&self.trx)
    }

    /// The lock that it, or the transaction beside it, waits for now.
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

    /// More locks of the same session: other ones, for another transaction of it.
    #[must_use]
    pub fn begin_another(&self) -> TrxLocks {
        self.manager.begin_with(self.trx.id, self.trx.stamp.clone())
    }

    /// Declares that this and `other` belong to one session, which waits for one lock at a time (LOCK-3): a wait of
    /// either counts as a wait of both. Replaces earlier declarations about them.
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

    /// Sets the amount of work that a rollback would lose, in any unit (such as rows changed). The lightest transaction
    /// of a deadlock is its victim; among equals, the requester. `u64::MAX` stays until all locks are released.
    pub fn set_weight(&self, weight: u64) {
        if self.trx.weight.load(Ordering::Relaxed) != u64::MAX {
            self.trx.weight.store(weight, Ordering::Relaxed);
        }
    }

    /// Locks a key, whether it exists or not. `key` is kept by reference count, not copied.
    pub fn lock_record(&self, space: u32, key: &Bytes, mode: RowMode) -> Request {
        self.manager.request_record(&self.trx, space, key, mode.into())
    }

    /// As `lock_record` if that is possible at once; `None`, without a lock, if it would have to wait. Otherwise
    /// returns whether the lock is fresh. For NOWAIT and SKIP LOCKED.
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

    /// Releases one record early: a row that did not match at READ COMMITTED. Only for a lock
    /// whose request was fresh.
    pub fn release_record(&self, space: u32, key: &Bytes) {
        self.manager.release_record(&self.trx, space, key);
    }

    /// Releases one table early.
    pub fn release_table(&self, table: u64) {
        self.manager.tables.release(&self.trx, table, &self.manager.released);
    }

    /// Changes the mode of a table lock to a weaker one, and grants the requests that it then permits.
    pub fn weaken_table(&self, table: u64, mode: TableMode) {
        self.manager.tables.weaken(&self.trx, table, mode.into(), &self.manager.released);
    }

    /// Weakens its locks of these tables and gives all other tables back.
    pub fn keep_tables(&self, kept: &[(u64, TableMode)]) {
        let keeps = |table| kept.iter().any(|(own, _)| *own == table);
        self.manager.tables.release_others(&self.trx, keeps, &self.manager.released);
        for (table, mode) in kept {
            self.weaken_table(*table, *mode);
        }
    }
}
