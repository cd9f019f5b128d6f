//! The shared tail: the newest few mebibytes of the log in memory, read once for all replicas that follow it.
//!
//! One thread feeds it (`feed`), with bytes that the log's writer has kept in memory for it. Dump sessions that are
//! within the hub take blocks; those behind read files by themselves until they catch up. A block is freed when it has
//! left the hub and the last session has sent it. COMMIT-2: the feeder reads up to the durable end and no further.
//!
//! The feeder notifies sessions once a millisecond at most (`pace`): under load that is one notification and one write
//! for many groups, and a commit wakes nobody. After a pause the first commit is sent at once.
//!
//! A session always holds a pin of its file, so that its file cannot be purged when it falls behind (PURGE-1). The pin
//! also tells it that the log was reset, because positions are then used again.

use super::block::{Block, BlockReader, BlockStep};
use omnibus_log::{FileSeq, LogHandle, LogPosition};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The number of bytes kept.
const KEEP_BYTES: usize = 8 << 20;
/// The maximum number of bytes that the feeder reads at once.
const READ_BYTES: usize = 256 << 10;

/// The content of the hub at a position.
#[derive(Debug)]
pub enum Found {
    /// A block that contains it.
    Block(Arc<Block>),
    /// The file ends there; the following events are in this file.
    NextFile(FileSeq),
    /// The position is the end of the hub.
    AtEnd,
    /// The position is not in memory.
    Elsewhere,
}

#[derive(Debug)]
enum Item {
    Block(Arc<Block>),
    /// The end of a file, and the next file.
    Switch(LogPosition, FileSeq),
}

impl Item {
    fn start(&self) -> LogPosition {
        match self {
            Item::Block(block) => block.start(),
            Item::Switch(at, _) => *at,
        }
    }
}

#[derive(Debug, Default)]
struct Inner {
    items: VecDeque<Item>,
    bytes: usize,
    end: Option<LogPosition>,
}

/// The shared tail; see the module.
#[derive(Debug, Default)]
pub struct Hub {
    inner: Mutex<Inner>,
    reads: AtomicU64,
}

impl Hub {
    /// Returns the content at `position`.
    #[must_use]
    pub fn find(&self, position: LogPosition) -> Found {
        let inner = self.inner.lock();
        if inner.end == Some(position) {
            return Found::AtEnd;
        }
        let at = inner.items.partition_point(|item| item.start() <= position);
        match at.checked_sub(1).and_then(|at| inner.items.get(at)) {
            Some(Item::Block(block)) if position < block.end() => Found::Block(block.clone()),
            Some(Item::Switch(from, to)) if *from == position => Found::NextFile(*to),
            _ => Found::Elsewhere,
        }
    }

    /// The number of blocks that the feeder has read.
    #[must_use]
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// The number of bytes kept.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.inner.lock().bytes
    }

    fn begin(&self, at: LogPosition) {
        *self.inner.lock() = Inner { end: Some(at), ..Inner::default() };
    }

    fn end(&self) {
        *self.inner.lock() = Inner::default();
    }

    fn push(&self, block: Block) {
        let mut inner = self.inner.lock();
        inner.end = Some(block.end());
        inner.bytes += block.len();
        inner.items.push_back(Item::Block(Arc::new(block)));
        // At least the newest stays, however large it is.
        while inner.bytes > KEEP_BYTES && inner.items.len() > 1 {
            if let Some(Item::Block(old)) = inner.items.pop_front() {
                inner.bytes -= old.len();
            }
        }
    }

    fn enter(&self, file: FileSeq) {
        let mut inner = self.inner.lock();
        if let Some(end) = inner.end {
            inner.items.push_back(Item::Switch(end, file));
        }
        inner.end = Some(LogPosition::new(file, 4));
    }

    /// Feeds the hub from the present end of the log on until `stop` returns true. `fed` is called after each read, at
    /// intervals of at least `pace`. For a thread of its own. If the log cannot be read, the hub is emptied, and
    /// sessions meet the error themselves.
    pub fn feed(
        &self,
        log: &LogHandle,
        stop: impl Fn() -> bool,
        pace: impl Fn() -> Duration,
        fed: impl Fn(),
    ) {
        while !stop() {
            let at = log.durable_end().get();
            match BlockReader::follow(log, at) {
                Ok(mut reader) => {
                    self.begin(at);
                    fed();
                    if let Err(error) = self.follow(log, &mut reader, &stop, &pace, &fed) {
                        tracing::debug!(%error, "the shared tail of the log begins anew");
                    }
                }
                Err(error) => tracing::warn!(%error, "the tail of the log can not be read"),
            }
            self.end();
            fed();
            let _ = log.durable_end().wait_past(at, PATIENCE);
        }
    }

    fn follow(
        &self,
        log: &LogHandle,
        reader: &mut BlockReader,
        stop: impl Fn() -> bool,
        pace: impl Fn() -> Duration,
        fed: impl Fn(),
    ) -> Result<(), omnibus_log::ReadError> {
        let mut news = false;
        loop {
            match reader.next(READ_BYTES)? {
                BlockStep::Block(block) => {
                    self.reads.fetch_add(1, Ordering::Relaxed);
                    // What is there for long need not wait for the rest.
                    let much = block.len() >= READ_BYTES;
                    self.push(block);
                    news = !much;
                    if much {
                        fed();
                    }
                }
                BlockStep::NextFile(file) => {
                    self.enter(file);
                    news = true;
                }
                BlockStep::CaughtUp => {
                    if std::mem::take(&mut news) {
                        fed();
                        std::thread::sleep(pace());
                    }
                    let position = reader.position();
                    while log.durable_end().wait_past(position, PATIENCE) <= position {
                        // A log that began anew may be at a lower position: the reader finds out.
                        if stop() || log.durable_end().get() < position {
                            break;
                        }
                    }
                    if stop() {
                        return Ok(());
                    }
                }
            }
        }
    }
}

/// The maximum sleep of the feeder before it checks whether it has to stop.
const PATIENCE: Duration = Duration::from_millis(200);
