//! Removes old files: PURGE BINARY LOGS, by name, time and size.
//!
//! First the files to remove are written to a list of their own, then the index is replaced without them, then a thread
//! deletes them, and finally the list is removed, once the deletions are durable. A crash in between leaves either
//! files that the index still names, or files that the list names; the next start deletes the latter. Freeing a large
//! file's space takes long in the file system and holds its journal, so nobody waits for it, and the file is shortened
//! in steps once its last name is gone: a backup may share it. PURGE-1: the caller says which files recovery needs, and
//! is asked while the list of files cannot change: after a RESET the numbers mean other files. Readers pin the file
//! that they are in.

use crate::error::{PurgeError, ReadError};
use crate::fault::Point;
use crate::finish::shrink_deleted;
use crate::handle::{Catalog, LogHandle};
use crate::io;
use crate::position::FileSeq;
use omnibus_disk::Open;
use std::sync::Arc;
use std::time::SystemTime;

/// The reason why a purge stopped early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeLimit {
    /// An engine would need this file for recovery.
    Recovery(FileSeq),
    /// A reader, such as a connected replica, is in this file.
    Reader(FileSeq),
    /// This file is being written.
    Active(FileSeq),
}

/// The result of a purge.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Purged {
    /// The files that are no longer part of the log.
    pub files: Vec<FileSeq>,
    /// The reason why it stopped early, if it did.
    pub limit: Option<PurgeLimit>,
}

impl LogHandle {
    /// Removes all files before `to`, except those from `keep_from` on, the first file that recovery needs. `keep_from`
    /// is called while the list of files cannot change, and must not change it.
    ///
    /// # Errors
    /// `to` is not in the index, the index cannot be replaced, or `keep_from` failed.
    pub fn purge_to(
        &self,
        to: FileSeq,
        keep_from: impl FnOnce() -> Result<FileSeq, ReadError>,
    ) -> Result<Purged, PurgeError> {
        self.catalog.purge(Some(to), keep_from, |_, seq, _| seq < to)
    }

    /// Removes the files that were finished before `time`, oldest first, up to the first that was not.
    ///
    /// # Errors
    /// As [`LogHandle::purge_to`].
    pub fn purge_before(
        &self,
        time: SystemTime,
        keep_from: impl FnOnce() -> Result<FileSeq, ReadError>,
    ) -> Result<Purged, PurgeError> {
        self.catalog.purge(None, keep_from, |_, _, (_, modified)| modified < time)
    }

    /// Removes files, oldest first, until the remaining ones have at most `total` bytes together.
    ///
    /// # Errors
    /// As [`LogHandle::purge_to`].
    pub fn purge_to_total(
        &self,
        total: u64,
        keep_from: impl FnOnce() -> Result<FileSeq, ReadError>,
    ) -> Result<Purged, PurgeError> {
        let mut sum: u64 = self.list().iter().map(|file| file.size).sum();
        self.catalog.purge(None, keep_from, |_, _, (size, _)| {
            let over = sum > total;
            sum = sum.saturating_sub(if over { size } else { 0 });
            over
        })
    }
}

impl Catalog {
    fn purge(
        self: &Arc<Self>,
        to: Option<FileSeq>,
        keep_from: impl FnOnce() -> Result<FileSeq, ReadError>,
        mut goes: impl FnMut(&Catalog, FileSeq, (u64, SystemTime)) -> bool,
    ) -> Result<Purged, PurgeError> {
        let mut index = self.index.lock();
        let keep_from = keep_from()?;
        let mut purged = Purged::default();
        let kept: Vec<FileSeq> = {
            let list = self.files.lock();
            if let Some(to) = to.filter(|to| !list.files.iter().any(|file| file.seq == *to)) {
                return Err(PurgeError::NoSuchFile(to));
            }
            let pinned = list.pins.keys().next().copied();
            for file in &list.files {
                let size = file.finished.unwrap_or((0, SystemTime::now()));
                if !goes(self, file.seq, size) {
                    break;
                }
                purged.limit = limit(file.seq, file.finished.is_none(), keep_from, pinned);
                if purged.limit.is_some() {
                    break;
                }
                purged.files.push(file.seq);
            }
            list.files.iter().map(|file| file.seq).skip(purged.files.len()).collect()
        };
        if purged.files.is_empty() {
            return Ok(purged);
        }
        let (file, leaving) = &mut *index;
        let mut all_leaving = leaving.clone();
        all_leaving.extend(&purged.files);
        // On a full disk it is what makes room, and needs a little for that.
        while let Err(failure) = file.write_purge_list(&all_leaving).and_then(|()| file.replace(&kept)) {
            if !failure.is_no_room() || !self.prepared.give_back()? {
                return Err(failure.into());
            }
        }
        *leaving = all_leaving;
        self.files.lock().files.drain(..purged.files.len());
        drop(index);
        self.remove_in_background(purged.files.clone());
        Ok(purged)
    }

    /// Completes an interrupted purge.
    pub(crate) fn resume_removals(self: &Arc<Self>) {
        let leftovers = self.index.lock().1.clone();
        if !leftovers.is_empty() {
            self.remove_in_background(leftovers);
        }
    }

    fn remove_in_background(self: &Arc<Self>, files: Vec<FileSeq>) {
        let catalog = Arc::clone(self);
        self.in_background("log-remove", move || {
            let config = &catalog.config;
            // Kept open, a file keeps its space when it is deleted.
            let paths = files.iter().map(|&seq| catalog.path_of(seq));
            let open: Vec<_> = paths
                .filter_map(|path| config.disk.open(&path, Open::Write).ok().map(|file| (file, path)))
                .collect();
            catalog.remove_files(&files);
            for (file, path) in &open {
                shrink_deleted(config, file, path);
            }
        });
    }

    pub(crate) fn remove_files(&self, files: &[FileSeq]) {
        for &seq in files {
            let path = self.path_of(seq);
            if let Err(error) = io::remove(&self.config.disk, &self.config.faults, Point::PurgeRemove, &path)
            {
                tracing::warn!(file = %path.display(), %error, "could not delete a purged log file; the next start will");
                return;
            }
        }
        let mut index = self.index.lock();
        let (file, leaving) = &mut *index;
        leaving.retain(|seq| !files.contains(seq));
        if leaving.is_empty()
            && let Err(error) = file.sync_names().and_then(|()| file.remove_purge_list())
        {
            tracing::warn!(%error, "could not remove the list of purged log files");
        }
    }
}

fn limit(seq: FileSeq, active: bool, keep_from: FileSeq, pinned: Option<FileSeq>) -> Option<PurgeLimit> {
    // Asserts PURGE-1: what recovery or a reader needs stays.
    if active {
        Some(PurgeLimit::Active(seq))
    } else if seq >= keep_from {
        Some(PurgeLimit::Recovery(seq))
    } else {
        pinned.filter(|&pinned| seq >= pinned).map(PurgeLimit::Reader)
    }
}
