//! Reads: by key and by range, of the snapshot or of the newest versions under locks, with the
//! transaction's own writes laid over.
//!
//! A locking read first locks, then reads the newest version: whatever it read before the lock may
//! have changed. At REPEATABLE READ and above a locking scan first locks its whole range against
//! inserts, so that nothing appears behind it.

use super::consistent::ConsistentRead;
use super::locking_scan::LockingRead;
use super::range::{KeyRange, RowAt, by_ref};
use super::trx::Trx;
use crate::catalog::Table;
use crate::error::{ExecResult, SqlError};
use crate::storage::{LockMode, WaitPolicy};
use bytes::Bytes;
use omnibus_locks::{RowMode, TableMode};
use std::sync::Arc;

impl Trx {
    /// Consistent reads of the running statement.
    pub(super) fn reading(&mut self) -> ConsistentRead<'_> {
        ConsistentRead {
            view: &mut self.view,
            writes: &mut self.transaction.writes,
            near: &mut self.statement.attempt.near,
        }
    }

    /// Locking reads of the running statement.
    pub(super) fn locking(&mut self) -> LockingRead<'_> {
        LockingRead {
            view: &self.view,
            transaction: &mut self.transaction,
            statement: &mut self.statement,
            locks: &self.locks.rows,
        }
    }

    /// Locks the tables of a query that reads without locks, before it answers anything: what their definitions say then
    /// stays true, and is what the snapshot has.
    ///
    /// # Errors
    /// As `lock_table`; 1412 if the transaction's snapshot is older than a definition.
    pub(crate) fn start_query(&mut self, tables: &[Arc<Table>]) -> ExecResult<()> {
        if self.transaction.characteristics.lock_of(LockMode::None) == LockMode::None {
            for table in tables.iter().filter(|table| !table.temporary) {
                self.start_read(table, LockMode::None)?;
            }
        }
        Ok(())
    }

    /// Table lock and snapshot check of a read.
    pub(super) fn start_read(&mut self, table: &Arc<Table>, lock: LockMode) -> ExecResult<()> {
        let mode =
            if lock == LockMode::Exclusive { TableMode::IntentExclusive } else { TableMode::IntentShared };
        self.lock_table(table, mode)?;
        if lock == LockMode::None {
            self.view.check_definition(&self.statement, table)?;
        }
        Ok(())
    }

    /// The row with this clustered key (with its space prefix).
    ///
    /// # Errors
    /// Lock waits, damage.
    pub fn get_row(
        &mut self,
        table: &Arc<Table>,
        key: &Bytes,
        lock: LockMode,
        wait: WaitPolicy,
    ) -> ExecResult<Option<Bytes>> {
        if table.temporary {
            return Ok(self.temp.value(key));
        }
        let lock = self.transaction.characteristics.lock_of(lock);
        self.start_read(table, lock)?;
        match row_mode(lock) {
            None => Ok(self.reading().value(key)?),
            Some(mode) => {
                let mut read = self.locking();
                read.touch()?;
                read.newest(key, mode, wait)
            }
        }
    }

    /// The row that the complete key `key` of unique index `index` leads to.
    ///
    /// # Errors
    /// Lock waits, damage.
    pub fn get_unique(
        &mut self,
        table: &Arc<Table>,
        index: usize,
        key: &Bytes,
        lock: LockMode,
        wait: WaitPolicy,
    ) -> ExecResult<Option<RowAt>> {
        if table.temporary {
            return Ok(self.temp.unique(table, index, key)?);
        }
        if index == 0 {
            let row = self.get_row(table, key, lock, wait)?;
            return Ok(row.map(|row| RowAt { key: key.clone(), row }));
        }
        let lock = self.transaction.characteristics.lock_of(lock);
        self.start_read(table, lock)?;
        let entry = match row_mode(lock) {
            None => self.reading().entry(table, index, key)?,
            Some(mode) => self.locking().newest(key, mode, wait)?,
        };
        let Some(entry) = entry else { return Ok(None) };
        let clustered = table.clustered_of_entry(index, key, &entry)?;
        let row = self.get_row(table, &clustered, lock, wait)?;
        Ok(row.map(|row| RowAt { key: clustered, row }))
    }

    /// Locks a range as the isolation level asks, before it is scanned with `lock`.
    ///
    /// # Errors
    /// Lock waits.
    pub fn begin_scan(&mut self, table: &Arc<Table>, range: &KeyRange, lock: LockMode) -> ExecResult<()> {
        if table.temporary {
            return Ok(());
        }
        let lock = self.transaction.characteristics.lock_of(lock);
        self.start_read(table, lock)?;
        if lock != LockMode::None && self.transaction.characteristics.locks_ranges() && !range.is_empty() {
            self.locks.rows.lock_gap(self.statement.waits(), by_ref(&range.from), by_ref(&range.to))?;
        }
        Ok(())
    }

    /// Appends up to `want` rows of a range to `rows` and moves the range behind them. Returns
    /// whether the range is exhausted.
    ///
    /// # Errors
    /// Lock waits, damage, KILL.
    #[allow(
        clippy::too_many_arguments,
        reason = "the parameters of a scan; a struct would be unpacked at once"
    )]
    pub fn scan(
        &mut self,
        table: &Arc<Table>,
        index: usize,
        range: &mut KeyRange,
        lock: LockMode,
        wait: WaitPolicy,
        want: usize,
        rows: &mut Vec<RowAt>,
    ) -> ExecResult<bool> {
        if table.temporary {
            self.budget.kill().check()?;
            return self.temp.scan(table, index, range, want, rows);
        }
        let lock = self.transaction.characteristics.lock_of(lock);
        self.budget.kill().check()?;
        let want = want.max(1);
        let (done, last, left_at) = match row_mode(lock) {
            None => {
                let mut entries = Vec::with_capacity(want.min(1024));
                let mut read = self.reading();
                let done = read.entries(table, index, range, want, &mut entries)?;
                let last = entries.last().map(|(key, _)| key.clone());
                (done, last, read.rows_of_entries(table, index, entries, rows)?)
            }
            Some(mode) => {
                let mut ahead = self.view.newest_entries(&mut self.transaction.writes, range, want)?;
                let (done, last) = (ahead.all, ahead.last());
                let left_at =
                    self.locking().lock_entries(table, index, &mut ahead, (mode, wait), usize::MAX, rows)?;
                (done, last, left_at)
            }
        };
        let all = left_at.is_none();
        if let Some(last) = left_at.or(last) {
            range.resume_after(last);
        }
        Ok(done && all)
    }
}

pub(super) fn row_mode(lock: LockMode) -> Option<RowMode> {
    match lock {
        LockMode::None => None,
        LockMode::Share => Some(RowMode::Shared),
        LockMode::Exclusive => Some(RowMode::Exclusive),
    }
}

pub(super) fn dangling(table: &Table, index: usize) -> SqlError {
    tracing::error!(table = %table.qualified(), index = %table.def.indexes[index].name, "index entry without a row");
    SqlError::new(
        1034,
        b"HY000",
        format!("Incorrect key file for table '{}'; try to repair it", table.def.name),
    )
}
