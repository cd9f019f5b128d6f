//! The locks of one space: records by key, granted ranges, and what waits. Called under its shard.

use crate::detect::Reach;
use crate::interval::{Interval, IntervalSet};
use crate::mode::Mode;
use crate::queue::{Queue, Waiter};
use crate::trx::{Trx, Wakes};
use bytes::Bytes;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

struct RangeWait {
    trx: Arc<Trx>,
    interval: Interval,
    seq: u64,
}

/// What a request came to.
pub(crate) enum Asked {
    Granted {
        fresh: bool,
    },
    /// It must wait, and with which mode if granted. Nothing was queued.
    Blocked {
        mode: Mode,
        upgrade: bool,
    },
}

#[derive(Default)]
pub(crate) struct Space {
    records: BTreeMap<Bytes, Queue>,
    /// How many insert locks are held: range requests look no further if none are.
    inserts: usize,
    ranges: Vec<(Arc<Trx>, IntervalSet)>,
    range_waits: VecDeque<RangeWait>,
    /// Keys with waiting inserts, and how many: those that a released range may let go on.
    insert_waits: BTreeMap<Bytes, usize>,
    next_seq: u64,
}

impl Space {
    /// The first holder of a record.
    pub(crate) fn holder(&self, key: &[u8]) -> Option<u64> {
        self.records.get(key)?.holders().next().map(|hold| hold.trx.id)
    }

    pub(crate) fn request_record(&mut self, trx: &Arc<Trx>, key: &Bytes, wanted: Mode) -> Asked {
        let fenced = wanted == Mode::INSERT && self.fenced(trx, key, u64::MAX);
        let mut entry = match self.records.entry(key.clone()) {
            Entry::Vacant(_) if fenced => return Asked::Blocked { mode: wanted, upgrade: false },
            Entry::Vacant(vacant) => {
                vacant.insert(Queue::held(trx, wanted));
                self.inserts += usize::from(wanted == Mode::INSERT);
                return Asked::Granted { fresh: true };
            }
            Entry::Occupied(entry) => entry,
        };
        let queue = entry.get_mut();
        let own = queue.mode_of(trx);
        let mode = own.map_or(wanted, |own| own.join(wanted));
        if own == Some(mode) {
            return Asked::Granted { fresh: false };
        }
        let upgrade = own.is_some();
        if fenced || queue.held_against(trx, mode) || (!upgrade && queue.awaited_against(mode)) {
            return Asked::Blocked { mode, upgrade };
        }
        queue.add_hold(trx, mode);
        self.inserts += usize::from(mode == Mode::INSERT);
        Asked::Granted { fresh: !upgrade }
    }

    /// Whether an insert of `key` must wait for somebody's range lock: one that is held, or one that
    /// waits since before `seq`, unless it waits for this very transaction.
    fn fenced(&self, trx: &Arc<Trx>, key: &[u8], seq: u64) -> bool {
        let held = |(owner, set): &(Arc<Trx>, IntervalSet)| !Arc::ptr_eq(owner, trx) && set.contains(key);
        self.ranges.iter().any(held)
            || self.range_waits.iter().any(|wait| self.queues_behind(trx, key, seq, wait))
    }

    fn queues_behind(&self, trx: &Arc<Trx>, key: &[u8], seq: u64, wait: &RangeWait) -> bool {
        wait.seq < seq
            && !Arc::ptr_eq(&wait.trx, trx)
            && wait.interval.contains(key)
            && !self.inserters(&wait.interval).any(|owner| Arc::ptr_eq(owner, trx))
    }

    /// Holders of insert locks in a (not empty) interval.
    fn inserters<'a>(&'a self, interval: &'a Interval) -> impl Iterator<Item = &'a Arc<Trx>> {
        let within = (self.inserts > 0).then(|| self.records.range::<[u8], _>(interval.bounds()));
        let holders = within.into_iter().flatten().flat_map(|(_, queue)| queue.holders());
        holders.filter(|hold| hold.mode == Mode::INSERT).map(|hold| &hold.trx)
    }

    pub(crate) fn queue_record(&mut self, trx: &Arc<Trx>, key: &Bytes, mode: Mode, upgrade: bool) {
        let seq = self.next_seq();
        if mode == Mode::INSERT {
            *self.insert_waits.entry(key.clone()).or_default() += 1;
        }
        let queue = self.records.entry(key.clone()).or_default();
        queue.push_waiter(Waiter { trx: Arc::clone(trx), mode, upgrade, seq });
    }

    pub(crate) fn request_range(&mut self, trx: &Arc<Trx>, interval: &Interval) -> Asked {
        let own = self.ranges.iter().find(|(owner, _)| Arc::ptr_eq(owner, trx));
        if interval.is_empty() || own.is_some_and(|(_, set)| set.covers(interval)) {
            return Asked::Granted { fresh: false };
        }
        if self.inserters(interval).any(|owner| !Arc::ptr_eq(owner, trx)) {
            return Asked::Blocked { mode: Mode::X, upgrade: false };
        }
        self.add_range(trx, interval.clone());
        Asked::Granted { fresh: true }
    }

    fn add_range(&mut self, trx: &Arc<Trx>, interval: Interval) {
        let at = self.ranges.iter().position(|(owner, _)| Arc::ptr_eq(owner, trx)).unwrap_or_else(|| {
            self.ranges.push((Arc::clone(trx), IntervalSet::default()));
            self.ranges.len() - 1
        });
        self.ranges[at].1.insert(interval);
    }

