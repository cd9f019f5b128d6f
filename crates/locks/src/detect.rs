//! Deadlock detection, at once, when a wait begins (LOCK-2).
//!
//! The graph is not stored: edges are read from the queues, one shard at a time, while the detector
//! is held. That is enough, because every edge that appears points at a transaction that runs or
//! that begins to wait just now, so a new cycle always goes through a wait that is just beginning;
//! and because edges between waiting transactions go away only when one of them stops waiting.
//! Two waits that begin together are both queued before the second of them searches.

use crate::deadlock::{Deadlock, Observer};
use crate::manager::LockManager;
use crate::outcome::WaitOutcome;
use crate::stats::WaitInfo;
use crate::sync::atomic::{Ordering, fence};
use crate::trx::Trx;
use std::sync::Arc;

impl LockManager {
    /// Called when `requester` has been queued. Ends one transaction's wait for each cycle found.
    pub(crate) fn break_deadlocks(&self, requester: &Arc<Trx>, upgrade: bool) {
        let mut waiting = self.detector.waiting.lock();
        waiting.insert(requester.serial, Arc::clone(requester));
        // Not those on the list: one that is queued and not on it yet may be ahead of this, and searches only if it blocks
        // somebody by what it holds.
        let alone = self.counters.current.load(Ordering::SeqCst) == 1;
        if alone || self.blocks_nobody(requester, upgrade) {
            return;
        }
        while let Some(cycle) = self.find_cycle(requester) {
            let victim = choose(requester, &cycle);
            self.counters.deadlocks.fetch_add(1, Ordering::Relaxed);
            if let Some(observer) = self.detector.observer.get() {
                observer(&Deadlock::of(&cycle, victim));
            }
            self.resolve_wait(victim, None, WaitOutcome::Deadlock);
            if Arc::ptr_eq(victim, requester) {
                break;
            }
        }
    }

    /// Returns whether nobody can wait for a transaction that has just been queued, because besides that request it
    /// holds at most table locks that nobody waits for. That is true of every one-row transaction, so a hot row costs
    /// its queue no searches.
    fn blocks_nobody(&self, requester: &Arc<Trx>, upgrade: bool) -> bool {
        // Only a session that has locks by name, or waits for one, has something beside it that holds anything.
        if requester.beside().is_some_and(|beside| !beside.held.lock().is_empty()) {
            return false;
        }
        let held = requester.held.lock();
        let besides = held.records.len() + held.bulks.len() + held.ranges.len();
        // Pairs with the fence in `request_table`: either this sees that waiter, or its search,
        // which begins later, sees that `requester` waits.
        fence(Ordering::SeqCst);
        let tables_free = held.tables.is_empty() || self.tables.waits.load(Ordering::SeqCst) == 0;
        !upgrade && besides <= 1 && tables_free
    }

    /// The transactions of a cycle through `start`, if there is one: `start` last, and each waits for the one before it.
    fn find_cycle(&self, start: &Arc<Trx>) -> Option<Vec<Arc<Trx>>> {
        let mut reach = self.detector.reach(start);
        let mut nodes: Vec<(Arc<Trx>, usize)> = vec![(Arc::clone(start), 0)];
        let mut at = 0;
        while at < nodes.len() {
            let node = Arc::clone(&nodes[at].0);
            self.blockers(&node, &mut reach);
            if reach.closed {
                return Some(path(&nodes, at));
            }
            nodes.extend(reach.next.drain(..).map(|trx| (trx, at)));
            at += 1;
        }
        None
    }

    /// Has a function told of every deadlock, when it is found and before it is broken. It is called on the thread whose wait
    /// closed the circle, while nobody else's wait can begin: it must be quick, and ask for no lock here. Only the first one counts.
    pub fn observe_deadlocks(&self, observer: Observer) {
        let _ = self.detector.observer.set(observer);
    }

    /// All waiting transactions, for SHOW ENGINE STATUS and `sys.innodb_lock_waits`.
    #[must_use]
    pub fn waits(&self) -> Vec<WaitInfo> {
        let waiting = self.detector.waiting.lock();
        waiting.values().filter_map(|trx| self.wait_info(trx)).collect()
    }

    fn wait_info(&self, trx: &Arc<Trx>) -> Option<WaitInfo> {
        let mut reach = self.detector.reach(trx);
        self.blockers(trx, &mut reach);
        let blockers = reach.next.iter().map(|trx| trx.id).collect();
        let slot = trx.slot.lock();
        let target = slot.target.clone()?.told();
        let waited = slot.since.map_or_else(Default::default, |since| since.elapsed());
        Some(WaitInfo { waiter: trx.id, blockers, target, mode: slot.mode, waited })
    }
}

fn path(nodes: &[(Arc<Trx>, usize)], mut at: usize) -> Vec<Arc<Trx>> {
    let mut path = vec![Arc::clone(&nodes[at].0)];
    while at != 0 {
        at = nodes[at].1;
        path.push(Arc::clone(&nodes[at].0));
    }
    path
}

/// The lightest; the requester among equals, because it is the one that is awake.
fn choose<'a>(requester: &'a Arc<Trx>, cycle: &'a [Arc<Trx>]) -> &'a Arc<Trx> {
    let weight = |trx: &Arc<Trx>| trx.weight.load(Ordering::Relaxed);
    cycle.iter().fold(requester, |best, trx| if weight(trx) < weight(best) { trx } else { best })
}
