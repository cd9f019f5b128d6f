//! Waiting for space: a flush or compaction that finds the disk full is tried again until there is room, or until nobody wants
//! to wait (`LsmConfig::full_disk`, SPACE-1). Meanwhile rows stay in memory, reads go on, and writers are slowed more and more. A
//! load does not wait: its statement fails.
//!
//! A failed attempt leaves files that no version of the tree names. They are collected here, and removed
//! before the next attempt, and by the compaction thread while nothing else is written. No compaction begins while somebody makes
//! room (SPACE-2): the flushes that a checkpoint waits for have it.

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
/// The names under which they wait (SPACE-1).
const FLUSH: &str = "flushes of the LSM tree";
const COMPACTION: &str = "compactions of the LSM tree";

/// Runs a step of a flush until the disk has room for it.
pub(crate) fn patiently<T>(
    shared: &Shared,
    mut step: impl FnMut() -> Result<T, EngineError>,
) -> Result<T, EngineError> {
    loop {
        let made = shared.config.full_disk.made();
        let done = attempt(shared, &mut step);
        match done {
            Err(error) if error.is_full() && pause(shared, &error, made) => clean(shared),
            done => {
                if shared.space.waiting.swap(false, Ordering::AcqRel) {
                    shared.config.full_disk.goes_on(FLUSH, done.is_ok());
                }
                return done;
            }
        }
    }
}

/// All compactions that were due have found room.
pub(crate) fn compacted(shared: &Shared) {
    shared.config.full_disk.goes_on(COMPACTION, true);
}

/// Returns whether work of the compaction thread failed for want of room, to be tried again.
pub(crate) fn waits_to_compact(shared: &Shared, done: &Result<(), EngineError>) -> bool {
    let full = &shared.config.full_disk;
    match done {
        Err(error) if error.is_full() && full.is_patient() => {
            tell(shared, COMPACTION, error);
            true
        }
        Err(_) => {
            full.goes_on(COMPACTION, false);
            false
        }
        // Nothing may have been written: a sweep without work, or a round that leaves the room to others.
        Ok(()) => false,
    }
}

fn tell(shared: &Shared, who: &'static str, error: &EngineError) {
    let folder = shared.config.directory.display();
    shared.config.full_disk.waits(who, &format_args!("can not write {folder}: {error}"));
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

/// Waits a little, at most until room is made after `made`; false if nobody wants to wait.
fn pause(shared: &Shared, error: &EngineError, made: u64) -> bool {
    let full = &shared.config.full_disk;
    let patient = || full.is_patient() && !shared.signals.stopping();
    if patient() {
        tell(shared, FLUSH, error);
    }
    shared.space.waiting.store(true, Ordering::Release);
    shared.space.failures.fetch_add(1, Ordering::AcqRel);
    // Loads give up, and who asked for a checkpoint if there is room.
    shared.signals.flushed();
    let since = Instant::now();
    while patient() && since.elapsed() < AGAIN && full.made() == made {
        std::thread::sleep(LOOK);
    }
    patient()
}

fn tables(shared: &Shared) -> HashSet<PathBuf> {
    let folder = shared.config.directory.join(TREE_DIRECTORY).join("tables");
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Removes what failed attempts left.
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
