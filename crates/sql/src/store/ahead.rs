//! Locking scans: entries are read ahead, and their rows locked one by one, as they are asked for.
//!
//! So who stops early (LIMIT, EXISTS, SKIP LOCKED in a join) has locked the rows that it came by and none behind them, as if it had read
//! row by row. The range is locked against inserts before its entries are read, where the level of isolation asks for that;
//! what others, or the statement's own functions, make of a row between the reading of its entry and its lock is found when
//! the row is looked at again.

use super::overlay::{Room, read_batch};
use super::range::{KeyRange, RowAt};
use super::snapshot::SnapshotView;
use super::trx::Trx;
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

impl Trx {
    /// Up to `want` further rows of a locking scan, which has begun. Moves `range` behind what is read.
    pub(super) fn fetch_locked(
        &mut self,
        table: &Arc<Table>,
        scan: &mut Scan,
        range: &mut KeyRange,
        (mode, want): (RowMode, usize),
        rows: &mut Vec<RowAt>,
    ) -> ExecResult<()> {
        self.budget.kill().check()?;
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
            self.transaction.touch(&self.statement, &self.locks.rows)?;
            let key =
                if index == 0 { entry.clone() } else { table.clustered_of_entry(index, &entry, &value)? };
            if !self.locks.rows.lock_key(&mut self.statement, &key, mode, wait)? {
                continue;
            }
            // Who had the lock before and changed the row has a number. If there is none that the read could have missed, what
            // it found is the newest; else that may be history now.
            let current = index == 0
                && self.shared.port.numbered() == ahead.installed
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
