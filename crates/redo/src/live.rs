//! The transactions that the log still has to keep, and the segments that they are in. Pure.

use omnibus_engine::{CommitNo, TrxId, WriteSet};
use std::collections::{BTreeMap, HashMap};

/// One prepared transaction.
#[derive(Debug)]
struct Trx {
    segment: u64,
    /// Only if it was found when the log was opened: those of this run have their session's write set.
    found: Option<WriteSet>,
    committed: Option<CommitNo>,
}

#[derive(Debug, Default)]
pub(crate) struct Live {
    trxs: HashMap<TrxId, Trx>,
    /// Undecided or not persistent yet, by segment.
    kept: BTreeMap<u64, usize>,
}

impl Live {
    pub(crate) fn prepared(&mut self, trx: TrxId, segment: u64, found: Option<WriteSet>) {
        *self.kept.entry(segment).or_default() += 1;
        if let Some(old) = self.trxs.insert(trx, Trx { segment, found, committed: None }) {
            self.release(old.segment);
        }
    }

    pub(crate) fn contains(&self, trx: TrxId) -> bool {
        self.trxs.contains_key(&trx)
    }

    /// Records the commit. Returns the write set if the transaction was found at opening, the first time only.
    pub(crate) fn committed(&mut self, trx: TrxId, no: CommitNo) -> Option<WriteSet> {
        let trx = self.trxs.get_mut(&trx)?;
        trx.committed = Some(no);
        trx.found.take()
    }

    /// A commit that the log itself tells of: the write set may be wanted still.
    pub(crate) fn was_committed(&mut self, trx: TrxId, no: CommitNo) {
        if let Some(trx) = self.trxs.get_mut(&trx) {
            trx.committed = Some(no);
        }
    }

    pub(crate) fn rolled_back(&mut self, trx: TrxId) {
        if let Some(trx) = self.trxs.remove(&trx) {
            self.release(trx.segment);
        }
    }

    /// Forgets what is persistent elsewhere.
    pub(crate) fn persisted(&mut self, up_to: CommitNo) {
        let gone: Vec<_> =
            self.trxs.extract_if(|_, trx| trx.committed.is_some_and(|no| no <= up_to)).collect();
        gone.into_iter().for_each(|(_, trx)| self.release(trx.segment));
    }

    fn release(&mut self, segment: u64) {
        if let Some(count) = self.kept.get_mut(&segment) {
            *count -= 1;
            if *count == 0 {
                self.kept.remove(&segment);
            }
        }
    }

    /// Segments below this one are not needed.
    pub(crate) fn needed_from(&self) -> u64 {
        self.kept.keys().next().copied().unwrap_or(u64::MAX)
    }

    /// The transactions whose write sets were found when the log was opened.
    pub(crate) fn undecided(&self) -> Vec<TrxId> {
        let found = self.trxs.iter().filter(|(_, trx)| trx.found.is_some());
        let mut trxs: Vec<_> = found.map(|(trx, _)| *trx).collect();
        trxs.sort_unstable();
        trxs
    }
}
