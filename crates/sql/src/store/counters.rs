//! What a transaction has taken out of counters: AUTO_INCREMENT values, numbers of sequences, and what it writes of them.

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

    fn begin(&mut self, again: bool) {
        self.reused = 0;
        if !again {
            self.taken.clear();
        }
    }
}

/// See the module's text.
pub(crate) struct Counters {
    pub(super) shared: Arc<TrxContext>,
    /// AUTO_INCREMENT values: table, how many, first.
    pub(super) auto: Taken<(u64, u64, u64)>,
    /// Numbers out of sequences: table, number.
    pub(super) numbers: Taken<(u64, i64)>,
    /// Counter rows among the writes.
    pub(super) covers: Vec<Covers>,
    /// Sequences whose rows it writes.
    pub(super) sequences: Vec<Arc<TableState>>,
    /// The running statement has given a row the value that SET INSERT_ID names.
    forced: bool,
}

impl Counters {
    pub(super) fn new(shared: &Arc<TrxContext>) -> Counters {
        Counters {
            auto: Taken { taken: Vec::new(), reused: 0 },
            numbers: Taken { taken: Vec::new(), reused: 0 },
            covers: Vec::new(),
            sequences: Vec::new(),
            forced: false,
            shared: shared.clone(),
        }
    }

    /// Whether the statement is a new one, or the last one again after an interrupt.
    pub(super) fn begin_attempt(&mut self, again: bool) {
        self.auto.begin(again);
        self.numbers.begin(again);
        self.forced = false;
    }

    /// A row has the value that SET INSERT_ID names.
    pub(crate) fn use_forced(&mut self) {
        self.forced = true;
    }

    /// Whether a row has it, which no later statement may have. Asked once.
    pub(crate) fn take_forced(&mut self) -> bool {
        std::mem::take(&mut self.forced)
    }

    /// As `take_forced`, for the log of a statement that goes on.
    pub(crate) fn has_forced(&self) -> bool {
        self.forced
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
