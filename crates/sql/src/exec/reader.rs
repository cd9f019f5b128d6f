//! Reads the rows of one table along its access path, in batches. UPDATE and DELETE use it as SELECT does.

use super::batch::{self, Batch, Entries};
use super::fetched::Fetched;
use super::whole_numbers;
use crate::api::RowWork;
use crate::catalog::Table;
use crate::error::{ExecResult, SqlError};
use crate::expr::convert::is_no_double;
use crate::expr::sieve::Sieve;
use crate::expr::types::{BINARY, Family, family};
use crate::expr::{Context, Expr, Row};
use crate::plan::physical::key::{self, BoundValue, KeyRange};
use crate::plan::physical::path::{Access, Among, Bound, IndexRanges, Interval, Part, TableAccess, Tail};
use crate::rows::held;
use crate::storage::{LockMode, Scan, WaitPolicy};
use bytes::Bytes;
use omnibus_value::Value;
use std::rc::Rc;
use std::sync::Arc;

/// Rows of the first batch; later ones are larger. A batch ends with its range, so that reading ahead costs something
/// only where the rest is not wanted.
const FIRST_BATCH: usize = 256;
/// The same where rows are locked.
const FIRST_LOCKED: usize = 64;
/// Shorter rows come and go without being counted.
const LONG_ROW: usize = 256 << 10;
/// Rows of a batch at most.
const LAST_BATCH: usize = 1024;

/// A reading of one table.
pub struct RowReader<'p> {
    table: &'p Arc<Table>,
    path: &'p TableAccess,
    lock: LockMode,
    wait: WaitPolicy,
    state: ReadState,
    /// Pieces of indexes still to come, last first.
    queue: Vec<Piece>,
    /// How many branches of a union have begun.
    branch: usize,
    batch: Batch,
    entries: Entries,
    /// Asks the conditions of rows before they are taken, if that is worth it.
    sieve: Option<Sieve<'p>>,
    want: usize,
    grow: bool,
    exact: bool,
    /// Rows are locked once they match, and then looked at again.
    late_locks: bool,
    /// The frame gets each row's clustered key too: changes of several tables ask for it where no column tells it.
    framed: bool,
    /// Keys are wanted: by the caller, for the frame, or for `late_locks`.
    keyed: bool,
    /// Clustered keys of `batch`, if they are wanted.
    keys: Vec<Bytes>,
    /// For who asks how indexes are used.
    fetched: Fetched<'p>,
}

/// A piece of an index, to be read.
struct Piece {
    index: usize,
    from: Bytes,
    to: Bytes,
    /// The key, if the piece is one complete unique key.
    point: Option<Bytes>,
}

/// Pieces while they are made.
#[derive(Default)]
struct Making {
    /// Of one interval alone.
    only: bool,
    /// Values of the parts so far.
    values: Vec<(Value, bool)>,
    /// Subqueries whose rows give some of them, and which.
    rows: Vec<(usize, Box<[Value]>)>,
    pieces: Vec<Piece>,
}

enum ReadState {
    /// Of an index, by its complete key.
    Point(usize, Option<Bytes>),
    Scan(Scan),
    /// The clustered key of the row that came last, of a reader `with_keys`.
    Found(Bytes),
    Done,
}

/// The way along an index.
fn direction(path: &TableAccess) -> RowWork {
    if path.reverse { RowWork::Backward } else { RowWork::Forward }
}

