//! The applier of a channel: takes transactions from the queue, decides what is to be done with each, gives it a place,
//! and hands it to the workers. One thread for that, one for each worker, one that waits for commits to be durable.
//!
//! A transaction is begun only when it is whole (or alone, if it is too large to be kept); it is applied with the
//! position behind it (APPLY-1).

use super::Env;
use super::jobs::{Done, Job, Plan, Slot, Task, Work};
use super::keys::CatalogKeys;
use super::threads::{Entries, Entry, FEEDING, Lane, Lanes};
use super::worker;
use omnibus_format::AnyGtid;
use omnibus_replication::replica::{
    ChannelPosition, ChannelStatus, ErrorAt, GtidUse, Item, Queue, Received, Receiver, Schedule,
    SourcePosition, Turns, Until, WriteSet,
};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver as Inbox, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Transactions that are enrolled and not durable yet, at most.
const IN_FLIGHT: usize = 1024;
/// Transactions handed to the workers and not begun, for each of them.
const AHEAD: usize = 16;
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
    /// Where a transaction in pieces ended, and whether the source waits for it.
    pub(super) reached: Mutex<Option<(ChannelPosition, bool)>>,
}

/// A running applier. Dropped, it is stopped.
pub(super) struct Applier {
    shared: Arc<Applying>,
    thread: Option<JoinHandle<()>>,
}

impl Applier {
    /// Starts the threads.
    pub(super) fn start(
        env: Env,
        plan: Plan,
        lanes: &Lanes,
        status: Arc<ChannelStatus>,
        queue: Arc<Queue>,
        receiver: Arc<Mutex<Option<Receiver>>>,
    ) -> std::io::Result<Applier> {
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
            std::thread::Builder::new().name("replica-sql".into()).spawn(move || shared.run(entries))?
        };
        Ok(Applier { shared, thread: Some(thread) })
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

