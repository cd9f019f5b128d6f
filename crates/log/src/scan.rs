//! Reading one file event by event, and saying exactly how it ended: clean, torn or damaged at a position, or with an
//! I/O error. The three are never mixed up, and an I/O error never looks like an end.
//!
//! What makes bytes an event is decided by `omnibus_format::parse_event` (length, end position, checksum); this module
//! brings the bytes. A zero-filled tail ends a file as [`TornReason::Preallocated`]: nothing needs to be lost, but the
//! file was not closed. Used by recovery, the tailing reader and tools, on any thread.

use crate::error::{ReadError, failed};
use crate::platform;
use crate::position::{FileSeq, LogOffset, LogPosition};
use omnibus_format::header::{HEADER_LEN, MAGIC};
use omnibus_format::scan::parse_event;
use omnibus_format::{Checksum, ScanRules};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

pub use omnibus_format::{RawEvent, ScanErrorKind as TornReason};

/// How much is read at once. Larger reads gain nothing from the page cache.
const READ_AHEAD: usize = 256 << 10;
/// Where an event's length is in its header.
const SIZE_AT: usize = 9;

/// The end of a file's valid part that is not the end of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torn {
    /// The first byte that is not part of a whole, valid event.
    pub position: LogPosition,
    /// What is there instead.
    pub reason: TornReason,
}

/// How a file ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanEnd {
    /// Right behind a whole event.
    Clean(LogPosition),
    /// Before bytes that are no event.
    Torn(Torn),
}

impl ScanEnd {
    /// The end of the valid part.
    #[must_use]
    pub fn position(&self) -> LogPosition {
        match self {
            ScanEnd::Clean(position) | ScanEnd::Torn(Torn { position, .. }) => *position,
        }
    }
}

/// One step through a file.
#[derive(Debug)]
pub enum Next<'a> {
    /// A whole, valid event.
    Event(RawEvent<'a>),
    /// There are no more; asking again gives the same.
    End(ScanEnd),
}

/// A file being read.
#[derive(Debug)]
pub struct ReadFile {
    seq: FileSeq,
    file: File,
    path: PathBuf,
    /// Bytes from here on are not looked at.
    limit: u64,
    rules: ScanRules,
    buffer: Vec<u8>,
    /// File offset of `buffer[0]`.
    buffer_at: u64,
    /// File offset of the next event.
    at: u64,
}

impl ReadFile {
    /// Opens a file for reading from its first event to its present end.
    ///
    /// # Errors
    /// The file can not be opened.
    pub fn open(seq: FileSeq, path: &Path) -> Result<ReadFile, ReadError> {
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(ReadError::NoSuchFile(seq)),
            other => other.map_err(failed("open", path))?,
        };
        let limit = file.metadata().map_err(failed("read the size of", path))?.len();
        Ok(ReadFile {
            seq,
            file,
            path: path.to_owned(),
            limit,
            rules: ScanRules::default(),
            buffer: Vec::new(),
            buffer_at: 0,
            at: 0,
        })
    }

    /// The position of the next event.
    #[must_use]
    pub fn position(&self) -> LogPosition {
        LogPosition::new(self.seq, self.at)
    }

    /// The file's length when it was opened, or the limit set since.
    #[must_use]
    pub fn limit(&self) -> LogOffset {
        LogOffset(self.limit)
    }

    /// The checksum algorithm of the events that follow.
    #[must_use]
    pub fn checksum(&self) -> Checksum {
        self.rules.checksum
    }

    /// Skips the computation of checksums; lengths and end positions are still checked. For readers behind the
    /// durable end, whose client checks for itself.
    pub fn trust_checksums(&mut self) {
        self.rules.verify_checksum = false;
    }

    pub(crate) fn rules(&self) -> &ScanRules {
        &self.rules
    }

    /// Up to `len` bytes from `offset` on, fewer at the file's end.
    pub(crate) fn window(&mut self, offset: u64, len: usize) -> Result<Vec<u8>, ReadError> {
        self.at = offset;
        self.fill(len)?;
        let rest = self.rest();
        Ok(rest[..rest.len().min(len)].to_vec())
    }

    pub(crate) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// Continues at `offset`, which must be the start of an event; the file's first event is read for its checksum
    /// algorithm.
    ///
    /// # Errors
    /// The file can not be read.
    pub fn seek(&mut self, offset: LogOffset) -> Result<(), ReadError> {
        if self.at == 0 {
            self.next()?;
        }
        if offset > LogOffset::FIRST_EVENT {
            self.at = offset.0;
        } else {
            self.at = LogOffset::FIRST_EVENT.0;
        }
        Ok(())
    }

    /// The next event, or how the file ended.
    ///
    /// # Errors
    /// The file can not be read; that says nothing about its contents.
    // Not an iterator: the event borrows the buffer.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Next<'_>, ReadError> {
        if self.at == 0 {
            self.fill(MAGIC.len())?;
            if !self.rest().starts_with(&MAGIC) {
                return Ok(Next::End(self.torn(TornReason::BadMagic)));
            }
            self.at = MAGIC.len() as u64;
        }
        self.fill(HEADER_LEN)?;
        if let Some(size) = self.rest().get(SIZE_AT..SIZE_AT + 4) {
            let size = u32::from_le_bytes([size[0], size[1], size[2], size[3]]);
            if size <= self.rules.max_size {
                self.fill(size as usize)?;
            }
        }
        let start = self.start();
        match parse_event(&self.buffer[start..], self.at, &self.rules) {
            Ok(Some(event)) => {
                self.at = event.end();
                self.rules.follow(&event);
                Ok(Next::Event(event))
            }
            Ok(None) => Ok(Next::End(ScanEnd::Clean(LogPosition::new(self.seq, self.at)))),
            Err(error) => Ok(Next::End(ScanEnd::Torn(Torn {
                position: LogPosition::new(self.seq, self.at),
                reason: error.kind,
            }))),
        }
    }

    fn torn(&self, reason: TornReason) -> ScanEnd {
        ScanEnd::Torn(Torn { position: self.position(), reason })
    }

    /// Index of the next event in the buffer.
    fn start(&self) -> usize {
        usize::try_from(self.at.saturating_sub(self.buffer_at)).unwrap_or(usize::MAX).min(self.buffer.len())
    }

    fn rest(&self) -> &[u8] {
        &self.buffer[self.start()..]
    }

    /// Brings `wanted` bytes from the next event on into the buffer, or as many as there are before the limit. The
    /// buffer never grows past what the file really holds, whatever a length field says.
    fn fill(&mut self, wanted: usize) -> Result<(), ReadError> {
        let there = usize::try_from(self.limit.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let wanted = wanted.min(there);
        let buffered_end = self.buffer_at + self.buffer.len() as u64;
        if self.at < self.buffer_at || self.at > buffered_end {
            self.buffer.clear();
            self.buffer_at = self.at;
        }
        if self.rest().len() >= wanted {
            return Ok(());
        }
        self.buffer.drain(..self.start());
        self.buffer_at = self.at;
        let mut filled = self.buffer.len();
        self.buffer.resize(wanted.max(READ_AHEAD.min(there)), 0);
        while filled < self.buffer.len() {
            let offset = self.buffer_at + filled as u64;
            match platform::read_at(&self.file, &mut self.buffer[filled..], offset) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.buffer.truncate(filled);
                    return Err(failed("read", &self.path)(error).into());
                }
            }
        }
        self.buffer.truncate(filled);
        Ok(())
    }
}
