//! How KILL reaches the statement that runs.
//!
//! Set on other threads, read on the session's.

use crate::error::{SqlError, SqlResult};
use omnibus_commit::Ticket;
use omnibus_engine::CommitNo;
use parking_lot::Mutex;
use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// The variable that bounds a statement's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeLimit {
    /// `max_execution_time`: error 3024.
    Query,
    /// MariaDB's `max_statement_time`: error 1969.
    Statement,
}

/// Set by KILL from another session, read by the running statement now and then.
#[derive(Debug, Default)]
pub struct KillFlag {
    killed: AtomicU8,
    /// When the running statement has taken its time; microseconds since `begin`, 0 for never.
    deadline_us: AtomicU64,
    /// The statement's thread, while it waits for its turn.
    parked: Mutex<Option<Thread>>,
    /// The statement's thread is in a commit, or waits for one.
    commits: AtomicBool,
    /// The time is `TimeLimit::Statement`.
    of_statement: AtomicBool,
    /// The server's limit for which the running statement is to give its memory back; 0: none.
    memory_limit: AtomicU64,
}

/// Wakes a thread that waits for a commit.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// How long a wait lasts at most before it looks for the statement's end again; what it waits for, KILL and the time limit wake it.
const LOOK: Duration = Duration::from_secs(10);

/// The time since this was first asked, and what deadlines are counted in. Never 0.
pub(super) fn now_us() -> u64 {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    let begin = *BEGIN.get_or_init(Instant::now);
    u64::try_from(begin.elapsed().as_micros()).unwrap_or(u64::MAX).max(1)
}

impl KillFlag {
    /// KILL QUERY: the statement ends with error 1317.
    pub fn kill_query(&self) {
        self.killed.fetch_max(1, Ordering::Relaxed);
        self.wake();
    }

    /// KILL CONNECTION: as above, and the session ends.
    pub fn kill_connection(&self) {
        self.killed.store(2, Ordering::Relaxed);
        self.wake();
    }

    /// Says which thread waits, so that KILL wakes it; it looks once more before it parks.
    pub(super) fn parks(&self, thread: Option<Thread>) {
        *self.parked.lock() = thread;
    }

    /// Sleeps until a time, at most until KILL.
    ///
    /// # Errors
    /// As `check`.
    pub fn sleep(&self, until: Instant) -> SqlResult<()> {
        self.parks(Some(std::thread::current()));
        let result = loop {
            if let Err(error) = self.check() {
                break Err(error);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break Ok(());
            }
            std::thread::park_timeout(self.time_left(left));
        };
        self.parks(None);
        result
    }

    /// Runs what commits, or waits for somebody's commit, or for what keeps commits.
    pub(crate) fn while_committing<R>(&self, work: impl FnOnce() -> R) -> R {
        let before = self.commits.swap(true, Ordering::Relaxed);
        let done = work();
        self.commits.store(before, Ordering::Relaxed);
        done
    }

    /// Whether the statement's thread is in a commit, or waits for one.
    #[must_use]
    pub fn is_committing(&self) -> bool {
        self.commits.load(Ordering::Relaxed)
    }

    /// Waits for the session's own commit. KILL takes it back where it has no place in the log yet. Where it has, KILL QUERY
    /// comes too late, and KILL CONNECTION ends the wait: the commit goes on, nobody is told of it, and this gives nothing
    /// (COMMIT-4). Blocks.
    pub fn finish(&self, ticket: Ticket) -> Option<SqlResult<CommitNo>> {
        let withdrawn = Cell::new(false);
        let done = self.wait_until(ticket, |ticket| {
            withdrawn.set(ticket.withdraw());
            withdrawn.get() || self.connection_killed()
        });
        match done {
            // No commit ends with that by itself.
            Err(error) if !withdrawn.get() && error.code == SqlError::query_interrupted().code => None,
            done => Some(done),
        }
    }

    /// As `finish`, for who has more to do once it is committed: where it has its place no KILL ends the wait.
    ///
    /// # Errors
    /// As `check`; what the commit ended with.
    pub fn settle(&self, ticket: Ticket) -> SqlResult<CommitNo> {
        self.wait_until(ticket, Ticket::withdraw)
    }

    /// Waits for a commit, at most until KILL, which leaves the commit to itself. Blocks.
    ///
    /// # Errors
    /// As `check`; what the commit ended with.
    pub fn wait(&self, ticket: Ticket) -> SqlResult<CommitNo> {
        self.wait_until(ticket, |_| true)
    }

    /// Waits for a commit until the statement is to end and `may_end` agrees.
    fn wait_until(&self, ticket: Ticket, may_end: impl Fn(&Ticket) -> bool) -> SqlResult<CommitNo> {
        if let Some(done) = ticket.poll_now() {
            return done.map_err(SqlError::of_commit);
        }
        self.while_committing(|| self.park_for(ticket, may_end))
    }

    fn park_for(&self, ticket: Ticket, may_end: impl Fn(&Ticket) -> bool) -> SqlResult<CommitNo> {
        let thread = std::thread::current();
        let waker = Waker::from(Arc::new(Unpark(thread.clone())));
        let (mut ticket, mut context) = (pin!(ticket), Context::from_waker(&waker));
        self.parks(Some(thread));
        let result = loop {
            if let Poll::Ready(done) = ticket.as_mut().poll(&mut context) {
                break done.map_err(SqlError::of_commit);
            }
            let ends = self.check();
            match ends {
                Err(error) if may_end(&ticket) => break Err(error),
                // Too late for that; KILL CONNECTION wakes it again.
                Err(_) => std::thread::park_timeout(LOOK),
                Ok(()) => std::thread::park_timeout(self.time_left(LOOK)),
            }
        };
        self.parks(None);
        result
    }

