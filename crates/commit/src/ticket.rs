//! The ticket of a committing session: it can park a thread on it, or await it as a future.
//!
//! Each waiter is woken by itself, because one condition for all wakes everybody at once; the waker touches only this
//! waiter's lock. With `binlog_order_commits=0` the waiter also finds the rest of its commit here, which it does on its
//! own thread.

use super::sync::atomic::{AtomicU8, Ordering};
use super::sync::{Condvar, Mutex};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::error::CommitError;
use omnibus_engine::CommitNo;

/// The outcome of a commit: the commit number of a success.
pub type CommitResult = Result<CommitNo, CommitError>;

/// The waiting end. Await it, or [`Ticket::wait`] on a thread.
#[derive(Debug)]
pub struct Ticket(Arc<Slot>);

/// The part of a commit that is left to the session that waits for it.
pub(crate) type Rest = Box<dyn FnOnce() + Send>;

/// The completing end. If it is dropped without a result, the ticket reports [`CommitError::Unknown`], so that nobody
/// waits for ever.
#[derive(Debug)]
pub(crate) struct Completer(Option<Arc<Slot>>);

/// Nobody has begun to give it a place in the log.
const QUEUED: u8 = 0;
/// It gets its place, or is refused it: whoever waits is told.
const TAKEN: u8 = 1;
/// It gets none.
const WITHDRAWN: u8 = 2;

/// A transaction that waits in the queue. The session that withdraws it has it let go of what it holds: on a full disk no leader
/// comes to the queue.
pub(crate) trait Seat: std::fmt::Debug + Send + Sync {
    /// Gives back all that the transaction holds. Called once, on the session's thread, and not if the flush stage takes it.
    fn let_go(&self);
}

#[derive(Debug)]
struct Slot {
    /// `QUEUED`, and then one of the others for good (COMMIT-4).
    place: AtomicU8,
    /// A ticket that waits for other things has none.
    seat: Option<Arc<dyn Seat>>,
    state: Mutex<TicketState>,
    parked: Condvar,
}

enum TicketState {
    Pending(Option<Waker>),
    /// A thread waits on the condition.
    Parked,
    Done(CommitResult, Option<Rest>),
}

impl TicketState {
    /// Takes the result, if there is one, and the remaining work.
    fn take(&mut self) -> Option<(CommitResult, Option<Rest>)> {
        match self {
            TicketState::Done(result, rest) => Some((result.clone(), rest.take())),
            _ => None,
        }
    }
}

impl std::fmt::Debug for TicketState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TicketState::Pending(_) => f.write_str("Pending"),
            TicketState::Parked => f.write_str("Parked"),
            TicketState::Done(result, _) => f.debug_tuple("Done").field(result).finish(),
        }
    }
}

impl Drop for Slot {
    /// Finishes the commit if nobody waited for it.
    fn drop(&mut self) {
        if let Some(done) = self.state.get_mut().take() {
            let _ = finish(done);
        }
    }
}

/// Does the remaining work, outside of the slot's lock.
fn finish((result, rest): (CommitResult, Option<Rest>)) -> CommitResult {
    if let Some(rest) = rest {
        rest();
    }
    result
}

/// Makes a connected pair without a transaction.
pub(crate) fn ticket() -> (Completer, Ticket) {
    pair(None)
}

/// Makes the pair of a transaction that enters the queue.
pub(crate) fn ticket_of(seat: Arc<dyn Seat>) -> (Completer, Ticket) {
    pair(Some(seat))
}

fn pair(seat: Option<Arc<dyn Seat>>) -> (Completer, Ticket) {
    let slot = Arc::new(Slot::new(seat, TicketState::Pending(None)));
    (Completer(Some(slot.clone())), Ticket(slot))
}

/// Creates a ticket and the function that completes it, for measuring the cost of waking: `omnibus bench wakeup`.
pub fn ticket_to_complete() -> (impl FnOnce(CommitResult) + Send, Ticket) {
    let (completer, ticket) = ticket();
    (move |result| completer.complete(result), ticket)
}

impl Completer {
    /// The flush stage is about to give the transaction its place; false if its session has withdrawn it.
    pub(crate) fn take(&self) -> bool {
        self.0.as_ref().is_none_or(|slot| slot.settle(TAKEN))
    }

    /// Delivers the result and wakes this one waiter.
    pub(crate) fn complete(self, result: CommitResult) {
        self.complete_with(result, None);
    }

    /// As `complete`; the waiter does `rest` before it sees the result.
    pub(crate) fn complete_with(mut self, result: CommitResult, rest: Option<Rest>) {
        if let Some(slot) = self.0.take() {
            slot.complete(result, rest);
        }
    }
}

impl Drop for Completer {
    fn drop(&mut self) {
        if let Some(slot) = self.0.take() {
            slot.complete(Err(CommitError::Unknown), None);
        }
    }
}

impl Slot {
    fn new(seat: Option<Arc<dyn Seat>>, state: TicketState) -> Slot {
        let place = AtomicU8::new(QUEUED);
        Slot { place, seat, state: Mutex::new(state), parked: Condvar::new() }
    }

    /// Leaves `QUEUED`, once.
    fn settle(&self, place: u8) -> bool {
        self.place.compare_exchange(QUEUED, place, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    fn complete(&self, result: CommitResult, rest: Option<Rest>) {
        let before = std::mem::replace(&mut *self.state.lock(), TicketState::Done(result, rest));
        match before {
            TicketState::Pending(Some(waker)) => waker.wake(),
            TicketState::Parked => {
                self.parked.notify_one();
            }
            TicketState::Pending(None) | TicketState::Done(..) => {}
        }
    }
}

impl Ticket {
    /// Creates a completed ticket.
    #[must_use]
    pub fn done(result: CommitResult) -> Ticket {
        let slot = Slot::new(None, TicketState::Done(result, None));
        // Too late to withdraw it.
        slot.settle(TAKEN);
        Ticket(Arc::new(slot))
    }

    /// COMMIT-4: takes back what has no place in the log yet. If this gives true nothing of it will be anywhere, and what the
    /// transaction held is given back, whether or not a leader ever comes to the queue; else it is under way, and only its
    /// result tells what became of it. Does not block.
    #[must_use]
    pub fn withdraw(&self) -> bool {
        let withdrawn = self.0.settle(WITHDRAWN);
        if withdrawn && let Some(seat) = &self.0.seat {
            seat.let_go();
        }
        withdrawn
    }

    /// Returns the result if the ticket is completed.
    #[must_use]
    pub fn poll_now(&self) -> Option<CommitResult> {
        let done = self.0.state.lock().take();
        done.map(finish)
    }

    /// Parks this thread until the result is there. Not for a thread of an async runtime.
    ///
    /// # Errors
    /// The error that the commit ended with.
    pub fn wait(self) -> CommitResult {
        let mut state = self.0.state.lock();
        loop {
            if let Some(done) = state.take() {
                drop(state);
                return finish(done);
            }
            *state = TicketState::Parked;
            self.0.parked.wait(&mut state);
        }
    }
}

impl Future for Ticket {
    type Output = CommitResult;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<CommitResult> {
        let mut state = self.0.state.lock();
        if let Some(done) = state.take() {
            drop(state);
            return Poll::Ready(finish(done));
        }
        match &mut *state {
            TicketState::Pending(Some(waker)) if waker.will_wake(context.waker()) => Poll::Pending,
            other => {
                *other = TicketState::Pending(Some(context.waker().clone()));
                Poll::Pending
            }
        }
    }
}
