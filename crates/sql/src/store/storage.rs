//! [`Storage`] over a transaction: what SELECT reads through.

use super::lookup;
use super::range::{KeyRange, RowAt};
use super::read::row_mode;
use super::sequence;
use super::trx::Trx;
use crate::catalog::Table;
use crate::error::{ExecResult, Interrupt};
use crate::storage::{LockMode, Scan, SequenceAsk, Storage, WaitPolicy};
use bytes::Bytes;
use std::ops::Bound;
use std::sync::Arc;

/// The rest of a scan's range, which has come as far as `scan.last`.
fn range_of(scan: &Scan) -> KeyRange {
    let (from, to) = (scan.from.clone(), scan.to.clone());
    let mut range = KeyRange { from: Bound::Included(from), to: Bound::Excluded(to), reverse: scan.reverse };
    if let Some(last) = &scan.last {
        range.resume_after(last.clone());
    }
    range
}

/// Remembers how far `range` has come.
fn note_progress(scan: &mut Scan, range: &KeyRange) {
    let reached = if range.reverse { &range.to } else { &range.from };
    if let Bound::Excluded(key) = reached {
        scan.last = Some(key.clone());
    }
}

/// Further rows of a scan that has begun, with their keys.
fn fetch_rows(
    trx: &mut Trx,
    table: &Arc<Table>,
    scan: &mut Scan,
    (range, lock): (&mut KeyRange, LockMode),
    want: usize,
    found: &mut Vec<RowAt>,
) -> ExecResult<()> {
    match row_mode(trx.transaction.characteristics.lock_of(lock)) {
        Some(mode) if !table.temporary => trx.locking().fetch(table, scan, range, (mode, want), found)?,
        _ => scan.done = trx.scan(table, scan.index, range, lock, scan.wait, want, found)?,
    }
    note_progress(scan, range);
    Ok(())
}

impl Storage for Trx {
    fn transaction(&mut self) -> Option<&mut dyn std::any::Any> {
        Some(self)
    }

    fn next_value(&mut self, table: &Arc<Table>, ask: &SequenceAsk<'_>) -> ExecResult<i64> {
        sequence::next_value(self, table, ask)
    }

    fn set_value(
        &mut self,
        table: &Arc<Table>,
        to: (i64, bool, i64),
        ask: &SequenceAsk<'_>,
    ) -> ExecResult<bool> {
        sequence::set_value(self, table, to, ask)
    }

    fn see_definitions(&self) {
        self.view.floor.see_definitions();
    }

    fn get(
        &mut self,
        table: &Arc<Table>,
        index: usize,
        key: &Bytes,
        lock: LockMode,
        wait: WaitPolicy,
    ) -> ExecResult<Option<Bytes>> {
        Ok(self.get_unique(table, index, key, lock, wait)?.map(|found| found.row))
    }

    fn fetch(
        &mut self,
        table: &Arc<Table>,
        scan: &mut Scan,
        rows: &mut Vec<Bytes>,
        want: usize,
    ) -> Result<(), Interrupt> {
        if scan.done || self.fetch_kept(table, scan, rows, want, &mut |_| true)? {
            return Ok(());
        }
        let mut range = range_of(scan);
        if scan.last.is_none() && scan.ahead.is_none() {
            self.begin_scan(table, &range, scan.lock)?;
        }
        if scan.index != 0
            && !table.temporary
            && self.transaction.characteristics.lock_of(scan.lock) == LockMode::None
            && let Some(done) = lookup::rows(self, table, scan.index, &mut range, want, rows)?
        {
            scan.done = done;
            note_progress(scan, &range);
            return Ok(());
        }
        let mut found = Vec::new();
        fetch_rows(self, table, scan, (&mut range, scan.lock), want, &mut found)?;
        rows.extend(found.into_iter().map(|found| found.row));
        Ok(())
    }

