//! Waits for space: a flush or compaction that finds the disk full is retried until there is room, or until waiting is
//! switched off (`LsmConfig::wait_for_space`). Meanwhile rows stay in memory, reads continue, and writers are slowed
//! more and more. A load does not wait: its statement fails.
//!
//! A failed attempt leaves files that no version of the tree names. They are collected here, and removed by the
//! compaction thread while nothing else is written.

use crate::format::TREE_DIRECTORY;
use crate::shared::Shared;
use lsm_tree::AbstractTree;
use omnibus_engine::EngineError;
use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const AGAIN: Duration = Duration::from_millis(500);
/// The interval at which a wait checks whether it has to end.
const LOOK: Duration = Duration::from_millis(20);
/// Runs a step of a flush until the disk has room for it.
pub(crate) fn patiently<T>(
    shared: &Shared,
    mut step: impl FnMut() -> Result<T, EngineError>,
) -> Result<T, EngineError> {
    loop {
        let done = attempt(shared, &mut step);
        match done {
            Err(error) if error.is_full() && pause(shared, &error) => {}
            done => {
                if shared.space.waiting.swap(false, Ordering::AcqRel) && done.is_ok() {
                    tracing::info!("there is space again: engine-lsm goes on");
                    *shared.space.said.lock() = None;
                }
                return done;
            }
        }
    }
}

/// Runs a step, and remembers which files are new if it fails.
pub(crate) fn attempt<T>(
    shared: &Shared,
    step: impl FnOnce() -> Result<T, EngineError>,
) -> Result<T, EngineError> {
    let before = tables(shared);
    step().inspect_err(|_| {
        let new = tables(shared).into_iter().filter(|path| !before.contains(path));
        shared.space.left.lock().extend(new);
        shared.signals.ask_compaction();
    })
}

/// Waits a little; returns false if waiting was switched off.
fn pause(shared: &Shared, error: &EngineError) -> bool {
    shared.space.tell("flushing", error);
    shared.space.waiting.store(true, Ordering::Release);
    // Loads give up.
    shared.signals.flushed();
    let patient = || shared.config.wait_for_space.load(Ordering::Acquire) && !shared.signals.stopping();
    let since = Instant::now();
    while patient() && since.elapsed() < AGAIN {
        std::thread::sleep(LOOK);
    }
    patient()
}

fn tables(shared: &Shared) -> HashSet<PathBuf> {
    let folder = shared.config.directory.join(TREE_DIRECTORY).join("tables");
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Removes what failed attempts left. The compaction thread, between compactions.
pub(crate) fn clean(shared: &Shared) {
    let left = std::mem::take(&mut *shared.space.left.lock());
    if left.is_empty() {
        return;
    }
    let _compaction = shared.files.compaction.lock();
    let _flush = shared.files.flush.lock();
    let version = shared.tree.current_version();
    let named: HashSet<String> = version.iter_tables().map(|table| table.id().to_string()).collect();
    let nameless = left
        .iter()
        .filter(|path| path.file_name().is_some_and(|name| !named.contains(name.to_string_lossy().as_ref())));
    for path in nameless {
        if let Err(error) = std::fs::remove_file(path)
            && error.kind() != ErrorKind::NotFound
        {
            tracing::warn!(%error, path = %path.display(), "engine-lsm: what a failed write left can not be removed");
        }
    }
}
