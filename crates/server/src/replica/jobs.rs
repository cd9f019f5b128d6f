//! What the threads of an applier hand to each other: jobs, what is done, and what they know of one another.

use super::threads::Lane;
use omnibus_commit::{GtidGuard, Ticket};
use omnibus_replication::replica::{ChannelConfig, ChannelPosition, Filters, Place, Received, Until};
use omnibus_sql::KillFlag;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

/// What a worker is to do.
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
    pub(super) place: Place,
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

/// What is fixed while it runs.
pub(super) struct Plan {
    pub(super) channel: String,
    pub(super) config: ChannelConfig,
    pub(super) filters: Arc<Filters>,
    pub(super) until: Option<Until>,
    pub(super) retries: u64,
    pub(super) same_server_id: bool,
    /// What is marked with `skip_replication` is left out.
    pub(super) skip_marked: bool,
    /// The log is MariaDB's and has no place for MySQL's GTIDs of what is applied: the position must have them.
    pub(super) keeps_gtids: bool,
    pub(super) server_id: u32,
    pub(super) apply: omnibus_sql::apply::ApplySettings,
}

/// Jobs that no worker has begun.
#[derive(Default)]
pub(super) struct Work {
    state: Mutex<(VecDeque<Job>, bool)>,
    changed: Condvar,
}

impl Work {
    /// Hands a job over once there is room; `false` when nobody takes any more.
    pub(super) fn push(&self, job: Job, room: usize) -> bool {
        let mut state = self.state.lock();
        while !state.1 && state.0.len() >= room {
            self.changed.wait(&mut state);
        }
        if state.1 {
            return false;
        }
        state.0.push_back(job);
        self.changed.notify_all();
        true
    }

    /// The next job; waits. `None`: there will be none.
    pub(super) fn pop(&self) -> Option<Job> {
        let mut state = self.state.lock();
        loop {
            if state.1 {
                return None;
            }
            if let Some(job) = state.0.pop_front() {
                self.changed.notify_all();
                return Some(job);
            }
            self.changed.wait(&mut state);
        }
    }

    /// What is begun is finished; the rest is dropped.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.1 = true;
        state.0.clear();
        self.changed.notify_all();
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