    fn fetch_kept(
        &mut self,
        table: &Arc<Table>,
        scan: &mut Scan,
        rows: &mut Vec<Bytes>,
        want: usize,
        keep: &mut dyn FnMut(&[u8]) -> bool,
    ) -> ExecResult<bool> {
        if scan.done {
            return Ok(true);
        }
        if scan.index != 0
            || table.temporary
            || self.transaction.characteristics.lock_of(scan.lock) != LockMode::None
        {
            return Ok(false);
        }
        let mut range = range_of(scan);
        if scan.last.is_none() {
            self.begin_scan(table, &range, LockMode::None)?;
        }
        let Some(done) = self.reading().scan_rows(&mut range, want, rows, keep)? else { return Ok(false) };
        scan.done = done;
        note_progress(scan, &range);
        Ok(true)
    }

    fn fetch_entries(
        &mut self,
        table: &Arc<Table>,
        scan: &mut Scan,
        entries: &mut Vec<(Bytes, Bytes)>,
        want: usize,
    ) -> ExecResult<bool> {
        if table.temporary || self.transaction.characteristics.lock_of(scan.lock) != LockMode::None {
            return Ok(false);
        }
        if scan.done {
            return Ok(true);
        }
        let mut range = range_of(scan);
        if scan.last.is_none() {
            self.begin_scan(table, &range, LockMode::None)?;
        }
        self.budget.kill().check()?;
        scan.done = self.reading().entries(table, scan.index, &range, want.max(1), entries)?;
        if let Some((key, _)) = entries.last() {
            range.resume_after(key.clone());
        }
        note_progress(scan, &range);
        Ok(true)
    }

    fn locks_rows(&self, table: &Table, lock: LockMode) -> bool {
        !table.temporary && self.transaction.characteristics.lock_of(lock) != LockMode::None
    }

    fn locks_matches(&self, table: &Table, lock: LockMode) -> bool {
        self.transaction.characteristics.locks_matches(table, lock)
    }

    fn point_keyed(
        &mut self,
        table: &Arc<Table>,
        index: usize,
        key: &Bytes,
        lock: LockMode,
        wait: WaitPolicy,
        late: bool,
    ) -> ExecResult<Option<(Bytes, Bytes)>> {
        self.start_read(table, lock)?;
        let lock = if late { LockMode::None } else { lock };
        let found = self.get_unique(table, index, key, lock, wait)?;
        Ok(found.map(|found| (found.key, found.row)))
    }

    fn fetch_keyed(
        &mut self,
        table: &Arc<Table>,
        scan: &mut Scan,
        keys: &mut Vec<Bytes>,
        rows: &mut Vec<Bytes>,
        want: usize,
        late: bool,
    ) -> ExecResult<()> {
        if scan.done {
            return Ok(());
        }
        self.start_read(table, scan.lock)?;
        let lock = if late { LockMode::None } else { scan.lock };
        let mut range = range_of(scan);
        if scan.last.is_none() && scan.ahead.is_none() {
            self.begin_scan(table, &range, lock)?;
        }
        let mut found = Vec::new();
        fetch_rows(self, table, scan, (&mut range, lock), want, &mut found)?;
        for RowAt { key, row } in found {
            keys.push(key);
            rows.push(row);
        }
        Ok(())
    }

    fn lock_row(
        &mut self,
        table: &Arc<Table>,
        key: &Bytes,
        lock: LockMode,
        wait: WaitPolicy,
    ) -> ExecResult<Option<(Bytes, bool)>> {
        self.start_read(table, lock)?;
        self.locking().lock_match(key, lock, wait)
    }

    fn unlock_row(&mut self, key: &Bytes) -> ExecResult<()> {
        self.locks.rows.give_back(&mut self.statement, key, &self.transaction.writes)
    }

    fn need_blocking(&mut self) -> ExecResult<()> {
        self.statement.waits().may_block()
    }

    fn check_killed(&mut self) -> ExecResult<()> {
        Ok(self.budget.kill().check()?)
    }

    fn estimate_rows(&mut self, table: &Arc<Table>) -> u64 {
        self.counters.row_estimate(table)
    }
}
