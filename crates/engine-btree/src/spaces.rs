//! Dropped spaces, on their way out. A space is *gone* once the watermark has passed its drop, so that no snapshot can
//! ask for it, and the drop is persistent here, so that no replay needs the rows from before it. Then what is still in
//! memory of it is not written, and the writer thread removes its keys piece by piece.
//! Space ids are never used again, so a gone space stays on the list until restart.

use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;

#[derive(Default)]
pub(crate) struct DeadSpaces {
    state: Mutex<SpaceSets>,
}

#[derive(Default)]
struct SpaceSets {
    /// Dropped at a number that some snapshot may still be below.
    pending: Vec<(u32, u64)>,
    gone: Arc<HashSet<u32>>,
    /// Dropped spaces whose keys have not been removed yet.
    fresh: Vec<u32>,
}

impl DeadSpaces {
    pub(crate) fn add(&self, space: u32, at: u64) {
        self.state.lock().pending.push((space, at));
    }

    /// The lowest number at which a space was dropped that is not gone.
    pub(crate) fn waits_for(&self) -> Option<u64> {
        self.state.lock().pending.iter().map(|(_, at)| *at).min()
    }

    /// Moves on what was dropped at or below `up_to`.
    pub(crate) fn advance(&self, up_to: u64) {
        let mut state = self.state.lock();
        let now: Vec<u32> =
            state.pending.extract_if(.., |(_, at)| *at <= up_to).map(|(space, _)| space).collect();
        if !now.is_empty() {
            Arc::make_mut(&mut state.gone).extend(&now);
            state.fresh.extend(now);
        }
    }

    pub(crate) fn gone(&self) -> Arc<HashSet<u32>> {
        Arc::clone(&self.state.lock().gone)
    }

    /// Returns a space whose keys have to be removed.
    pub(crate) fn fresh(&self) -> Option<u32> {
        self.state.lock().fresh.last().copied()
    }

    pub(crate) fn removed(&self, space: u32) {
        self.state.lock().fresh.retain(|other| *other != space);
    }
}

/// Returns whether a key belongs to one of the spaces.
pub(crate) fn within(spaces: &HashSet<u32>, key: &[u8]) -> bool {
    !spaces.is_empty()
        && key.first_chunk().is_some_and(|prefix| spaces.contains(&u32::from_be_bytes(*prefix)))
}
