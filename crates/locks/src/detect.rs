//! Deadlock detection, at once, when a wait begins (LOCK-2).
//!
//! The graph is not stored: edges are read from the queues, one shard at a time, while the detector
//! is held. That is enough, because every edge that appears points at a transaction that runs or
//! that begins to wait just now, so a new cycle always goes through a wait that is just beginning;
//! and because edges between waiting transactions go away only when one of them stops waiting.
//! Two waits that begin together are both queued before the second of them searches.

use crate::manager::LockManager;
use crate::stats::{LockTarget, WaitInfo};
use crate::trx::{Target, Trx};
use crate::wait::WaitOutcome;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Serialises searches, and knows who waits.
#[derive(Default)]
pub(crate) struct Detector(Mutex<HashMap<u64, Arc<Trx>>>);

impl Detector {
    /// Takes a transaction off the list, unless it waits again.
    pub(crate) fn forget(&self, trx: &Arc<Trx>, ticket: u64) {
        let mut waiting = self.0.lock();
        if trx.slot.lock().ticket == ticket {
            waiting.remove(&trx.serial);
        }
    }
}

impl LockManager {
    /// Called when `requester` has been queued. Ends somebody's wait for each cycle found.
    pub(crate) fn break_deadlocks(&self, requester: &Arc<Trx>) {
        let mut waiting = self.detector.0.lock();
        waiting.insert(requester.serial, Arc::clone(requester));
        // Nobody else waits, so nobody waits for the requester.
        if waiting.len() == 1 {
            return;
        }
        while let Some(cycle) = self.find_cycle(requester) {
            let victim = choose(requester, &cycle);
            self.counters.deadlocks.fetch_add(1, Ordering::Relaxed);
            self.resolve_wait(victim, None, WaitOutcome::Deadlock);
            if Arc::ptr_eq(victim, requester) {
                break;
            }
        }
    }

    /// The transactions of a cycle through `start`, if there is one.
    fn find_cycle(&self, start: &Arc<Trx>) -> Option<Vec<Arc<Trx>>> {
        let mut nodes: Vec<(Arc<Trx>, usize)> = vec![(Arc::clone(start), 0)];
        let mut seen = HashSet::from([start.serial]);
        let (mut passed, mut blockers) = (Vec::new(), Vec::new());
        let mut at = 0;
        while at < nodes.len() {
            let node = Arc::clone(&nodes[at].0);
            self.blockers(&node, &mut passed, &mut blockers);
            if passed.iter().chain(&blockers).any(|next| Arc::ptr_eq(next, start)) {
                return Some(path(&nodes, at));
            }
            seen.extend(passed.drain(..).map(|trx| trx.serial));
            let fresh = blockers.drain(..).filter(|trx| seen.insert(trx.serial));
            nodes.extend(fresh.map(|trx| (trx, at)));
            at += 1;
        }
        None
    }

    /// Everybody who waits now, for SHOW ENGINE STATUS and `sys.innodb_lock_waits`.
    #[must_use]
    pub fn waits(&self) -> Vec<WaitInfo> {
        let waiting: Vec<Arc<Trx>> = self.detector.0.lock().values().cloned().collect();
        waiting.iter().filter_map(|trx| self.wait_info(trx)).collect()
    }

    fn wait_info(&self, trx: &Arc<Trx>) -> Option<WaitInfo> {
        let (mut passed, mut blockers) = (Vec::new(), Vec::new());
        self.blockers(trx, &mut passed, &mut blockers);
        let mut ids: Vec<u64> = passed.iter().chain(&blockers).map(|trx| trx.id).collect();
        ids.sort_unstable();
        ids.dedup();
        let slot = trx.slot.lock();
        let target = match slot.target.clone()? {
            Target::Record(space, key) => LockTarget::Record { space, key },
            Target::Range(space, _) => LockTarget::Range { space },
            Target::Table(table) => LockTarget::Table { table },
        };
        let waited = slot.since.map_or_else(Default::default, |since| since.elapsed());
        Some(WaitInfo { waiter: trx.id, blockers: ids, target, mode: slot.mode, waited })
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
