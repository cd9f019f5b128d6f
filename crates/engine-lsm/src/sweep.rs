//! Sweeping: what deletions leave. A deletion hides its row until a compaction carries it down to the row's own level, which in a tree that is
//! not written to is never. So a tree that has been left alone for some seconds, and of whose versions a tenth or more are
//! deletions, is written anew as a whole: rows that are deleted, versions that are hidden and the deletions themselves go.
//!
//! It takes as much space again while it lasts, so larger trees are left to ordinary compactions. It gives way to writers: once they have
//! filled level 0 half way, what it has written is thrown away. Nothing is swept while a snapshot may need what is hidden.
//! On the compaction thread.
//!
//! A tree with tables in a form that new ones do not have (in clear text while tables are encrypted, or the other way round) is
//! written anew in the same way, when it is not too large.

use crate::io_error;
use crate::shared::Shared;
use crate::space;
use crate::threshold::with_threshold;
use lsm_tree::AbstractTree;
use omnibus_engine::EngineError;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// The number of versions per deletion from which the tree is swept.
const PART: u64 = 10;
/// Bytes of a tree that is not too large.
const MOST: u64 = 16 << 30;
/// Versions between two looks at the writers.
const LOOK: u32 = 4096;

/// The time for which the tree has been left alone.
pub(crate) struct Quiet {
    version: u64,
    since: Instant,
    /// Until it has turned out that there are no such tables: none is made later.
    may_have_other_form: bool,
}

impl Quiet {
    pub(crate) fn new(shared: &Shared) -> Quiet {
        Quiet { version: shared.versions.get(), since: Instant::now(), may_have_other_form: true }
    }

    /// Returns whether the tree has been left alone for long enough.
    pub(crate) fn lasts(&mut self, shared: &Shared) -> bool {
        let version = shared.versions.get();
        if version != self.version || !shared.views.current().sealed.is_empty() {
            (self.version, self.since) = (version, Instant::now());
        }
        self.since.elapsed() >= shared.config.sweep_after
    }
}

/// Returns whether tables have another form than new ones get.
fn has_other_form(shared: &Shared) -> Result<bool, EngineError> {
    for table in shared.tree.current_version().iter_tables() {
        match shared.config.rows.has_other_form(&table.path) {
            // A range of tables was dropped meanwhile.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            found if found.as_ref().is_ok_and(|other| !other) => {}
            found => return found.map_err(io_error),
        }
    }
    Ok(false)
}

/// Writes the tree anew if that is worth it.
pub(crate) fn sweep(shared: &Shared, quiet: &mut Quiet) -> Result<(), EngineError> {
    let tables = Arc::clone(&shared.views.current().tables);
    let many_deletions = tables.deletions > 0 && tables.deletions * PART >= tables.versions;
    quiet.may_have_other_form = quiet.may_have_other_form && has_other_form(shared)?;
    if tables.disk_bytes > MOST || !many_deletions && !quiet.may_have_other_form {
        return Ok(());
    }
    let _files = shared.files.compaction.lock();
    let (before, mut swept) = (tables.disk_bytes, false);
    shared.sweeping.store(true, Ordering::Release);
    let done = space::attempt(shared, || {
        with_threshold(shared, |threshold| match threshold {
            Some(threshold) => {
                swept = true;
                shared.tree.major_compact(shared.config.table_target_size, threshold)
            }
            None => Ok(()),
        })
    });
    shared.sweeping.store(false, Ordering::Release);
    if done.is_err() && (shared.signals.stopping() || is_pressed(shared)) {
        return Ok(());
    }
    done?;
    if swept {
        shared.counters.compactions.fetch_add(1, Ordering::Relaxed);
        shared.show(None);
        shared.signals.flushed();
        tracing::debug!(before, after = shared.views.current().tables.disk_bytes, "engine-lsm: swept");
    }
    Ok(())
}

/// Returns whether level 0 has to be compacted.
fn is_pressed(shared: &Shared) -> bool {
    shared.views.current().tables.l0_runs * 2 >= shared.config.l0_soft_limit
}

/// Ends a sweep that is in the way.
pub(crate) struct GiveWay {
    shared: Arc<Shared>,
    left: u32,
}

impl GiveWay {
    /// Returns the check of a compaction that is a sweep; `None` for another one.
    pub(crate) fn of(shared: &Arc<Shared>) -> Option<GiveWay> {
        shared.sweeping.load(Ordering::Acquire).then(|| GiveWay { shared: Arc::clone(shared), left: LOOK })
    }

    /// Asked for each version.
    pub(crate) fn is_due(&mut self) -> bool {
        self.left -= 1;
        if self.left > 0 {
            return false;
        }
        self.left = LOOK;
        is_pressed(&self.shared)
    }
}
