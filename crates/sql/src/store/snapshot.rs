//! The view of a transaction: the snapshot of its consistent reads, and the floor that its replies wait for.

use super::floor::Floor;
use super::port::SnapshotHold;
use super::range::{KeyRange, RowAt};
use super::read_ahead::Near;
use super::statement::StatementScope;
use super::trx::{TrxContext, need_replan};
use crate::api::Budget;
use crate::catalog::Table;
use crate::error::{ExecResult, SqlError, SqlResult};
use bytes::Bytes;
use omnibus_commit::{LogPosition, SnapshotWatch};
use omnibus_engine::{CommitNo, Snapshot, WriteSet};
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
    pub(super) shared: Arc<TrxContext>,
    hold: Box<dyn SnapshotHold>,
    pub(super) taken: Option<Taken>,
    /// The floor that replies wait for.
    pub(super) floor: Arc<Floor>,
    /// The newest commit under the session's locks, by whomever.
    stamp: Stamp,
    pub(super) budget: Arc<Budget>,
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

    /// The least number of the next snapshot: it has all commits that the session was given locks after (SNAP-3), and all that it has seen under them.
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

    /// Checks before a table is read: its definition must be as old as the snapshot. A snapshot that only the running
    /// statement has used gives way to one that has the definition, which is not published yet: the statement runs again.
    pub(super) fn check_definition(&mut self, statement: &StatementScope, table: &Table) -> ExecResult<()> {
        let defined = table.valid_from();
        if self.ensure()? >= defined {
            return Ok(());
        }
        if statement.snapshot_is_older {
            let message = "Table definition has changed, please retry transaction";
            return Err(SqlError::new(1412, b"HY000", message).into());
        }
        statement.waits().may_block()?;
        self.release();
        self.shared.await_snapshot_of(defined, self.budget.kill())?;
        Err(need_replan().into())
    }

    /// Whether a row that was read under its lock is newer than the snapshot.
    pub(super) fn is_behind(&self, writes: &WriteSet, at: &RowAt) -> SqlResult<bool> {
        match &self.taken {
            Some(taken) if self.floor.seen() > taken.no => {
                Ok(!writes.has(&at.key)? && taken.snapshot.get(&at.key)?.as_ref() != Some(&at.row))
            }
            _ => Ok(false),
        }
    }

    /// The newest value of `key`, which the caller has locked, its own write if there is one; notes what the reply depends on.
    pub(super) fn newest(&self, writes: &mut WriteSet, key: &[u8]) -> SqlResult<Option<Bytes>> {
        if !writes.is_empty() {
            writes.settle(key);
            if let Some(write) = writes.get(key)? {
                return Ok(write);
            }
        }
        match self.shared.port.latest().get_version(key)? {
            Some((no, value)) => {
                self.floor.see(no);
                Ok(Some(value))
            }
            None => {
                self.floor.see(self.shared.port.deleted_floor(key));
                Ok(None)
            }
        }
    }

    /// Whether the next snapshot must have more than what is published.
    pub(crate) fn is_ahead(&self) -> bool {
        self.wanted() > self.shared.port.published()
    }

    /// Waits until what is published has all that the session must see, as a snapshot needs it whose place in the log is told.
    /// Blocks if `is_ahead`.
    ///
    /// # Errors
    /// The log has failed; KILL.
    pub(crate) fn catch_up(&self) -> SqlResult<()> {
        self.shared.await_snapshot_of(self.wanted(), self.budget.kill())
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
