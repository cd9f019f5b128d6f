//! RESET BINARY LOGS: every file is removed, and the file numbers start again.
//!
//! The caller rotates first ([`LogWriter::rotate_alone`]), into a file whose head has an empty GTID set. All files are
//! written to the purge list, and one replacement of the index puts that file in the place of all others: a crash
//! leaves the old log with its GTIDs or the new one without, never old files in front of a head without GTIDs. Then, in
//! [`LogWriter::restart_at`]:
//!
//! 1. the older files are deleted while the caller waits; a crash up to here leaves the active file as the whole log;
//! 2. the file with the new first number gets its name and its header, synced; a crash up to here leaves a file that
//!    the index does not name and that holds no transaction;
//! 3. the active file is written to the purge list, and the index is replaced by one that names the new file only; from
//!    here on the new file is the log, and the next start deletes the other.
//!
//! INDEX-1 and INDEX-2 hold at every instant. Readers lose their file: it is deleted under them. A reader in a file
//! whose number is used again must not read the new file as if it were the old one, so each reset begins a new
//! generation.

use crate::dir::holds_more_than_head;
use crate::error::{IoFailure, PurgeError, ResetError, failed};
use crate::fault::Point;
use crate::handle::{Catalog, FileState};
use crate::io;
use crate::position::{FileSeq, LogPosition};
use crate::scan::ReadFile;
use crate::writer::LogWriter;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl LogWriter {
    /// Checks that [`LogWriter::restart_at`] could give a file this number; called before anything is changed. Removes
    /// a header that an interrupted reset left under that name.
    ///
    /// # Errors
    /// The number is not valid, or a file that the index does not name has it and holds transactions.
    pub fn can_restart_at(&self, first: FileSeq) -> Result<(), ResetError> {
        let catalog = self.catalog();
        if first < FileSeq::FIRST || first >= FileSeq::LAST_IN_TURN {
            return Err(ResetError::BadNumber(first));
        }
        if catalog.files.lock().files.iter().any(|file| file.seq == first) {
            return Ok(());
        }
        // A purge may still be deleting a file of that name.
        self.handle().wait_for_background();
        let path = catalog.path_of(first);
        if !catalog.config.disk.exists(&path).map_err(failed("look at", &path))? {
            return Ok(());
        }
        if holds_more_than_head(&mut ReadFile::open(&catalog.config.disk, first, &path)?)? {
            return Err(ResetError::InTheWay(path));
        }
        io::remove(&catalog.config.disk, &catalog.config.faults, Point::OrphanRemove, &path)
            .map_err(failed("remove", &path))?;
        Ok(())
    }

    /// Drops every file, the active one included, and continues in file `first`, which begins with `head` as in
    /// [`LogWriter::start`]. The caller has rotated with [`LogWriter::rotate_alone`], and nothing was appended
    /// since. Returns the position in the new file, which is then the durable end.
    ///
    /// # Errors
    /// [`ResetError::Purge`] and [`ResetError::NotDeleted`] leave a log that works, with some or all of its files.
    /// After any other error the log is poisoned.
    pub fn restart_at(&mut self, first: FileSeq, head: &[u8]) -> Result<LogPosition, ResetError> {
        let old = self.position().file;
        self.catalog().delete_others()?;
        if old == first {
            return Ok(self.position());
        }
        self.begin_anew(first, head)?;
        Ok(self.position())
    }
}

impl Catalog {
    /// For [`LogWriter::rotate_alone`]: the new file replaces all others. Pins of readers are ignored.
    pub(crate) fn add_alone(&self, seq: FileSeq) -> Result<(), IoFailure> {
        let mut index = self.index.lock();
        let leaving: Vec<FileSeq> = self.files.lock().files.iter().map(|file| file.seq).collect();
        let (file, all_leaving) = &mut *index;
        // Asked again after a full disk, and each file leaves once.
        let wanted = [all_leaving.as_slice(), leaving.as_slice()].concat();
        file.write_purge_list(&wanted)?;
        file.replace(&[seq])?;
        *all_leaving = wanted;
        self.begin_list(seq);
        Ok(())
    }

    /// Reduces the list to this one file. Later pins belong to the new generation and to no older file.
    fn begin_list(&self, seq: FileSeq) {
        let mut list = self.files.lock();
        self.generation.fetch_add(1, Ordering::SeqCst);
        list.files = vec![FileState { seq, finished: None }];
        list.pins.clear();
    }

    fn delete_others(self: &Arc<Self>) -> Result<(), ResetError> {
        self.resume_removals();
        let threads: Vec<_> = std::mem::take(&mut *self.background.lock());
        for thread in threads {
            let _ = thread.join();
        }
        match self.index.lock().1.first() {
            None => Ok(()),
            Some(&seq) => Err(ResetError::NotDeleted(self.path_of(seq))),
        }
    }

    /// Step 3: makes this one file the log. The others are deleted before this returns, because the next rotation may
    /// need their names.
    pub(crate) fn replace_all(self: &Arc<Self>, first: FileSeq) -> Result<(), PurgeError> {
        let leaving: Vec<FileSeq> = {
            let mut index = self.index.lock();
            let leaving: Vec<FileSeq> = self.files.lock().files.iter().map(|file| file.seq).collect();
            index.0.write_purge_list(&leaving)?;
            index.0.replace(&[first])?;
            index.1.clone_from(&leaving);
            self.begin_list(first);
            leaving
        };
        self.remove_files(&leaving);
        Ok(())
    }
}
