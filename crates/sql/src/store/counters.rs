//! What a statement takes out of counters (AUTO_INCREMENT values, numbers of sequences), and what its transaction writes of them.

use super::trx::TrxContext;
use crate::catalog::TableState;
use crate::error::SqlResult;
use bytes::Bytes;
use omnibus_engine::WriteSet;
use std::sync::Arc;

/// A committed AUTO_INCREMENT counter row that a table will be able to rely on.
pub(super) struct Covers {
    pub state: Arc<TableState>,
    pub value: u64,
    /// The counter row, and the older one it replaces: no row event tells of them.
    pub keys: [Option<Bytes>; 2],
}

/// What the running statement took, in order. If it is run again it takes the same once more.
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
    /// What the attempt before took at this place, if it is still wanted.
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

/// See the module's text.
pub(crate) struct Counters {
    pub(super) shared: Arc<TrxContext>,
    /// Counter rows among the writes.
    pub(super) covers: Vec<Covers>,
    /// Sequences whose rows it writes.
    pub(super) sequences: Vec<Arc<TableState>>,
}

impl Counters {
    pub(super) fn new(shared: &Arc<TrxContext>) -> Counters {
        Counters { covers: Vec::new(), sequences: Vec::new(), shared: shared.clone() }
    }

    /// The transaction is over.
    pub(super) fn end(&mut self) {
        self.covers.clear();
        self.sequences.clear();
    }

    /// The counter rows that the transaction still writes: no row event tells of them.
    ///
    /// # Errors
    /// The writes could not be read.
    pub(super) fn unlogged_keys(&mut self, writes: &WriteSet, position: &[Bytes]) -> SqlResult<Vec<Bytes>> {
        for covers in std::mem::take(&mut self.covers) {
            if let Some(key) = &covers.keys[0]
                && matches!(writes.get(key)?, Some(Some(_)))
            {
                self.covers.push(covers);
            }
        }
        let counters = self.covers.iter().flat_map(|covers| covers.keys.iter().flatten().cloned());
        Ok(counters.chain(position.iter().cloned()).collect())
    }
}
