//! The applier of a channel: takes transactions from the queue, decides what is to be done with each, gives it a place,
//! and hands it to the workers. One thread for that, one for each worker, one that waits for commits to be durable.
//!
//! A transaction is begun only when it is whole (or alone, if it is too large to be kept); it is applied with the
//! position behind it (APPLY-1).

mod feeding;

use super::Env;
use super::jobs::{Done, Job, Plan, Reached, Slot, Work};
use super::threads::{Entries, Entry, FEEDING, Lane, Lanes};
use super::worker;
use omnibus_commit::{CommitError, Ticket};
use omnibus_replication::replica::{ChannelStatus, ErrorAt, Queue, Receiver, SourcePosition, Turns, Until};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver as Inbox, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Transactions that are enrolled and not durable yet, at most.
const IN_FLIGHT: usize = 1024;
/// Transactions handed to the workers and not begun, for each of them.
const AHEAD: usize = 16;
/// Commits looked at together when they become durable.
const BATCH: usize = 64;
/// How long the feeding thread waits for something before it looks at the conditions again.
const TICK: Duration = Duration::from_millis(100);

/// Shared by the threads.
pub(super) struct Applying {
    pub(super) env: Env,
    pub(super) plan: Plan,
    pub(super) status: Arc<ChannelStatus>,
    pub(super) queue: Arc<Queue>,
    pub(super) receiver: Arc<Mutex<Option<Receiver>>>,
    pub(super) turns: Turns,
    pub(super) slots: Vec<Slot>,
    lane: Arc<Lane>,
    work: Work,
    stop: AtomicBool,
    /// Place and timestamp of what is not durable yet.
    in_flight: Mutex<VecDeque<(u64, u32)>>,
    /// The last one that is durable.
    finished: AtomicU64,
    /// Where a transaction in pieces ended.
    pub(super) reached: Mutex<Option<Reached>>,
}

/// The threads of a running applier. Dropped, they are stopped.
pub(super) struct ApplierThreads {
    shared: Arc<Applying>,
    thread: Option<JoinHandle<()>>,
}

impl ApplierThreads {
    /// Starts the threads.
    pub(super) fn start(
        env: Env,
        plan: Plan,
        lanes: &Lanes,
        status: Arc<ChannelStatus>,
        queue: Arc<Queue>,
        receiver: Arc<Mutex<Option<Receiver>>>,
    ) -> std::io::Result<ApplierThreads> {
        status.update(|s| {
            s.sql_running = true;
            s.sql_state = FEEDING;
            s.sql_error = ErrorAt::default();
        });
        let entries = Entries::new(&env, lanes, &status, &queue);
        let slots = lanes.workers.iter().map(Slot::new).collect();
        let shared = Arc::new(Applying {
            env,
            plan,
            status,
            queue,
            receiver,
            turns: Turns::default(),
            slots,
            lane: lanes.coordinator.clone(),
            work: Work::default(),
            stop: AtomicBool::new(false),
            in_flight: Mutex::default(),
            finished: AtomicU64::new(0),
            reached: Mutex::default(),
        });
        let weak = Arc::downgrade(&shared);
        entries.on_kill(move || {
            if let Some(applying) = weak.upgrade() {
                tracing::info!(channel = %applying.plan.channel, "replication applier: ended by KILL");
                applying.end(true);
            }
        });
        let thread = {
            let shared = shared.clone();
            on_stack("replica-sql".into()).spawn(move || shared.run(entries))?
        };
        Ok(ApplierThreads { shared, thread: Some(thread) })
    }

