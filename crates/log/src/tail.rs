//! Reading the log while it is written: from a position, through file after file, and never past the durable end.
//!
//! For SHOW BINLOG EVENTS and dump threads, each on its own thread with its own reader. The file a reader is in is
//! pinned against purging (PURGE-1). A finished file is read to its length, the active one to the durable end; the
//! zeros prepared behind it are never looked at.

use crate::error::ReadError;
use crate::handle::LogHandle;
use crate::position::{FileSeq, LogOffset, LogPosition};
use crate::scan::{Next, RawEvent, ReadFile, ScanEnd, Torn};
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

/// See the module.
#[derive(Debug)]
pub struct TailReader {
    log: LogHandle,
    file: ReadFile,
    seq: FileSeq,
    generation: u64,
}

impl TailReader {
    /// Starts at `position`, which is the start of an event or the end of the log; offset 4 is a file's first event.
    ///
    /// # Errors
    /// There is no such file, or the position is behind the durable end.
    pub fn open(log: &LogHandle, position: LogPosition) -> Result<TailReader, ReadError> {
        let generation = log.catalog.generation.load(Ordering::SeqCst);
        let end = log.durable_end().get();
        if position > end {
            return Err(ReadError::BehindEnd { position, end });
        }
        // Pinned first: a purge between the two would take the file away.
        let mut reader = {
            pin(log, position.file)?;
            match log.read(position.file) {
                Ok(file) => TailReader { log: log.clone(), file, seq: position.file, generation },
                Err(error) => {
                    unpin(log, position.file);
                    return Err(error);
                }
            }
        };
        if position.offset > LogOffset::FIRST_EVENT {
            reader.file.seek(position.offset)?;
        }
        Ok(reader)
    }

    /// Where the next event starts.
    #[must_use]
    pub fn position(&self) -> LogPosition {
        let position = self.file.position();
        LogPosition { offset: position.offset.max(LogOffset::FIRST_EVENT), ..position }
    }

    /// See [`ReadFile::trust_checksums`].
    pub fn trust_checksums(&mut self) {
        self.file.trust_checksums();
    }

    /// The next event.
    ///
    /// # Errors
    /// The log can not be read, is damaged, or the position that the reader was opened at is not an event's start.
    // Not an iterator: the event borrows the buffer.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<TailNext<'_>, ReadError> {
        // The durable end is in a later file only after this one got its final size.
        let durable = self.log.durable_end().get();
        // After that load: a durable end in the new log is seen only with the new generation.
        if self.log.catalog.generation.load(Ordering::SeqCst) != self.generation {
            return Err(ReadError::NoSuchFile(self.seq));
        }
        let finished =
            if durable.file == self.seq { None } else { self.log.catalog.finished_size(self.seq)? };
        self.file.set_limit(finished.unwrap_or(durable.offset.0));
        if self.position().offset >= self.file.limit() {
            return match (finished, self.seq.next()) {
                (Some(_), Some(next)) => self.switch(next),
                _ => Ok(TailNext::CaughtUp),
            };
        }
        match self.file.next()? {
            Next::Event(event) => Ok(TailNext::Event(event)),
            Next::End(ScanEnd::Torn(Torn { position, reason })) => {
                Err(ReadError::Damaged { position, reason })
            }
            Next::End(ScanEnd::Clean(_)) => Ok(TailNext::CaughtUp),
        }
    }

    /// Waits until there is more to read, or until `timeout` has gone by. False after a timeout.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> bool {
        let position = self.position();
        self.log.durable_end().wait_past(position, timeout) > position
    }

    fn switch(&mut self, next: FileSeq) -> Result<TailNext<'_>, ReadError> {
        pin(&self.log, next)?;
        unpin(&self.log, std::mem::replace(&mut self.seq, next));
        self.file = self.log.read(next)?;
        Ok(TailNext::NextFile(next))
    }
}

impl Drop for TailReader {
    fn drop(&mut self) {
        // A reset has dropped all pins of its time; this one is not ours any more.
        if self.log.catalog.generation.load(Ordering::SeqCst) == self.generation {
            unpin(&self.log, self.seq);
        }
    }
}

fn pin(log: &LogHandle, seq: FileSeq) -> Result<(), ReadError> {
    let mut list = log.catalog.files.lock();
    if !list.files.iter().any(|file| file.seq == seq) {
        return Err(ReadError::NoSuchFile(seq));
    }
    *list.pins.entry(seq).or_default() += 1;
    Ok(())
}

fn unpin(log: &LogHandle, seq: FileSeq) {
    let mut list = log.catalog.files.lock();
    if let Some(count) = list.pins.get_mut(&seq) {
        *count -= 1;
        if *count == 0 {
            list.pins.remove(&seq);
        }
    }
}
