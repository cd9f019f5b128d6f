//! Blocks of whole events of one file, read and checked once: the shared tail keeps them, and dump sessions send from
//! them.
//!
//! A block's bytes are the file's bytes, so an event's offset is the block's start plus its offset in the block.
//! Lengths and end positions were verified when the block was read, and checksums if its reader was opened so;
//! iteration only reads lengths. A block that was read without verifying checksums may begin or end inside a long
//! event, so that a slow client never has more of the log in memory than its blocks' size.

use omnibus_format::header::{HEADER_LEN, SIZE_OFFSET};
use omnibus_format::{Checksum, EventType};
use omnibus_log::{FileSeq, LogHandle, LogPosition, ReadError, Run, TailReader, TailRun};

/// A block of events; see the module.
#[derive(Debug)]
pub struct Block {
    file: FileSeq,
    start: u64,
    bytes: Run,
    checksum: Checksum,
    /// The whole block is a piece of an event that began in an earlier block.
    goes_on: bool,
}

/// One event of a block.
#[derive(Clone, Copy, Debug)]
pub struct BlockEvent<'a> {
    /// File offset of its first byte.
    pub offset: u64,
    /// Its offset in the block.
    pub at: usize,
    /// Its length from its header.
    pub size: usize,
    /// Header, body and checksum, as far as they are in this block.
    pub bytes: &'a [u8],
}

impl<'a> BlockEvent<'a> {
    /// The event's type.
    #[must_use]
    pub fn event_type(&self) -> EventType {
        EventType(self.bytes.get(4).copied().unwrap_or(0))
    }

    /// File offset behind the event.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset + self.size as u64
    }

    /// The number of its bytes that are in the following blocks.
    #[must_use]
    pub fn missing(&self) -> usize {
        self.size - self.bytes.len()
    }

    /// The bytes between header and checksum.
    #[must_use]
    pub fn body(&self, checksum: Checksum) -> &'a [u8] {
        let end = self.bytes.len().min(self.size.saturating_sub(checksum.len()));
        self.bytes.get(HEADER_LEN..end).unwrap_or(&[])
    }
}

impl Block {
    /// The file of the block.
    #[must_use]
    pub fn file(&self) -> FileSeq {
        self.file
    }

    /// The position of the first byte.
    #[must_use]
    pub fn start(&self) -> LogPosition {
        LogPosition::new(self.file, self.start)
    }

    /// The position behind the last byte.
    #[must_use]
    pub fn end(&self) -> LogPosition {
        LogPosition::new(self.file, self.start + self.bytes.len() as u64)
    }

    /// The number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether the block has no byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// All bytes of the block.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The file's checksum algorithm.
    #[must_use]
    pub fn checksum(&self) -> Checksum {
        self.checksum
    }

    /// Returns whether the whole block is a piece of an event that began in an earlier block.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// Iterates over the events that start at `from` or later. Not for a block that continues an event.
    pub fn events_from(&self, from: u64) -> impl Iterator<Item = BlockEvent<'_>> {
        let mut at = usize::try_from(from.saturating_sub(self.start)).unwrap_or(usize::MAX);
        std::iter::from_fn(move || {
            let rest = self.bytes.get(at..)?;
            let size = rest.get(SIZE_OFFSET..SIZE_OFFSET + 4)?;
            let size = u32::from_le_bytes([size[0], size[1], size[2], size[3]]) as usize;
            let size = size.max(HEADER_LEN);
            let bytes = &rest[..size.min(rest.len())];
            let event = BlockEvent { offset: self.start + at as u64, at, size, bytes };
            at += bytes.len();
            Some(event)
        })
    }
}

/// The result of a [`BlockReader`].
#[derive(Debug)]
pub enum BlockStep {
    /// Events; never an empty block.
    Block(Block),
    /// The file ended; the following events are in this one.
    NextFile(FileSeq),
    /// Everything durable has been read.
    CaughtUp,
}

/// The capacity of a reused block; more memory is freed.
const KEEP_BYTES: usize = 1 << 20;

/// Reads the log block by block up to the durable end. It blocks on the disk, so it needs a thread that may block.
#[derive(Debug)]
pub struct BlockReader {
    tail: TailReader,
    spare: Run,
}

impl BlockReader {
    /// Opens a reader at `position`. Without `verify`, checksums are left to the client to check, and long events are
    /// returned in pieces.
    ///
    /// # Errors
    /// See [`TailReader::open`].
    pub fn open(log: &LogHandle, position: LogPosition, verify: bool) -> Result<BlockReader, ReadError> {
        let mut tail = TailReader::open(log, position)?;
        if !verify {
            tail.trust_checksums();
        }
        Ok(BlockReader { tail, spare: Run::default() })
    }

    /// Opens a reader at `position` that takes bytes written from now on from memory. Bytes from a disk are verified,
    /// because not every client does that.
    ///
    /// # Errors
    /// See [`TailReader::open`].
    pub fn follow(log: &LogHandle, position: LogPosition) -> Result<BlockReader, ReadError> {
        let mut reader = BlockReader::open(log, position, true)?;
        reader.tail.keep_recent();
        Ok(reader)
    }

    /// The position of the next block.
    #[must_use]
    pub fn position(&self) -> LogPosition {
        self.tail.position()
    }

    /// Reads the next events: about `wanted` bytes; more if one event is larger and has to be verified.
    ///
    /// # Errors
    /// See [`TailReader::next`]. Events before the damaged place are returned first.
    pub fn next(&mut self, wanted: usize) -> Result<BlockStep, ReadError> {
        let (start, goes_on) = (self.tail.position(), self.tail.rest() > 0);
        let mut bytes = std::mem::take(&mut self.spare);
        let run = self.tail.read_run(wanted, &mut bytes)?;
        Ok(match run {
            TailRun::Events => {
                // A file's first event says it.
                let checksum = self.tail.checksum();
                BlockStep::Block(Block { file: start.file, start: start.offset.0, bytes, checksum, goes_on })
            }
            TailRun::NextFile(file) => {
                self.spare = bytes;
                BlockStep::NextFile(file)
            }
            TailRun::CaughtUp => {
                self.spare = bytes;
                BlockStep::CaughtUp
            }
        })
    }

    /// Reuses a block's memory for the next one.
    pub fn give_back(&mut self, block: Block) {
        self.spare = block.bytes;
        self.spare.shrink(KEEP_BYTES);
    }
}
