//! What a committing session holds: it can park a thread on it, or await it as a future.
//!
//! Each waiter is woken by itself (one condition for all costs a stampede); the
//! waker touches only this waiter's lock, never a neighbour's.

use parking_lot::{Condvar, Mutex};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::CommitError;
use omnibus_engine::CommitNo;

/// The outcome of a commit: the number it got.
pub type CommitResult = Result<CommitNo, CommitError>;

/// The waiting end. Await it, or [`Ticket::wait`] on a thread.
#[derive(Debug)]
pub struct Ticket(Arc<Slot>);

/// The completing end.
#[derive(Debug)]
pub(crate) struct Completer(Arc<Slot>);

#[derive(Debug)]
struct Slot {
    state: Mutex<State>,
    parked: Condvar,
}

#[derive(Debug)]
enum State {
    Pending(Option<Waker>),
    /// A thread waits on the condition.
    Parked,
    Done(CommitResult),
}

/// Makes a connected pair.
pub(crate) fn ticket() -> (Completer, Ticket) {
    let slot = Arc::new(Slot { state: Mutex::new(State::Pending(None)), parked: Condvar::new() });
    (Completer(slot.clone()), Ticket(slot))
}

impl Completer {
    /// Delivers the result and wakes this one waiter.
    pub(crate) fn complete(self, result: CommitResult) {
        let before = std::mem::replace(&mut *self.0.state.lock(), State::Done(result));
        match before {
            State::Pending(Some(waker)) => waker.wake(),
            State::Parked => {
                self.0.parked.notify_one();
            }
            State::Pending(None) | State::Done(_) => {}
        }
    }
}

impl Ticket {
    /// A ticket that is complete already.
    #[must_use]
    pub fn done(result: CommitResult) -> Ticket {
        Ticket(Arc::new(Slot { state: Mutex::new(State::Done(result)), parked: Condvar::new() }))
    }

    /// The result, if it is there.
    #[must_use]
    pub fn poll_now(&self) -> Option<CommitResult> {
        match &*self.0.state.lock() {
            State::Done(result) => Some(result.clone()),
            _ => None,
        }
    }

    /// Parks this thread until the result is there. Not for a thread of an async runtime.
    ///
    /// # Errors
    /// What the commit ended with.
    pub fn wait(self) -> CommitResult {
        let mut state = self.0.state.lock();
        loop {
            if let State::Done(result) = &*state {
                return result.clone();
            }
            *state = State::Parked;
            self.0.parked.wait(&mut state);
        }
    }
}

impl Future for Ticket {
    type Output = CommitResult;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<CommitResult> {
        let mut state = self.0.state.lock();
        match &mut *state {
            State::Done(result) => Poll::Ready(result.clone()),
            State::Pending(Some(waker)) if waker.will_wake(context.waker()) => Poll::Pending,
            other => {
                *other = State::Pending(Some(context.waker().clone()));
                Poll::Pending
            }
        }
    }
}
