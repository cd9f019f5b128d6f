//! An upper bound of the commit that deleted an *absent* key.
//!
//! With early lock release a locking read may find a key absent because of a deletion that is not durable yet. An
//! absent key has no version that carries a number, so the number of the newest deletion is kept per slot of a small
//! table. Two keys may share a slot; then a reply may wait for a sync that it did not need, and COMMIT-2 still holds.

use omnibus_engine::CommitNo;
use std::sync::atomic::{AtomicU64, Ordering};

const SLOTS: usize = 4096;

/// The newest deletion per slot.
#[derive(Debug)]
pub struct DeletedFloor {
    slots: Box<[AtomicU64]>,
}

impl Default for DeletedFloor {
    fn default() -> DeletedFloor {
        DeletedFloor { slots: (0..SLOTS).map(|_| AtomicU64::new(0)).collect() }
    }
}

impl DeletedFloor {
    /// Records that `no` deleted `key`. Called in the flush stage.
    pub fn note(&self, key: &[u8], no: CommitNo) {
        self.slots[slot(key)].fetch_max(no.0, Ordering::AcqRel);
    }

    /// Records that `no` deleted so many keys that each slot may be affected. Called in the flush stage.
    pub fn note_all(&self, no: CommitNo) {
        for slot in &self.slots {
            slot.fetch_max(no.0, Ordering::AcqRel);
        }
    }

    /// Returns a commit number; no deletion of `key` is newer than this.
    #[must_use]
    pub fn floor(&self, key: &[u8]) -> CommitNo {
        CommitNo(self.slots[slot(key)].load(Ordering::Acquire))
    }
}

/// Returns the slot of `key` by FNV-1a, which spreads well enough for 4096 slots and costs a few nanoseconds.
fn slot(key: &[u8]) -> usize {
    let hash = key.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    (hash ^ (hash >> 32)) as usize % SLOTS
}
