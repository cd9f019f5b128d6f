//! The newest bytes of the log in memory, for a reader that follows its end: after direct writes the page cache does
//! not have them, and reading them back would cost the device as much as writing them did.
//!
//! Bytes are kept only while a [`Follower`] exists; without one, a group pays one relaxed load. Bytes are added when
//! they are sealed, in order, and thus before they are durable; the reader respects COMMIT-2 by asking for nothing
//! beyond the durable end. Bytes that are not here are read from the file, which always has them.
//!
//! Called by the flush stage ([`Recent::add`]) and by one reader's thread.

use crate::position::{FileSeq, LogOffset, LogPosition};
use omnibus_sync::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes kept: more than accumulate in many milliseconds. A reader that is further behind reads the file.
const KEEP: usize = 4 << 20;
/// The largest piece that is kept: copying a larger one would hold up its group, and such writes go through the page
/// cache anyway.
const PIECE_MAX: usize = 512 << 10;
/// A position that no byte has: no file has this number.
const NOWHERE: LogPosition = LogPosition { file: FileSeq(0), offset: LogOffset(0) };

/// The newest bytes of the log; see the module.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    wanted: AtomicUsize,
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    /// The number of resets so far: positions are reused after one.
    epoch: u64,
    file: FileSeq,
    /// File offset of `bytes[read]`.
    at: u64,
    bytes: Vec<u8>,
    /// The number of leading bytes that the reader does not need any more.
    read: usize,
}

impl Default for Kept {
    fn default() -> Kept {
        Kept { epoch: 0, file: NOWHERE.file, at: NOWHERE.offset.0, bytes: Vec::new(), read: 0 }
    }
}

impl Kept {
    fn end(&self) -> LogPosition {
        LogPosition::new(self.file, self.at + (self.bytes.len() - self.read) as u64)
    }

    fn restart(&mut self, at: LogPosition) {
        (self.file, self.at, self.read) = (at.file, at.offset.0, 0);
        if self.bytes.capacity() > KEEP / 4 {
            self.bytes = Vec::new();
        }
        self.bytes.clear();
    }

    fn forget(&mut self, count: usize) {
        self.read += count;
        self.at += count as u64;
        // Half at a time: a byte is moved once at most, on average.
        if self.read * 2 >= self.bytes.len() {
            self.bytes.drain(..self.read);
            self.read = 0;
        }
    }
}

impl Recent {
    /// Returns whether a follower exists.
    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) > 0
    }

    /// Adds sealed bytes that go to the file at `start`.
    pub(crate) fn add(&self, start: LogPosition, bytes: &[u8]) {
        if bytes.is_empty() || bytes.len() > PIECE_MAX {
            return;
        }
        let mut kept = self.kept.lock();
        if kept.end() != start || kept.bytes.len() - kept.read + bytes.len() > KEEP {
            kept.restart(start);
        }
        kept.bytes.extend_from_slice(bytes);
    }

    /// Drops all bytes before the log begins anew.
    pub(crate) fn begin_anew(&self) {
        let mut kept = self.kept.lock();
        kept.epoch += 1;
        kept.restart(NOWHERE);
    }
}

/// A subscription to the newest bytes, until it is dropped.
#[derive(Debug)]
pub(crate) struct Follower {
    recent: Arc<Recent>,
    epoch: u64,
}

impl Follower {
    pub(crate) fn new(recent: &Arc<Recent>) -> Follower {
        recent.wanted.fetch_add(1, Ordering::Relaxed);
        let epoch = recent.kept.lock().epoch;
        Follower { recent: recent.clone(), epoch }
    }

    /// Fills `out` with the bytes from `from` on if all of them are here, and drops the bytes before. The caller
    /// guarantees that they are durable.
    pub(crate) fn read(&self, from: LogPosition, out: &mut [u8]) -> bool {
        let mut kept = self.recent.kept.lock();
        if kept.epoch != self.epoch || from.file != kept.file || from.offset.0 < kept.at {
            return false;
        }
        let skipped = from.offset.0 - kept.at;
        let there = (kept.bytes.len() - kept.read) as u64;
        if skipped + out.len() as u64 > there {
            return false;
        }
        kept.forget(skipped as usize);
        let first = kept.read;
        out.copy_from_slice(&kept.bytes[first..first + out.len()]);
        true
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if self.recent.wanted.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.recent.kept.lock().restart(NOWHERE);
        }
    }
}
