//! RESET BINARY LOGS: every file goes, and the numbers in names start again.
//!
//! The caller has rotated first, so that the active file's head already tells the new story (an empty GTID set) and no
//! older file is needed. Then, in [`LogWriter::restart_at`]:
//!
//! 1. all older files leave the index, as in a purge, and are deleted while the caller waits — a crash up to here: the
//!    active file alone is the log, or the purge did not happen;
//! 2. the file with the new first number gets its name and its header, synced — a crash up to here: a file that the
//!    index does not name and that holds no transaction;
//! 3. the active file is noted in the purge list, the index is replaced by one that names the new file only — from here
//!    on the new file is the log, and the next start deletes the other.
//!
//! INDEX-1 and INDEX-2 hold at every instant. Readers lose their file: it is deleted under them, and a reader that was
//! in a file whose number is used again must not read the new one as if it were the old, hence the generation.

use crate::dir::holds_more_than_head;
use crate::error::{PurgeError, ResetError, failed};
use crate::fault::Point;
use crate::handle::{Catalog, FileState};
use crate::io;
use crate::position::{FileSeq, LogPosition};
use crate::scan::ReadFile;
use crate::writer::LogWriter;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl LogWriter {
    /// Whether [`LogWriter::restart_at`] could give a file this number; asked before anything is changed. Removes a
    /// header that an interrupted reset left under that name.
    ///
    /// # Errors
    /// The number is not one, or a file that the index does not name has it and holds transactions.
    pub fn can_restart_at(&self, first: FileSeq) -> Result<(), ResetError> {
        let catalog = self.catalog();
        if first < FileSeq::FIRST || first > FileSeq::MAX {
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

    /// Drops every file, the active one included, and goes on in file `first`, which begins with `head` as in
    /// [`crate::LogDir::start`]. The caller has rotated, and nothing was appended since. Gives the position in the new
    /// file; the durable end is there then.
    ///
    /// # Errors
    /// [`ResetError::Purge`] and [`ResetError::NotDeleted`] leave a log that works, with some or all of its files.
    /// After any other error the log is poisoned.
    pub fn restart_at(&mut self, first: FileSeq, head: &[u8]) -> Result<LogPosition, ResetError> {
        let old = self.position().file;
        self.catalog().drop_older_than(old)?;
        if old == first {
            return Ok(self.position());
        }
        self.begin_anew(first, head)?;
        Ok(self.position())
    }
}

impl Catalog {
    /// Takes every file but the active one out of the index and deletes it. Readers are not asked.
    fn drop_older_than(self: &Arc<Self>, active: FileSeq) -> Result<(), ResetError> {
        self.generation.fetch_add(1, Ordering::SeqCst);
        self.purge_regardless_of_readers(active).map_err(ResetError::Purge)?;
        let threads: Vec<_> = std::mem::take(&mut *self.background.lock());
        for thread in threads {
            let _ = thread.join();
        }
        match self.index.lock().1.first() {
            None => Ok(()),
            Some(&seq) => Err(ResetError::NotDeleted(self.path_of(seq))),
        }
    }

    /// Step 3: the log is this one file from now on. The others are deleted before this returns: their names
    /// may be wanted by the very next rotation.
    pub(crate) fn replace_all(self: &Arc<Self>, first: FileSeq) -> Result<(), PurgeError> {
        let leaving: Vec<FileSeq> = {
            let mut index = self.index.lock();
            let leaving: Vec<FileSeq> = self.files.lock().files.iter().map(|file| file.seq).collect();
            index.0.write_purge_list(&leaving)?;
            index.0.replace(&[first])?;
            index.1.clone_from(&leaving);
            let mut list = self.files.lock();
            list.files = vec![FileState { seq: first, finished: None }];
            list.pins.clear();
            leaving
        };
        self.remove_files(&leaving);
        Ok(())
    }
}
