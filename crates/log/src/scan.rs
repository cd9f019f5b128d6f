//! Reads one file event by event and reports how it ended: clean, torn or damaged at a position, or with an I/O error.
//! The three are never mixed up, and an I/O error never looks like an end.
//!
//! `omnibus_format::parse_event` decides whether bytes are an event (length, end position, checksum); this module reads
//! the bytes. A zero-filled tail ends a file as [`TornReason::Preallocated`]: nothing needs to be lost, but the file
//! was not closed. Used by recovery, the tailing reader and tools, on any thread.

use crate::error::{ReadError, failed};
use crate::position::{FileSeq, LogOffset, LogPosition};
use omnibus_disk::{Disk, File, Open};
use omnibus_format::header::{HEADER_LEN, MAGIC};
use omnibus_format::scan::parse_event;
use omnibus_format::{Checksum, ScanRules};
use std::io;
use std::path::{Path, PathBuf};

pub use crate::error::TornReason;
pub use omnibus_format::RawEvent;

/// Bytes per read. Larger reads gain nothing from the page cache.
const READ_AHEAD: usize = 256 << 10;
/// Offset of the event's length in its header.
const SIZE_AT: usize = 9;

/// The end of a file's valid part before the end of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torn {
    /// The first byte that is not part of a whole, valid event.
    pub position: LogPosition,
    /// The kind of bytes that follow.
    pub reason: TornReason,
}

/// The way a file ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanEnd {
    /// Right behind a whole event.
    Clean(LogPosition),
    /// In front of bytes that are not an event.
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
    /// The end; further calls return the same.
    End(ScanEnd),
}

/// A file being read.
#[derive(Debug)]
pub struct ReadFile {
    seq: FileSeq,
    file: File,
    path: PathBuf,
    /// File offset at which reading stops.
    limit: u64,
    rules: ScanRules,
    buffer: Vec<u8>,
    /// File offset of `buffer[0]`.
    buffer_at: u64,
    /// File offset of the next event.
    at: u64,
}

impl ReadFile {
    /// Returns the end of the indivisible unit of the file (an encryption block) that contains `offset`, or `offset` if
    /// it is a border.
    pub(crate) fn unit_end(&self, offset: u64) -> u64 {
        offset.next_multiple_of(self.file.unit())
    }

    /// Opens a file for reading from its first event to its present end.
    ///
    /// # Errors
    /// The file can not be opened.
    pub fn open(disk: &Disk, seq: FileSeq, path: &Path) -> Result<ReadFile, ReadError> {
        let file = match disk.open(path, Open::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(ReadError::NoSuchFile(seq)),
            other => other.map_err(failed("open", path))?,
        };
        let limit = file.len().map_err(failed("read the size of", path))?;
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

    /// Returns up to `len` bytes from `offset` on, fewer at the file's end.
    pub(crate) fn window(&mut self, offset: u64, len: usize) -> Result<Vec<u8>, ReadError> {
        self.at = offset;
        self.fill(len)?;
        let rest = self.rest();
        Ok(rest[..rest.len().min(len)].to_vec())
    }

    pub(crate) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// Returns whether the first event is still to be read.
    pub(crate) fn is_at_start(&self) -> bool {
        self.at == 0
    }

    /// Continues at `offset`, where an event starts.
    pub(crate) fn go_to(&mut self, offset: u64) {
        self.at = offset;
    }

    /// Applies an event's effect on the rules of later events; see [`ScanRules::follow`].
    pub(crate) fn follow(&mut self, event: &RawEvent<'_>) {
        self.rules.follow(event);
    }

    /// Returns to the start and keeps the buffer.
    pub(crate) fn rewind(&mut self) {
        (self.at, self.rules) = (0, ScanRules::default());
    }

    /// Frees the memory of the read-ahead.
    pub(crate) fn forget_buffer(&mut self) {
        self.buffer = Vec::new();
        self.buffer_at = self.at;
    }

    /// Fills `out` from `offset` on; fewer bytes than it has room for only at the file's end.
    pub(crate) fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<usize, ReadError> {
        let mut filled = 0;
        while filled < out.len() {
            match self.file.read_at(&mut out[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed("read", &self.path)(error).into()),
            }
        }
        Ok(filled)
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

    /// Reads the next event, or reports how the file ended.
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

    /// Reads `wanted` bytes from the next event on into the buffer, or as many as there are before the limit. The
    /// buffer never grows past the bytes of the file, whatever a length field says.
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
        let filled = self.buffer.len();
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(wanted.max(READ_AHEAD.min(there)), 0);
        let read = self.read_at(self.buffer_at + filled as u64, &mut buffer[filled..]);
        buffer.truncate(filled + *read.as_ref().unwrap_or(&0));
        self.buffer = buffer;
        read.map(|_| ())
    }
}
