//! The way of each received transaction: whether it is applied, when, in which place, and with which position behind it.
//!
//! On the thread that feeds the workers. It takes what has come by the batch, and hands it on so, unless it has to look at
//! the clock or at UNTIL before each transaction.

use super::{AHEAD, Applying, Fed, TICK};
use crate::replica::gtid_rules;
use crate::replica::jobs::{Job, Task};
use crate::replica::keys::CatalogKeys;
use crate::replica::threads::FEEDING;
use omnibus_format::{AnyGtid, GtidMode, GtidSet};
use omnibus_replication::replica::{
    ChannelPosition, GtidUse, Item, Received, Schedule, Until, WriteSet, WriteSets,
};
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::time::Duration;

/// Items taken at once.
const BATCH: usize = 64;

/// The place of a transaction before, at or behind UNTIL.
enum Limit {
    Within,
    /// Applying ends before it.
    Stop,
    /// Its domain is where it should be, others are not: it is left for later, and the position does not move over it.
    Leave,
}

/// A transaction of those that UNTIL waits for is handed over.
fn found(missing: &mut Option<GtidSet>, gtid: Option<AnyGtid>) {
    if let (Some(missing), Some(AnyGtid::Mysql { source, gno })) = (missing, gtid)
        && missing.contains(source, gno)
    {
        let mut one = GtidSet::new();
        one.add(source, gno);
        missing.subtract(&one);
    }
}

/// The state of the feeding thread.
struct Feeder<'a> {
    applying: &'a Applying,
    keys: CatalogKeys,
    writes: WriteSets,
    schedule: Schedule,
    /// Behind what was looked at last.
    at: ChannelPosition,
    /// The GTIDs of SQL_AFTER_GTIDS that are neither here nor handed over.
    missing: Option<GtidSet>,
    /// `sql_replica_skip_counter` is set.
    skips: bool,
    /// Not handed over yet.
    jobs: Vec<Job>,
}

