//! The answer to a request, and a wait in progress.

use crate::manager::LockManager;
use crate::outcome::WaitOutcome;
use crate::released::Taken;
use crate::stats::LockTarget;
use crate::sync::thread;
use crate::trx::{Parked, Trx};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// The answer to a lock request.
#[must_use]
pub enum Request {
    /// The lock is held now.
    Granted {
        /// Whether this request changed anything; `false` if the transaction already held an equal or stronger lock.
        /// Only a fresh lock may be released early (`TrxLocks::release_record`).
        fresh: bool,
    },
    /// It will be held when the wait reports so. Dropping the wait withdraws the request.
    Wait(LockWait),
}

impl Request {
    /// Waits on this thread if need be.
    pub fn wait(self, timeout: Duration) -> WaitOutcome {
        match self {
            Request::Granted { .. } => WaitOutcome::Granted,
            Request::Wait(wait) => wait.wait(timeout),
        }
    }

    /// Returns whether the lock is held already.
    #[must_use]
    pub fn is_granted(&self) -> bool {
        matches!(self, Request::Granted { .. })
    }
}

/// A queued request. Park on it with `wait`, or await it and `cancel` when a timer fires first.
#[must_use]
pub struct LockWait {
    manager: Arc<LockManager>,
    trx: Arc<Trx>,
    ticket: u64,
    since: Instant,
    upgrade: bool,
    taken: Taken,
    finished: bool,
}

impl std::fmt::Debug for LockWait {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LockWait").field("trx", &self.trx.id).finish_non_exhaustive()
    }
}

impl LockWait {
    pub(crate) fn new(
        manager: Arc<LockManager>,
        trx: Arc<Trx>,
        ticket: u64,
        upgrade: bool,
        taken: Taken,
    ) -> LockWait {
        LockWait { manager, trx, ticket, since: Instant::now(), upgrade, taken, finished: false }
    }

    /// Returns whether a weaker lock of the same object is held already. If not, the lock that is waited for may be
    /// released early.
    #[must_use]
    pub fn is_upgrade(&self) -> bool {
        self.upgrade
    }

    /// The lock that is waited for; `None` once the wait has ended.
    #[must_use]
    pub fn target(&self) -> Option<LockTarget> {
        self.trx.waiting_for().filter(|(ticket, _)| *ticket == self.ticket).map(|(_, target)| target.told())
    }

    /// The outcome, if the wait has ended.
    #[must_use]
    pub fn outcome(&self) -> Option<WaitOutcome> {
        self.trx.outcome_of(self.ticket)
    }

    /// The time when the wait began.
    #[must_use]
    pub fn since(&self) -> Instant {
        self.since
    }

    /// Parks this thread until the wait ends or `timeout` has passed.
    pub fn wait(mut self, timeout: Duration) -> WaitOutcome {
        match self.park_until(self.since.checked_add(timeout)) {
            Some(outcome) => outcome,
            None => self.give_up(WaitOutcome::Timeout),
        }
    }

    /// Parks this thread until the wait ends or the time has passed; `None`: the request is still queued.
    pub fn park_until(&mut self, deadline: Option<Instant>) -> Option<WaitOutcome> {
        loop {
            let parked = Parked::Thread(thread::current());
            if let Some(outcome) = self.trx.poll(self.ticket, parked) {
                return Some(self.finish(outcome));
            }
            match deadline.map(|at| at.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => return None,
                Some(left) => thread::park_timeout(left),
                None => thread::park(),
            }
        }
    }

    /// Withdraws the request because the caller's timer fired. Tells what came first: the lock may
    /// have been granted meanwhile.
    pub fn cancel(mut self) -> WaitOutcome {
        self.give_up(WaitOutcome::Timeout)
    }

    fn give_up(&mut self, outcome: WaitOutcome) -> WaitOutcome {
        self.manager.resolve_wait(&self.trx, Some(self.ticket), outcome);
        let outcome = self.outcome().unwrap_or(outcome);
        self.finish(outcome)
    }

    fn finish(&mut self, outcome: WaitOutcome) -> WaitOutcome {
        if !std::mem::replace(&mut self.finished, true) {
            if outcome == WaitOutcome::Granted {
                self.manager.given(&self.trx, self.taken);
            }
            self.manager.wait_ended(&self.trx, self.ticket, self.since.elapsed(), outcome);
        }
        outcome
    }
}

impl Future for LockWait {
    type Output = WaitOutcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<WaitOutcome> {
        match self.trx.poll(self.ticket, Parked::Task(context.waker().clone())) {
            Some(outcome) => Poll::Ready(self.finish(outcome)),
            None => Poll::Pending,
        }
    }
}

impl Drop for LockWait {
    fn drop(&mut self) {
        if !self.finished {
            self.give_up(WaitOutcome::Timeout);
        }
    }
}
