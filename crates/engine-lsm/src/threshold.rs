//! Decides when a compaction may drop old versions.
//!
//! The tree's rule for dropping is "a newer version of the key exists and this one is older than the
//! threshold". It relies on snapshots reading the tree as it was when they began, which would keep every memtable and
//! table since the oldest snapshot. Snapshots here read the present tree, so the rule must be:
//! "the *newer* one is visible to every snapshot". The two are equivalent if nothing in the tables is newer than the
//! watermark, which is usual, because the watermark moves with every commit and tables are minutes old. Otherwise (a
//! snapshot is older than a flush) a compaction keeps everything, and a later one cleans up.
//!
//! `TableBarrier` closes the gap between looking at the newest number and the tree choosing its input.

use crate::barrier::TableBarrier;
use crate::shared::Shared;
use crate::tree_error;
use omnibus_engine::EngineError;
use std::sync::atomic::Ordering;

/// Runs a compaction with the number below which it may drop what is hidden; `None` if nothing.
pub(crate) fn with_threshold(
    shared: &Shared,
    compact: impl FnOnce(Option<u64>) -> lsm_tree::Result<()>,
) -> Result<(), EngineError> {
    shared.barrier.close();
    let _opener = Opener(&shared.barrier);
    let watermark = shared.watermark.load(Ordering::Acquire);
    let newest = shared.highest_in_tables.load(Ordering::SeqCst);
    compact((newest <= watermark).then(|| watermark.saturating_add(1))).map_err(tree_error)
}

/// Opens the barrier whatever happens: a flush that waited at a closed one could never be stopped.
struct Opener<'a>(&'a TableBarrier);

impl Drop for Opener<'_> {
    fn drop(&mut self) {
        self.0.open();
    }
}
