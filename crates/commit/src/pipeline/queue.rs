//! The flush queue: sessions enter without a lock, and the flush stage takes them out in order.

use super::sync::atomic::{AtomicUsize, Ordering};
use super::ticket::Completer;
use crate::CommitRequest;
use crossbeam_queue::SegQueue;
use omnibus_engine::CommitNo;
use std::time::Instant;

/// The number of event bytes whose copying takes about 20 microseconds.
const LONG: u64 = 64 << 10;

/// A transaction on its way to the flush stage.
pub(super) struct Enrolled {
    pub request: CommitRequest,
    pub completer: Completer,
    /// The newest number assigned when it enrolled: the transaction depends on no newer one.
    pub last_seen: CommitNo,
    pub at: Instant,
}

#[derive(Default)]
pub(super) struct FlushQueue {
    queue: SegQueue<Enrolled>,
    /// Counted before the push, so that it is never less than what `pop` can find.
    len: AtomicUsize,
    /// The number of those that take long to copy, or wait for the device meanwhile.
    long: AtomicUsize,
}

impl FlushQueue {
    /// Enters a transaction and returns the number of those before it. A caller that gets 0 must see to it that the
    /// flush stage runs.
    pub(super) fn push(&self, enrolled: Enrolled) -> usize {
        if is_long(&enrolled) {
            self.long.fetch_add(1, Ordering::SeqCst);
        }
        let before = self.len.fetch_add(1, Ordering::SeqCst);
        self.queue.push(enrolled);
        before
    }

    pub(super) fn pop(&self) -> Option<Enrolled> {
        let enrolled = self.queue.pop()?;
        self.len.fetch_sub(1, Ordering::SeqCst);
        if is_long(&enrolled) {
            self.long.fetch_sub(1, Ordering::SeqCst);
        }
        Some(enrolled)
    }

    /// Returns whether draining the queue will take long.
    pub(super) fn has_long(&self) -> bool {
        self.long.load(Ordering::SeqCst) > 0
    }

    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::SeqCst)
    }
}

/// Returns whether copying the transaction's events takes long.
fn is_long(enrolled: &Enrolled) -> bool {
    enrolled.request.staged.is_some() || enrolled.request.cache.len() > LONG
}
