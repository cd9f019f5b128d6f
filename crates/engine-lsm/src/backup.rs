//! A backup: hard links to the files of one moment, then a copy of those if they must go to another disk.
//!
//! Every file of the tables is written once and then only renamed or removed, so a link is as good as a copy. The redo
//! log is not, and stays behind: what a backup must have of it is in the binary log. Flushes
//! and compactions wait for as long as making the links takes; a long copy is made from the links. The links are
//! first put into a folder inside of the engine's own, which a start removes if a crash has left it.

use crate::io_error;
use crate::shared::Shared;
use omnibus_engine::interruptible::{self, GoOn};
use omnibus_engine::{CommitNo, EngineError};
use std::fs::{self, File};
use std::io::{Error, ErrorKind, Result};
use std::path::Path;
use std::sync::atomic::Ordering;

const STAGE: &str = "backup-in-progress";
/// The redo log's folder.
const REDO: &str = "redo";

/// Removes what a crash in the middle of a backup left.
pub(crate) fn clean(directory: &Path) -> Result<()> {
    match fs::remove_dir_all(directory.join(STAGE)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// See `Engine::backup_to`.
pub(crate) fn backup(
    shared: &Shared,
    root: &Path,
    go_on: GoOn<'_>,
) -> std::result::Result<CommitNo, EngineError> {
    let directory = &shared.config.directory;
    let name = directory.file_name().ok_or_else(|| io_error(ErrorKind::InvalidInput.into()))?;
    let (stage, target) = (directory.join(STAGE), root.join(name));
    if target.exists() {
        return Err(io_error(Error::new(ErrorKind::AlreadyExists, target.display().to_string())));
    }
    clean(directory).map_err(io_error)?;
    let at = {
        let _compaction = shared.files.compaction.lock();
        let _flush = shared.files.flush.lock();
        if shared.space.waiting() {
            // In the middle of a flush.
            return Err(io_error(ErrorKind::StorageFull.into()));
        }
        each_file(directory, &stage, &mut |from, to| fs::hard_link(from, to)).map_err(io_error)?;
        CommitNo(shared.persisted.load(Ordering::Acquire))
    };
    let moved = match fs::rename(&stage, &target) {
        Err(error) if error.kind() == ErrorKind::CrossesDevices => copy(&stage, &target, go_on),
        done => done,
    };
    // The links hold space that nobody would look for.
    let cleaned = clean(directory);
    moved.and_then(|()| sync_folders(&target)).and(cleaned).map_err(io_error)?;
    Ok(at)
}

fn copy(from: &Path, to: &Path, go_on: GoOn<'_>) -> Result<()> {
    each_file(from, to, &mut |from, to| {
        let (from, to) = (File::open(from)?, File::create_new(to)?);
        to.set_permissions(from.metadata()?.permissions())?;
        interruptible::copy(&from, &to, u64::MAX, go_on).map(drop)
    })
}

/// Makes `to` and the folders in it like `from`, and has `place` put each file there.
fn each_file(from: &Path, to: &Path, place: &mut dyn FnMut(&Path, &Path) -> Result<()>) -> Result<()> {
    // Not `to`, which may be inside of `from`.
    let entries = fs::read_dir(from)?.collect::<Result<Vec<_>>>()?;
    fs::create_dir(to)?;
    for entry in entries {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            if entry.file_name() != REDO {
                each_file(&from, &to, place)?;
            }
            continue;
        }
        match place(&from, &to) {
            // A table that nobody reads any more goes at any time; it belongs to no state that is wanted.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            done => done?,
        }
    }
    Ok(())
}

#[cfg(unix)]
fn sync_folders(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_folders(&entry.path())?;
        }
    }
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folders(_: &Path) -> Result<()> {
    Ok(())
}
