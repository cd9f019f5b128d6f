//! What a transaction sees: the snapshot of its consistent reads, and what its replies wait for.

use super::floor::Floor;
use super::near::Near;
use super::port::SnapshotHold;
use super::range::KeyRange;
use super::trx::TrxContext;
use crate::api::Budget;
use crate::error::SqlResult;
use bytes::Bytes;
use omnibus_commit::{LogPosition, SnapshotWatch};
use omnibus_engine::{CommitNo, Snapshot};
use omnibus_locks::Stamp;
use std::ops::Bound;
use std::sync::Arc;

/// A snapshot that is held.
pub(super) struct Taken {
    pub no: CommitNo,
    pub snapshot: Box<dyn Snapshot>,
    /// Where it is in the log, if it was taken with that.
    position: Option<LogPosition>,
}

/// See the module's text.
pub(crate) struct SnapshotView {
    shared: Arc<TrxContext>,
    hold: Box<dyn SnapshotHold>,
    pub(super) taken: Option<Taken>,
    /// What replies wait for.
    pub(super) floor: Arc<Floor>,
    /// What was committed under the session's locks, by whomever.
    stamp: Stamp,
    budget: Arc<Budget>,
}

impl Taken {
    fn new(shared: &TrxContext, no: CommitNo, position: Option<LogPosition>) -> Taken {
        Taken { no, snapshot: shared.port.engine().snapshot(no), position }
    }
}

impl SnapshotView {
    pub(super) fn new(shared: &Arc<TrxContext>, stamp: Stamp, budget: Arc<Budget>) -> SnapshotView {
        SnapshotView {
            hold: shared.port.hold(),
            taken: None,
            floor: Arc::new(Floor::new(shared.clone())),
            stamp,
            budget,
            shared: shared.clone(),
        }
    }

    /// A view of the snapshot for other threads.
    pub(super) fn watch(&self) -> SnapshotWatch {
        self.hold.watch()
    }

    /// The snapshot that consistent reads use, taken at need.
    ///
    /// # Errors
    /// As `at_least`.
    pub(super) fn ensure(&mut self) -> SqlResult<CommitNo> {
        if let Some(taken) = &self.taken {
            return Ok(taken.no);
        }
        let at_least = self.at_least()?;
        let no = self.hold.take(at_least);
        if no == at_least {
            self.floor.see(no);
        }
        self.taken = Some(Taken::new(&self.shared, no, None));
        Ok(no)
    }

    /// What the next snapshot has at least: what the session was given locks after (SNAP-3), and what it has seen under them.
    pub(super) fn wanted(&self) -> CommitNo {
        CommitNo(self.stamp.get()).max(self.floor.seen())
    }

    /// As `wanted`, and all of it is in the engines: what was seen while it was on its way into them is so presently.
    ///
    /// # Errors
    /// As `Budget::may_wait`, if it is to be waited for.
    fn at_least(&self) -> SqlResult<CommitNo> {
        let (port, seen) = (&self.shared.port, self.floor.seen());
        if seen > port.published() {
            while port.installed() < seen {
                self.budget.may_wait()?;
                std::thread::yield_now();
            }
        }
        Ok(self.wanted())
    }

    pub(super) fn reader(&mut self) -> SqlResult<&dyn Snapshot> {
        self.ensure()?;
        // Taken just above; the fallback cannot be reached.
        let taken = self.taken.get_or_insert_with(|| Taken::new(&self.shared, CommitNo::ZERO, None));
        Ok(&*taken.snapshot)
    }

    /// The pairs of a range of which a batch has room for all, if they were read ahead or are worth it.
    pub(super) fn near<'n>(
        &mut self,
        near: &'n mut Near,
        range: &KeyRange,
        want: usize,
    ) -> SqlResult<Option<&'n [(Bytes, Bytes)]>> {
        let (Bound::Included(from), Bound::Excluded(to)) = (&range.from, &range.to) else { return Ok(None) };
        if range.reverse {
            return Ok(None);
        }
        self.ensure()?;
        let Some(taken) = &self.taken else { return Ok(None) };
        near.turn_to(taken.no);
        Ok(near.range(&*taken.snapshot, from, to, want)?)
    }

    /// Takes the snapshot now (WITH CONSISTENT SNAPSHOT) and tells its log position.
    pub fn take_with_position(&mut self) -> (CommitNo, LogPosition) {
        let (no, position) = self.hold.take_with_position();
        self.taken = Some(Taken::new(&self.shared, no, Some(position)));
        (no, position)
    }

    /// The number and log position of the snapshot, if it was taken with one (Binlog_snapshot_position).
    #[must_use]
    pub fn place(&self) -> Option<(CommitNo, LogPosition)> {
        let taken = self.taken.as_ref()?;
        Some((taken.no, taken.position?))
    }

    /// The transaction is over, or the statement that the snapshot was for.
    pub(super) fn release(&mut self) {
        if self.taken.take().is_some() {
            self.hold.release();
        }
    }
}
