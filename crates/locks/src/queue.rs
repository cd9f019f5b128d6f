//! The queue of one key or table: its holders and the transactions that wait, in order (LOCK-1).
//!
//! Nearly every queue has one holder and no waiter, so that case needs no allocation.

use crate::mode::Mode;
use crate::outcome::WaitOutcome;
use crate::reach::Reach;
use crate::trx::{Trx, Wakes};
use std::collections::VecDeque;
use std::sync::Arc;

pub(crate) struct Hold {
    pub(crate) trx: Arc<Trx>,
    pub(crate) mode: Mode,
}

pub(crate) struct Waiter {
    pub(crate) trx: Arc<Trx>,
    /// The mode that it will hold, joined with the mode that it holds now.
    pub(crate) mode: Mode,
    pub(crate) upgrade: bool,
    /// Order of arrival in the space, to compare with waiting range requests.
    pub(crate) seq: u64,
}

#[derive(Default)]
struct More {
    holders: Vec<Hold>,
    /// Modes of `holders`, and how often each: a table has as many holders as there are open
    /// transactions, and nearly always one look tells that none is in the way.
    modes: u8,
    counts: [u32; 8],
    waiters: VecDeque<Waiter>,
}

impl More {
    fn count(&mut self, mode: Mode) {
        self.counts[mode.index()] += 1;
        self.modes |= mode.0;
    }

    fn discount(&mut self, mode: Mode) {
        let count = &mut self.counts[mode.index()];
        *count -= 1;
        if *count == 0 {
            self.modes &= !mode.0;
        }
    }

    fn position(&self, trx: &Arc<Trx>) -> Option<usize> {
        self.holders.iter().rposition(|hold| Arc::ptr_eq(&hold.trx, trx))
    }
}

#[derive(Default)]
pub(crate) struct Queue {
    first: Option<Hold>,
    more: Option<Box<More>>,
}

impl Queue {
    pub(crate) fn held(trx: &Arc<Trx>, mode: Mode) -> Queue {
        Queue { first: Some(Hold { trx: Arc::clone(trx), mode }), more: None }
    }

    pub(crate) fn holders(&self) -> impl Iterator<Item = &Hold> {
        self.first.iter().chain(self.more.iter().flat_map(|more| &more.holders))
    }

    pub(crate) fn waiters(&self) -> impl DoubleEndedIterator<Item = &Waiter> {
        self.more.iter().flat_map(|more| &more.waiters)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
            && self.more.as_ref().is_none_or(|m| m.holders.is_empty() && m.waiters.is_empty())
    }

    pub(crate) fn mode_of(&self, trx: &Arc<Trx>) -> Option<Mode> {
        self.holders().find(|hold| Arc::ptr_eq(&hold.trx, trx)).map(|hold| hold.mode)
    }

    /// The mode in which a transaction holds what nobody else holds or waits for.
    pub(crate) fn only_hold(&self, trx: &Arc<Trx>) -> Option<Mode> {
        let alone = self.waiters().next().is_none() && self.holders().take(2).count() == 1;
        self.mode_of(trx).filter(|_| alone)
    }

    /// Returns whether another holder conflicts with `mode`.
    pub(crate) fn held_against(&self, trx: &Arc<Trx>, mode: Mode) -> bool {
        let against = |hold: &Hold| mode.conflicts_with(hold.mode) && !Arc::ptr_eq(&hold.trx, trx);
        self.first.as_ref().is_some_and(against)
            || self
                .more
                .as_ref()
                .is_some_and(|more| more.modes & mode.conflicts() != 0 && more.holders.iter().any(against))
    }

    /// Returns whether granting `mode` would unfairly overtake a waiting transaction.
    pub(crate) fn awaited_against(&self, mode: Mode) -> bool {
        self.waiters().any(|waiter| mode.conflicts_with(waiter.mode))
    }

    /// Grants `mode`, replacing what the transaction held here.
    pub(crate) fn add_hold(&mut self, trx: &Arc<Trx>, mode: Mode) {
        self.remove_hold(trx);
        self.add_new_hold(trx, mode);
    }

    /// The same for a transaction that holds nothing here.
    pub(crate) fn add_new_hold(&mut self, trx: &Arc<Trx>, mode: Mode) {
        let hold = Hold { trx: Arc::clone(trx), mode };
        if self.first.is_none() {
            self.first = Some(hold);
        } else {
            let more = self.more.get_or_insert_default();
            more.count(mode);
            more.holders.push(hold);
        }
    }

