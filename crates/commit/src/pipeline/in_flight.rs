//! The groups in flight, and the commit stage. Groups are acknowledged strictly in the order in which they were sealed,
//! in whatever order their writes end. A hole left by a crash is a torn tail.
//!
//! COMMIT-2: publishing and waking happen here, after the write and sync.
//!
//! With the gate closed (`gate`) a durable group is held before it is published, or before it is acknowledged, until a
//! replica has it.

use super::Shared;
use super::abort::AbortOnPanic;
use super::flush::{Group, WrittenGroup};
use super::gate::Held;
use super::sync::atomic::Ordering;
use super::sync::now;
use super::ticket::Ticket;
use super::ticket::{Completer, ticket};
use crate::CommitError;
use crate::env::Env;
use crate::stats::CommitStats;
use omnibus_engine::CommitNo;
use omnibus_log::mutant::{self, Mutant};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

/// The state that the order lock guards.
#[derive(Default)]
pub(super) struct Order {
    /// The next turn to give out, and the next to acknowledge.
    next_turn: u64,
    next_acknowledged: u64,
    /// A group could not be sealed because it shares a block with one in flight, and none has been acknowledged since.
    overlap: bool,
    /// Written groups that wait for an earlier one.
    written: BTreeMap<u64, WrittenGroup>,
    /// Sessions that wait for a number to be published.
    waiters: BTreeMap<CommitNo, Vec<Completer>>,
    watermark_at: Option<Instant>,
    /// Written groups behind the gate, in order.
    pub(super) held: VecDeque<Held>,
    pub failed: Option<Arc<str>>,
}

impl Order {
    pub(super) fn in_flight(&self) -> u64 {
        self.next_turn - self.next_acknowledged
    }

    /// Returns the turn of a group that is being sealed.
    pub(super) fn take_turn(&mut self) -> u64 {
        let turn = self.next_turn;
        self.next_turn += 1;
        turn
    }

    /// Returns whether a group may be sealed beside those in flight; one that shares a block with them must wait until
    /// one is acknowledged.
    pub(super) fn may_seal(&mut self, limit: u64, overlaps: bool) -> bool {
        self.overlap = overlaps && self.in_flight() > 0;
        !self.overlap && self.in_flight() < limit
    }

    /// Returns whether sealing is worth a try.
    pub(super) fn has_place(&self, limit: u64) -> bool {
        !self.overlap && self.in_flight() < limit
    }

    pub(super) fn wait_published(&mut self, no: CommitNo) -> Ticket {
        let (completer, ticket) = ticket();
        self.waiters.entry(no).or_default().push(completer);
        ticket
    }

    pub(super) fn take_waiters(&mut self, published: CommitNo) -> Vec<(CommitNo, Completer)> {
        let mut ready = Vec::new();
        while let Some(entry) = self.waiters.first_entry()
            && *entry.key() <= published
        {
            let (no, completers) = entry.remove_entry();
            ready.extend(completers.into_iter().map(|completer| (no, completer)));
        }
        ready
    }
}

impl<E: Env> Shared<E> {
    /// Runs the sync stage of a group and the stages behind it.
    pub(super) fn run(&self, group: Group<E::Job>) {
        let _whole = AbortOnPanic::new("sync and commit stage");
        let Group { job, sync, written } = group;
        let started = now();
        let result = self.env.write(job, sync);
        let took = now().saturating_duration_since(started);
        self.stats.sync_us.record_us(took);
        if sync {
            CommitStats::add(&self.stats.syncs, 1);
            self.pace.note_sync(took);
        }
        match result {
            Ok(()) => self.acknowledge(written),
            Err(reason) => self.fail_group(written, &reason),
        }
    }