    /// Whether the statement, or the connection, was killed.
    #[must_use]
    pub fn is_killed(&self) -> bool {
        self.killed.load(Ordering::Relaxed) != 0
    }

    fn wake(&self) {
        if let Some(thread) = &*self.parked.lock() {
            thread.unpark();
        }
    }

    /// When the running query has taken too long, if there is such a time.
    pub(super) fn deadline_us(&self) -> Option<u64> {
        Some(self.deadline_us.load(Ordering::Relaxed)).filter(|at| *at != 0)
    }

    /// Whether the connection itself must end.
    #[must_use]
    pub fn connection_killed(&self) -> bool {
        self.killed.load(Ordering::Relaxed) == 2
    }

    /// Has the running statement end with an error when it has taken so long; 0: never.
    pub fn set_deadline(&self, milliseconds: u64, limit: TimeLimit) {
        self.of_statement.store(limit == TimeLimit::Statement, Ordering::Relaxed);
        let at = match milliseconds {
            0 => 0,
            milliseconds => now_us().saturating_add(milliseconds.saturating_mul(1000)).max(1),
        };
        self.deadline_us.store(at, Ordering::Relaxed);
    }

    /// The time that the running statement has left, at most `limit`: how long it may wait for something.
    #[must_use]
    pub fn time_left(&self, limit: Duration) -> Duration {
        match self.deadline_us.load(Ordering::Relaxed) {
            0 => limit,
            // Past the deadline, so that `check` fails then.
            at => limit.min(Duration::from_micros(at.saturating_sub(now_us()) + 1)),
        }
    }

    /// Takes the time limit away: the statement is over, or has none.
    pub fn clear_deadline(&self) {
        self.deadline_us.store(0, Ordering::Relaxed);
    }

    /// The running statement, of the session that holds most, ends with error 3170 where it computes next: another one found no room
    /// below the server's limit. Once: what handles that error goes on.
    pub fn give_memory_back(&self, limit: u64) {
        self.memory_limit.store(limit, Ordering::Relaxed);
    }

    /// Fails if the statement must give its memory back.
    pub(crate) fn check_memory(&self) -> SqlResult<()> {
        if self.memory_limit.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        match self.memory_limit.swap(0, Ordering::Relaxed) {
            0 => Ok(()),
            limit => Err(SqlError::memory_exceeded(limit, "global_connection_memory_limit")),
        }
    }

    /// Forgets KILL QUERY; called when a statement begins.
    pub fn reset(&self) {
        self.deadline_us.store(0, Ordering::Relaxed);
        self.memory_limit.store(0, Ordering::Relaxed);
        if self.killed.load(Ordering::Relaxed) != 2 {
            self.killed.store(0, Ordering::Relaxed);
        }
    }

    /// Fails if the statement must stop.
    pub fn check(&self) -> SqlResult<()> {
        match self.killed.load(Ordering::Relaxed) {
            0 => match self.deadline_us.load(Ordering::Relaxed) {
                0 => Ok(()),
                at if now_us() < at => Ok(()),
                _ if self.of_statement.load(Ordering::Relaxed) => Err(SqlError::statement_timeout()),
                _ => Err(SqlError::query_timeout()),
            },
            _ => Err(SqlError::query_interrupted()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use omnibus_commit::ticket_to_complete;

    #[test]
    fn a_wait_for_a_commit_ends_with_it_or_by_kill() {
        let kill = KillFlag::default();
        let (complete, ticket) = ticket_to_complete();
        let (_never, second) = ticket_to_complete();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| (kill.wait(ticket), kill.wait(second)));
            complete(Ok(CommitNo(7)));
            while kill.parked.lock().is_none() {
                std::thread::yield_now();
            }
            kill.kill_query();
            let (first, second) = waits.join().unwrap();
            assert_eq!(first.map_err(|error| error.code), Ok(CommitNo(7)));
            assert_eq!(second.map_err(|error| error.code), Err(1317));
        });
    }

    #[test]
    fn kill_withdraws_a_commit_that_waits_for_its_place() {
        // COMMIT-4
        let kill = KillFlag::default();
        let (_never, ticket) = ticket_to_complete();
        kill.kill_query();
        let done = kill.finish(ticket);
        assert_eq!(done.map(|done| done.map_err(|error| error.code)), Some(Err(1317)));
        assert!(!kill.is_committing());
        // One that is under way has its result, or none if the connection ends.
        let (complete, ticket) = ticket_to_complete();
        assert!(ticket.withdraw());
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| kill.settle(ticket));
            while !kill.is_committing() {
                std::thread::yield_now();
            }
            complete(Ok(CommitNo(7)));
            assert_eq!(waits.join().unwrap().map_err(|error| error.code), Ok(CommitNo(7)));
        });
        let (_never, ticket) = ticket_to_complete();
        assert!(ticket.withdraw());
        kill.kill_connection();
        assert!(kill.finish(ticket).is_none(), "nobody is told anything");
    }

    #[test]
    fn a_commit_that_failed_is_told_as_that() {
        let failed = Ticket::done(Err(omnibus_commit::CommitError::ShuttingDown));
        assert_eq!(KillFlag::default().wait(failed).unwrap_err().code, 1180);
    }
}
