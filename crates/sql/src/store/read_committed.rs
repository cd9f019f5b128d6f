//! Locking reads at READ COMMITTED: rows are read as the statement's snapshot has them, those that match are locked, and what
//! has changed until then is looked at again as it is now.
//!
//! So a row that does not match is never locked, whoever has it; and a row that is there all the time is found, wherever in
//! an index others move it to while the statement runs, because all candidates are of one moment.

use super::lock::{LockSet, space_of};
use super::locking_scan::LockingRead;
use super::statement::StatementScope;
use super::transaction::Characteristics;
use crate::api::Isolation;
use crate::catalog::Table;
use crate::error::ExecResult;
use crate::storage::{LockMode, WaitPolicy};
use bytes::Bytes;
use omnibus_engine::WriteSet;
use omnibus_locks::RowMode;

impl LockingRead<'_> {
    /// Locks a row that matched. Its newest version, and whether the lock is new; `None` if it is gone or was left out.
    ///
    /// # Errors
    /// Lock waits.
    pub(super) fn lock_match(
        &mut self,
        key: &Bytes,
        lock: LockMode,
        wait: WaitPolicy,
    ) -> ExecResult<Option<(Bytes, bool)>> {
        self.touch()?;
        let mode = if lock == LockMode::Exclusive { RowMode::Exclusive } else { RowMode::Shared };
        let fresh = match wait {
            WaitPolicy::Wait => self.locks.lock_waited(self.statement, key, mode)?,
            _ => match self.locks.owned.try_lock_record(space_of(key), key, mode) {
                Some(fresh) => {
                    self.statement.keep(key);
                    fresh
                }
                None if self.locks.lock_key(self.statement, key, mode, wait)? => false,
                None => return Ok(None),
            },
        };
        self.statement.attempt.matched = fresh.then(|| key.clone());
        let row = self.view.newest(&mut self.transaction.writes, key)?;
        if row.is_none() {
            self.locks.give_back(self.statement, key, &self.transaction.writes)?;
        }
        Ok(row.map(|row| (row, fresh)))
    }

    /// Gives back the lock that the statement waited for, if it did not ask for it when it ran again.
    pub(super) fn give_back_awaited(&mut self) -> ExecResult<()> {
        let Some(key) = self.statement.awaited.take() else { return Ok(()) };
        self.statement.attempt.matched = Some(key.clone());
        self.locks.give_back(self.statement, &key, &self.transaction.writes)
    }
}

impl LockSet {
    /// Gives the lock of a row back that does not match any more, unless more stands on it than the choice of this row: a change
    /// that the transaction has made of it, or a lock that another part of the statement has asked for. All record locks that go
    /// before their transaction ends go here.
    pub(super) fn give_back(
        &self,
        statement: &mut StatementScope,
        key: &Bytes,
        writes: &WriteSet,
    ) -> ExecResult<()> {
        let matched = &mut statement.attempt.matched;
        if matched.take_if(|matched| matched == key).is_some() && !writes.has(key)? {
            self.owned.release_record(space_of(key), key);
        }
        Ok(())
    }
}

impl Characteristics {
    /// Whether a read that locks as `lock` says goes this way.
    pub(super) fn locks_matches(&self, table: &Table, lock: LockMode) -> bool {
        lock != LockMode::None && self.isolation <= Isolation::ReadCommitted && !table.temporary
    }
}
