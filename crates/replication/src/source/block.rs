//! Runs of whole events of one file, read and checked once: what the shared tail keeps and dump sessions send from.
//!
//! A block's bytes are the file's bytes, so an event's offset is the block's start plus where it is in it. Checksums,
//! lengths and end positions were verified when the block was read; whoever walks it looks at lengths only.

use omnibus_format::header::{HEADER_LEN, SIZE_OFFSET};
use omnibus_format::{Checksum, EventType};
use omnibus_log::{FileSeq, LogHandle, LogPosition, ReadError, TailReader, TailRun};

/// See the module.
#[derive(Debug)]
pub struct Block {
    file: FileSeq,
    start: u64,
    bytes: Vec<u8>,
    checksum: Checksum,
}

/// One event of a block.
#[derive(Clone, Copy, Debug)]
pub struct BlockEvent<'a> {
    /// File offset of its first byte.
    pub offset: u64,
    /// Header, body, checksum.
    pub bytes: &'a [u8],
}

impl<'a> BlockEvent<'a> {
    /// Its type.
    #[must_use]
    pub fn event_type(&self) -> EventType {
        EventType(self.bytes.get(4).copied().unwrap_or(0))
    }

    /// File offset just behind it.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }

    /// What is between header and checksum.
    #[must_use]
    pub fn body(&self, checksum: Checksum) -> &'a [u8] {
        let end = self.bytes.len().saturating_sub(checksum.len());
        self.bytes.get(HEADER_LEN..end).unwrap_or(&[])
    }
}

impl Block {
    /// The file that it is of.
    #[must_use]
    pub fn file(&self) -> FileSeq {
        self.file
    }

    /// Where it starts.
    #[must_use]
    pub fn start(&self) -> LogPosition {
        LogPosition::new(self.file, self.start)
    }

    /// Where it ends.
    #[must_use]
    pub fn end(&self) -> LogPosition {
        LogPosition::new(self.file, self.start + self.bytes.len() as u64)
    }

    /// How many bytes it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The file's checksum algorithm.
    #[must_use]
    pub fn checksum(&self) -> Checksum {
        self.checksum
    }

    /// The events that start at `from` or behind.
    pub fn events_from(&self, from: u64) -> impl Iterator<Item = BlockEvent<'_>> {
        let mut at = usize::try_from(from.saturating_sub(self.start)).unwrap_or(usize::MAX);
        std::iter::from_fn(move || {
            let rest = self.bytes.get(at..)?;
            let size = rest.get(SIZE_OFFSET..SIZE_OFFSET + 4)?;
            let size = u32::from_le_bytes([size[0], size[1], size[2], size[3]]) as usize;
            let bytes = rest.get(..size.max(HEADER_LEN))?;
            let event = BlockEvent { offset: self.start + at as u64, bytes };
            at += bytes.len();
            Some(event)
        })
    }
}

/// What a [`BlockReader`] found.
#[derive(Debug)]
pub enum BlockStep {
    /// Events; never an empty block.
    Block(Block),
    /// The file ended; the following events are in this one.
    NextFile(FileSeq),
    /// Everything durable has been read.
    CaughtUp,
}

/// Reads the log block by block up to the durable end. Blocks on the disk: for threads that may.
#[derive(Debug)]
pub struct BlockReader {
    tail: TailReader,
}

impl BlockReader {
    /// From `position` on.
    ///
    /// # Errors
    /// See [`TailReader::open`].
    pub fn open(log: &LogHandle, position: LogPosition) -> Result<BlockReader, ReadError> {
        Ok(BlockReader { tail: TailReader::open(log, position)? })
    }

    /// Where the next block starts.
    #[must_use]
    pub fn position(&self) -> LogPosition {
        self.tail.position()
    }

    /// The next events: about `wanted` bytes of them, more if one event is larger.
    ///
    /// # Errors
    /// See [`TailReader::next`]. Events before the damaged place are given out first.
    pub fn next(&mut self, wanted: usize) -> Result<BlockStep, ReadError> {
        let start = self.tail.position();
        let mut bytes = Vec::new();
        Ok(match self.tail.read_run(wanted, &mut bytes)? {
            TailRun::Events => {
                // A file's first event says it.
                let checksum = self.tail.checksum();
                BlockStep::Block(Block { file: start.file, start: start.offset.0, bytes, checksum })
            }
            TailRun::NextFile(file) => BlockStep::NextFile(file),
            TailRun::CaughtUp => BlockStep::CaughtUp,
        })
    }
}