impl<'p> RowReader<'p> {
    /// Evaluates the path's keys. `limit` is how many rows the caller will take at most, if it
    /// knows: no more are read ahead or locked. The rows will be in `slot`.
    ///
    /// # Errors
    /// As evaluation of the keys.
    pub fn open(
        table: &'p Arc<Table>,
        path: &'p TableAccess,
        lock: LockMode,
        wait: WaitPolicy,
        limit: Option<usize>,
        slot: u16,
        cx: &mut Context<'_>,
    ) -> ExecResult<RowReader<'p>> {
        let mut reader = RowReader::begin(table, path, (lock, wait), limit, false, cx)?;
        if !reader.keyed {
            reader.sieve = batch::sieve(table, path, slot);
        }
        Ok(reader)
    }

    /// As `open`, for who wants to know each row's clustered key.
    ///
    /// # Errors
    /// As `open`.
    pub fn with_keys(
        table: &'p Arc<Table>,
        path: &'p TableAccess,
        lock: LockMode,
        wait: WaitPolicy,
        limit: Option<usize>,
        cx: &mut Context<'_>,
    ) -> ExecResult<RowReader<'p>> {
        RowReader::begin(table, path, (lock, wait), limit, true, cx)
    }

    fn begin(
        table: &'p Arc<Table>,
        path: &'p TableAccess,
        (lock, wait): (LockMode, WaitPolicy),
        limit: Option<usize>,
        keyed: bool,
        cx: &mut Context<'_>,
    ) -> ExecResult<RowReader<'p>> {
        let late_locks = cx.storage.locks_matches(table, lock);
        // Who asks for rows may have enough at any of them, unless it changes them all; what is read is locked.
        let (first, limit) = match cx.storage.locks_rows(table, lock) && !late_locks {
            true if keyed && limit.is_none() => (FIRST_LOCKED, None),
            true => (1, Some(1)),
            false => (FIRST_BATCH, limit),
        };
        let mut reader = RowReader {
            table,
            path,
            lock,
            wait,
            state: ReadState::Done,
            queue: Vec::new(),
            branch: 0,
            batch: Batch::default(),
            entries: Entries::default(),
            sieve: None,
            want: limit.map_or(first, |n| n.clamp(1, LAST_BATCH)),
            grow: limit.is_none_or(|n| n > 1),
            exact: true,
            late_locks,
            framed: table.def.hidden_key && lock == LockMode::Exclusive,
            keyed,
            keys: Vec::new(),
            fetched: Fetched::new(&table.usage),
        };
        reader.start(cx)?;
        // A key that says everything leads to a row that matches.
        reader.late_locks &= !(path.filter.is_empty() && matches!(reader.state, ReadState::Point(..)));
        reader.keyed |= reader.late_locks || reader.framed;
        Ok(reader)
    }

    fn start(&mut self, cx: &mut Context<'_>) -> ExecResult<()> {
        match &self.path.access {
            Access::Full { index } => {
                self.fetched.whole(*index, self.path.reverse, &cx.session.budget.tally);
                self.state = ReadState::Scan(self.prepared(Scan::new(*index, self.table.whole_index(*index))))
            }
            Access::Point { index, key } => {
                let found = match &key[..] {
                    [only] => key::point(self.table, *index, &[self.known(*index, 0, only, cx)?], cx.zone()),
                    _ => {
                        let values = key.iter().enumerate().map(|(part, e)| self.known(*index, part, e, cx));
                        let values = values.collect::<ExecResult<Vec<Value>>>()?;
                        key::point(self.table, *index, &values, cx.zone())
                    }
                };
                match found {
                    Ok(key) => {
                        self.fetched.by(*index, RowWork::Found, &cx.session.budget.tally);
                        self.state = ReadState::Point(*index, key);
                    }
                    Err(()) => {
                        self.exact = false;
                        self.state =
                            ReadState::Scan(self.prepared(Scan::new(*index, self.table.whole_index(*index))));
                    }
                }
            }
            Access::Ranges(ranges) => match whole_numbers::range(self.table, ranges, cx) {
                Some(range) => {
                    self.fetched.by(ranges.index, direction(self.path), &cx.session.budget.tally);
                    self.state = ReadState::Scan(self.prepared(Scan::new(ranges.index, range)));
                }
                None => self.queue_ranges(ranges, cx)?,
            },
            Access::Union(_) => self.next_branch(cx)?,
        }
        Ok(())
    }

    /// The pieces of an index, in its order and each key once.
    fn queue_ranges(&mut self, ranges: &'p IndexRanges, cx: &mut Context<'_>) -> ExecResult<()> {
        let mut making = Making { only: ranges.intervals.len() == 1, ..Making::default() };
        for interval in &ranges.intervals {
            self.pieces(ranges.index, interval, &mut making, cx)?;
        }
        let mut pieces = making.pieces;
        if pieces.len() > 1 {
            pieces.sort_by(|a, b| a.from.cmp(&b.from));
            pieces.dedup_by(|next, before| {
                let apart = before.to <= next.from;
                if !apart && before.to < next.to {
                    before.to = std::mem::take(&mut next.to);
                    before.point = None;
                }
                !apart
            });
        }
        if !self.path.reverse {
            pieces.reverse();
        }
        self.queue.extend(pieces);
        Ok(())
    }

    /// The pieces that an interval is: one for each combination of its parts' values.
    fn pieces(
        &mut self,
        index: usize,
        interval: &'p Interval,
        making: &mut Making,
        cx: &mut Context<'_>,
    ) -> ExecResult<()> {
        match interval.parts.get(making.values.len()) {
            Some(Part::One(equal)) => {
                let value = self.known(index, making.values.len(), &equal.expr, cx)?;
                self.pieces_of((value, equal.null_safe), index, interval, making, cx)
            }
            Some(Part::Any(list)) => {
                for member in list {
                    let value = self.known(index, making.values.len(), member, cx)?;
                    self.pieces_of((value, false), index, interval, making, cx)?;
                }
                Ok(())
            }
            Some(Part::Among(among)) => self.pieces_among(among, index, interval, making, cx),
            None => {
                let Some(range) = self.tail(index, &interval.tail, &making.values, cx)? else {
                    return Ok(());
                };
                if let KeyRange::Scan(scan, exact) = range {
                    self.exact &= exact;
                    making.pieces.push(Piece { index, from: scan.from, to: scan.to, point: None });
                    self.note_point(index, &making.values, exact, &mut making.pieces, cx);
                }
                Ok(())
            }
        }
    }

    /// Those with one value of the next part.
    fn pieces_of(
        &mut self,
        value: (Value, bool),
        index: usize,
        interval: &'p Interval,
        making: &mut Making,
        cx: &mut Context<'_>,
    ) -> ExecResult<()> {
        making.values.push(value);
        self.pieces(index, interval, making, cx)?;
        making.values.pop();
        Ok(())
    }

    /// Those with the values that a subquery gives for the next part.
    fn pieces_among(
        &mut self,
        among: &Among,
        index: usize,
        interval: &'p Interval,
        making: &mut Making,
        cx: &mut Context<'_>,
    ) -> ExecResult<()> {
        let id = among.subquery.id;
        let chosen = making.rows.iter().find(|(of, _)| *of == id);
        if let Some((_, row)) = chosen {
            let value = row[among.member].clone();
            return self.pieces_of((value, false), index, interval, making, cx);
        }
        let Some(members) = among.subquery.list(among.most, cx)? else {
            self.all_before(index, making, cx);
            return Ok(());
        };
        for row in members.list() {
            cx.tick()?;
            making.rows.push((id, row.clone()));
            self.pieces_of((row[among.member].clone(), false), index, interval, making, cx)?;
            making.rows.pop();
        }
        Ok(())
    }

    /// The piece that the parts before leave: all of the table, as it lies, if there are none and its order is not wanted.
    fn all_before(&mut self, index: usize, making: &mut Making, cx: &Context<'_>) {
        self.exact = false;
        let index = match making.values.is_empty() {
            true => {
                cx.session.budget.tally.read_whole();
                let any = making.only && !self.path.ordered && !self.path.covered;
                if any { 0 } else { index }
            }
            false => index,
        };
        if let KeyRange::Scan(scan, _) = key::range(self.table, index, &making.values, None, None, cx.zone())
        {
            making.pieces.push(Piece { index, from: scan.from, to: scan.to, point: None });
        }
    }

    /// The range behind the values of the leading parts; `None` if no row can be in it.
    fn tail(
        &self,
        index: usize,
        tail: &'p Tail,
        values: &[(Value, bool)],
        cx: &mut Context<'_>,
    ) -> ExecResult<Option<KeyRange>> {
        let zone = cx.zone();
        Ok(Some(match tail {
            Tail::Whole => key::range(self.table, index, values, None, None, zone),
            Tail::Between { low, high } => {
                let mut bound = |b: &Option<Bound>| -> ExecResult<Option<BoundValue>> {
                    let Some(b) = b else { return Ok(None) };
                    let value = self.known(index, values.len(), &b.expr, cx)?;
                    Ok(Some(BoundValue { value, inclusive: b.inclusive }))
                };
                let (low, high) = (bound(low)?, bound(high)?);
                key::range(self.table, index, values, low.as_ref(), high.as_ref(), zone)
            }
            Tail::Begins { pattern, escape } => {
                let Some(text) = pattern.eval_str(cx)? else { return Ok(None) };
                key::prefix_range(self.table, index, values, (&text, *escape), zone)
            }
        }))
    }

    /// A piece that is a complete unique key is looked up instead of scanned.
    fn note_point(
        &self,
        index: usize,
        values: &[(Value, bool)],
        exact: bool,
        out: &mut [Piece],
        cx: &Context<'_>,
    ) {
        let definition = &self.table.indexes()[index];
        let whole = exact && definition.unique() && values.len() == definition.parts.len();
        let Some(piece) = out.last_mut().filter(|_| whole) else { return };
        if values.iter().all(|(value, _)| !matches!(value, Value::Null)) {
            let values: Vec<Value> = values.iter().map(|(value, _)| value.clone()).collect();
            piece.point = key::point(self.table, index, &values, cx.zone()).ok().flatten();
        }
    }

    /// Goes on to the next branch of a union.
    fn next_branch(&mut self, cx: &mut Context<'_>) -> ExecResult<()> {
        let path = self.path;
        let Access::Union(branches) = &path.access else { return Ok(()) };
        while self.queue.is_empty() && self.branch < branches.len() {
            self.branch += 1;
            self.queue_ranges(&branches[self.branch - 1].ranges, cx)?;
        }
        Ok(())
    }

    /// Whether the row in the frame belongs to the branch of the union that is being read: it meets this one and none before.
    fn belongs(&self, cx: &mut Context<'_>) -> ExecResult<bool> {
        let Access::Union(branches) = &self.path.access else { return Ok(true) };
        for (at, branch) in branches[..self.branch].iter().enumerate() {
            if meets(&branch.conditions, cx)? != (at + 1 == self.branch) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Computes the value that a column of the index is compared with. Where the column is a number, so must it be.
    fn known(&self, index: usize, part: usize, e: &Expr, cx: &mut Context<'_>) -> ExecResult<Value> {
        let value = e.eval(cx)?;
        if let Value::Bytes(text) = &value
            && let Some(part) = self.table.indexes()[index].parts.get(part)
            && matches!(family(self.table.columns()[part.column].ty.kind), Family::Integer | Family::Real)
            && e.ty.family() == Family::String
            && e.ty.column.collation != BINARY
            && is_no_double(text, cx)
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

    /// The next row image that the path yields and whose conditions hold. The row is left in the frame's slot.
    ///
    /// # Errors
    /// As storage and the conditions.
    pub fn next(&mut self, slot: u16, cx: &mut Context<'_>) -> ExecResult<Option<Bytes>> {
        if !self.step(slot, cx)? {
            return Ok(None);
        }
        Ok(match &cx.frame[usize::from(slot)].row {
            Row::Image(image) => Some(image.clone()),
            Row::Keyed(row) => Some(row.1.clone()),
            _ => None,
        })
    }

    /// The clustered key of the row that came last, with its space. Of a reader that was begun `with_keys`.
    #[must_use]
    pub fn key(&self) -> Bytes {
        let key = match &self.state {
            ReadState::Found(key) => Some(key),
            _ => self.batch.at.checked_sub(1).and_then(|at| self.keys.get(at)),
        };
        key.cloned().unwrap_or_default()
    }

    /// As `next`, for callers who want the row in the frame only.
    ///
    /// # Errors
    /// As `next`.
    pub fn step(&mut self, slot: u16, cx: &mut Context<'_>) -> ExecResult<bool> {
        while let Some(row) = self.advance(cx)? {
            cx.tick()?;
            self.fetched.rows(1, &cx.session.budget.tally);
            if let (Row::Image(row), true) = (&row, self.late_locks) {
                if self.locks(slot, row.clone(), cx)? {
                    return Ok(true);
                }
                continue;
            }
            cx.frame[usize::from(slot)].row = match row {
                Row::Image(image) => self.placed(image),
                row => row,
            };
            if self.belongs(cx)? && self.accepts(self.exact, cx)? {
                return Ok(true);
            }
        }
        self.fetched.end(&cx.session.budget.tally);
        Ok(false)
    }

    /// The row that was read last, as the frame has it.
    fn placed(&self, image: Bytes) -> Row {
        if self.framed { Row::Keyed(Rc::new((self.key(), image))) } else { Row::Image(image) }
    }

    /// Locks the row that was read last, if it matches. Whether it still does then; the frame has it as it is now.
    fn locks(&self, slot: u16, row: Bytes, cx: &mut Context<'_>) -> ExecResult<bool> {
        cx.frame[usize::from(slot)].row = self.placed(row.clone());
        if !self.belongs(cx)? || !self.accepts(self.exact, cx)? {
            return Ok(false);
        }
        let key = &self.key();
        let Some((now, fresh)) = cx.storage.lock_row(self.table, key, self.lock, self.wait)? else {
            return Ok(false);
        };
        if now == row {
            return Ok(true);
        }
        cx.frame[usize::from(slot)].row = self.placed(now);
        let matches = self.accepts(false, cx)?;
        if !matches && fresh {
            cx.storage.unlock_row(key)?;
        }
        Ok(matches)
    }

    /// Whether the row in the frame meets the conditions; `exact`: those that chose it need no look.
    fn accepts(&self, exact: bool, cx: &mut Context<'_>) -> ExecResult<bool> {
        let meets_filter = self.batch.sifted || meets(&self.path.filter, cx)?;
        Ok(meets_filter && (exact || meets(&self.path.implied, cx)?))
    }

    /// The next row image, conditions not yet checked.
    fn advance(&mut self, cx: &mut Context<'_>) -> ExecResult<Option<Row>> {
        loop {
            if let Some(row) = self.batch.rows.get_mut(self.batch.at) {
                self.batch.at += 1;
                return Ok(Some(Row::Image(counted(std::mem::take(row), cx)?)));
            }
            if let Some((key, value)) = self.entries.next() {
                return Ok(Some(Row::Values(self.table.row_of_entry(self.path.index(), key, value)?)));
            }
            match &mut self.state {
                ReadState::Point(index, key) => {
                    let (index, key) = (*index, key.take());
                    self.state = ReadState::Done;
                    self.batch.sifted = false;
                    let Some(key) = key else { continue };
                    if let Some(row) = self.point(index, &key, cx)? {
                        return Ok(Some(Row::Image(counted(row, cx)?)));
                    }
                }
                ReadState::Scan(scan) if !scan.done => {
                    self.batch.begin();
                    let entries = self.entries.emptied();
                    let (table, want) = (self.table, self.want);
                    if self.keyed {
                        self.keys.clear();
                        let (late, keys) = (self.late_locks, &mut self.keys);
                        cx.storage.fetch_keyed(table, scan, keys, &mut self.batch.rows, want, late)?;
                    } else if !self.path.covered || !cx.storage.fetch_entries(table, scan, entries, want)? {
                        match &self.sieve {
                            Some(sieve) => {
                                let refused = self.batch.sift(sieve, table, scan, want, cx)?;
                                self.fetched.rows(refused, &cx.session.budget.tally);
                            }
                            None => cx.storage.fetch(table, scan, &mut self.batch.rows, want)?,
                        }
                    }
                    if self.grow {
                        self.want = (self.want * 4).min(LAST_BATCH);
                    }
                }
                _ => match self.queue.pop() {
                    Some(Piece { index, point: Some(key), .. }) => {
                        self.fetched.by(index, RowWork::Found, &cx.session.budget.tally);
                        self.state = ReadState::Point(index, Some(key))
                    }
                    Some(piece) => {
                        self.fetched.by(piece.index, direction(self.path), &cx.session.budget.tally);
                        let scan = Scan::new(piece.index, (piece.from, piece.to));
                        self.state = ReadState::Scan(self.prepared(scan));
                    }
                    None => {
                        self.next_branch(cx)?;
                        if self.queue.is_empty() {
                            return Ok(None);
                        }
                    }
                },
            }
        }
    }

    /// The row of a complete unique key.
    fn point(&mut self, index: usize, key: &Bytes, cx: &mut Context<'_>) -> ExecResult<Option<Bytes>> {
        if !self.keyed {
            return cx.storage.get(self.table, index, key, self.lock, self.wait);
        }
        let (lock, wait, late) = (self.lock, self.wait, self.late_locks);
        let Some((key, row)) = cx.storage.point_keyed(self.table, index, key, lock, wait, late)? else {
            return Ok(None);
        };
        self.state = ReadState::Found(key);
        Ok(Some(row))
    }
}

/// A long row counts for as long as anybody has it: each table of a join may have one.
#[inline]
fn counted(row: Bytes, cx: &Context<'_>) -> ExecResult<Bytes> {
    if row.len() < LONG_ROW { Ok(row) } else { Ok(held::hold(row, cx.session)?) }
}

fn meets(conditions: &[Expr], cx: &mut Context<'_>) -> ExecResult<bool> {
    for condition in conditions {
        if condition.eval_bool(cx)? != Some(true) {
            return Ok(false);
        }
    }
    Ok(true)
}
