//! Where a window function looks: the rows of a partition, those equal to the present one, the frame.

use super::window::Record;
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::types::Family;
use crate::expr::{Context, Expr, Row, compare};
use crate::logical::window::{Bound, Frame, Window};
use crate::rows::indexed::IndexedRecords;
use bytes::Bytes;
use omnibus_value::Value;
use omnibus_value::decimal::Decimal;
use std::cmp::Ordering;
use std::ops::Range;
use std::rc::Rc;

/// The rows of a partition, and which of them is computed now.
pub(super) struct Partition<'r> {
    records: &'r IndexedRecords,
    window: &'r Window,
    /// The present row.
    pub(super) at: usize,
    /// Its inputs.
    pub(super) inputs: Rc<[Value]>,
    /// The rows equal to it in ORDER BY.
    pub(super) peers: Range<usize>,
    /// How many such groups came before it.
    pub(super) groups_before: u64,
}

impl<'r> Partition<'r> {
    pub(super) fn new(records: &'r IndexedRecords, window: &'r Window) -> Partition<'r> {
        let peers = if window.order.is_empty() { 0..records.len() } else { 0..0 };
        Partition { records, window, at: 0, inputs: Rc::from([]), peers, groups_before: 0 }
    }

    /// How many rows there are.
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// The inputs of a row.
    pub(super) fn inputs_of(&self, at: usize) -> SqlResult<Vec<Value>> {
        Ok(self.record(at)?.open()?.0)
    }

    fn record(&self, at: usize) -> SqlResult<Record> {
        Ok(Record::new(self.records.get(at)?))
    }

    /// Makes a row the present one: its rows of the frame. They come in order.
    pub(super) fn go_to(&mut self, at: usize, cx: &mut Context<'_>) -> ExecResult<Bytes> {
        let record = self.record(at)?;
        let peers = record.peers.clone();
        let (inputs, rows) = record.open()?;
        self.at = at;
        self.inputs = Rc::from(inputs);
        self.enter(self.inputs.clone(), cx);
        if at < self.peers.end {
            return Ok(rows);
        }
        self.groups_before += u64::from(at > 0);
        let mut end = at + 1;
        while end < self.len() && self.record(end)?.peers == peers {
            cx.tick()?;
            end += 1;
        }
        self.peers = at..end;
        Ok(rows)
    }

    /// Has expressions over inputs read these.
    pub(super) fn enter(&self, inputs: Rc<[Value]>, cx: &mut Context<'_>) {
        cx.frame[usize::from(self.window.input_slot)].row = Row::Values(inputs);
    }
}

/// A function's frame, as it moves through a partition. Both ends only ever move on.
pub(super) struct FrameOf<'p> {
    frame: &'p Frame,
    distances: [Option<Value>; 2],
    start: usize,
    end: usize,
}

fn illegal() -> SqlError {
    SqlError::new(
        3586,
        b"HY000",
        "Window '<unnamed window>': frame start or end is negative, NULL or of non-integral type",
    )
}

