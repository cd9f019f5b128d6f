//! Reads: by key and by range, of the snapshot or of the newest versions under locks, with the
//! transaction's own writes laid over.
//!
//! A locking read first locks, then reads the newest version: whatever it read before the lock may
//! have changed. At REPEATABLE READ and above a locking scan first locks its whole range against
//! inserts, so that nothing appears behind it.

use super::auto::whole_index;
use super::overlay::{Room, is_current, may_have_written, read_batch, read_entries};
use super::range::{KeyRange, RowAt, by_ref};
use super::trx::{Trx, need_replan};
use crate::api::Isolation;
use crate::catalog::Table;
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::storage::{LockMode, WaitPolicy};
use bytes::Bytes;
use omnibus_locks::{RowMode, TableMode};
use std::sync::Arc;

impl Trx {
    /// Checks before a table is read: its definition must be as old as the snapshot. A snapshot that only the running
    /// statement has used gives way to one that has the definition, which is not published yet: the statement runs again.
    fn check_snapshot(&mut self, table: &Table) -> ExecResult<()> {
        let defined = table.valid_from();
        if self.view.ensure()? >= defined {
            return Ok(());
        }
        if self.statement.snapshot_is_older {
            let message = "Table definition has changed, please retry transaction";
            return Err(SqlError::new(1412, b"HY000", message).into());
        }
        self.statement.waits().may_block()?;
        self.view.release();
        self.shared.await_snapshot_of(defined, self.budget.kill())?;
        Err(need_replan().into())
    }

    /// Locks the tables of a query that reads without locks, before it answers anything: what their definitions say then
    /// stays true, and is what the snapshot has.
    ///
    /// # Errors
    /// As `lock_table`; 1412 if the transaction's snapshot is older than a definition.
    pub(crate) fn start_query(&mut self, tables: &[Arc<Table>]) -> ExecResult<()> {
        if self.effective_lock(LockMode::None) == LockMode::None {
            for table in tables.iter().filter(|table| !table.temporary) {
                self.start_read(table, LockMode::None)?;
            }
        }
        Ok(())
    }

    /// The lock that a read takes: plain reads lock at SERIALIZABLE inside a transaction.
    pub(super) fn effective_lock(&self, lock: LockMode) -> LockMode {
        if lock == LockMode::None
            && self.transaction.characteristics.isolation == Isolation::Serializable
            && self.is_open()
        {
            LockMode::Share
        } else {
            lock
        }
    }

    /// Whether ranges are locked too.
    pub(super) fn locks_ranges(&self) -> bool {
        self.transaction.characteristics.isolation >= Isolation::RepeatableRead
    }

    /// The pair of `key` as the snapshot and this transaction's writes have it.
    fn snapshot_value(&mut self, key: &[u8]) -> SqlResult<Option<Bytes>> {
        if !self.transaction.writes.is_empty() {
            self.transaction.writes.settle(key);
            if let Some(write) = self.transaction.writes.get(key)? {
                return Ok(write);
            }
        }
        Ok(self.view.reader()?.get(key)?)
    }

    /// The value of a unique entry as the snapshot and this transaction's writes have it.
    fn snapshot_entry(&mut self, table: &Table, index: usize, key: &Bytes) -> SqlResult<Option<Bytes>> {
        if self.transaction.writes.is_empty() {
            return Ok(self.view.reader()?.get(key)?);
        }
        self.transaction.writes.settle(key);
        let written = match self.transaction.writes.get(key)? {
            Some(Some(own)) => return Ok(Some(own)),
            written => written.is_some(),
        };
        // The snapshot's may be another row's, also where an own one has left this key.
        let Some(value) = self.view.reader()?.get(key)? else { return Ok(None) };
        let current = is_current(&self.transaction.writes, table, index, key, &value, written)?;
        Ok(current.then_some(value))
    }

    /// Whether a row that was read under its lock is newer than the snapshot.
    pub(super) fn is_ahead_of_snapshot(&self, at: &RowAt) -> SqlResult<bool> {
        match &self.view.taken {
            Some(taken) if self.view.floor.seen() > taken.no => Ok(!self.transaction.writes.has(&at.key)?
                && taken.snapshot.get(&at.key)?.as_ref() != Some(&at.row)),
            _ => Ok(false),
        }
    }

