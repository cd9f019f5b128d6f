//! Stamps of released locks: a session that acquires a lock must be able to see the commit that released it last
//! (SNAP-3).
//!
//! With early release a lock changes hands before its holder's commit is published. So each released lock leaves a
//! *stamp* in a slot of a small table, whether somebody waits for it or not, and a transaction that acquires a lock
//! takes over its slot's stamp.
//! A transaction passes on the stamps that it took: a chain of locks carries the stamp of its first holder.
//!
//! A stamp only grows, and its value is the caller's: for a server, a commit number whose versions are installed. Two
//! locks may share a slot, which only makes a stamp larger than necessary. A lock on a range or a whole table takes the
//! largest stamp of all, because it follows many holders.

use crate::mode::Mode;
use crate::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// Locks that commits gave back within one write of the log: a few thousand.
const SLOTS: usize = if cfg!(test) { 1 << 8 } else { 1 << 15 };

/// The stamp that a request takes over when it is granted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Taken {
    /// The stamp of one slot.
    Slot(usize),
    /// An insert: also that of ranges in its space.
    Insert(usize, usize),
    /// The largest.
    Newest,
}

impl Taken {
    /// For a record lock.
    pub(crate) fn record(space: u32, key: &[u8], mode: Mode) -> Taken {
        match mode {
            Mode::INSERT => Taken::Insert(of_record(space, key), of_ranges(space)),
            _ => Taken::Slot(of_record(space, key)),
        }
    }

    /// For a table lock.
    pub(crate) fn table(table: u64, mode: Mode) -> Taken {
        if mode.keeps_users_out() { Taken::Newest } else { Taken::Slot(of_table(table)) }
    }
}

/// See the module.
pub(crate) struct Released {
    slots: Box<[AtomicU64]>,
    /// The newest stamp of all commits.
    newest: AtomicU64,
    /// The newest stamp of commits that released too many locks to stamp one by one.
    many: AtomicU64,
}

impl Default for Released {
    fn default() -> Released {
        Released {
            slots: (0..SLOTS).map(|_| AtomicU64::new(0)).collect(),
            newest: AtomicU64::new(0),
            many: AtomicU64::new(0),
        }
    }
}

impl Released {
    /// A transaction committed, and has not given anything back yet.
    pub(crate) fn committed(&self, stamp: u64) {
        raise(&self.newest, stamp);
    }

    /// A lock of this slot is given back. Called before anybody else can be given it.
    pub(crate) fn leave(&self, slot: usize, stamp: u64) {
        raise(&self.slots[slot], stamp);
    }

    /// The same for many locks.
    pub(crate) fn leave_many(&self, stamp: u64) {
        raise(&self.many, stamp);
    }

    /// Returns the stamp that is taken over with a lock. Called once the lock is held.
    pub(crate) fn take(&self, taken: Taken) -> u64 {
        let slot = |slot: usize| self.slots[slot].load(Ordering::Acquire);
        let own = match taken {
            Taken::Newest => return self.newest.load(Ordering::Acquire),
            Taken::Slot(at) => slot(at),
            Taken::Insert(at, ranges) => slot(at).max(slot(ranges)),
        };
        own.max(self.many.load(Ordering::Acquire))
    }
}

/// The stamp of a session: the largest that it committed under, or was given with a lock. It grows by itself whenever the
/// session's locks do, whichever transaction of it they belong to. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Stamp(Arc<AtomicU64>);

impl Stamp {
    /// The present stamp; 0 if there is none.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    pub(crate) fn raise(&self, to: u64) {
        raise(&self.0, to);
    }
}

/// Most stamps are there already: a look is cheaper than a write that all cores see.
fn raise(stamp: &AtomicU64, to: u64) {
    if to > stamp.load(Ordering::Relaxed) {
        stamp.fetch_max(to, Ordering::AcqRel);
    }
}

/// The slot of a record.
pub(crate) fn of_record(space: u32, key: &[u8]) -> usize {
    let mut hash = mix(u64::from(space));
    let (words, rest) = key.as_chunks::<8>();
    for word in words {
        hash = mix(hash ^ u64::from_le_bytes(*word));
    }
    let last = rest.iter().fold(1u64, |last, byte| last << 8 | u64::from(*byte));
    slot(mix(hash ^ last))
}

/// The slot of all ranges in a space.
pub(crate) fn of_ranges(space: u32) -> usize {
    slot(mix(u64::from(space) ^ 1 << 63))
}

/// The slot of a table.
pub(crate) fn of_table(table: u64) -> usize {
    slot(mix(table ^ 1 << 62))
}

fn mix(word: u64) -> u64 {
    let product = u128::from(word ^ 0x9e37_79b9_7f4a_7c15) * 0xa076_1d64_78bd_642f;
    (product ^ (product >> 64)) as u64
}

fn slot(hash: u64) -> usize {
    (hash >> 20) as usize % SLOTS
}