    pub(crate) fn remove_hold(&mut self, trx: &Arc<Trx>) -> Option<Mode> {
        if self.first.as_ref().is_some_and(|hold| Arc::ptr_eq(&hold.trx, trx)) {
            return self.first.take().map(|hold| hold.mode);
        }
        let more = self.more.as_mut()?;
        let at = more.position(trx)?;
        let mode = more.holders.swap_remove(at).mode;
        more.discount(mode);
        Some(mode)
    }

    /// Adds a waiting request. Upgrades go before all transactions that hold nothing here, behind earlier upgrades.
    /// Exclusive requests for a table go before other kinds: while a definition waits, no transaction begins to use the
    /// table that it is about to change.
    pub(crate) fn push_waiter(&mut self, waiter: Waiter) {
        let waiters = &mut self.more.get_or_insert_default().waiters;
        let goes_before = |other: &&Waiter| match waiter.upgrade {
            true => other.upgrade,
            false => other.upgrade || other.mode == Mode::TABLE_X,
        };
        if waiter.upgrade || waiter.mode == Mode::TABLE_X {
            let at = waiters.iter().take_while(goes_before).count();
            waiters.insert(at, waiter);
        } else {
            waiters.push_back(waiter);
        }
    }

    pub(crate) fn remove_waiter(&mut self, trx: &Arc<Trx>) -> Option<Waiter> {
        let waiters = &mut self.more.as_mut()?.waiters;
        let at = waiters.iter().position(|waiter| Arc::ptr_eq(&waiter.trx, trx))?;
        waiters.remove(at)
    }

    /// Grants the requests that can now be granted, in order. `blocked` is called for further reasons to wait. Returns
    /// the number of granted inserts.
    pub(crate) fn promote(&mut self, wakes: &mut Wakes, mut blocked: impl FnMut(&Waiter) -> bool) -> usize {
        let (mut at, mut ahead, mut inserts) = (0, 0u8, 0);
        while let Some(waiter) = self.more.as_ref().and_then(|more| more.waiters.get(at)) {
            let overtakes = !waiter.upgrade && waiter.mode.conflicts() & ahead != 0;
            if overtakes || self.held_against(&waiter.trx, waiter.mode) || blocked(waiter) {
                ahead |= waiter.mode.0;
                if waiter.mode.excludes_all() && !waiter.upgrade {
                    break;
                }
                at += 1;
                continue;
            }
            let granted = self.more.as_mut().and_then(|more| more.waiters.remove(at));
            let Some(waiter) = granted else { break };
            inserts += usize::from(waiter.mode == Mode::INSERT);
            self.add_hold(&waiter.trx, waiter.mode);
            waiter.trx.resolve(WaitOutcome::Granted, wakes);
        }
        inserts
    }

    /// Adds the transactions that `trx`, waiting here, waits for: directly, or through a transaction ahead in this
    /// queue.
    ///
    /// One pass computes the closure within the queue, so that a search through a queue of n waiters takes linear time.
    /// Waiters ahead are *passed* if their own reasons to wait are all in this queue and so included.
    pub(crate) fn blockers(&self, trx: &Arc<Trx>, reach: &mut Reach<'_>) {
        let mut behind = self.waiters().rev().skip_while(|waiter| !Arc::ptr_eq(&waiter.trx, trx));
        let Some(own) = behind.next() else { return };
        // An upgrade waits for other holders only, but all upgrades ahead are such holders.
        let mut modes = own.mode.0;
        let mut through_others = false;
        for waiter in behind {
            if waiter.mode.conflicts() & modes == 0 {
                continue;
            }
            through_others = true;
            modes |= waiter.mode.0;
            // An insert may have reasons beyond this queue.
            match waiter.mode {
                Mode::INSERT => reach.block(&waiter.trx),
                _ => reach.pass(&waiter.trx),
            }
        }
        for hold in self.holders() {
            // Its own hold blocks those ahead of it, which is how two upgrades deadlock.
            let counts = through_others || !Arc::ptr_eq(&hold.trx, trx);
            if counts && hold.mode.conflicts() & modes != 0 {
                reach.block(&hold.trx);
            }
        }
    }
}
