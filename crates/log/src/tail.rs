//! Reads the log while it is written: from a position, through file after file, and never past the durable end.
//!
//! Used by SHOW BINLOG EVENTS and dump threads, each on its own thread with its own reader. A reader pins its file
//! against purging (PURGE-1). A finished file is read to its length, the active one to the durable end; the prepared
//! zeros behind it are never read.

use crate::error::ReadError;
use crate::handle::LogHandle;
use crate::position::{FileSeq, LogOffset, LogPosition};
use crate::recent::Follower;
use crate::scan::{Next, RawEvent, ReadFile, ScanEnd, Torn};
use omnibus_format::Checksum;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// One step of a [`TailReader`].
#[derive(Debug)]
pub enum TailNext<'a> {
    /// An event of the file that [`TailReader::position`] names.
    Event(RawEvent<'a>),
    /// The file ended; the following events are in this one.
    NextFile(FileSeq),
    /// Everything durable has been read.
    CaughtUp,
}

/// The next thing to read.
pub(crate) enum Ahead {
    /// Events of this file, up to this offset.
    Until(u64),
    /// The file ended; the reader is in this one now.
    Switched(FileSeq),
    /// Nothing yet.
    Nothing,
}

/// The result of [`TailReader::read_run`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailRun {
    /// Events, at least one.
    Events,
    /// The file ended; the following events are in this one.
    NextFile(FileSeq),
    /// Everything durable has been read.
    CaughtUp,
}

/// Keeps one file from being purged for as long as it lives (PURGE-1).
#[derive(Debug)]
pub struct FilePin {
    log: LogHandle,
    seq: FileSeq,
    generation: u64,
}

impl FilePin {
    /// Pins a file.
    ///
    /// # Errors
    /// There is no such file.
    pub fn new(log: &LogHandle, seq: FileSeq) -> Result<FilePin, ReadError> {
        let mut list = log.catalog.files.lock();
        let generation = log.catalog.generation.load(Ordering::SeqCst);
        if !list.files.iter().any(|file| file.seq == seq) {
            return Err(ReadError::NoSuchFile(seq));
        }
        *list.pins.entry(seq).or_default() += 1;
        drop(list);
        Ok(FilePin { log: log.clone(), seq, generation })
    }

    /// The pinned file.
    #[must_use]
    pub fn file(&self) -> FileSeq {
        self.seq
    }

    /// Returns whether the log was reset since the file was pinned.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.log.catalog.generation.load(Ordering::SeqCst) != self.generation
    }
}

impl Drop for FilePin {
    fn drop(&mut self) {
        let mut list = self.log.catalog.files.lock();
        // A reset has dropped all pins of its time; this one is not ours any more.
        if self.is_stale() {
            return;
        }
        if let Some(count) = list.pins.get_mut(&self.seq) {
            *count -= 1;
            if *count == 0 {
                list.pins.remove(&self.seq);
            }
        }
    }
}

/// A reader that follows the log; see the module.
#[derive(Debug)]
pub struct TailReader {
    log: LogHandle,
    pub(crate) file: ReadFile,
    pin: FilePin,
    /// The subscription of a reader that takes the newest bytes from memory.
    pub(crate) follower: Option<Follower>,
    /// Bytes still to come of an event that is read in pieces.
    pub(crate) rest: u64,
}

impl TailReader {
    /// Starts at `position`, which is the start of an event or the end of the log; offset 4 is a file's first event.
    ///
    /// # Errors
    /// There is no such file, or the position is behind the durable end.
    pub fn open(log: &LogHandle, position: LogPosition) -> Result<TailReader, ReadError> {
        let end = log.durable_end().get();
        if position > end {
            return Err(ReadError::BehindEnd { position, end });
        }
        // Pinned first: a purge between the two would take the file away.
        let pin = FilePin::new(log, position.file)?;
        let mut reader =
            TailReader { log: log.clone(), file: log.read(position.file)?, pin, follower: None, rest: 0 };
        if position.offset > LogOffset::FIRST_EVENT {
            reader.file.seek(position.offset)?;
        }
        Ok(reader)
    }

    /// The position of the next event.
    #[must_use]
    pub fn position(&self) -> LogPosition {
        let position = self.file.position();
        LogPosition { offset: position.offset.max(LogOffset::FIRST_EVENT), ..position }
    }

    /// The checksum algorithm of the events that follow; known once the file's first event was read.
    #[must_use]
    pub fn checksum(&self) -> Checksum {
        self.file.checksum()
    }

    /// Skips checksums; see [`ReadFile::trust_checksums`].
    pub fn trust_checksums(&mut self) {
        self.file.trust_checksums();
    }

    /// Keeps bytes that are written from now on in memory until this reader has read them with
    /// [`TailReader::read_run`], as long as it does not fall far behind. For the one reader that follows the log's end
    /// on behalf of others.
    pub fn keep_recent(&mut self) {
        self.follower = Some(Follower::new(&self.log.catalog.shared.recent));
    }

    /// Reads the next event.
    ///
    /// # Errors
    /// The log can not be read, is damaged, or the position that the reader was opened at is not an event's start.
    // Not an iterator: the event borrows the buffer.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<TailNext<'_>, ReadError> {
        match self.ahead()? {
            Ahead::Until(_) => {}
            Ahead::Switched(file) => return Ok(TailNext::NextFile(file)),
            Ahead::Nothing => return Ok(TailNext::CaughtUp),
        }
        match self.file.next()? {
            Next::Event(event) => Ok(TailNext::Event(event)),
            Next::End(ScanEnd::Torn(Torn { position, reason })) => {
                Err(ReadError::Damaged { position, reason })
            }
            Next::End(ScanEnd::Clean(_)) => Ok(TailNext::CaughtUp),
        }
    }

    /// Waits until there is more to read, or until `timeout` has elapsed. Returns false after a timeout.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> bool {
        let position = self.position();
        self.log.durable_end().wait_past(position, timeout) > position
    }

    /// Determines what can be read at the log's end.
    pub(crate) fn ahead(&mut self) -> Result<Ahead, ReadError> {
        // The durable end is in a later file only after this one got its final size.
        let durable = self.log.durable_end().get();
        // After that load: a durable end in the new log is seen only with the new generation.
        let seq = self.pin.seq;
        if self.pin.is_stale() {
            return Err(ReadError::NoSuchFile(seq));
        }
        let finished = if durable.file == seq { None } else { self.log.catalog.finished_size(seq)? };
        // During a reset the durable end may still be in a file that is gone.
        let Some(limit) = finished.or((durable.file == seq).then_some(durable.offset.0)) else {
            return Ok(Ahead::Nothing);
        };
        self.file.set_limit(limit);
        if self.position().offset.0 < limit {
            return Ok(Ahead::Until(limit));
        }
        match (finished, seq.next()) {
            (Some(_), Some(next)) => self.switch(next).map(|()| Ahead::Switched(next)),
            _ => Ok(Ahead::Nothing),
        }
    }

    fn switch(&mut self, next: FileSeq) -> Result<(), ReadError> {
        // The new pin before the old one goes.
        self.pin = FilePin::new(&self.log, next)?;
        let trusted = !self.file.rules().verify_checksum;
        self.file = self.log.read(next)?;
        if trusted {
            self.file.trust_checksums();
        }
        Ok(())
    }
}
