//! Dropped spaces, on their way out.
//!
//! A space is *gone* once the watermark has passed its drop, so that no snapshot can ask for it, and the drop is
//! persistent in this engine, so that no crash takes it back and no replay needs the rows from before it. What
//! is left of it goes in three ways: whole tables are dropped at once (`compaction`), a flush
//! skips its versions, a compaction filters them. Space ids are never used again, so a gone space
//! stays on the list until restart, and nothing can come back.

use parking_lot::{Mutex, RwLock};
use std::collections::HashSet;
use std::sync::Arc;

#[derive(Default)]
pub(crate) struct DeadSpaces {
    /// Dropped at a number that some snapshot may still be below.
    pending: Mutex<Vec<(u32, u64)>>,
    gone: RwLock<Arc<HashSet<u32>>>,
    /// Gone, but their tables have not been dropped yet.
    fresh: Mutex<Vec<u32>>,
}

impl DeadSpaces {
    pub(crate) fn add(&self, space: u32, at: u64) {
        self.pending.lock().push((space, at));
    }

    /// The lowest number at which a space was dropped that is not gone.
    pub(crate) fn waits_for(&self) -> Option<u64> {
        self.pending.lock().iter().map(|(_, at)| *at).min()
    }

    /// Moves on what was dropped at or below `up_to`. Tells whether there is work for the compactor.
    pub(crate) fn advance(&self, up_to: u64) -> bool {
        let mut pending = self.pending.lock();
        if pending.is_empty() {
            return false;
        }
        let now: Vec<u32> = pending.extract_if(.., |(_, at)| *at <= up_to).map(|(space, _)| space).collect();
        if now.is_empty() {
            return false;
        }
        let mut gone = self.gone.write();
        let mut next = HashSet::clone(&gone);
        next.extend(&now);
        *gone = Arc::new(next);
        self.fresh.lock().extend(now);
        true
    }

    pub(crate) fn gone(&self) -> Arc<HashSet<u32>> {
        Arc::clone(&self.gone.read())
    }

    /// Returns spaces that could not be dropped to the list.
    pub(crate) fn give_back(&self, spaces: Vec<u32>) {
        self.fresh.lock().extend(spaces);
    }

    pub(crate) fn take_fresh(&self) -> Vec<u32> {
        std::mem::take(&mut self.fresh.lock())
    }
}

/// Returns whether a key belongs to one of the spaces.
pub(crate) fn within(spaces: &HashSet<u32>, key: &[u8]) -> bool {
    !spaces.is_empty()
        && key.first_chunk().is_some_and(|prefix| spaces.contains(&u32::from_be_bytes(*prefix)))
}
