//! A channel's threads as an administrator sees them: lines of SHOW PROCESSLIST that KILL reaches, and what each does now
//! and did last, for `performance_schema`.
//!
//! Threads write their own; who looks takes one short lock. What a thread did last stays when it has ended.

use super::{Env, Parts};
use crate::process::{Describe, Process, Processes, ThreadState};
use omnibus_format::Dialect;
use omnibus_replication::model::TrxHeader;
use omnibus_replication::replica::{ChannelStatus, ErrorAt, IoRunning, Queue, StatusData, TrxTimes};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// A line of SHOW PROCESSLIST; dropped by the thread that it is about when that ends.
pub(super) struct Entry {
    process: Arc<Process>,
    processes: Arc<Processes>,
}

impl Entry {
    pub(super) fn new(server: &Parts, host: &str, describe: Describe) -> Entry {
        let processes = server.processes.clone();
        Entry { process: processes.register_thread(host, describe), processes }
    }

    /// Its number, for KILL and for its locks.
    pub(super) fn id(&self) -> u32 {
        self.process.id
    }

    /// Sets the action of KILL.
    pub(super) fn on_kill(&self, end: impl Fn() + Send + Sync + 'static) {
        self.process.set_kill_hook(Box::new(end));
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.processes.remove(self.process.id);
    }
}

/// The Command column: MariaDB says which kind of thread it is.
fn command(server: &Parts, mysql: &'static str, mariadb: &'static str) -> &'static str {
    if server.log.dialect() == Dialect::Mysql { mysql } else { mariadb }
}

/// Of a receiver.
pub(super) fn receiver_entry(server: &Parts, status: Arc<ChannelStatus>) -> Entry {
    let command = command(server, "Connect", "Slave_IO");
    let describe = move || {
        let state = status.update(|s| s.io_state);
        ThreadState { command, state, since_us: 0 }
    };
    Entry::new(server, "connecting host", Box::new(describe))
}

/// Of the thread that feeds an applier's workers.
pub(super) fn coordinator_entry(
    server: &Parts,
    status: Arc<ChannelStatus>,
    queue: Arc<Queue>,
    lane: Arc<Lane>,
) -> Entry {
    let command = command(server, "Query", "Slave_SQL");
    let describe = move || {
        let state = sql_state(&status.snapshot(), &queue);
        ThreadState { command, state, since_us: lane.since_us() }
    };
    Entry::new(server, "", Box::new(describe))
}

/// Of a worker.
pub(super) fn worker_entry(server: &Parts, lane: Arc<Lane>) -> Entry {
    let command = command(server, "Query", "Slave_worker");
    let describe = move || ThreadState { command, state: lane.state(), since_us: lane.since_us() };
    Entry::new(server, "", Box::new(describe))
}

/// The activity of an applier's first thread, in MySQL's words.
pub(super) fn sql_state(status: &StatusData, queue: &Queue) -> &'static str {
    let idle = status.sql_running && queue.is_empty() && status.sql_state == FEEDING;
    if idle && status.io != IoRunning::No { READ_ALL } else { status.sql_state }
}

/// The state of an applier that has something to do, or waits for a receiver.
pub(super) const FEEDING: &str = "Waiting for the next event";
const READ_ALL: &str = "Replica has read all relay log; waiting for more updates";

/// The activity of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Doing {
    Waiting,
    Executing,
    /// Executed; an earlier one commits first.
    Turn,
}

const STATES: [&str; 3] =
    ["Waiting for an event from Coordinator", "executing", "Waiting for preceding transaction to commit"];

/// The current and the last activity of an applier's thread.
#[derive(Default)]
pub(super) struct Lane {
    /// Its number in SHOW PROCESSLIST; 0 before it has one.
    id: AtomicU32,
    doing: AtomicU8,
    facts: Mutex<LaneFacts>,
}

/// See [`Lane`].
#[derive(Clone, Debug, Default)]
pub(super) struct LaneFacts {
    pub(super) last: TrxTimes,
    pub(super) last_tries: Tries,
    pub(super) current: TrxTimes,
    pub(super) current_tries: Tries,
    /// The error it ended with.
    pub(super) error: ErrorAt,
}