    /// The newest value of `key`, which the caller has locked; notes what the reply depends on.
    pub(super) fn locked_value(&mut self, key: &[u8]) -> SqlResult<Option<Bytes>> {
        if !self.transaction.writes.is_empty() {
            self.transaction.writes.settle(key);
            if let Some(write) = self.transaction.writes.get(key)? {
                return Ok(write);
            }
        }
        match self.shared.port.latest().get_version(key)? {
            Some((no, value)) => {
                self.view.floor.see(no);
                Ok(Some(value))
            }
            None => {
                self.view.floor.see(self.shared.port.deleted_floor(key));
                Ok(None)
            }
        }
    }

    /// Table lock and snapshot check of a read.
    pub(super) fn start_read(&mut self, table: &Arc<Table>, lock: LockMode) -> ExecResult<()> {
        let mode =
            if lock == LockMode::Exclusive { TableMode::IntentExclusive } else { TableMode::IntentShared };
        self.lock_table(table, mode)?;
        if lock == LockMode::None {
            self.check_snapshot(table)?;
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
        let lock = self.effective_lock(lock);
        self.start_read(table, lock)?;
        match row_mode(lock) {
            None => Ok(self.snapshot_value(key)?),
            Some(mode) => {
                self.transaction.touch(&self.statement, &self.locks.rows)?;
                if !self.locks.rows.lock_key(&mut self.statement, key, mode, wait)? {
                    return Ok(None);
                }
                Ok(self.locked_value(key)?)
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
        let lock = self.effective_lock(lock);
        self.start_read(table, lock)?;
        let entry = match row_mode(lock) {
            None => self.snapshot_entry(table, index, key)?,
            Some(mode) => {
                if !self.locks.rows.lock_key(&mut self.statement, key, mode, wait)? {
                    return Ok(None);
                }
                self.locked_value(key)?
            }
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
        let lock = self.effective_lock(lock);
        self.start_read(table, lock)?;
        if lock != LockMode::None && self.locks_ranges() && !range.is_empty() {
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
            self.check_kill()?;
            return self.temp.scan(table, index, range, want, rows);
        }
        let lock = self.effective_lock(lock);
        self.check_kill()?;
        self.transaction.writes.settle_all();
        let want = want.max(1);
        let (done, last, left_at) = match row_mode(lock) {
            None => {
                let mut entries = Vec::with_capacity(want.min(1024));
                let done = self.snapshot_entries(table, index, range, want, &mut entries)?;
                let last = entries.last().map(|(key, _)| key.clone());
                (done, last, self.rows_of_entries(table, index, entries, rows)?)
            }
            Some(mode) => {
                let mut ahead = self.read_entries_ahead(range, want)?;
                let (done, last) = (ahead.all, ahead.last());
                let left_at = self.lock_entries(table, index, &mut ahead, (mode, wait), usize::MAX, rows)?;
                (done, last, left_at)
            }
        };
        let all = left_at.is_none();
        if let Some(last) = left_at.or(last) {
            range.resume_after(last);
        }
        Ok(done && all)
    }

    /// Up to `want` pairs of a range as the snapshot and this transaction's writes have them. Whether that was all.
    pub(super) fn snapshot_entries(
        &mut self,
        table: &Table,
        index: usize,
        range: &KeyRange,
        want: usize,
        entries: &mut Vec<(Bytes, Bytes)>,
    ) -> SqlResult<bool> {
        self.transaction.writes.settle_all();
        if let Some(pairs) = self.read_ahead(range, want)? {
            entries.extend_from_slice(pairs);
            return Ok(true);
        }
        self.view.ensure()?;
        let Some(taken) = &self.view.taken else { return Ok(true) };
        let (snapshot, writes) = (&*taken.snapshot, &self.transaction.writes);
        if index == 0 || !may_have_written(writes, &whole_index(table, 0)) {
            Ok(read_batch(snapshot, writes, range, want, entries)?)
        } else {
            read_entries(snapshot, writes, table, index, range, want, entries)
        }
    }

    /// The commonest scan: forward over the clustered index, as the snapshot has it, where this
    /// transaction wrote nothing. As `scan`, without the keys, and without the rows that `keep` refuses; `None` if it is another
    /// kind of scan.
    ///
    /// # Errors
    /// Damage, KILL.
    pub(super) fn scan_rows(
        &mut self,
        range: &mut KeyRange,
        want: usize,
        rows: &mut Vec<Bytes>,
        keep: &mut dyn FnMut(&[u8]) -> bool,
    ) -> ExecResult<Option<bool>> {
        self.transaction.writes.settle_all();
        if range.reverse || range.is_empty() || may_have_written(&self.transaction.writes, range) {
            return Ok(None);
        }
        self.check_kill()?;
        if let Some(pairs) = self.read_ahead(range, want)? {
            rows.extend(pairs.iter().filter(|(_, row)| keep(row)).map(|(_, row)| row.clone()));
            return Ok(Some(true));
        }
        let (mut room, mut last) = (Room::new(want.max(1)), None);
        let done = self.view.reader()?.visit(by_ref(&range.from), by_ref(&range.to), &mut |key, row| {
            let more = room.takes(row.len());
            if keep(&row) {
                rows.push(row.to_bytes());
            }
            if !more {
                last = Some(key.to_bytes());
            }
            more
        })?;
        if let Some(last) = last {
            range.resume_after(last);
        }
        Ok(Some(done))
    }

    /// The pairs of a range of which a batch has room for all, if they were read ahead or are worth it.
    fn read_ahead(&mut self, range: &KeyRange, want: usize) -> SqlResult<Option<&[(Bytes, Bytes)]>> {
        if !self.transaction.writes.is_empty() {
            return Ok(None);
        }
        self.view.near(&mut self.statement.attempt.near, range, want)
    }

    /// The rows of a batch of entries. If they are too large, those of its first ones, and the last of these.
    fn rows_of_entries(
        &mut self,
        table: &Arc<Table>,
        index: usize,
        entries: Vec<(Bytes, Bytes)>,
        rows: &mut Vec<RowAt>,
    ) -> ExecResult<Option<Bytes>> {
        if index == 0 {
            rows.extend(entries.into_iter().map(|(key, row)| RowAt { key, row }));
            return Ok(None);
        }
        let begin = rows.len();
        for (entry, value) in &entries {
            let key = table.clustered_of_entry(index, entry, value)?;
            rows.push(RowAt { key, row: Bytes::new() });
        }
        // In the order of their keys: each search then finds most of its way in the processor's caches.
        let mut order: Vec<usize> = (begin..rows.len()).collect();
        order.sort_unstable_by(|a, b| rows[*a].key.cmp(&rows[*b].key));
        let mut room = Room::of_rows();
        for at in order {
            rows[at].row = self.indexed_row(table, index, &rows[at].key)?;
            if !room.takes(rows[at].row.len()) {
                return self.first_rows(table, index, &entries, rows, begin);
            }
        }
        Ok(None)
    }

    fn indexed_row(&mut self, table: &Table, index: usize, key: &Bytes) -> ExecResult<Bytes> {
        self.budget.tick()?;
        Ok(self.snapshot_value(key)?.ok_or_else(|| dangling(table, index))?)
    }

    /// As many of the rows from `begin` on as there is room for. The entry of the last one if that are not all. Some of them are there.
    fn first_rows(
        &mut self,
        table: &Table,
        index: usize,
        entries: &[(Bytes, Bytes)],
        rows: &mut Vec<RowAt>,
        begin: usize,
    ) -> ExecResult<Option<Bytes>> {
        let mut room = Room::of_rows();
        for (at, (entry, _)) in entries.iter().enumerate() {
            let RowAt { key, row } = &mut rows[begin + at];
            if row.is_empty() {
                *row = self.indexed_row(table, index, key)?;
            }
            if !room.takes(row.len()) {
                rows.truncate(begin + at + 1);
                return Ok((at + 1 < entries.len()).then(|| entry.clone()));
            }
        }
        Ok(None)
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
