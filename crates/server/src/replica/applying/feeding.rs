//! What becomes of each received transaction: whether it is applied, when, in which place, and with which position behind it.
//!
//! On the thread that feeds the workers.

use super::{AHEAD, Applying, Fed, TICK};
use crate::replica::gtid_rules;
use crate::replica::jobs::{Job, Task};
use crate::replica::keys::CatalogKeys;
use crate::replica::threads::FEEDING;
use omnibus_format::{AnyGtid, GtidMode, GtidSet};
use omnibus_replication::replica::{ChannelPosition, GtidUse, Item, Received, Schedule, Until, WriteSet};
use std::ops::ControlFlow;
use std::time::Duration;

/// What UNTIL says of a transaction.
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

impl Applying {
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

    /// Until it is stopped, or UNTIL is reached.
    pub(super) fn feed(&self) -> Fed {
        let keys = CatalogKeys::new(self.env.database.clone(), self.plan.filters.clone());
        let mut schedule = Schedule::default();
        let mut at = self.status.snapshot().applied;
        let mut missing = self.missing();
        while !self.stopping() {
            if missing.as_ref().is_some_and(GtidSet::is_empty) || self.is_reached(&at) {
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
                    found(&mut missing, received.trx.gtid);
                    self.one(received, &mut schedule, &keys, &mut at);
                }
                Item::First(received) => {
                    match self.admit(&received) {
                        ControlFlow::Break(end) => return end,
                        ControlFlow::Continue(false) => continue,
                        ControlFlow::Continue(true) => {}
                    }
                    found(&mut missing, received.trx.gtid);
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

    /// What SQL_AFTER_GTIDS waits for and is neither here nor handed over.
    fn missing(&self) -> Option<GtidSet> {
        let Some(Until::AfterGtids(set)) = &self.plan.until else { return None };
        let mut missing = set.clone();
        missing.subtract(&self.env.coordinator.gtid_executed());
        Some(missing)
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
        if let Some(end) = self.reached.lock().take() {
            *at = end.position;
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
        let by_gtid = gtid_rules::mode_of(&self.env.coordinator) == Some(GtidMode::On);
        if left == 0 || by_gtid && matches!(received.trx.gtid, Some(AnyGtid::Mysql { .. })) {
            return false;
        }
        let left = left.saturating_sub(received.events.len() as u64);
        server.globals.set_named("sql_replica_skip_counter", crate::sysvars::VarValue::UInt(left));
        true
    }

    fn advance(&self, at: &mut ChannelPosition, received: &Received) {
        match received.trx.gtid {
            Some(AnyGtid::Mariadb(gtid)) => at.gtids.set(gtid),
            Some(AnyGtid::Mysql { source, gno }) if self.plan.keeps_gtids => at.unlogged.add(source, gno),
            _ => {}
        }
    }
}