/// The failed attempts at a transaction that were tried again.
#[derive(Clone, Debug, Default)]
pub(super) struct Tries {
    pub(super) count: u64,
    pub(super) error: ErrorAt,
}

impl Lane {
    pub(super) fn set_id(&self, id: u32) {
        self.id.store(id, Ordering::Relaxed);
    }

    pub(super) fn id(&self) -> u32 {
        self.id.load(Ordering::Relaxed)
    }

    pub(super) fn doing(&self, doing: Doing) {
        self.doing.store(doing as u8, Ordering::Relaxed);
    }

    fn state(&self) -> &'static str {
        STATES[usize::from(self.doing.load(Ordering::Relaxed)).min(STATES.len() - 1)]
    }

    /// A transaction begins.
    pub(super) fn begin(&self, trx: TrxHeader) {
        self.doing(Doing::Executing);
        self.facts.lock().current = TrxTimes::begin(trx);
    }

    /// It is done.
    pub(super) fn end(&self) {
        self.doing(Doing::Waiting);
        let facts = &mut *self.facts.lock();
        if facts.current.trx.is_some() {
            facts.current.end(&mut facts.last);
            facts.last_tries = std::mem::take(&mut facts.current_tries);
        }
    }

    /// It did not come to its end, and comes again.
    pub(super) fn drop_current(&self) {
        self.doing(Doing::Waiting);
        let mut facts = self.facts.lock();
        facts.current = TrxTimes::default();
        facts.current_tries = Tries::default();
    }

    /// It is to be tried again.
    pub(super) fn again(&self, error: Option<ErrorAt>) {
        self.doing(Doing::Executing);
        let mut facts = self.facts.lock();
        facts.current_tries.count += 1;
        if let Some(error) = error {
            facts.current_tries.error = error;
        }
    }

    pub(super) fn failed(&self, error: ErrorAt) {
        self.facts.lock().error = error;
    }

    pub(super) fn facts(&self) -> LaneFacts {
        self.facts.lock().clone()
    }

    /// Since when it does what it does, in microseconds since 1970; 0 for since it began.
    fn since_us(&self) -> i64 {
        let facts = self.facts.lock();
        if facts.current.trx.is_some() { facts.current.began_us } else { facts.last.ended_us }
    }
}

/// The threads of an applier, the present one or the last.
#[derive(Default)]
pub(super) struct Lanes {
    pub(super) coordinator: Arc<Lane>,
    pub(super) workers: Vec<Arc<Lane>>,
}

impl Lanes {
    pub(super) fn new(workers: usize) -> Lanes {
        Lanes { coordinator: Arc::default(), workers: (0..workers).map(|_| Arc::default()).collect() }
    }
}

/// Entries of an applier's threads.
pub(super) struct Entries {
    pub(super) coordinator: Entry,
    pub(super) workers: Vec<Entry>,
}

impl Entries {
    pub(super) fn new(env: &Env, lanes: &Lanes, status: &Arc<ChannelStatus>, queue: &Arc<Queue>) -> Entries {
        let lane = lanes.coordinator.clone();
        let coordinator = coordinator_entry(&env.server, status.clone(), queue.clone(), lane);
        let worker = |lane: &Arc<Lane>| worker_entry(&env.server, lane.clone());
        let workers: Vec<_> = lanes.workers.iter().map(worker).collect();
        let all = [&lanes.coordinator].into_iter().chain(&lanes.workers);
        for (lane, entry) in all.zip([&coordinator].into_iter().chain(&workers)) {
            lane.set_id(entry.id());
        }
        Entries { coordinator, workers }
    }

    pub(super) fn on_kill(&self, end: impl Fn() + Send + Sync + Clone + 'static) {
        for entry in [&self.coordinator].into_iter().chain(&self.workers) {
            entry.on_kill(end.clone());
        }
    }
}
