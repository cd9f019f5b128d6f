//! A deadlock as it was found: who waited for whom, and who gives up.

use crate::stats::LockTarget;
use crate::sync::atomic::Ordering;
use crate::trx::Trx;
use std::sync::Arc;
use std::time::Duration;

/// Takes note of deadlocks. See `LockManager::observe_deadlocks`.
pub type Observer = Box<dyn Fn(&Deadlock) + Send + Sync>;

/// A circle of transactions that wait for each other.
#[derive(Clone, Debug)]
pub struct Deadlock {
    /// Each waits for the next, and the last for the first. The one whose wait closed the circle is last.
    pub members: Vec<Deadlocked>,
    /// The place of the one whose wait ends with `WaitOutcome::Deadlock`.
    pub victim: usize,
}

/// A transaction of a deadlock.
#[derive(Clone, Debug)]
pub struct Deadlocked {
    /// The owner's number.
    pub owner: u64,
    /// The lock that it waits for. It has, or is before others in the queue for, the one that the member before waits for.
    pub target: Option<LockTarget>,
    /// The mode that it asked for.
    pub mode: &'static str,
    /// Its wait's duration.
    pub waited: Duration,
    /// About how many row locks it holds.
    pub rows: usize,
}

impl Deadlock {
    /// From a cycle in which each waits for the one before it, and the first for the last.
    pub(crate) fn of(cycle: &[Arc<Trx>], victim: &Arc<Trx>) -> Deadlock {
        // From the one that the last waits for: all in the order of waiting, the requester at the end.
        let (requester, others) = match cycle.split_last() {
            Some((requester, others)) => (Some(requester), others),
            None => (None, cycle),
        };
        let order: Vec<_> = others.iter().rev().chain(requester).collect();
        let victim = order.iter().position(|trx| Arc::ptr_eq(trx, victim)).unwrap_or(0);
        Deadlock { members: order.into_iter().map(Deadlocked::of).collect(), victim }
    }
}

impl Deadlocked {
    fn of(trx: &Arc<Trx>) -> Deadlocked {
        let rows = trx.held.lock().records.len() + trx.bulk.load(Ordering::Relaxed);
        let slot = trx.slot.lock();
        Deadlocked {
            owner: trx.id,
            target: slot.target.clone().map(|target| target.told()),
            mode: slot.mode,
            waited: slot.since.map_or_else(Duration::default, |since| since.elapsed()),
            rows,
        }
    }
}
