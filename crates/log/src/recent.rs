//! The newest bytes of the log in memory, for a reader that follows its end: with direct writes the page cache does not
//! have them, and reading them back would cost the device as much as writing them did.
//!
//! Kept only while somebody wants them ([`Follower`]); without, a group pays one relaxed load. Bytes come in when they are
//! sealed, in order, and thus before they are durable: COMMIT-2 is the reader's, who asks for nothing beyond the durable
//! end. What is not here any more, or never was, is in the file: the file is always right, and this is never needed.
//!
//! Called by the flush stage ([`Recent::add`]) and by one reader's thread.

use crate::position::{FileSeq, LogOffset, LogPosition};
use omnibus_sync::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// More than a reader leaves lying in many milliseconds; one that is further behind reads the file.
const KEEP: usize = 4 << 20;
/// A larger piece is not kept: copying it would hold up its group, and so large writes go through the page cache.
const PIECE_MAX: usize = 512 << 10;
/// No file has this number.
const NOWHERE: LogPosition = LogPosition { file: FileSeq(0), offset: LogOffset(0) };

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    wanted: AtomicUsize,
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    /// How often the log began anew: positions are used again then.
    epoch: u64,
    file: FileSeq,
    /// File offset of `bytes[read]`.
    at: u64,
    bytes: Vec<u8>,
    /// Bytes in front that nobody wants any more.
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
    /// Whether anybody wants what is sealed.
    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) > 0
    }

    /// Bytes that go to the file at `start`.
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

    /// The log is about to begin anew.
    pub(crate) fn begin_anew(&self) {
        let mut kept = self.kept.lock();
        kept.epoch += 1;
        kept.restart(NOWHERE);
    }
}

/// A wish for the newest bytes, until it is dropped.
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

    /// Fills `out` with the bytes from `from` on, if all of them are here; forgets what is before. The caller knows that
    /// they are durable.
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
