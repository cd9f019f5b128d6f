//! Rows that commits change while something new is made of a table's rows.
//!
//! A build registers while nobody else may use its table. Every commit that writes rows of it from then on leaves their keys here,
//! with its number, at its place in the order (in the flush stage). Whoever builds takes them up to a number, looks at each such row in two
//! snapshots, and knows what to change. So a writer does nothing for a build but copy keys once, when it commits; where nothing is built
//! that is one load. A crash forgets builds with what is here.
//!
//! Other definitions of the table wait for a build behind a lock of its own: in the table's queue they would keep everybody from using it.

use super::lock::Waits;
use super::table_lock::SessionLocks;
use super::trx::{Trx, TrxContext};
use crate::error::{ExecResult, SqlResult};
use bytes::Bytes;
use omnibus_engine::{CommitNo, SpaceId, WriteSet};
use omnibus_locks::TableMode;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A table with this bit is the build of the table without it.
const BUILDING: u64 = 1 << 62;

/// The table that a locked number stands for.
#[must_use]
pub fn locked_table(id: u64) -> u64 {
    id & !BUILDING
}

/// All builds that are under way.
#[derive(Default)]
pub struct Builds {
    /// How many: what a commit looks at.
    count: AtomicUsize,
    all: Mutex<Vec<Arc<Changed>>>,
}

/// The rows of a table that commits have changed.
struct Changed {
    /// Where the rows are.
    space: SpaceId,
    /// In commit order.
    keys: Mutex<VecDeque<(CommitNo, Vec<Bytes>)>>,
}

/// A commit's rows in tables that something is made of.
pub(super) struct Written(Vec<(Arc<Changed>, Vec<Bytes>)>);

impl Builds {
    /// The changes that a commit of these writes has to leave for the builds.
    ///
    /// # Errors
    /// The part of the writes that is in files could not be read.
    pub(super) fn written(&self, writes: &WriteSet) -> SqlResult<Written> {
        let mut written = Vec::new();
        if self.count.load(Ordering::Acquire) == 0 {
            return Ok(Written(written));
        }
        for changed in self.all.lock().iter() {
            let (from, to) = (changed.space.prefix(), SpaceId(changed.space.0 + 1).prefix());
            let mut keys = Vec::new();
            for pending in writes.range((Bound::Included(&from[..]), Bound::Excluded(&to[..])), false) {
                keys.push(Bytes::copy_from_slice(pending?.key()));
            }
            if !keys.is_empty() {
                written.push((changed.clone(), keys));
            }
        }
        Ok(Written(written))
    }
}

impl Written {
    /// The commit has its place.
    pub(super) fn leave(self, no: CommitNo) {
        for (changed, keys) in self.0 {
            changed.keys.lock().push_back((no, keys));
        }
    }
}

/// A build; registered until it is dropped.
pub(crate) struct Build {
    shared: Arc<TrxContext>,
    changed: Arc<Changed>,
}

impl Build {
    /// Begins, while nobody else may use the table whose rows are in `space`.
    pub(crate) fn begin(shared: &Arc<TrxContext>, space: SpaceId) -> Build {
        let changed = Arc::new(Changed { space, keys: Mutex::default() });
        shared.builds.all.lock().push(changed.clone());
        shared.builds.count.fetch_add(1, Ordering::AcqRel);
        Build { shared: shared.clone(), changed }
    }

    /// Takes the keys of rows that commits up to `last` have changed since; a row may be there more than once.
    pub(crate) fn take(&self, last: CommitNo) -> Vec<Bytes> {
        let mut keys = self.changed.keys.lock();
        let end = keys.partition_point(|(no, _)| *no <= last);
        keys.drain(..end).flat_map(|(_, keys)| keys).collect()
    }
}

impl Drop for Build {
    fn drop(&mut self) {
        self.shared.builds.all.lock().retain(|other| !Arc::ptr_eq(other, &self.changed));
        self.shared.builds.count.fetch_sub(1, Ordering::AcqRel);
    }
}

impl SessionLocks {
    /// Lets other sessions define again, and use a table that it has locked exclusively beside `mode`. No other definition of
    /// the table begins until the transaction ends.
    ///
    /// # Errors
    /// Lock waits.
    pub(crate) fn step_aside(&mut self, waits: Waits, table: u64, mode: TableMode) -> ExecResult<()> {
        // Whoever is in its way is the victim of a deadlock: definitions that wait for the table (they begin again), and later a
        // reader of the table that begins to write while this waits for its readers.
        self.rows.owned.set_weight(u64::MAX);
        self.rows.lock_table_id(waits, BUILDING | table, TableMode::Shared)?;
        self.aside = Some((table, mode));
        self.rows.owned.keep_tables(&[(BUILDING | table, TableMode::Shared), (table, mode)]);
        Ok(())
    }

    /// The table is locked exclusively again.
    pub(crate) fn step_back(&mut self) {
        self.aside = None;
    }

    /// Waits until others build nothing of a table, and keeps them from beginning to.
    pub(super) fn announce_definition(&self, waits: Waits, table: u64) -> ExecResult<()> {
        match self.aside {
            Some((own, _)) if own == table => Ok(()),
            _ => self.rows.lock_table_id(waits, BUILDING | table, TableMode::IntentExclusive),
        }
    }

    /// The table is locked, or not to be.
    pub(super) fn end_announcement(&self, table: u64) {
        if self.aside.is_none_or(|(own, _)| own != table) {
            self.rows.owned.release_table(BUILDING | table);
        }
    }

    /// Gives a table's lock back, or what it holds of it beyond `step_aside`.
    pub(super) fn release_defined(&self, table: u64) {
        match self.aside {
            Some((own, mode)) if own == table => self.rows.owned.weaken_table(table, mode),
            _ => self.rows.owned.release_table(table),
        }
    }
}

impl Trx {
    /// Runs `write`, which commits, behind the gate that FLUSH TABLES WITH READ LOCK closes.
    pub(crate) fn write_aside<T>(&mut self, write: impl FnOnce(&mut Trx) -> ExecResult<T>) -> ExecResult<T> {
        let Some((table, mode)) = self.locks.aside else { return write(self) };
        self.locks.rows.lock_table_id(self.statement.waits(), table, TableMode::IntentExclusive)?;
        let done = write(self);
        self.locks.rows.owned.weaken_table(table, mode);
        done
    }
}
