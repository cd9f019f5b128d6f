//! The locks of one space: records by key, granted ranges, and what waits. Called under its shard.
//!
//! A record is in a queue, or in the bulk of the one transaction that has it.

use crate::bulk::Bulk;
use crate::interval::{Interval, IntervalSet};
use crate::mode::Mode;
use crate::outcome::WaitOutcome;
use crate::queue::{Queue, Waiter};
use crate::reach::Reach;
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

/// The result of a request.
pub(crate) enum Asked {
    Granted {
        fresh: bool,
    },
    /// Granted, and kept with the transaction's many.
    InBulk,
    /// It must wait, with the mode that it will hold if granted. Nothing was queued.
    Blocked {
        mode: Mode,
        upgrade: bool,
    },
}

#[derive(Default)]
pub(crate) struct Space {
    records: BTreeMap<Bytes, Queue>,
    /// Records of transactions with many.
    bulks: Vec<Bulk>,
    /// The number of insert locks held; range requests skip a search if there are none.
    inserts: usize,
    ranges: Vec<(Arc<Trx>, IntervalSet)>,
    range_waits: VecDeque<RangeWait>,
    /// Keys with waiting inserts, and their number: the inserts that a released range may grant.
    insert_waits: BTreeMap<Bytes, usize>,
    next_seq: u64,
}

impl Space {
    /// The first holder of a record.
    pub(crate) fn holder(&mut self, key: &[u8]) -> Option<u64> {
        if let Some(queue) = self.records.get(key) {
            return queue.holders().next().map(|hold| hold.trx.id);
        }
        let bulk = self.bulks.iter_mut().find_map(|bulk| bulk.mode_of(key).and(Some(bulk)))?;
        Some(bulk.trx.id)
    }

    /// The mode in which a transaction holds a record that has a queue.
    pub(crate) fn mode_of(&self, trx: &Arc<Trx>, key: &Bytes) -> Option<Mode> {
        self.records.get(key)?.mode_of(trx)
    }

    pub(crate) fn request_record(&mut self, trx: &Arc<Trx>, key: &Bytes, wanted: Mode) -> Asked {
        let fenced = wanted == Mode::INSERT && self.fenced(trx, key, u64::MAX);
        if !self.bulks.is_empty() && self.bring_out(trx, key, wanted, fenced) {
            return Asked::Granted { fresh: false };
        }
        let mut entry = match self.records.entry(key.clone()) {
            Entry::Vacant(_) if fenced => return Asked::Blocked { mode: wanted, upgrade: false },
            Entry::Vacant(_) if self.bulks.iter().any(|bulk| bulk.whole) => {
                return Asked::Granted { fresh: false };
            }
            Entry::Vacant(vacant) => {
                self.inserts += usize::from(wanted == Mode::INSERT);
                let sorted = !self.range_waits.is_empty();
                if trx.has_many() && add_to_bulk(&mut self.bulks, trx, key, wanted, sorted) {
                    return Asked::InBulk;
                }
                vacant.insert(Queue::held(trx, wanted));
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

    /// Moves a record from a bulk into a queue. Returns true, without moving it, if it is in this transaction's own bulk in
    /// the wanted mode or a stronger one.
    fn bring_out(&mut self, trx: &Arc<Trx>, key: &Bytes, wanted: Mode, fenced: bool) -> bool {
        for bulk in &mut self.bulks {
            // An insert joins what is there without a look, unless it must wait.
            if Arc::ptr_eq(&bulk.trx, trx) && wanted == Mode::INSERT && !fenced {
                continue;
            }
            if bulk.whole && self.records.contains_key(key) {
                continue;
            }
            let Some(mode) = bulk.mode_of(key) else { continue };
            if Arc::ptr_eq(&bulk.trx, trx) && mode.join(wanted) == mode {
                return true;
            }
            if !bulk.whole {
                bulk.remove(key);
            }
            bulk.out.push(key.clone());
            let queue = self.records.insert(key.clone(), Queue::held(&bulk.trx, mode));
            debug_assert!(queue.is_none(), "a record in a bulk has no queue");
            // Nobody else has it.
            return false;
        }
        false
    }

    /// Returns whether an insert of `key` must wait for another's range lock: one that is held, or one that has been
    /// waiting since before `seq`, unless it waits for this very transaction.
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
        let holders = holders.filter(|hold| hold.mode == Mode::INSERT).map(|hold| &hold.trx);
        holders.chain(self.bulks.iter().filter(|bulk| bulk.inserts_in(interval)).map(|bulk| &bulk.trx))
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
        self.bulks.iter_mut().for_each(Bulk::settle);
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

    /// Releases a record. Waiting ranges are examined by `settle`, once for many records.
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

    /// Releases a record that is, or was, in the transaction's bulk; returns false if it never was.
    pub(crate) fn release_from_bulk(&mut self, trx: &Arc<Trx>, key: &Bytes, wakes: &mut Wakes) -> bool {
        let Some(bulk) = self.bulks.iter_mut().find(|bulk| Arc::ptr_eq(&bulk.trx, trx)) else { return false };
        if !bulk.whole
            && let Some(mode) = bulk.remove(key)
        {
            self.inserts -= usize::from(mode == Mode::INSERT);
            return true;
        }
        let Some(at) = bulk.out.iter().position(|out| out == key) else { return false };
        let key = bulk.out.swap_remove(at);
        self.release_record(trx, key, wakes);
        true
    }

    /// Makes the transaction's bulk stand for all records of the space, if it has one and no other transaction does.
    /// Returns the number of locks that it stored.
    pub(crate) fn widen(&mut self, trx: &Arc<Trx>) -> usize {
        let [bulk] = &mut self.bulks[..] else { return 0 };
        if !Arc::ptr_eq(&bulk.trx, trx) || bulk.whole {
            return 0;
        }
        self.inserts -= bulk.inserts;
        bulk.widen()
    }

    /// Drops the queue of a record that nobody else holds or waits for: the transaction's bulk, which stands for all
    /// records, stands for this one too. Returns whether it did.
    pub(crate) fn leave_to_bulk(&mut self, trx: &Arc<Trx>, key: &Bytes) -> bool {
        let Some(mode) = self.records.get(key).and_then(|queue| queue.only_hold(trx)) else { return false };
        self.records.remove(key);
        self.inserts -= usize::from(mode == Mode::INSERT);
        true
    }

    /// Releases the records in the transaction's bulk and returns the bulk, which must be dropped outside the shard. Records
    /// that were moved out of it have to be released by the caller.
    pub(crate) fn release_bulk(&mut self, trx: &Arc<Trx>) -> Option<Bulk> {
        let at = self.bulks.iter().position(|bulk| Arc::ptr_eq(&bulk.trx, trx))?;
        let bulk = self.bulks.swap_remove(at);
        self.inserts -= bulk.inserts;
        Some(bulk)
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
            wait.trx.resolve(WaitOutcome::Granted, wakes);
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

    /// Adds the transactions that a queued record request waits for (see `Queue::blockers`).
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

/// Adds a record without other requests to the transaction's bulk. Returns false if it must have a queue.
fn add_to_bulk(bulks: &mut Vec<Bulk>, trx: &Arc<Trx>, key: &Bytes, mode: Mode, sorted: bool) -> bool {
    let at = match bulks.iter().position(|bulk| Arc::ptr_eq(&bulk.trx, trx)) {
        Some(at) => at,
        None => match Bulk::for_key(trx, key) {
            Some(bulk) => {
                bulks.push(bulk);
                bulks.len() - 1
            }
            None => return false,
        },
    };
    bulks[at].add(key, mode, sorted)
}