    pub(crate) fn queue_range(&mut self, trx: &Arc<Trx>, interval: Interval) {
        let seq = self.next_seq();
        self.range_waits.push_back(RangeWait { trx: Arc::clone(trx), interval, seq });
    }

    fn next_seq(&mut self) -> u64 {
        self.next_seq += 1;
        self.next_seq
    }

    /// Gives a record back. Waiting ranges are looked at by `settle`, once for many records.
    pub(crate) fn release_record(&mut self, trx: &Arc<Trx>, key: Bytes, wakes: &mut Wakes) {
        let Entry::Occupied(mut entry) = self.records.entry(key) else { return };
        let queue = entry.get_mut();
        let Some(mode) = queue.remove_hold(trx) else { return };
        self.inserts -= usize::from(mode == Mode::INSERT);
        if queue.is_empty() {
            entry.remove();
        } else {
            let key = entry.key().clone();
            self.promote(&key, wakes);
        }
    }

    /// Grants waiting ranges after insert locks went.
    pub(crate) fn settle(&mut self, wakes: &mut Wakes) {
        let mut at = 0;
        while let Some(wait) = self.range_waits.get(at) {
            if self.inserters(&wait.interval).any(|owner| !Arc::ptr_eq(owner, &wait.trx)) {
                at += 1;
                continue;
            }
            let Some(wait) = self.range_waits.remove(at) else { break };
            wait.trx.resolve(crate::WaitOutcome::Granted, wakes);
            self.add_range(&wait.trx, wait.interval);
        }
    }

    pub(crate) fn release_ranges(&mut self, trx: &Arc<Trx>, wakes: &mut Wakes) {
        self.ranges.retain(|(owner, _)| !Arc::ptr_eq(owner, trx));
        self.promote_inserts(wakes);
    }

    fn promote_inserts(&mut self, wakes: &mut Wakes) {
        let keys: Vec<Bytes> = self.insert_waits.keys().cloned().collect();
        for key in keys {
            self.promote(&key, wakes);
        }
    }

    /// Grants what can be granted at one key.
    fn promote(&mut self, key: &Bytes, wakes: &mut Wakes) {
        let Some(slot) = self.records.get_mut(key) else { return };
        // Out of the map meanwhile, because the reasons to wait are looked up in the map.
        let mut queue = std::mem::take(slot);
        let fenced = |w: &Waiter| w.mode == Mode::INSERT && self.fenced(&w.trx, key, w.seq);
        let granted = queue.promote(wakes, fenced);
        self.inserts += granted;
        self.inserts_left(key, granted);
        if queue.is_empty() {
            self.records.remove(key);
        } else {
            self.records.insert(key.clone(), queue);
        }
    }

    fn inserts_left(&mut self, key: &Bytes, gone: usize) {
        if gone > 0
            && let Some(waiting) = self.insert_waits.get_mut(key)
        {
            *waiting -= gone;
            if *waiting == 0 {
                self.insert_waits.remove(key);
            }
        }
    }

    /// Withdraws a queued record request; false if it is not queued (any more).
    pub(crate) fn withdraw_record(&mut self, trx: &Arc<Trx>, key: &Bytes) -> bool {
        let waiter = self.records.get_mut(key).and_then(|queue| queue.remove_waiter(trx));
        let Some(waiter) = waiter else { return false };
        self.inserts_left(key, usize::from(waiter.mode == Mode::INSERT));
        true
    }

    /// Grants those who waited behind a withdrawn request.
    pub(crate) fn after_withdrawal(&mut self, key: &Bytes, wakes: &mut Wakes) {
        self.promote(key, wakes);
    }

    pub(crate) fn withdraw_range(&mut self, trx: &Arc<Trx>) -> bool {
        let before = self.range_waits.len();
        self.range_waits.retain(|wait| !Arc::ptr_eq(&wait.trx, trx));
        before != self.range_waits.len()
    }

    pub(crate) fn after_range_withdrawal(&mut self, wakes: &mut Wakes) {
        self.promote_inserts(wakes);
    }

    /// Whom a queued record request waits for (see `Queue::blockers`).
    pub(crate) fn record_blockers(&self, trx: &Arc<Trx>, key: &Bytes, reach: &mut Reach<'_>) {
        let Some(queue) = self.records.get(key) else { return };
        queue.blockers(trx, reach);
        let own = queue.waiters().find(|waiter| Arc::ptr_eq(&waiter.trx, trx));
        let Some(own) = own.filter(|own| own.mode == Mode::INSERT) else { return };
        let held = self.ranges.iter().filter(|(owner, set)| !Arc::ptr_eq(owner, trx) && set.contains(key));
        held.for_each(|(owner, _)| reach.block(owner));
        let ahead = self.range_waits.iter().filter(|wait| self.queues_behind(trx, key, own.seq, wait));
        ahead.for_each(|wait| reach.block(&wait.trx));
    }

    pub(crate) fn range_blockers(&self, trx: &Arc<Trx>, interval: &Interval, reach: &mut Reach<'_>) {
        let others = self.inserters(interval).filter(|owner| !Arc::ptr_eq(owner, trx));
        others.for_each(|owner| reach.block(owner));
    }
}
