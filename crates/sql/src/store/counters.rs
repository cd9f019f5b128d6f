//! Values that a statement takes out of counters (AUTO_INCREMENT values, numbers of sequences), and their rows that its transaction writes.

use super::trx::TrxContext;
use crate::catalog::TableState;
use bytes::Bytes;
use std::sync::Arc;

/// A committed AUTO_INCREMENT counter row that a table will be able to rely on.
pub(super) struct Covers {
    pub state: Arc<TableState>,
    pub value: u64,
    /// The counter row, and the older one it replaces: no row event tells of them.
    pub keys: [Option<Bytes>; 2],
}

/// The values that the running statement took, in order. If it is run again it takes the same once more.
pub(super) struct Taken<T> {
    taken: Vec<T>,
    /// How many of them this attempt has had.
    reused: usize,
}

impl<T> Default for Taken<T> {
    fn default() -> Self {
        Taken { taken: Vec::new(), reused: 0 }
    }
}

impl<T: Copy> Taken<T> {
    /// Takes the value again that the attempt before took at this place, if it is still wanted.
    pub(super) fn take_again(&mut self, wanted: impl FnOnce(&T) -> bool) -> Option<T> {
        match self.taken.get(self.reused) {
            Some(taken) if wanted(taken) => {
                self.reused += 1;
                Some(*taken)
            }
            _ => {
                self.taken.truncate(self.reused);
                None
            }
        }
    }

    /// Something new was taken.
    pub(super) fn push(&mut self, taken: T) {
        self.taken.push(taken);
        self.reused += 1;
    }

    /// How many were taken.
    pub(super) fn count(&self) -> usize {
        self.reused
    }

    /// The first that was taken.
    pub(super) fn first(&self) -> Option<&T> {
        self.taken.first().filter(|_| self.reused > 0)
    }

    /// Of the attempt that follows: all of it is to be taken `again`, or nothing is left but the list's room.
    pub(super) fn next(self, again: bool) -> Taken<T> {
        let mut taken = self.taken;
        if !again {
            taken.clear();
        }
        Taken { taken, reused: 0 }
    }
}

/// The counters of all tables, as a session asks for them.
pub(crate) struct Counters {
    pub(super) shared: Arc<TrxContext>,
}

impl Counters {
    pub(super) fn new(shared: &Arc<TrxContext>) -> Counters {
        Counters { shared: shared.clone() }
    }
}