impl Feeder<'_> {
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

    fn run(&mut self) -> Fed {
        let plan = &self.applying.plan;
        let most = if plan.until.is_some() || plan.config.delay != 0 { 1 } else { BATCH };
        let mut items = VecDeque::with_capacity(most);
        while !self.applying.stopping() {
            if self.missing.as_ref().is_some_and(GtidSet::is_empty) || self.is_reached() {
                return Fed::Reached;
            }
            self.applying.queue.pop_some(most, TICK, &mut items);
            self.skips = self.skip_counter() != 0;
            for item in items.drain(..) {
                if let ControlFlow::Break(end) = self.item(item) {
                    return end;
                }
                // Nothing of what is behind a refused one is looked at.
                if self.applying.stopping() {
                    return Fed::Stopped;
                }
            }
            self.hand_over();
        }
        Fed::Stopped
    }

    fn item(&mut self, item: Item) -> ControlFlow<Fed> {
        match item {
            Item::Trx(received) => {
                if self.admit(&received)? {
                    found(&mut self.missing, received.trx.gtid);
                    self.one(received);
                }
            }
            Item::First(received) => {
                if self.admit(&received)? {
                    found(&mut self.missing, received.trx.gtid);
                    self.pieces(received);
                }
            }
            Item::Moved(to, wants_ack) => {
                self.at.source = to;
                self.pass(None, wants_ack);
            }
            // Of a transaction that is not applied.
            Item::More { end, .. } => {
                if let Some((end, _)) = end {
                    self.at.source = end;
                }
            }
            Item::Gone => {}
        }
        ControlFlow::Continue(())
    }

    /// UNTIL, before the next transaction is there. GTIDs are looked for only when nothing is on its way.
    fn is_reached(&self) -> bool {
        let applying = self.applying;
        let Some(until) = &applying.plan.until else { return false };
        if matches!(until, Until::AfterGtids(_))
            && !applying.in_flight.lock().is_empty()
            && !applying.queue.is_empty()
        {
            return false;
        }
        let at = &self.at;
        until.is_reached(&at.source, &at.gtids, &|| applying.env.coordinator.gtids().executed())
    }

    fn until_of(&self, received: &Received) -> Limit {
        let plan = &self.applying.plan;
        let Some(until) = &plan.until else { return Limit::Within };
        if until.ends_before(received) {
            return Limit::Stop;
        }
        match until.is_beyond(received) {
            false => Limit::Within,
            // A position in a file has one place for all domains.
            true if plan.config.gtid_use == GtidUse::No => Limit::Stop,
            true => Limit::Leave,
        }
    }

    /// SOURCE_DELAY. `false`: it ends.
    fn wait_for_delay(&self, received: &Received) -> bool {
        let applying = self.applying;
        let delay = i64::from(applying.plan.config.delay);
        if delay == 0 {
            return true;
        }
        let ahead = applying.status.update(|s| s.clock_ahead_s);
        let due = i64::from(received.trx.timestamp) - ahead + delay;
        applying.status.update(|s| {
            s.delayed_until = due;
            s.sql_state = "Waiting until SOURCE_DELAY seconds after source executed event";
        });
        applying.in_flight.lock().push_back((u64::MAX, received.trx.timestamp));
        while !applying.stopping() && crate::clock::now_us() < due * 1_000_000 {
            std::thread::sleep(Duration::from_millis(20));
        }
        applying.in_flight.lock().retain(|&(number, _)| number != u64::MAX);
        applying.status.update(|s| {
            s.delayed_until = 0;
            s.sql_state = FEEDING;
        });
        !applying.stopping()
    }

    fn one(&mut self, received: Box<Received>) {
        self.at.source.clone_from(&received.end);
        if self.is_not_for_us(&received) {
            self.advance(&received);
            let wants_ack = received.wants_ack;
            return self.pass(Some(received), wants_ack);
        }
        if let Some((code, message)) = self.applying.refusal(&received) {
            return self.refuse(code, message);
        }
        self.advance(&received);
        let task = if self.takes_skip(&received) { Task::Empty } else { Task::Apply };
        let writes = self.writes.of(&received, &self.keys);
        if writes == WriteSet::Alone {
            self.keys.forget();
        }
        let place = self.schedule.place(&received, &writes);
        let (wants_ack, position) = (received.wants_ack, self.at.clone());
        self.jobs.push(Job { task, wants_ack, received: Some(received), place, position });
    }

    /// A transaction that is too large to be kept: alone, while it comes.
    fn pieces(&mut self, received: Box<Received>) {
        if self.is_not_for_us(&received) {
            self.advance(&received);
            return;
        }
        if let Some((code, message)) = self.applying.refusal(&received) {
            return self.refuse(code, message);
        }
        let before = self.at.clone();
        self.advance(&received);
        let position = std::mem::replace(&mut self.at, before);
        let place = self.schedule.place_alone();
        self.jobs.push(Job {
            task: Task::Pieces,
            wants_ack: false,
            received: Some(received),
            place,
            position,
        });
        self.hand_over();
        // The worker reads the queue until its transaction ends; it is the only one that does.
        let applying = self.applying;
        while !applying.stopping() && applying.turns.wait(place.number, TICK) == Some(false) {}
        if let Some(end) = applying.reached.lock().take() {
            self.at = end.position;
        }
    }

    /// Everything before it is finished first.
    fn refuse(&mut self, code: u16, message: String) {
        self.hand_over();
        self.applying.drain();
        self.applying.fail(code, message);
    }

    fn pass(&mut self, received: Option<Box<Received>>, wants_ack: bool) {
        let place = self.schedule.place_nothing();
        self.jobs.push(Job { task: Task::Pass, received, place, position: self.at.clone(), wants_ack });
    }

    fn hand_over(&mut self) {
        if self.jobs.is_empty() {
            return;
        }
        let applying = self.applying;
        if let Some(received) = self.jobs.iter().rev().find_map(|job| job.received.as_ref()) {
            applying.lane.begin(received.trx);
        }
        let timed = self.jobs.iter().filter_map(|job| {
            let timestamp = job.received.as_ref()?.trx.timestamp;
            (timestamp != 0).then_some((job.place.number, timestamp))
        });
        applying.in_flight.lock().extend(timed);
        let _ = applying.work.push(&mut self.jobs, applying.room());
        applying.lane.end();
    }

    /// Own transactions that come back, servers and domains that are ignored, and what is here already.
    fn is_not_for_us(&self, received: &Received) -> bool {
        let (plan, trx) = (&self.applying.plan, &received.trx);
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
            let here =
                matches!(gtid, AnyGtid::Mysql { source, gno } if self.at.unlogged.contains(source, gno));
            here || self.applying.env.coordinator.gtids().contains(gtid)
        })
    }

    fn skip_counter(&self) -> u64 {
        self.applying.env.server.globals.named("sql_replica_skip_counter").as_u64()
    }

    /// sql_replica_skip_counter: counts events, and leaves out whole transactions.
    fn takes_skip(&self, received: &Received) -> bool {
        let by_gtid = || gtid_rules::mode_of(&self.applying.env.coordinator) == Some(GtidMode::On);
        if !self.skips || matches!(received.trx.gtid, Some(AnyGtid::Mysql { .. })) && by_gtid() {
            return false;
        }
        let left = self.skip_counter();
        if left == 0 {
            return false;
        }
        let left = left.saturating_sub(received.events.len() as u64);
        let globals = &self.applying.env.server.globals;
        globals.set_named("sql_replica_skip_counter", crate::sysvars::VarValue::UInt(left));
        true
    }

    fn advance(&mut self, received: &Received) {
        match received.trx.gtid {
            Some(AnyGtid::Mariadb(gtid)) => self.at.gtids.set(gtid),
            Some(AnyGtid::Mysql { source, gno }) if self.applying.plan.keeps_gtids => {
                self.at.unlogged.add(source, gno);
            }
            _ => {}
        }
    }
}

impl Applying {
    /// Until it is stopped, or UNTIL is reached.
    pub(super) fn feed(&self) -> Fed {
        let mut feeder = Feeder {
            applying: self,
            keys: CatalogKeys::new(self.env.database.clone(), self.plan.filters.clone()),
            writes: WriteSets::default(),
            schedule: Schedule::default(),
            at: self.status.snapshot().applied,
            missing: self.missing(),
            skips: false,
            jobs: Vec::with_capacity(BATCH),
        };
        feeder.run()
    }

    /// Jobs that may wait for workers.
    pub(super) fn room(&self) -> usize {
        self.slots.len() * AHEAD
    }

    /// The GTIDs of SQL_AFTER_GTIDS that are neither here nor handed over.
    fn missing(&self) -> Option<GtidSet> {
        let Some(Until::AfterGtids(set)) = &self.plan.until else { return None };
        let mut missing = set.clone();
        missing.subtract(&self.env.coordinator.gtids().executed());
        Some(missing)
    }
}
