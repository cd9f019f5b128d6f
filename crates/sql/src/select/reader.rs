//! Reads the rows of one table along its access path, in batches. UPDATE and DELETE use it as
//! SELECT does.

use super::access::{Access, TableAccess};
use super::key::{self, BoundValue, KeyRange};
use super::storage::{LockMode, Scan, WaitPolicy};
use crate::catalog::Table;
use crate::error::{ExecResult, SqlError};
use crate::expr::convert::text_to_f64;
use crate::expr::like::LikeMatcher;
use crate::expr::types::{BINARY, Family, family};
use crate::expr::{Exec, Expr, Row};
use bytes::Bytes;
use omnibus_value::Value;
use std::rc::Rc;
use std::sync::Arc;

/// Rows of the first batch; later ones are larger. A batch ends with its range, so that reading ahead
/// costs something only where the rest is not wanted.
const FIRST_BATCH: usize = 256;
/// The same where rows are locked.
const FIRST_LOCKED: usize = 64;
/// Rows of a batch at most.
const LAST_BATCH: usize = 1024;

/// A reading of one table.
pub struct RowReader<'p> {
    table: &'p Arc<Table>,
    path: &'p TableAccess,
    lock: LockMode,
    wait: WaitPolicy,
    state: State,
    /// Scans still to come, last first.
    queue: Vec<Scan>,
    batch: Vec<Bytes>,
    at: usize,
    want: usize,
    grow: bool,
    exact: bool,
    /// Rows are locked once they match, and then looked at again.
    late_locks: bool,
    /// The frame gets each row's clustered key too: changes of several tables ask for it where no column tells it.
    keyed: bool,
    /// Clustered keys of `batch`, for `late_locks` and `keyed`.
    keys: Vec<Bytes>,
}

enum State {
    Point(Option<Bytes>),
    Scan(Scan),
    Done,
}