    /// Whether it applies, and does not only end.
    pub(super) fn is_running(&self) -> bool {
        !self.shared.stopping() && self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Timestamp of the oldest transaction that is not durable yet; 0 for none.
    pub(super) fn oldest(&self) -> u32 {
        self.shared.in_flight.lock().front().map_or(0, |&(_, timestamp)| timestamp)
    }

    /// UNTIL, if it was started so.
    pub(super) fn until(&self) -> Option<&Until> {
        self.shared.plan.until.as_ref()
    }

    /// How many workers.
    pub(super) fn workers(&self) -> usize {
        self.shared.slots.len()
    }

    /// Stops. A transaction that is begun is finished, unless it waits for a lock of somebody else's; with `hurry` all are rolled back.
    pub(super) fn stop(&mut self, hurry: bool) {
        self.shared.end(hurry);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for ApplierThreads {
    fn drop(&mut self) {
        self.stop(true);
    }
}

/// How feeding ended.
enum Fed {
    Stopped,
    /// UNTIL.
    Reached,
}

impl Applying {
    /// Whether somebody wants it to end.
    pub(super) fn stopping(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Ends it soon; see [`ApplierThreads::stop`].
    fn end(&self, hurry: bool) {
        self.stop.store(true, Ordering::SeqCst);
        self.queue.wake();
        self.work.close();
        self.interrupt(hurry);
    }

    /// The next job of a worker.
    pub(super) fn next_job(&self) -> Option<Job> {
        self.work.pop(self.room())
    }

    /// Ends everything with an error.
    pub(super) fn fail(&self, code: u16, message: String) {
        tracing::error!(channel = %self.plan.channel, code, "replication applier: {message}");
        // First, so that whoever sees the error can start it again.
        self.stop.store(true, Ordering::SeqCst);
        self.status.sql_error(code, message);
        self.turns.end();
        self.work.close();
        self.queue.wake();
    }

    /// Begins again from the applied position without an error: what was received behind `number` is gone. Everything
    /// before it must be durable, or it would come again.
    pub(super) fn lose(&self, number: u64) {
        while !self.stopping() && self.finished.load(Ordering::SeqCst) + 1 < number {
            std::thread::sleep(Duration::from_millis(1));
        }
        if let Some(receiver) = &*self.receiver.lock() {
            receiver.restart();
        }
    }

    /// Ends lock waits, and with `all` whatever else is being done.
    fn interrupt(&self, all: bool) {
        if all {
            self.turns.end();
        }
        for slot in &self.slots {
            if all {
                slot.kill.kill_query();
            }
            if let Some(wake) = slot.waiter.get() {
                wake();
            }
        }
    }

    /// Whether an earlier transaction waits for a lock of this worker's.
    pub(super) fn is_in_the_way(&self, slot: usize, number: u64) -> bool {
        let own = u64::from(self.slots[slot].session);
        self.env.database.locks().waits().iter().any(|wait| {
            wait.blockers.contains(&own)
                && self.slots.iter().any(|other| {
                    let at = other.number.load(Ordering::SeqCst);
                    u64::from(other.session) == wait.waiter && at != 0 && at < number
                })
        })
    }

    fn run(self: Arc<Self>, entries: Entries) {
        let Entries { coordinator: _own, workers } = entries;
        let (sender, inbox) = sync_channel::<Done>(IN_FLIGHT);
        let mut threads = Vec::new();
        let finisher = self.clone();
        let finisher = on_stack("replica-end".into()).spawn(move || finisher.finish(&inbox));
        for (slot, entry) in workers.into_iter().enumerate() {
            let (own, sender) = (self.clone(), sender.clone());
            let name = format!("replica-w{}", slot + 1);
            let work = move || {
                // Until its session has ended.
                let _entry: Entry = entry;
                worker::run(&own, slot, &sender);
            };
            match on_stack(name).spawn(work) {
                Ok(thread) => threads.push(thread),
                Err(error) => self.fail(1135, format!("Can't create a new thread: {error}")),
            }
        }
        drop(sender);
        if let Fed::Reached = self.feed() {
            // What was handed over is to be finished first.
            self.drain();
            tracing::info!(channel = %self.plan.channel, "replication applier: UNTIL is reached");
        }
        self.work.close();
        for thread in threads {
            let _ = thread.join();
        }
        if let Ok(finisher) = finisher {
            let _ = finisher.join();
        }
        self.status.update(|s| {
            s.sql_running = false;
            s.sql_state = "";
            s.delayed_until = 0;
        });
    }

    /// Until everything handed over is enrolled, or it ends.
    fn drain(&self) {
        let mut last = self.in_flight.lock().back().map_or(0, |&(number, _)| number);
        last = last.max(self.turns.enrolled());
        while !self.stopping() && self.turns.wait(last, TICK) == Some(false) {}
    }

    /// Waits for commits in their order and says so: to the status, and to a source that waits.
    fn finish(&self, inbox: &Inbox<Done>) {
        let mut batch = Vec::with_capacity(BATCH);
        while let Ok(first) = inbox.recv() {
            batch.push(first);
            batch.extend(inbox.try_iter().take(BATCH - 1));
            let failed = wait_durable(&mut batch);
            if let Some((at, _)) = &failed {
                batch.truncate(*at);
            }
            self.finished_all(&mut batch);
            if let Some((_, error)) = failed {
                return self.fail(1180, format!("Got error while committing: {error}"));
            }
        }
    }

    /// They are durable.
    fn finished_all(&self, batch: &mut Vec<Done>) {
        let applied = batch.iter().filter(|done| done.applied).count() as u64;
        let events: u64 = batch.iter().map(|done| done.events).sum();
        let definitions = batch.iter().filter(|done| done.defines).count() as u64;
        let acknowledge = batch.iter().rfind(|done| done.wants_ack).map(|done| done.position.source.clone());
        let mut last = None;
        for done in batch.drain(..) {
            drop(done.guard);
            last = Some((done.number, done.position));
        }
        let Some((number, position)) = last else { return };
        self.finished.store(number, Ordering::SeqCst);
        self.status.update(|s| {
            s.applied = position;
            s.applied_count += applied;
            s.applied_events += events;
            s.definitions += definitions;
        });
        {
            let mut in_flight = self.in_flight.lock();
            while in_flight.front().is_some_and(|&(first, _)| first <= number) {
                in_flight.pop_front();
            }
        }
        if let Some(at) = acknowledge {
            self.acknowledge(&at);
        }
    }

    fn acknowledge(&self, at: &SourcePosition) {
        // Whoever stops the receiver holds the lock; nobody waits for an acknowledgement then.
        if let Some(receiver) = self.receiver.try_lock_for(Duration::from_millis(100))
            && let Some(receiver) = &*receiver
        {
            receiver.acknowledge(at);
        }
    }
}

/// Waits for all of them; says which one failed first. The last one is waited for first: the others are then done, and
/// this thread is not woken once for each.
fn wait_durable(batch: &mut [Done]) -> Option<(usize, CommitError)> {
    let end = batch.iter_mut().enumerate().rev().find_map(|(at, done)| Some((at, done.ticket.take()?)));
    let end = end.map(|(at, ticket)| (at, ticket.wait()));
    for (at, done) in batch.iter_mut().enumerate() {
        if let Some(Err(error)) = done.ticket.take().map(Ticket::wait) {
            return Some((at, error));
        }
    }
    end.and_then(|(at, result)| Some((at, result.err()?)))
}

/// A thread that runs statements of a source.
fn on_stack(name: String) -> std::thread::Builder {
    std::thread::Builder::new().name(name).stack_size(omnibus_value::stack::STACK_BYTES)
}
