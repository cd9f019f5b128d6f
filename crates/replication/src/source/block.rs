//! Runs of whole events of one file, read and checked once: what the shared tail keeps and dump sessions send from.
//!
//! A block's bytes are the file's bytes, so an event's offset is the block's start plus where it is in it. Lengths and end
//! positions were verified when the block was read, checksums if its reader was opened so; whoever walks it looks at
//! lengths only. A block that was read without them may begin or end inside a long event, so that no client, however slow, has
//! more of the log in memory than its blocks' size.

use omnibus_format::header::{HEADER_LEN, SIZE_OFFSET};
use omnibus_format::{Checksum, EventType};
use omnibus_log::{FileSeq, LogHandle, LogPosition, ReadError, Run, TailReader, TailRun};

/// See the module.
#[derive(Debug)]
pub struct Block {
    file: FileSeq,
    start: u64,
    bytes: Run,
    checksum: Checksum,
    /// All of it is a piece of an event that began in an earlier block.
    goes_on: bool,
}

/// One event of a block.
#[derive(Clone, Copy, Debug)]
pub struct BlockEvent<'a> {
    /// File offset of its first byte.
    pub offset: u64,
    /// Where it starts in the block.
    pub at: usize,
    /// Its length, as it says itself.
    pub size: usize,
    /// Header, body, checksum; only what the block has of it.
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
        self.offset + self.size as u64
    }

    /// How much of it is in the following blocks.
    #[must_use]
    pub fn missing(&self) -> usize {
        self.size - self.bytes.len()
    }

    /// What is between header and checksum.
    #[must_use]
    pub fn body(&self, checksum: Checksum) -> &'a [u8] {
        let end = self.bytes.len().min(self.size.saturating_sub(checksum.len()));
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

    /// All of them.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The file's checksum algorithm.
    #[must_use]
    pub fn checksum(&self) -> Checksum {
        self.checksum
    }

    /// Whether all of it is a piece of an event that began in an earlier block.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// The events that start at `from` or behind. Not for a block that goes on with one.
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

/// Memory of a block that is used again; more than this is given back.
const KEEP_BYTES: usize = 1 << 20;

/// Reads the log block by block up to the durable end. Blocks on the disk: for threads that may.
#[derive(Debug)]
pub struct BlockReader {
    tail: TailReader,
    spare: Run,
}

impl BlockReader {
    /// From `position` on. Without `verify` a wrong checksum is for the client to find, who looks at it anyway, and long
    /// events come in pieces.
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

    /// From `position` on, and what is written from now on from memory. What has been on a disk is verified, because
    /// not every client does.
    ///
    /// # Errors
    /// See [`TailReader::open`].
    pub fn follow(log: &LogHandle, position: LogPosition) -> Result<BlockReader, ReadError> {
        let mut reader = BlockReader::open(log, position, true)?;
        reader.tail.keep_recent();
        Ok(reader)
    }

    /// Where the next block starts.
    #[must_use]
    pub fn position(&self) -> LogPosition {
        self.tail.position()
    }

    /// The next events: about `wanted` bytes of them; more if one event is larger and has to be verified.
    ///
    /// # Errors
    /// See [`TailReader::next`]. Events before the damaged place are given out first.
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

    /// Takes a block's memory for the next one.
    pub fn give_back(&mut self, block: Block) {
        self.spare = block.bytes;
        self.spare.shrink(KEEP_BYTES);
    }
}