impl<'p> RowReader<'p> {
    /// Evaluates the path's keys. `limit` is how many rows the caller will take at most, if it
    /// knows: no more are read ahead or locked.
    ///
    /// # Errors
    /// As evaluation of the keys.
    pub fn open(
        table: &'p Arc<Table>,
        path: &'p TableAccess,
        lock: LockMode,
        wait: WaitPolicy,
        limit: Option<usize>,
        cx: &mut Exec<'_>,
    ) -> ExecResult<RowReader<'p>> {
        let first = if lock == LockMode::None { FIRST_BATCH } else { FIRST_LOCKED };
        let mut reader = RowReader {
            table,
            path,
            lock,
            wait,
            state: State::Done,
            queue: Vec::new(),
            batch: Vec::new(),
            at: 0,
            want: limit.map_or(first, |n| n.clamp(1, LAST_BATCH)),
            grow: limit.is_none_or(|n| n > 1),
            exact: true,
            late_locks: cx.storage.locks_matches(table, lock),
            keyed: table.def.hidden_key && lock == LockMode::Exclusive,
            keys: Vec::new(),
        };
        reader.start(cx)?;
        // A key that says everything leads to a row that matches.
        reader.late_locks &= !(path.filter.is_empty() && matches!(reader.state, State::Point(_)));
        Ok(reader)
    }

    fn start(&mut self, cx: &mut Exec<'_>) -> ExecResult<()> {
        match &self.path.access {
            Access::Full { index } => {
                self.state = State::Scan(self.prepared(Scan::new(*index, Bytes::new(), None)))
            }
            Access::Point { index, key } => {
                let found = match &key[..] {
                    [only] => key::point(self.table, *index, &[self.known(*index, 0, only, cx)?], cx),
                    _ => {
                        let values = key.iter().enumerate().map(|(part, e)| self.known(*index, part, e, cx));
                        let values = values.collect::<ExecResult<Vec<Value>>>()?;
                        key::point(self.table, *index, &values, cx)
                    }
                };
                match found {
                    Ok(key) => self.state = State::Point(key),
                    Err(()) => {
                        self.exact = false;
                        self.state = State::Scan(self.prepared(Scan::new(*index, Bytes::new(), None)));
                    }
                }
            }
            Access::Range { index, equal, low, high } => {
                let mut values = Vec::with_capacity(equal.len());
                for (part, e) in equal.iter().enumerate() {
                    values.push((self.known(*index, part, &e.expr, cx)?, e.null_safe));
                }
                let mut bound = |b: &Option<super::access::Bound>| -> ExecResult<Option<BoundValue>> {
                    match b {
                        Some(b) => {
                            let value = self.known(*index, equal.len(), &b.expr, cx)?;
                            Ok(Some(BoundValue { value, inclusive: b.inclusive }))
                        }
                        None => Ok(None),
                    }
                };
                let (low, high) = (bound(low)?, bound(high)?);
                let range = key::range(self.table, *index, &values, low.as_ref(), high.as_ref(), cx);
                self.enqueue(range);
            }
            Access::Prefix { index, equal, pattern, escape } => {
                let mut values = Vec::with_capacity(equal.len());
                for (part, e) in equal.iter().enumerate() {
                    values.push((self.known(*index, part, &e.expr, cx)?, e.null_safe));
                }
                let Some(text) = pattern.eval_str(cx)? else { return Ok(()) };
                let matcher = LikeMatcher::new(&text, *escape, pattern.ty.column.collation);
                let range = key::prefix_range(self.table, *index, &values, matcher.prefix(), cx);
                self.enqueue(range);
            }
            Access::List { index, equal, list } => {
                let mut values = Vec::with_capacity(equal.len() + 1);
                for (part, e) in equal.iter().enumerate() {
                    values.push((self.known(*index, part, &e.expr, cx)?, e.null_safe));
                }
                for member in list {
                    values.truncate(equal.len());
                    values.push((self.known(*index, equal.len(), member, cx)?, false));
                    let range = key::range(self.table, *index, &values, None, None, cx);
                    self.enqueue(range);
                }
                // Each key once, in index order: equal members of the list give the same range.
                self.queue.sort_by(|a, b| b.from.cmp(&a.from));
                self.queue.dedup_by(|a, b| a.from == b.from && a.to == b.to);
                if !self.exact && self.queue.len() > 1 {
                    // Members that could not be held may overlap the others: read it all instead.
                    self.queue.truncate(1);
                    self.queue[0].from = Bytes::new();
                    self.queue[0].to = None;
                }
            }
        }
        Ok(())
    }

    /// What a column of the index is compared with. Where that is a number, so must it be.
    fn known(&self, index: usize, part: usize, e: &Expr, cx: &mut Exec<'_>) -> ExecResult<Value> {
        let value = e.eval(cx)?;
        if let Value::Bytes(text) = &value
            && let Some(part) = self.table.indexes()[index].parts.get(part)
            && matches!(family(self.table.columns()[part.column].ty.kind), Family::Integer | Family::Real)
            && e.ty.family() == Family::String
            && e.ty.column.collation != BINARY
            && text_to_f64(text).1
        {
            cx.complain(SqlError::truncated_wrong_value("DOUBLE", String::from_utf8_lossy(text)))?;
        }
        Ok(value)
    }

    fn prepared(&self, mut scan: Scan) -> Scan {
        scan.reverse = self.path.reverse;
        scan.lock = self.lock;
        scan.wait = self.wait;
        scan
    }

    fn enqueue(&mut self, range: KeyRange) {
        if let KeyRange::Scan(scan, exact) = range {
            self.exact &= exact;
            let scan = self.prepared(scan);
            self.queue.push(scan);
        }
    }

    /// The next row image that the path yields and whose conditions hold. The row is left in the
    /// frame's slot.
    ///
    /// # Errors
    /// As storage and the conditions.
    pub fn next(&mut self, slot: u16, cx: &mut Exec<'_>) -> ExecResult<Option<Bytes>> {
        if !self.step(slot, cx)? {
            return Ok(None);
        }
        Ok(match &cx.frame[usize::from(slot)].row {
            Row::Image(image) => Some(image.clone()),
            Row::Keyed(row) => Some(row.1.clone()),
            _ => None,
        })
    }

    /// As `next`, for callers who want the row in the frame only.
    ///
    /// # Errors
    /// As `next`.
    pub fn step(&mut self, slot: u16, cx: &mut Exec<'_>) -> ExecResult<bool> {
        while let Some(row) = self.advance(cx)? {
            cx.tick()?;
            if self.late_locks {
                if self.locks(slot, row, cx)? {
                    return Ok(true);
                }
                continue;
            }
            cx.frame[usize::from(slot)].row = self.placed(row);
            if self.accepts(self.exact, cx)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The row that was read last, as the frame has it.
    fn placed(&self, image: Bytes) -> Row {
        if self.keyed {
            Row::Keyed(Rc::new((self.keys[self.at - 1].clone(), image)))
        } else {
            Row::Image(image)
        }
    }

    /// Locks the row that was read last, if it matches. Whether it still does then; the frame has it as it is now.
    fn locks(&self, slot: u16, row: Bytes, cx: &mut Exec<'_>) -> ExecResult<bool> {
        cx.frame[usize::from(slot)].row = self.placed(row.clone());
        if !self.accepts(self.exact, cx)? {
            return Ok(false);
        }
        let key = &self.keys[self.at - 1];
        let Some((now, fresh)) = cx.storage.lock_row(self.table, key, self.lock, self.wait)? else {
            return Ok(false);
        };
        if now == row {
            return Ok(true);
        }
        cx.frame[usize::from(slot)].row = self.placed(now);
        let matches = self.accepts(false, cx)?;
        if !matches && fresh {
            cx.storage.unlock_row(key);
        }
        Ok(matches)
    }

    /// Whether the row in the frame meets the conditions; `exact`: those that chose it need no look.
    fn accepts(&self, exact: bool, cx: &mut Exec<'_>) -> ExecResult<bool> {
        for condition in &self.path.filter {
            if condition.eval_bool(cx)? != Some(true) {
                return Ok(false);
            }
        }
        if !exact {
            for condition in &self.path.implied {
                if condition.eval_bool(cx)? != Some(true) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// The next row image, conditions not yet checked.
    fn advance(&mut self, cx: &mut Exec<'_>) -> ExecResult<Option<Bytes>> {
        loop {
            if let Some(row) = self.batch.get_mut(self.at) {
                self.at += 1;
                return Ok(Some(std::mem::take(row)));
            }
            match &mut self.state {
                State::Point(key) => {
                    let key = key.take();
                    self.state = State::Done;
                    return match key {
                        Some(key) if self.late_locks || self.keyed => {
                            let (index, late) = (self.path.index(), self.late_locks);
                            let found = cx
                                .storage
                                .point_keyed(self.table, index, &key, self.lock, self.wait, late)?;
                            let Some((key, row)) = found else { return Ok(None) };
                            (self.keys, self.at) = (vec![key], 1);
                            Ok(Some(row))
                        }
                        Some(key) => {
                            cx.storage.get_full(self.table, self.path.index(), &key, self.lock, self.wait)
                        }
                        None => Ok(None),
                    };
                }
                State::Scan(scan) if !scan.done => {
                    self.batch.clear();
                    self.at = 0;
                    if self.late_locks || self.keyed {
                        self.keys.clear();
                        cx.storage.fetch_keyed(
                            self.table,
                            scan,
                            &mut self.keys,
                            &mut self.batch,
                            self.want,
                            self.late_locks,
                        )?;
                    } else {
                        cx.storage.fetch(self.table, scan, &mut self.batch, self.want)?;
                    }
                    if self.grow {
                        self.want = (self.want * 4).min(LAST_BATCH);
                    }
                }
                _ => match self.queue.pop() {
                    Some(scan) => self.state = State::Scan(scan),
                    None => return Ok(None),
                },
            }
        }
    }
}
