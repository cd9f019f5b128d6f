//! Ending a log file: its spare tail is cut off and its in-use flag cleared.
//!
//! Cutting costs the file system time in proportion to what is cut: 180 ms for a gigabyte of zero-filled blocks here.
//! A file that was rotated early (FLUSH LOGS) therefore gets its flag cleared and synced by the rotation, and its tail
//! is cut in steps by a background thread. A crash before that is done leaves a file that is not the last one and ends
//! with a ROTATE event and zeros; opening the directory finishes the cut. Readers go by the recorded end, not by the
//! length.

use crate::dir::LogDir;
use crate::error::{IoFailure, OpenError, failed};
use crate::fault::{Faults, Point};
use crate::handle::Catalog;
use crate::io::{sync_all, write_all_at};
use crate::position::FileSeq;
use crate::scan::{Next, ScanEnd, Torn, TornReason};
use omnibus_disk::{Disk, File, Open};
use omnibus_format::EventType;
use omnibus_format::header::{FLAG_IN_USE, FLAGS_OFFSET, HEADER_LEN, MAGIC};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Where the flags of the first event, the format description, are.
const FLAGS_AT: u64 = (MAGIC.len() + FLAGS_OFFSET) as u64;
/// How much is cut at once in the background. Writes of groups wait for a step that is under way: 16 MiB made the slowest
/// of them take 5 ms, 64 MiB 18 ms, all at once 90 ms.
const STEP: u64 = 4 << 20;

/// Ends `file` at `end` and makes that durable. No write may be under way.
pub(crate) fn finish(faults: &Faults, file: &File, path: &Path, end: u64) -> Result<(), IoFailure> {
    cut(faults, file, path, end)?;
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
    faults.around(Point::FinishTruncate, || file.set_len(end)).map_err(failed("truncate", path))
}

impl Catalog {
    /// Cuts a finished file's tail down to `end` without anyone waiting.
    pub(crate) fn cut_in_background(self: &Arc<Self>, seq: FileSeq, end: u64) {
        let (path, disk, faults) = (self.path_of(seq), self.config.disk.clone(), self.config.faults.clone());
        self.in_background("log-cut", move || {
            if let Err(error) = cut_slowly(&disk, &faults, &path, end) {
                tracing::warn!(%error, "could not cut the spare tail of a log file; the next start will");
            }
        });
    }
}

/// Frees most of a purged file's space a little at a time: deleting a gigabyte at once holds the file system's journal
/// as long as cutting one does. What can not be cut is left to the deletion.
pub(crate) fn shrink_before_removal(disk: &Disk, faults: &Faults, path: &Path) {
    if disk.metadata(path).is_ok_and(|about| about.len > STEP)
        && let Err(error) = cut_slowly(disk, faults, path, STEP)
    {
        tracing::warn!(%error, "could not cut a purged log file before its deletion");
    }
}

fn cut_slowly(disk: &Disk, faults: &Faults, path: &Path, end: u64) -> Result<(), IoFailure> {
    let file = match disk.open(path, Open::Write) {
        // Purged in the meantime.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(failed("open", path))?,
    };
    let mut len = file.len().map_err(failed("read the size of", path))?;
    // A purged file frees its space by itself, and a reset waits for this thread.
    while len > end && disk.exists(path).unwrap_or(false) {
        let started = Instant::now();
        len = end.max(len.saturating_sub(STEP));
        cut(faults, &file, path, len)?;
        // A quarter of the time at most: the journal is shared with the files that commits wait for.
        std::thread::sleep((started.elapsed() * 3).min(Duration::from_millis(50)));
    }
    sync_all(faults, Point::FinishSync, &file).map_err(failed("sync", path))
}

impl LogDir {
    /// Finishes the cuts that a crash has interrupted: of files before the last one that end in zeros. Looks at a few
    /// bytes of each, and reads only a file whose end is in doubt.
    pub(crate) fn resume_cuts(&self) -> Result<(), OpenError> {
        let Some((_, earlier)) = self.files.split_last() else { return Ok(()) };
        for &seq in earlier {
            let path = self.path_of(seq);
            let file = self.config.disk.open(&path, Open::Write).map_err(failed("open", &path))?;
            let len = file.len().map_err(failed("read the size of", &path))?;
            let mut last = [0; HEADER_LEN];
            let at = len.saturating_sub(last.len() as u64);
            let read = file.read_at(&mut last, at).map_err(failed("read", &path))?;
            if last[..read].iter().any(|&byte| byte != 0) {
                continue;
            }
            if let Some(end) = self.end_of_rotated(seq)? {
                finish(&self.config.faults, &file, &path, end)?;
                tracing::info!(file = %path.display(), end, dropped = len - end, "cut the spare tail of a log file");
            }
        }
        Ok(())
    }

    /// Where a file ends whose last event is a ROTATE with zeros behind it; `None` for any other.
    fn end_of_rotated(&self, seq: FileSeq) -> Result<Option<u64>, OpenError> {
        let mut file = self.read(seq)?;
        let mut rotated = false;
        loop {
            match file.next()? {
                Next::Event(event) => rotated = event.header.event_type == EventType::ROTATE,
                Next::End(ScanEnd::Torn(Torn { position, reason: TornReason::Preallocated })) if rotated => {
                    return Ok(Some(position.offset.0));
                }
                Next::End(_) => return Ok(None),
            }
        }
    }
}
