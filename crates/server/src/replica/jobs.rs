//! The exchange between the threads of an applier: jobs, what is done, and what they know of one another.

use super::threads::Lane;
use omnibus_commit::{GtidGuard, Ticket};
use omnibus_replication::replica::{ChannelConfig, ChannelPosition, Filters, Received, Turn, Until};
use omnibus_sql::KillFlag;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

/// The task of a worker.
pub(super) enum Task {
    /// Apply a whole transaction.
    Apply,
    /// Apply one whose first piece this is; the others are in the queue.
    Pieces,
    /// Only its identity and position.
    Empty,
    /// Nothing; the position goes on with the next one.
    Pass,
}

/// A transaction with its place.
pub(super) struct Job {
    pub(super) task: Task,
    /// `None` for a mere change of position.
    pub(super) received: Option<Box<Received>>,
    pub(super) place: Turn,
    /// Behind it.
    pub(super) position: ChannelPosition,
    /// The source waits until it is safe.
    pub(super) wants_ack: bool,
}

/// The end of a transaction that came in pieces.
#[derive(Clone)]
pub(super) struct Reached {
    pub(super) position: ChannelPosition,
    pub(super) wants_ack: bool,
    pub(super) events: u64,
}

/// A transaction that is enrolled.
pub(super) struct Done {
    pub(super) number: u64,
    /// It is a definition.
    pub(super) defines: bool,
    /// Events that its position is behind.
    pub(super) events: u64,
    /// It changed something; `ticket` is then there until it was waited for.
    pub(super) applied: bool,
    pub(super) ticket: Option<Ticket>,
    pub(super) position: ChannelPosition,
    pub(super) wants_ack: bool,
    /// Given back when the commit is durable.
    pub(super) guard: Option<GtidGuard>,
}

/// A worker as others see it.
pub(super) struct Slot {
    /// Its session's number, which is its locks' too.
    pub(super) session: u32,
    /// The place of what it does; 0 for nothing.
    pub(super) number: AtomicU64,
    pub(super) kill: Arc<KillFlag>,
    pub(super) waiter: OnceLock<Box<dyn Fn() + Send + Sync>>,
    pub(super) lane: Arc<Lane>,
}

/// The settings that are fixed while it runs.
pub(super) struct Plan {
    pub(super) channel: String,
    pub(super) config: ChannelConfig,
    pub(super) filters: Arc<Filters>,
    pub(super) until: Option<Until>,
    pub(super) retries: u64,
    pub(super) same_server_id: bool,
    /// Transactions marked with `skip_replication` are left out.
    pub(super) skip_marked: bool,
    /// The log is MariaDB's and has no place for MySQL's GTIDs of what is applied: the position must have them.
    pub(super) keeps_gtids: bool,
    pub(super) server_id: u32,
    pub(super) apply: omnibus_sql::apply::ApplySettings,
}

impl Job {
    /// Bytes of its events.
    fn size(&self) -> usize {
        self.received.as_ref().map_or(0, |received| received.events.size())
    }
}

/// Bytes of transactions that no worker has begun, from which on no more are handed over.
const MOST_BYTES: usize = 16 << 20;

/// Jobs that no worker has begun.
#[derive(Default)]
pub(super) struct Work {
    state: Mutex<WorkState>,
    /// For workers.
    there: Condvar,
    /// For the feeding thread.
    room: Condvar,
}

#[derive(Default)]
struct WorkState {
    jobs: VecDeque<Job>,
    bytes: usize,
    closed: bool,
    /// Workers that wait for a job.
    idle: usize,
    /// The feeding thread waits for room.
    full: bool,
}

impl Work {
    /// Hands jobs over once there is room; `false` when nobody takes any more. One worker is woken, and it wakes the next
    /// one if it finds more than it takes: where there is little to do, one does it all.
    pub(super) fn push(&self, jobs: &mut Vec<Job>, room: usize) -> bool {
        let mut state = self.state.lock();
        while !state.closed && (state.jobs.len() >= room || state.bytes >= MOST_BYTES) {
            state.full = true;
            self.room.wait(&mut state);
        }
        if state.closed {
            jobs.clear();
            return false;
        }
        state.bytes += jobs.iter().map(Job::size).sum::<usize>();
        state.jobs.extend(jobs.drain(..));
        let wake = state.idle > 0;
        drop(state);
        if wake {
            self.there.notify_one();
        }
        true
    }

    /// The next job; waits. `None`: there will be none.
    pub(super) fn pop(&self, room: usize) -> Option<Job> {
        let mut state = self.state.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(job) = state.jobs.pop_front() {
                state.bytes -= job.size();
                let next = state.idle > 0 && !state.jobs.is_empty();
                // Not at once: the feeding thread is to find room for many.
                let refill = state.full && state.jobs.len() <= room / 2 && state.bytes <= MOST_BYTES / 2;
                state.full &= !refill;
                drop(state);
                if next {
                    self.there.notify_one();
                }
                if refill {
                    self.room.notify_one();
                }
                return Some(job);
            }
            state.idle += 1;
            self.there.wait(&mut state);
            state.idle -= 1;
        }
    }

    /// Closes the queue: transactions that are begun are finished, the rest is dropped.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.jobs.clear();
        state.bytes = 0;
        self.there.notify_all();
        self.room.notify_all();
    }
}

impl Slot {
    pub(super) fn new(lane: &Arc<Lane>) -> Slot {
        Slot {
            session: lane.id(),
            lane: lane.clone(),
            number: AtomicU64::new(0),
            kill: Arc::new(KillFlag::default()),
            waiter: OnceLock::new(),
        }
    }
}
