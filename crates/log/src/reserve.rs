//! The reserve: a file beside the prepared ones whose space nobody uses until the disk is full. A checkpoint then has it, so that
//! log files can go which recovery needed (SPACE-2), and a start has a little of it. It is made anew when there is room.
//!
//! Its bytes mean nothing, its length is what is left of it, and a crash at any time leaves some length.

use crate::error::{IoFailure, failed};
use omnibus_disk::{Disk, FullDisk, Open};
use omnibus_sync::Mutex;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const NAME: &str = "reserve";
/// The bytes that a purge leaves for starts, if there are more.
const FOR_STARTS: u64 = 4 << 20;
/// The bytes that a start writes, with some to spare.
pub(crate) const OF_A_START: u64 = 256 << 10;
/// How long after an attempt that found no room there is no other.
const AFTER_FAILURE: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Debug)]
pub(crate) struct Reserve {
    path: PathBuf,
    disk: Disk,
    full: Arc<FullDisk>,
    size: u64,
    failed: Mutex<Option<Instant>>,
}

impl Reserve {
    /// That of the directory of prepared files `dir`; `size` 0 is none.
    pub(crate) fn new(dir: &Path, disk: Disk, full: Arc<FullDisk>, size: u64) -> Reserve {
        Reserve { path: dir.join(NAME), disk, full, size, failed: Mutex::new(None) }
    }

    /// Returns the bytes that are left of it.
    pub(crate) fn bytes(&self) -> u64 {
        self.disk.metadata(&self.path).map_or(0, |about| about.len)
    }

    /// Makes it as large as it is to be, if there is room for twice that.
    pub(crate) fn keep(&self) {
        let there = self.bytes();
        if there == self.size || self.full.is_full() || self.full.is_making_room() {
            return;
        }
        let mut failed = self.failed.lock();
        if failed.is_some_and(|at| at.elapsed() < AFTER_FAILURE) {
            return;
        }
        match self.resize(there, self.size) {
            Ok(()) => *failed = None,
            Err(error) => {
                if failed.is_none() {
                    tracing::warn!(%error, file = %self.path.display(), bytes = self.size,
                        "there is no room for the reserve that a purge on a full disk is to have");
                }
                *failed = Some(Instant::now());
            }
        }
    }

    /// Makes it as large as it is to be, or as half of the room allows, for whoever has made that room and lets nobody else have it yet.
    /// A disk that is full again before the next housekeeping has something for the next purge then.
    pub(crate) fn restore(&self) {
        let mut size = self.size;
        while size > self.bytes().max(FOR_STARTS) {
            match self.resize(self.bytes(), size) {
                Ok(()) => return tracing::info!(bytes = size, "the reserve for a full disk is there again"),
                Err(_) => size /= 2,
            }
        }
    }

    fn resize(&self, there: u64, size: u64) -> io::Result<()> {
        self.path.parent().map_or(Ok(()), |dir| self.disk.create_dir_all(dir))?;
        let file = self.disk.open(&self.path, Open::Create)?;
        if there > size {
            return file.set_len(size);
        }
        // Twice as much and then half of it given back: what takes the last bytes of a disk fills it.
        match file.reserve(size.saturating_mul(2)) {
            Ok(true) => file.set_len(size),
            Ok(false) => file.set_len(there).and(Err(io::ErrorKind::Unsupported.into())),
            Err(error) => file.set_len(there).and(Err(error)),
        }
    }

    /// Gives its space back, but for what starts are to have, and that the next time. False if there was nothing left.
    pub(crate) fn give_back(&self) -> Result<bool, IoFailure> {
        let there = self.bytes();
        self.cut(if there > FOR_STARTS { there - FOR_STARTS } else { there })
    }

    /// Gives back what a start needs. False if there was nothing left.
    pub(crate) fn give_a_start(&self) -> Result<bool, IoFailure> {
        self.cut(OF_A_START)
    }

    fn cut(&self, bytes: u64) -> Result<bool, IoFailure> {
        let there = self.bytes();
        if there == 0 || bytes == 0 {
            return Ok(false);
        }
        let left = there.saturating_sub(bytes);
        let cut = match left {
            0 => self.disk.remove_if_there(&self.path),
            left => self.disk.open(&self.path, Open::Write).and_then(|file| file.set_len(left)),
        };
        cut.map_err(failed("cut", &self.path))?;
        tracing::info!(given = there - left, left, "the disk is full: gave back space of the reserve");
        Ok(true)
    }
}
