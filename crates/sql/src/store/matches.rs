//! Locking reads at READ COMMITTED: rows are read as the statement's snapshot has them, those that match are locked, and what
//! has changed until then is looked at again as it is now.
//!
//! So a row that does not match is never locked, whoever has it; and a row that is there all the time is found, wherever in
//! an index others move it to while the statement runs, because all candidates are of one moment.

use super::lock::space_of;
use super::trx::Trx;
use crate::api::{Isolation, Mode};
use crate::catalog::Table;
use crate::error::{ExecResult, Interrupt};
use crate::storage::{LockMode, WaitPolicy};
use bytes::Bytes;
use omnibus_locks::{Request, RowMode};
use std::sync::Arc;

impl Trx {
    /// Whether a read that locks as `lock` says goes this way.
    pub(crate) fn locks_matches_only(&self, table: &Table, lock: LockMode) -> bool {
        lock != LockMode::None && self.isolation <= Isolation::ReadCommitted && !table.temporary
    }

    /// Locks a row that matched. Its newest version, and whether the lock is new; `None` if it is gone or was left out.
    ///
    /// # Errors
    /// Lock waits.
    pub(crate) fn lock_match(
        &mut self,
        table: &Arc<Table>,
        key: &Bytes,
        lock: LockMode,
        wait: WaitPolicy,
    ) -> ExecResult<Option<(Bytes, bool)>> {
        self.start_read(table, lock)?;
        self.touch()?;
        let mode = if lock == LockMode::Exclusive { RowMode::Exclusive } else { RowMode::Shared };
        let fresh = match wait {
            WaitPolicy::Wait => self.lock_waited(key, mode)?,
            _ => match self.locks.try_lock_record(space_of(key), key, mode) {
                Some(fresh) => fresh,
                None if self.lock_key(key, mode, wait)? => false,
                None => return Ok(None),
            },
        };
        let row = self.locked_value(key)?;
        if row.is_none() && fresh {
            self.unlock_match(key);
        }
        Ok(row.map(|row| (row, fresh)))
    }

    /// As `lock_key`; tells whether nothing was held before the statement.
    fn lock_waited(&mut self, key: &Bytes, mode: RowMode) -> ExecResult<bool> {
        let fresh = match self.locks.lock_record(space_of(key), key, mode) {
            Request::Granted { fresh } => fresh,
            Request::Wait(wait) => {
                let fresh = !wait.is_upgrade();
                if self.mode == Mode::Inline {
                    // Granted before the statement runs again, which then may not want it any more.
                    self.awaited = fresh.then(|| key.clone());
                    return Err(Interrupt::LockWait(wait));
                }
                self.await_lock(Request::Wait(wait))?;
                fresh
            }
        };
        let awaited = self.awaited.take_if(|awaited| awaited == key).is_some();
        Ok(fresh || awaited)
    }

    /// Gives back the lock of a row that does not match any more.
    pub(crate) fn unlock_match(&mut self, key: &Bytes) {
        self.locks.release_record(space_of(key), key);
    }

    /// A lock that the statement waited for, and did not ask for when it ran again.
    pub(super) fn drop_awaited(&mut self) {
        if let Some(key) = self.awaited.take() {
            self.unlock_match(&key);
        }
    }
}
