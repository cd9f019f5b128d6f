//! The shared tail: the newest few mebibytes of the log in memory, read once however many replicas follow it.
//!
//! One thread feeds it (`feed`), with what the log's writer has kept in memory for it; dump sessions that are within the hub
//! take blocks, those behind read files by themselves until they are. A block is freed when it has left the hub and the
//! last session has sent it. COMMIT-2: the feeder reads up to the durable end and no further.
//!
//! The feeder wakes everybody once a millisecond at most (`pace`): under load that is one wake-up and one write for many
//! groups, and a commit finds nobody to wake. After a pause the first commit goes out at once.
//!
//! A session holds a pin of its file whether it reads or not, so that falling behind never finds the file purged
//! (PURGE-1); the pin also tells it that the log began anew, because positions here are used again then.

use super::block::{Block, BlockReader, BlockStep};
use omnibus_log::{FileSeq, LogHandle, LogPosition};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What is kept.
const KEEP_BYTES: usize = 8 << 20;
/// What the feeder reads at once at most.
const READ_BYTES: usize = 256 << 10;

/// What there is at a position.
#[derive(Debug)]
pub enum Found {
    /// A block that holds it.
    Block(Arc<Block>),
    /// Its file ended there; the following events are in this one.
    NextFile(FileSeq),
    /// Nothing yet.
    AtEnd,
    /// It is not in memory.
    Elsewhere,
}

#[derive(Debug)]
enum Item {
    Block(Arc<Block>),
    /// From the end of a file to the next.
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

/// See the module.
#[derive(Debug, Default)]
pub struct Hub {
    inner: Mutex<Inner>,
    reads: AtomicU64,
}

impl Hub {
    /// What is at `position`.
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

    /// How many blocks the feeder has read.
    #[must_use]
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// How many bytes are kept.
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

    /// Feeds the hub from the present end of the log on until `stop` says so; `fed` is called after whatever it got, with
    /// `pace` in between at least. For a thread of its own. A log that can not be read empties the hub: sessions meet the
    /// error themselves.
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

/// How long the feeder sleeps before it looks whether anybody is there still.
const PATIENCE: Duration = Duration::from_millis(200);
