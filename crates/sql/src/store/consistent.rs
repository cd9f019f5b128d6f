//! Consistent reads: what the snapshot has, with the transaction's own writes laid over it. They lock nothing.

use super::auto::whole_index;
use super::overlay::{Room, is_current, may_have_written, read_batch, read_entries};
use super::range::{KeyRange, RowAt, by_ref};
use super::read::dangling;
use super::read_ahead::Near;
use super::snapshot::SnapshotView;
use crate::catalog::Table;
use crate::error::{ExecResult, SqlResult};
use bytes::Bytes;
use omnibus_engine::WriteSet;
use std::sync::Arc;

/// The parts of a transaction that a statement's consistent reads look at.
pub(super) struct ConsistentRead<'t> {
    pub view: &'t mut SnapshotView,
    pub writes: &'t mut WriteSet,
    /// The rows that the statement has read ahead.
    pub near: &'t mut Near,
}

impl ConsistentRead<'_> {
    /// The pair of `key`.
    pub(super) fn value(&mut self, key: &[u8]) -> SqlResult<Option<Bytes>> {
        if !self.writes.is_empty() {
            self.writes.settle(key);
            if let Some(write) = self.writes.get(key)? {
                return Ok(write);
            }
        }
        Ok(self.view.reader()?.get(key)?)
    }

    /// The value of a unique entry.
    pub(super) fn entry(&mut self, table: &Table, index: usize, key: &Bytes) -> SqlResult<Option<Bytes>> {
        if self.writes.is_empty() {
            return Ok(self.view.reader()?.get(key)?);
        }
        self.writes.settle(key);
        let written = match self.writes.get(key)? {
            Some(Some(own)) => return Ok(Some(own)),
            written => written.is_some(),
        };
        // The snapshot's may be another row's, also where an own one has left this key.
        let Some(value) = self.view.reader()?.get(key)? else { return Ok(None) };
        let current = is_current(self.writes, table, index, key, &value, written)?;
        Ok(current.then_some(value))
    }

    /// Up to `want` pairs of a range. Whether that was all.
    pub(super) fn entries(
        &mut self,
        table: &Table,
        index: usize,
        range: &KeyRange,
        want: usize,
        entries: &mut Vec<(Bytes, Bytes)>,
    ) -> SqlResult<bool> {
        self.writes.settle_all();
        if let Some(pairs) = self.read_ahead(range, want)? {
            entries.extend_from_slice(pairs);
            return Ok(true);
        }
        self.view.ensure()?;
        let Some(taken) = &self.view.taken else { return Ok(true) };
        let (snapshot, writes) = (&*taken.snapshot, &*self.writes);
        if index == 0 || !may_have_written(writes, &whole_index(table, 0)) {
            Ok(read_batch(snapshot, writes, range, want, entries)?)
        } else {
            read_entries(snapshot, writes, table, index, range, want, entries)
        }
    }

    /// The commonest scan: forward over the clustered index, where this transaction wrote nothing. As [`super::Trx::scan`],
    /// without the keys, and without the rows that `keep` refuses; `None` if it is another kind of scan.
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
        self.writes.settle_all();
        if range.reverse || range.is_empty() || may_have_written(self.writes, range) {
            return Ok(None);
        }
        self.view.budget.kill().check()?;
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
        if self.writes.is_empty() { self.view.near(self.near, range, want) } else { Ok(None) }
    }

    /// The rows of a batch of entries. If they are too large, those of its first ones, and the last of these.
    pub(super) fn rows_of_entries(
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
        self.view.budget.tick()?;
        Ok(self.value(key)?.ok_or_else(|| dangling(table, index))?)
    }

    /// Reads rows from `begin` on until the room is used up. Returns the entry of the last one if there are more. Rows that are read already stay.
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
