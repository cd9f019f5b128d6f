//! The flush queue: sessions enter without a lock, and the flush stage takes them out in order.

use super::sync::Mutex;
use super::sync::atomic::{AtomicUsize, Ordering};
use super::ticket::{Completer, Seat};
use crate::{CommitRequest, drop_elsewhere};
use crossbeam_queue::SegQueue;
use omnibus_engine::CommitNo;
use std::sync::Arc;
use std::time::Instant;

/// The number of event bytes whose copying takes about 20 microseconds.
const LONG: u64 = 64 << 10;

/// A transaction in the queue, which its ticket refers to, too: its session can take it back (COMMIT-4).
pub(super) struct Waiting(Mutex<Option<(CommitRequest, Option<RollBack>)>>);

/// Rolls back what engines hold prepared of a transaction.
pub(super) type RollBack = Box<dyn FnOnce() + Send>;

impl Waiting {
    /// `roll_back` is for a transaction that engines hold prepared.
    pub(super) fn new(request: CommitRequest, roll_back: Option<RollBack>) -> Waiting {
        Waiting(Mutex::new(Some((request, roll_back))))
    }

    /// Takes the request out, for who has the right to it by [`Completer::take`].
    pub(super) fn take(&self) -> Option<CommitRequest> {
        self.0.lock().take().map(|(request, _)| request)
    }
}

impl Seat for Waiting {
    fn let_go(&self) {
        let Some((request, roll_back)) = self.0.lock().take() else { return };
        if let Some(roll_back) = roll_back {
            roll_back();
        }
        match request.staged.is_some() || request.is_large() {
            true => drop_elsewhere(request),
            false => drop(request),
        }
    }
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiting").finish_non_exhaustive()
    }
}

/// An entry of the queue: a transaction on its way to the flush stage.
pub(super) struct Enrolled {
    pub waiting: Arc<Waiting>,
    pub completer: Completer,
    /// Engines hold it prepared.
    pub prepared: bool,
    /// It takes long to copy its events.
    pub long: bool,
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
        if enrolled.long {
            self.long.fetch_add(1, Ordering::SeqCst);
        }
        let before = self.len.fetch_add(1, Ordering::SeqCst);
        self.queue.push(enrolled);
        before
    }

    pub(super) fn pop(&self) -> Option<Enrolled> {
        let enrolled = self.queue.pop()?;
        self.len.fetch_sub(1, Ordering::SeqCst);
        if enrolled.long {
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
pub(super) fn is_long(request: &CommitRequest) -> bool {
    request.staged.is_some() || request.cache.len() > LONG
}
