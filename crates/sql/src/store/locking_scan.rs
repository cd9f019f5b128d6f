//! Locking scans: entries are read ahead, and their rows locked one by one, as they are asked for.
//!
//! So who stops early (LIMIT, EXISTS, SKIP LOCKED in a join) has locked the rows that it came by and none behind them, as if it had read
//! row by row. The range is locked against inserts before its entries are read, where the level of isolation asks for that;
//! what others, or the statement's own functions, make of a row between the reading of its entry and its lock is found when
//! the row is looked at again.

use super::lock::LockSet;
use super::overlay::{Room, read_batch};
use super::range::{KeyRange, RowAt};
use super::snapshot::SnapshotView;
use super::statement::StatementScope;
use super::transaction::Transaction;
use crate::catalog::Table;
use crate::error::{ExecResult, SqlResult};
use crate::storage::{ReadAhead, Scan, WaitPolicy};
use bytes::Bytes;
use omnibus_engine::WriteSet;
use omnibus_locks::RowMode;
use std::sync::Arc;

/// Entries read ahead at first and at most.
const FIRST: usize = 8;
const MOST: usize = 256;

impl SnapshotView {
    /// The next entries of a range, as they are now and the transaction's writes have them.
    pub(super) fn newest_entries(
        &self,
        writes: &mut WriteSet,
        range: &KeyRange,
        want: usize,
    ) -> SqlResult<ReadAhead> {
        writes.settle_all();
        let mut pairs = Vec::with_capacity(want.min(1024));
        // Before the newest versions are taken, which have all of this then.
        let installed = self.shared.port.published();
        let latest = self.shared.port.latest();
        let all = read_batch(&*latest, writes, range, want, &mut pairs)?;
        // Rows that are gone leave no version to read; any deletion numbered so far may have been one of them.
        self.floor.see_everything();
        let next = (want * 4).min(MOST);
        Ok(ReadAhead { pairs: pairs.into(), installed, written: writes.mark(), all, next })
    }
}

/// The parts of a transaction that a statement's locking reads use: they lock, and read the newest version.
pub(super) struct LockingRead<'t> {
    pub view: &'t SnapshotView,
    pub transaction: &'t mut Transaction,
    pub statement: &'t mut StatementScope,
    pub locks: &'t LockSet,
}

impl LockingRead<'_> {
    /// Counts a row that is locked.
    pub(super) fn touch(&mut self) -> ExecResult<()> {
        self.transaction.touch(self.statement, self.locks)
    }

    /// Locks a key; its newest value then. `None` also if the lock was left out.
    pub(super) fn newest(
        &mut self,
        key: &Bytes,
        mode: RowMode,
        wait: WaitPolicy,
    ) -> ExecResult<Option<Bytes>> {
        if !self.locks.lock_key(self.statement, key, mode, wait)? {
            return Ok(None);
        }
        Ok(self.view.newest(&mut self.transaction.writes, key)?)
    }

    /// The row that a unique entry leads to, locked exclusively, if the entry is there. The entry's key is locked by the caller.
    pub(super) fn row_of_entry(
        &mut self,
        table: &Table,
        index: usize,
        entry: &Bytes,
    ) -> ExecResult<Option<RowAt>> {
        let Some(value) = self.view.newest(&mut self.transaction.writes, entry)? else { return Ok(None) };
        let key = table.clustered_of_entry(index, entry, &value)?;
        let row = self.newest(&key, RowMode::Exclusive, WaitPolicy::Wait)?;
        Ok(row.map(|row| RowAt { key, row }))
    }

    /// Up to `want` further rows of a locking scan, which has begun. Moves `range` behind what is read.
    pub(super) fn fetch(
        &mut self,
        table: &Arc<Table>,
        scan: &mut Scan,
        range: &mut KeyRange,
        (mode, want): (RowMode, usize),
        rows: &mut Vec<RowAt>,
    ) -> ExecResult<()> {
        self.locks.budget.kill().check()?;
        let kept = scan.ahead.take().filter(|ahead| !ahead.pairs.is_empty() || ahead.all);
        let mut ahead = match kept {
            Some(ahead) => ahead,
            None => {
                let want = scan.batch.max(FIRST);
                let ahead = self.view.newest_entries(&mut self.transaction.writes, range, want)?;
                let ahead = Box::new(ahead);
                if let Some(last) = ahead.last() {
                    range.resume_after(last);
                }
                scan.batch = ahead.next;
                ahead
            }
        };
        self.lock_entries(table, scan.index, &mut ahead, (mode, scan.wait), want.max(1), rows)?;
        scan.done = ahead.all && ahead.pairs.is_empty();
        scan.ahead = Some(ahead);
        Ok(())
    }

    /// Locks the rows of entries until `want` of them are there, fewer if they are large. The entry where it has stopped, if it did not
    /// come to the end.
    pub(super) fn lock_entries(
        &mut self,
        table: &Arc<Table>,
        index: usize,
        ahead: &mut ReadAhead,
        (mode, wait): (RowMode, WaitPolicy),
        want: usize,
        rows: &mut Vec<RowAt>,
    ) -> ExecResult<Option<Bytes>> {
        let (mut room, end) = (Room::of_rows(), rows.len().saturating_add(want));
        while let Some((entry, value)) = ahead.pairs.pop_front() {
            self.touch()?;
            let key =
                if index == 0 { entry.clone() } else { table.clustered_of_entry(index, &entry, &value)? };
            if !self.locks.lock_key(self.statement, &key, mode, wait)? {
                continue;
            }
            // Who had the lock before and changed the row has a number. If there is none that the read could have missed, what
            // it found is the newest; else that may be history now.
            let current = index == 0
                && self.view.shared.port.numbered() == ahead.installed
                && self.transaction.writes.mark() == ahead.written;
            let row = if current {
                value
            } else {
                let Some(row) = self.view.newest(&mut self.transaction.writes, &key)? else { continue };
                if index != 0 {
                    let values = table.decode(&row)?;
                    if table.keys[index].entry(&values, &key).key != entry {
                        continue;
                    }
                }
                row
            };
            let full = !room.takes(row.len());
            rows.push(RowAt { key, row });
            if full || rows.len() == end {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }
}