    fn acknowledge(&self, #[allow(unused_mut)] mut group: WrittenGroup) {
        let started = now();
        let mut order = self.order.lock();
        if mutant::is(Mutant::AcknowledgeOutOfOrder) {
            group.turn = order.next_acknowledged;
        }
        order.written.insert(group.turn, group);
        let mut ready = Vec::new();
        loop {
            let turn = order.next_acknowledged;
            let Some(mut group) = order.written.remove(&turn) else { break };
            order.next_acknowledged += 1;
            order.overlap = false;
            if order.failed.is_none() {
                if group.synced {
                    self.env.durable(group.last, group.end);
                }
                match self.pass_gate(&mut order, group, started) {
                    Some(passed) => group = passed,
                    None => continue,
                }
                self.commit_stage(&mut order, &mut group);
            }
            ready.push(group);
        }
        let failed = order.failed.clone();
        let published = self.published.number();
        let waiters = order.take_waiters(published);
        self.push_watermark(&mut order, started);
        drop(order);
        self.acknowledged.notify_all();
        for (no, completer) in waiters {
            completer.complete(Ok(no));
        }
        for group in ready {
            self.wake(group, published, failed.as_ref());
        }
        self.stats.commit_us.record_us(now().saturating_duration_since(started));
    }

    /// Publishes a group, so that it is visible to everyone. This is the only place that publishes: in order, with the
    /// order lock held, after the group is as durable as it has to be.
    pub(super) fn commit_stage(&self, _order: &mut Order, group: &mut WrittenGroup) {
        if group.synced {
            self.progress.durable.fetch_max(group.last.0, Ordering::AcqRel);
        }
        if self.settings.protocol.is_two_phase() && self.settings.order_commits.load(Ordering::Relaxed) {
            for member in &mut group.members {
                if let Some(xid) = member.prepared.take() {
                    self.env.commit_prepared(xid, member.no);
                }
            }
        }
        self.published.publish(group.last, group.end);
        if !group.members.is_empty() {
            CommitStats::add(&self.stats.commits, group.members.len() as u64);
            CommitStats::add(&self.stats.groups, 1);
        }
    }

    /// Acknowledges the members. `published` is the published number when the group left the order lock.
    pub(super) fn wake(&self, mut group: WrittenGroup, published: CommitNo, failed: Option<&Arc<str>>) {
        if mutant::is(Mutant::ForgetWakeUp) {
            std::mem::forget(group.members.pop());
        }
        if let (true, [.., first, second]) = (mutant::is(Mutant::SwapNumbers), &mut group.members[..]) {
            std::mem::swap(&mut first.no, &mut second.no);
        }
        for member in group.members {
            let public = member.no <= published;
            assert!(public || failed.is_some(), "COMMIT-2: nothing is acknowledged before it is published");
            if let (None, Some(on_durable)) = (failed, member.on_durable) {
                on_durable();
            }
            match (failed, member.prepared) {
                (None, None) => member.completer.complete(Ok(member.no)),
                // `binlog_order_commits=0`: its session commits in the engines, as do the others at the same time.
                (None, Some(xid)) => {
                    let (env, no) = (self.env.clone(), member.no);
                    member
                        .completer
                        .complete_with(Ok(no), Some(Box::new(move || env.commit_prepared(xid, no))));
                }
                // Asserts COMMIT-3: what may be lost is not acknowledged.
                (Some(reason), _) => member.completer.complete(Err(CommitError::LogFailed(reason.clone()))),
            }
        }
    }

    fn push_watermark(&self, order: &mut Order, now: Instant) {
        let due = order.watermark_at.is_none_or(|at| (now - at).as_millis() >= 10);
        if due && let Some(oldest) = self.published.oldest() {
            order.watermark_at = Some(now);
            self.env.watermark(oldest);
        }
    }

    /// Fails a group whose write failed; every later one gets the same error, and nothing is retried.
    fn fail_group(&self, group: WrittenGroup, reason: &Arc<str>) {
        self.fail(reason);
        self.acknowledge(group);
    }

    /// Poisons the pipeline. Idempotent.
    pub(super) fn fail(&self, reason: &Arc<str>) {
        let mut order = self.order.lock();
        if order.failed.is_some() {
            return;
        }
        order.failed = Some(reason.clone());
        self.poisoned.store(true, Ordering::Release);
        let waiters = std::mem::take(&mut order.waiters);
        drop(order);
        self.env.failed(reason);
        for completer in waiters.into_values().flatten() {
            completer.complete(Err(CommitError::LogFailed(reason.clone())));
        }
    }

    /// Waits until nothing is in flight or held. With the flush lock held, so nothing new begins.
    pub(super) fn wait_acknowledged(&self) {
        let mut order = self.order.lock();
        while order.in_flight() > 0 || !order.held.is_empty() {
            self.acknowledged.wait(&mut order);
        }
    }
}