    /// What is begun is finished, unless it waits for a lock of somebody else's; with `hurry` all of it is rolled back.
    pub(super) fn stop(&mut self, hurry: bool) {
        self.shared.end(hurry);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Applier {
    fn drop(&mut self) {
        self.stop(true);
    }
}

/// What UNTIL says of a transaction.
enum Limit {
    Within,
    /// Applying ends before it.
    Stop,
    /// Its domain is where it should be, others are not: it is left for later, and the position does not move over it.
    Leave,
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

    /// Ends it soon; see [`Applier::stop`].
    fn end(&self, hurry: bool) {
        self.stop.store(true, Ordering::SeqCst);
        self.queue.wake();
        self.work.close();
        self.interrupt(hurry);
    }

    /// The next job of a worker.
    pub(super) fn next_job(&self) -> Option<Job> {
        self.work.pop()
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
        let finisher =
            std::thread::Builder::new().name("replica-end".into()).spawn(move || finisher.finish(&inbox));
        for (slot, entry) in workers.into_iter().enumerate() {
            let (own, sender) = (self.clone(), sender.clone());
            let name = format!("replica-w{}", slot + 1);
            let work = move || {
                // Until its session has ended.
                let _entry: Option<Entry> = entry;
                worker::run(&own, slot, &sender);
            };
            match std::thread::Builder::new().name(name).spawn(work) {
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

    /// Waits until a transaction may be applied; false for one that UNTIL leaves out.
    fn admit(&self, received: &Received) -> ControlFlow<Fed, bool> {
        match self.until_of(received) {
            Limit::Within => {}
            Limit::Stop => return ControlFlow::Break(Fed::Reached),
            Limit::Leave => return ControlFlow::Continue(false),
        }
        if self.wait_for_delay(received) {
            ControlFlow::Continue(true)
        } else {
            ControlFlow::Break(Fed::Stopped)
        }
    }

    fn feed(&self) -> Fed {
        let keys = CatalogKeys::new(self.env.database.clone(), self.plan.filters.clone());
        let mut schedule = Schedule::default();
        let mut at = self.status.snapshot().applied;
        while !self.stopping() {
            if self.is_reached(&at) {
                return Fed::Reached;
            }
            let Some(item) = self.queue.pop(TICK) else { continue };
            match item {
                Item::Trx(received) => {
                    match self.admit(&received) {
                        ControlFlow::Break(end) => return end,
                        ControlFlow::Continue(false) => continue,
                        ControlFlow::Continue(true) => {}
                    }
                    self.one(received, &mut schedule, &keys, &mut at);
                }
                Item::First(received) => {
                    match self.admit(&received) {
                        ControlFlow::Break(end) => return end,
                        ControlFlow::Continue(false) => continue,
                        ControlFlow::Continue(true) => {}
                    }
                    self.pieces(received, &mut schedule, &mut at);
                }
                Item::Moved(to, wants_ack) => {
                    at.source = to;
                    self.pass(None, wants_ack, &mut schedule, &at);
                }
                // Of a transaction that is not applied.
                Item::More { end, .. } => {
                    if let Some((end, _)) = end {
                        at.source = end;
                    }
                }
                Item::Gone => {}
            }
        }
        Fed::Stopped
    }

    /// UNTIL, before the next transaction is there. GTIDs are looked for only when nothing is on its way.
    fn is_reached(&self, at: &ChannelPosition) -> bool {
        let Some(until) = &self.plan.until else { return false };
        if matches!(until, Until::AfterGtids(_))
            && !self.in_flight.lock().is_empty()
            && !self.queue.is_empty()
        {
            return false;
        }
        until.is_reached(&at.source, &at.gtids, &|| self.env.coordinator.gtid_executed())
    }

    fn until_of(&self, received: &Received) -> Limit {
        let Some(until) = &self.plan.until else { return Limit::Within };
        if until.ends_before(received) {
            return Limit::Stop;
        }
        match until.is_beyond(received) {
            false => Limit::Within,
            // A position in a file has one place for all domains.
            true if self.plan.config.gtid_use == GtidUse::No => Limit::Stop,
            true => Limit::Leave,
        }
    }

    /// SOURCE_DELAY. `false`: it ends.
    fn wait_for_delay(&self, received: &Received) -> bool {
        let delay = i64::from(self.plan.config.delay);
        if delay == 0 {
            return true;
        }
        let ahead = self.status.update(|s| s.clock_ahead_s);
        let due = i64::from(received.trx.timestamp) - ahead + delay;
        self.status.update(|s| {
            s.delayed_until = due;
            s.sql_state = "Waiting until SOURCE_DELAY seconds after source executed event";
        });
        self.in_flight.lock().push_back((u64::MAX, received.trx.timestamp));
        while !self.stopping() && crate::clock::now_us() < due * 1_000_000 {
            std::thread::sleep(Duration::from_millis(20));
        }
        self.in_flight.lock().retain(|&(number, _)| number != u64::MAX);
        self.status.update(|s| {
            s.delayed_until = 0;
            s.sql_state = FEEDING;
        });
        !self.stopping()
    }

    fn one(
        &self,
        received: Box<Received>,
        schedule: &mut Schedule,
        keys: &CatalogKeys,
        at: &mut ChannelPosition,
    ) {
        at.source = received.end.clone();
        if self.is_not_for_us(&received, at) {
            self.advance(at, &received);
            let wants_ack = received.wants_ack;
            return self.pass(Some(received), wants_ack, schedule, at);
        }
        if let Some((code, message)) = self.refusal(&received) {
            self.drain();
            return self.fail(code, message);
        }
        self.advance(at, &received);
        let task = if self.takes_skip(&received) { Task::Empty } else { Task::Apply };
        let writes = WriteSet::of(&received, keys);
        if writes == WriteSet::Alone {
            keys.forget();
        }
        let place = schedule.place(&received, &writes);
        self.hand_over(Job {
            task,
            wants_ack: received.wants_ack,
            received: Some(received),
            place,
            position: at.clone(),
        });
    }

    /// A transaction that is too large to be kept: alone, while it comes.
    fn pieces(&self, received: Box<Received>, schedule: &mut Schedule, at: &mut ChannelPosition) {
        if self.is_not_for_us(&received, at) {
            self.advance(at, &received);
            return;
        }
        if let Some((code, message)) = self.refusal(&received) {
            self.drain();
            return self.fail(code, message);
        }
        let mut position = at.clone();
        self.advance(&mut position, &received);
        let place = schedule.place_alone();
        self.hand_over(Job {
            task: Task::Pieces,
            wants_ack: false,
            received: Some(received),
            place,
            position,
        });
        // The worker reads the queue until its transaction ends; it is the only one that does.
        while !self.stopping() && self.turns.wait(place.number, TICK) == Some(false) {}
        if let Some((end, _)) = self.reached.lock().take() {
            *at = end;
        }
    }

    fn pass(
        &self,
        received: Option<Box<Received>>,
        wants_ack: bool,
        schedule: &mut Schedule,
        at: &ChannelPosition,
    ) {
        let place = schedule.place_nothing();
        self.hand_over(Job { task: Task::Pass, received, place, position: at.clone(), wants_ack });
    }

    fn hand_over(&self, job: Job) {
        if let Some(received) = &job.received {
            self.lane.begin(received.trx);
        }
        let timestamp = job.received.as_ref().map_or(0, |received| received.trx.timestamp);
        if timestamp != 0 {
            self.in_flight.lock().push_back((job.place.number, timestamp));
        }
        let _ = self.work.push(job, self.slots.len() * AHEAD);
        self.lane.end();
    }

    /// Own transactions that come back, servers and domains that are ignored, and what is here already.
    fn is_not_for_us(&self, received: &Received, at: &ChannelPosition) -> bool {
        let (plan, trx) = (&self.plan, &received.trx);
        if trx.server_id == plan.server_id && !plan.same_server_id {
            return true;
        }
        if trx.skip && plan.skip_marked {
            return true;
        }
        if plan.config.ignore_server_ids.contains(&trx.server_id) {
            return true;
        }
        if let Some(AnyGtid::Mariadb(gtid)) = trx.gtid {
            let config = &plan.config;
            let named = config.do_domains.is_empty() || config.do_domains.contains(&gtid.domain);
            if !named || config.ignore_domains.contains(&gtid.domain) {
                return true;
            }
        }
        trx.gtid.is_some_and(|gtid| {
            let here = matches!(gtid, AnyGtid::Mysql { source, gno } if at.unlogged.contains(source, gno));
            here || self.env.coordinator.has_gtid(gtid)
        })
    }

    /// sql_replica_skip_counter: counts events, and leaves out whole transactions.
    fn takes_skip(&self, received: &Received) -> bool {
        let Some(server) = self.env.server.upgrade() else { return false };
        let left = server.globals.named("sql_replica_skip_counter").as_u64();
        if left == 0 {
            return false;
        }
        let left = left.saturating_sub(received.events.len() as u64);
        server.globals.set_named("sql_replica_skip_counter", crate::sysvars::VarValue::UInt(left));
        true
    }

    /// Waits for commits in their order and says so: to the status, and to a source that waits.
    fn finish(&self, inbox: &Inbox<Done>) {
        while let Ok(done) = inbox.recv() {
            let applied = done.ticket.is_some();
            if let Some(ticket) = done.ticket
                && let Err(error) = ticket.wait()
            {
                self.fail(1180, format!("Got error while committing: {error}"));
                return;
            }
            drop(done.guard);
            self.finished.store(done.number, Ordering::SeqCst);
            let acknowledge = done.wants_ack.then(|| done.position.source.clone());
            self.status.update(|s| {
                s.applied = done.position;
                s.applied_count += u64::from(applied);
                s.definitions += u64::from(done.defines);
            });
            {
                let mut in_flight = self.in_flight.lock();
                while in_flight.front().is_some_and(|&(number, _)| number <= done.number) {
                    in_flight.pop_front();
                }
            }
            if let Some(at) = acknowledge {
                self.acknowledge(&at);
            }
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

impl Applying {
    fn advance(&self, at: &mut ChannelPosition, received: &Received) {
        match received.trx.gtid {
            Some(AnyGtid::Mariadb(gtid)) => at.gtids.set(gtid),
            Some(AnyGtid::Mysql { source, gno }) if self.plan.keeps_gtids => at.unlogged.add(source, gno),
            _ => {}
        }
    }
}
