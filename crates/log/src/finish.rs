//! Ends a log file: cuts off its spare tail and clears its in-use flag.
//!
//! Cutting costs the file system time in proportion to what is cut: 180 ms for a gigabyte of zero-filled blocks here.
//! A file that was rotated early (FLUSH LOGS) therefore gets its flag cleared and synced by the rotation, and its tail
//! is cut in steps by a background thread. A crash before that is done leaves a file that is not the last one and ends
//! with a ROTATE event and zeros; opening the directory finishes the cut. Readers go by the recorded end, not by the
//! length.

use crate::config::LogConfig;
use crate::error::{IoFailure, failed};
use crate::fault::{Faults, Point};
use crate::io::{rename, sync_all, sync_dir, write_all_at};
use crate::mutant::{self, Mutant};
use omnibus_disk::{Disk, File, Open};
use omnibus_format::header::{FLAG_IN_USE, FLAGS_OFFSET, MAGIC};
use std::path::Path;
use std::time::{Duration, Instant};

/// File offset of the flags of the first event, the format description.
const FLAGS_AT: u64 = (MAGIC.len() + FLAGS_OFFSET) as u64;
/// The suffix of a log file's name while its copy is being made.
pub(crate) const TEMPORARY: &str = "tmp";

/// Ends `file` at `end` and makes that durable. No write may be under way, and only zeros may follow `end`, because a
/// power cut may leave them in a file that is marked as closed.
pub(crate) fn finish(faults: &Faults, file: &File, path: &Path, end: u64) -> Result<(), IoFailure> {
    cut(faults, file, path, end)?;
    mark_closed(faults, file, path, end)
}

/// As [`finish`], for a file in which anything may follow `end`. The tail is durably gone before the file is marked as
/// closed; otherwise a second power cut would make it look like damage.
pub(crate) fn finish_torn(faults: &Faults, file: &File, path: &Path, end: u64) -> Result<(), IoFailure> {
    cut(faults, file, path, end)?;
    if !mutant::is(Mutant::CutWithFlag) {
        sync_all(faults, Point::FinishSync, file).map_err(failed("sync", path))?;
    }
    mark_closed(faults, file, path, end)
}

/// Clears the in-use flag and syncs the file; its length stays.
pub(crate) fn mark_closed(faults: &Faults, file: &File, path: &Path, end: u64) -> Result<(), IoFailure> {
    if end > FLAGS_AT {
        let mut flags = [0];
        file.read_exact_at(&mut flags, FLAGS_AT).map_err(failed("read", path))?;
        let cleared = [flags[0] & !(FLAG_IN_USE as u8)];
        if cleared != flags {
            write_all_at(faults, Point::FinishClearFlag, file, &cleared, FLAGS_AT)
                .map_err(failed("write", path))?;
        }
    }
    sync_all(faults, Point::FinishSync, file).map_err(failed("sync", path))
}

fn cut(faults: &Faults, file: &File, path: &Path, end: u64) -> Result<(), IoFailure> {
    faults.around_step(Point::FinishTruncate, || file.set_len(end)).map_err(failed("truncate", path))
}

/// Cuts a finished file down to `end` in steps.
pub(crate) fn cut_tail(config: &LogConfig, path: &Path, end: u64) -> Result<(), IoFailure> {
    let file = match config.disk.open(path, Open::Write) {
        // Purged in the meantime.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(failed("open", path))?,
    };
    cut_slowly(config, &file, path, end, 1)?;
    sync_all(&config.faults, Point::FinishSync, &file).map_err(failed("sync", path))
}

/// Frees the space of a deleted file in steps, because the file system holds its journal for as long as it frees a
/// gigabyte at once. A file that has another name, in a backup, is left unchanged.
pub(crate) fn shrink_deleted(config: &LogConfig, file: &File, path: &Path) {
    let names =
        if mutant::is(Mutant::ShrinkLinked) { file.metadata().map_or(0, |about| about.links) } else { 0 };
    if let Err(error) = cut_slowly(config, file, path, config.cut_step, names) {
        tracing::warn!(%error, "could not cut a deleted log file");
    }
}

/// Cuts in steps for as long as the file has exactly `names` names: a file that a backup shares is not changed.
fn cut_slowly(config: &LogConfig, file: &File, path: &Path, end: u64, names: u64) -> Result<(), IoFailure> {
    let about = || file.metadata().map_err(failed("look at", path));
    let mut len = about()?.len;
    while len > end && about()?.links == names {
        let started = Instant::now();
        len = end.max(len.saturating_sub(config.cut_step));
        cut(&config.faults, file, path, len)?;
        // A quarter of the time at most: the journal is shared with the files that commits wait for.
        config.disk.pause((started.elapsed() * 3).min(Duration::from_millis(50)));
    }
    Ok(())
}

/// Opens a finished log file to cut its tail. A file that has another name, in a backup or in the directory that this
/// one is a backup of, is never written: a copy of its first `keep` bytes takes its place.
pub(crate) fn open_to_cut(disk: &Disk, faults: &Faults, path: &Path, keep: u64) -> Result<File, IoFailure> {
    let open = || disk.open(path, Open::Write).map_err(failed("open", path));
    let file = open()?;
    if file.metadata().map_err(failed("look at", path))?.links <= 1 {
        return Ok(file);
    }
    let temporary = path.with_added_extension(TEMPORARY);
    disk.copy_start(path, &temporary, keep).map_err(failed("copy", path))?;
    let copy = disk.open(&temporary, Open::Write).map_err(failed("open", &temporary))?;
    sync_all(faults, Point::FinishSync, &copy).map_err(failed("sync", &temporary))?;
    // Not every system replaces a file that is open.
    drop(file);
    rename(disk, faults, Point::FinishCopyRename, &temporary, path).map_err(failed("rename", &temporary))?;
    let dir = path.parent().unwrap_or(Path::new("."));
    sync_dir(disk, faults, Point::FileNameSync, dir).map_err(failed("sync", dir))?;
    open()
}