impl<'p> FrameOf<'p> {
    /// # Errors
    /// 3586: a bound that is no number of rows, or is negative.
    pub(super) fn new(frame: &'p Frame, cx: &mut Context<'_>) -> ExecResult<FrameOf<'p>> {
        let mut distances = [None, None];
        for (bound, distance) in [&frame.start, &frame.end].into_iter().zip(&mut distances) {
            let Bound::Distance { by, .. } = bound else { continue };
            let value = by.eval(cx)?;
            let negative = match &value {
                Value::Int(n) => *n < 0,
                Value::UInt(_) => false,
                Value::Null => true,
                _ if frame.rows => true,
                value => by.to_decimal(value, cx).is_negative(),
            };
            if negative {
                return Err(illegal().into());
            }
            *distance = Some(value);
        }
        Ok(FrameOf { frame, distances, start: 0, end: 0 })
    }

    /// The frame of the partition's present row; empty if it ends before it begins.
    pub(super) fn of(&mut self, rows: &Partition<'_>, cx: &mut Context<'_>) -> ExecResult<Range<usize>> {
        let found = if self.frame.rows { self.by_rows(rows) } else { self.by_range(rows, cx)? };
        Ok(if found.start < found.end { found } else { 0..0 })
    }

    fn by_rows(&self, rows: &Partition<'_>) -> Range<usize> {
        let place = |bound: &Bound, distance: &Option<Value>, whole: usize, behind: usize| match bound {
            Bound::Distance { preceding, .. } => {
                let far = match distance {
                    Some(Value::Int(n)) => usize::try_from(*n).unwrap_or(usize::MAX),
                    Some(Value::UInt(n)) => usize::try_from(*n).unwrap_or(usize::MAX),
                    _ => 0,
                };
                // One behind the last row, where the last row is meant; before the first, none is left.
                let here = rows.at + behind;
                if *preceding { here.saturating_sub(far) } else { here.saturating_add(far).min(rows.len()) }
            }
            Bound::Current => rows.at + behind,
            Bound::Partition | Bound::Value(_) => whole,
        };
        place(&self.frame.start, &self.distances[0], 0, 0)
            ..place(&self.frame.end, &self.distances[1], rows.len(), 1)
    }

    fn by_range(&mut self, rows: &Partition<'_>, cx: &mut Context<'_>) -> ExecResult<Range<usize>> {
        let start = match &self.frame.start {
            Bound::Partition => 0,
            Bound::Current => rows.peers.start,
            _ => {
                self.start = self.limit(rows, 0, self.start, cx)?.unwrap_or(rows.peers.start);
                self.start
            }
        };
        let end = match &self.frame.end {
            Bound::Partition => rows.len(),
            Bound::Current => rows.peers.end,
            _ => {
                self.end = self.limit(rows, 1, self.end, cx)?.unwrap_or(rows.peers.end);
                self.end
            }
        };
        Ok(start..end)
    }

    /// Where a bound of a value is, from `from` on: the first row that is not before the start, or is behind the end. `None` for
    /// a row that has no value.
    fn limit(
        &self,
        rows: &Partition<'_>,
        which: usize,
        from: usize,
        cx: &mut Context<'_>,
    ) -> ExecResult<Option<usize>> {
        let Some((input, descending)) = self.frame.by_value else { return Ok(None) };
        let Some(e) = rows.window.inputs.get(input) else { return Ok(None) };
        if matches!(rows.inputs[input], Value::Null) {
            return Ok(None);
        }
        let bound = match if which == 0 { &self.frame.start } else { &self.frame.end } {
            Bound::Value(bound) => {
                rows.enter(rows.inputs.clone(), cx);
                bound.eval(cx)?
            }
            Bound::Distance { preceding, by } => {
                let far = self.distances[which].clone().unwrap_or_default();
                away(e, &rows.inputs[input], by, &far, *preceding != descending, cx)
            }
            _ => return Ok(None),
        };
        let mut at = from;
        while at < rows.len() {
            cx.tick()?;
            let value = rows.inputs_of(at)?.swap_remove(input);
            // NULL comes first, or last when descending.
            let order = match (&value, compare::values(&value, &bound, e.ty.column.collation)) {
                (Value::Null, _) if descending => Ordering::Greater,
                (Value::Null, _) | (_, None) => Ordering::Less,
                (_, Some(order)) if descending => order.reverse(),
                (_, Some(order)) => order,
            };
            let before = if which == 0 { order.is_lt() } else { order.is_le() };
            if !before {
                break;
            }
            at += 1;
        }
        Ok(Some(at))
    }
}

/// A number less or more another one. What is past all numbers is the greatest.
fn away(e: &Expr, value: &Value, by: &Expr, far: &Value, less: bool, cx: &mut Context<'_>) -> Value {
    if [e, by].iter().any(|e| matches!(e.ty.family(), Family::Real | Family::String)) {
        let (value, far) = (e.to_f64(value, cx), by.to_f64(far, cx));
        return Value::Double(if less { value - far } else { value + far });
    }
    let (value, far) = (e.to_decimal(value, cx), by.to_decimal(far, cx));
    let moved = if less { value.sub(&far) } else { value.add(&far) };
    Value::Decimal(moved.unwrap_or_else(|_| Decimal::max_value(65, 0, less)))
}
