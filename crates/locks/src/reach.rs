//! The state of a search for a deadlock (`detect`): the waiting transactions that it has reached.

use crate::deadlock::Observer;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::trx::Trx;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// Serialises searches, and knows who waits.
#[derive(Default)]
pub(crate) struct Detector {
    pub(crate) waiting: Mutex<HashMap<u64, Arc<Trx>>>,
    pub(crate) searches: AtomicU64,
    /// Is told of every deadlock.
    pub(crate) observer: OnceLock<Observer>,
}

/// The state of one search. Transactions that it has seen are marked with the search's number.
pub(crate) struct Reach<'a> {
    pub(crate) search: u64,
    pub(crate) start: &'a Arc<Trx>,
    /// A reached transaction waits for `start`.
    pub(crate) closed: bool,
    /// Reached, and to be looked at further.
    pub(crate) next: Vec<Arc<Trx>>,
}

impl Reach<'_> {
    /// Reports a transaction ahead in the same queue, whose own reasons to wait there are reported as well.
    pub(crate) fn pass(&mut self, trx: &Arc<Trx>) {
        self.closed |= Arc::ptr_eq(trx, self.start);
        trx.mark.store(self.search, Ordering::Relaxed);
    }

    /// Reports a transaction that may itself wait, directly or through the one beside it.
    pub(crate) fn block(&mut self, trx: &Arc<Trx>) {
        let trx = trx.that_waits();
        self.closed |= Arc::ptr_eq(&trx, self.start);
        if trx.mark.swap(self.search, Ordering::Relaxed) != self.search {
            self.next.push(trx);
        }
    }
}

impl Detector {
    /// A new search from `start`.
    pub(crate) fn reach<'a>(&self, start: &'a Arc<Trx>) -> Reach<'a> {
        let search = self.searches.fetch_add(1, Ordering::Relaxed) + 1;
        start.mark.store(search, Ordering::Relaxed);
        Reach { search, start, closed: false, next: Vec::new() }
    }

    /// Takes a transaction off the list, unless it waits again.
    pub(crate) fn forget(&self, trx: &Arc<Trx>, ticket: u64) {
        let mut waiting = self.waiting.lock();
        if trx.slot.lock().ticket == ticket {
            waiting.remove(&trx.serial);
        }
    }
}
