//! Window functions: rows by partition and order, each function's value for each row, and the rows again.
//!
//! A window is a stage: it takes the rows of the frame, sorts them if it has a PARTITION BY or ORDER BY, and gives them on,
//! partition by partition, with its results in their slot. A row on its way is a record of the slots that are read behind the
//! windows. Results stay bytes until the last window has its own: there may be hundreds of windows, and none reads another's.
//! Sorting and partitions go to temporary files where memory ends.

use super::window_frame::{FrameOf, Partition};
use super::window_value::ValueOf;
use super::{Joined, dispatch};
use crate::error::{ExecResult, SqlResult};
use crate::expr::{Context, Row, eval, hash_key};
use crate::logical::window::{Window, Windows};
use crate::plan::physical::WindowRows;
use crate::rows::Flow;
use crate::rows::codec;
use crate::rows::indexed::IndexedRecords;
use crate::sort::{ExternalSort, KeyForm, Part, Sorted};
use bytes::{Buf, Bytes};
use omnibus_value::Value;
use std::rc::Rc;

/// Gives the rows with the results of all windows.
pub(super) fn run(of: &WindowRows, cx: &mut Context<'_>, each: &mut Joined<'_>) -> ExecResult<Flow> {
    let mut stage = Stage::at(0, &of.windows, cx);
    dispatch::frame(&of.input, None, cx, &mut |cx| stage.add(cx).map(|()| Flow::Continue))?;
    stage.finish(cx, each)
}

/// Gathers the rows for a window.
struct Stage<'p> {
    windows: &'p Windows,
    /// The window's number among them.
    at: usize,
    input: Input,
    key: Vec<u8>,
    record: Vec<u8>,
}

/// The rows so far.
enum Input {
    /// To be sorted.
    Sort(Box<ExternalSort>),
    /// All of one partition, in any order.
    One(IndexedRecords),
}

impl<'p> Stage<'p> {
    fn at(at: usize, windows: &'p Windows, cx: &Context<'_>) -> Stage<'p> {
        let window = &windows.windows[at];
        let input = if window.sorts() {
            let partition = window.partition.iter().map(|e| Part::new(&e.ty, e.ty.column.collation, false));
            let order = window.order.iter();
            let order = order.map(|(e, descending)| Part::new(&e.ty, e.ty.column.collation, *descending));
            let form = KeyForm::new(partition.chain(order).collect());
            Input::Sort(Box::new(ExternalSort::new(form, cx)))
        } else {
            Input::One(IndexedRecords::new(cx))
        };
        Stage { windows, at, input, key: Vec::new(), record: Vec::new() }
    }

    fn window(&self) -> &'p Window {
        &self.windows.windows[self.at]
    }

    fn is_last(&self) -> bool {
        self.at + 1 == self.windows.windows.len()
    }

    /// Takes up the row in the frame.
    fn add(&mut self, cx: &mut Context<'_>) -> ExecResult<()> {
        cx.tick()?;
        let window = self.window();
        let mut keys = Vec::with_capacity(window.partition.len() + window.order.len());
        for e in window.partition.iter().chain(window.order.iter().map(|(e, _)| e)) {
            keys.push(e.eval(cx)?);
        }
        self.record.clear();
        let (partition, order) = keys.split_at(window.partition.len());
        put_equal(&mut self.record, partition.iter().zip(&window.partition));
        put_equal(&mut self.record, order.iter().zip(window.order.iter().map(|(e, _)| e)));
        let mut inputs = Vec::with_capacity(window.inputs.len());
        for e in &window.inputs {
            inputs.push(e.eval(cx)?);
        }
        codec::write_values(&inputs, &mut self.record);
        for slot in &self.windows.row_slots {
            codec::write_row(&cx.frame[usize::from(*slot)].row, &mut self.record);
        }
        let results = match self.at {
            0 => &Row::Unset,
            _ => &cx.frame[usize::from(self.windows.slot)].row,
        };
        codec::write_row(results, &mut self.record);
        match &mut self.input {
            Input::Sort(sort) => {
                self.key.clear();
                sort.form().write(keys.iter(), &mut self.key);
                sort.add(&self.key, &self.record, cx)
            }
            Input::One(records) => records.push(&self.record, cx),
        }
    }

    /// Computes this window and those behind it; puts each row into the frame, with its results.
    fn finish(self, cx: &mut Context<'_>, each: &mut Joined<'_>) -> ExecResult<Flow> {
        if self.is_last() {
            return self.compute(cx, each);
        }
        let mut next = Stage::at(self.at + 1, self.windows, cx);
        self.compute(cx, &mut |cx| next.add(cx).map(|()| Flow::Continue))?;
        next.finish(cx, each)
    }

    fn compute(self, cx: &mut Context<'_>, each: &mut Joined<'_>) -> ExecResult<Flow> {
        let of = OfWindow { window: self.window(), windows: self.windows, is_last: self.is_last() };
        let mut sorted = match self.input {
            Input::One(mut records) => {
                records.finish()?;
                return partition(&records, &of, cx, each);
            }
            Input::Sort(sort) => sort.finish(cx)?,
        };
        let mut records = IndexedRecords::new(cx);
        let mut ahead = next(&mut sorted)?;
        while let Some(first) = ahead.take() {
            let group = equal(&first);
            records.clear();
            records.push(&first, cx)?;
            loop {
                cx.tick()?;
                match next(&mut sorted)? {
                    Some(record) if equal(&record) == group => records.push(&record, cx)?,
                    other => {
                        ahead = other;
                        break;
                    }
                }
            }
            records.finish()?;
            if partition(&records, &of, cx, each)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Continue)
    }
}

fn next(sorted: &mut Sorted) -> SqlResult<Option<Bytes>> {
    Ok(sorted.next_record()?.map(|(_, record)| record))
}

/// Writes bytes that are the same for equal values, and different for others.
fn put_equal<'v>(record: &mut Vec<u8>, values: impl Iterator<Item = (&'v Value, &'v crate::expr::Expr)>) {
    let start = record.len();
    record.extend_from_slice(&[0; 4]);
    for (value, e) in values {
        hash_key::write(value, e.ty.column.collation, record);
    }
    let len = (record.len() - start - 4) as u32;
    record[start..start + 4].copy_from_slice(&len.to_le_bytes());
}

/// The first part of a record: which partition it is of.
fn equal(record: &Bytes) -> Bytes {
    let len = record.first_chunk().map_or(0, |len| u32::from_le_bytes(*len) as usize);
    record.slice(4.min(record.len())..(4 + len).min(record.len()))
}

/// A record of a partition, taken apart as far as it is asked for.
pub(super) struct Record {
    /// The bytes that rows have in common that are equal in ORDER BY.
    pub(super) peers: Bytes,
    /// The window's inputs, and behind them the rows of the frame.
    rest: Bytes,
}

impl Record {
    pub(super) fn new(mut record: Bytes) -> Record {
        record.advance((4 + equal(&record).len()).min(record.len()));
        let peers = equal(&record);
        record.advance((4 + peers.len()).min(record.len()));
        Record { peers, rest: record }
    }

    /// The window's inputs, and the rows of the frame.
    pub(super) fn open(mut self) -> SqlResult<(Vec<Value>, Bytes)> {
        let inputs = codec::read_values(&mut self.rest)?;
        Ok((inputs, self.rest))
    }
}

/// The window that is computed, and its place among the others.
struct OfWindow<'p> {
    window: &'p Window,
    windows: &'p Windows,
    is_last: bool,
}

/// Puts a record's rows into the frame; the results so far, as bytes: the number of each, and its value.
fn enter(mut rows: Bytes, windows: &Windows, cx: &mut Context<'_>) -> SqlResult<Bytes> {
    for slot in &windows.row_slots {
        cx.frame[usize::from(*slot)].row = codec::read_row(&mut rows)?;
    }
    Ok(match codec::read_row(&mut rows)? {
        Row::Image(results) => results,
        _ => Bytes::new(),
    })
}

/// Results on their way to the next window.
fn with(results: &Bytes, found: &[(usize, Value)]) -> Row {
    let mut more = results.to_vec();
    for (result, value) in found {
        more.extend_from_slice(&(*result as u32).to_le_bytes());
        codec::write_value(value, &mut more);
    }
    Row::Image(Bytes::from(more))
}

/// The results of all windows: those on their way, and those of the last one.
fn all(mut results: Bytes, found: Vec<(usize, Value)>, count: usize) -> SqlResult<Row> {
    let mut values = vec![Value::Null; count];
    while let Ok(result) = results.try_get_u32_le() {
        let value = codec::read_value(&mut results)?;
        if let Some(place) = values.get_mut(result as usize) {
            *place = value;
        }
    }
    for (result, value) in found {
        values[result] = value;
    }
    Ok(Row::Values(Rc::from(values)))
}

/// Computes the functions for each row of a partition.
fn partition(
    records: &IndexedRecords,
    of: &OfWindow<'_>,
    cx: &mut Context<'_>,
    each: &mut Joined<'_>,
) -> ExecResult<Flow> {
    let OfWindow { window, windows, is_last } = *of;
    let mut rows = Partition::new(records, window);
    let mut functions = Vec::with_capacity(window.functions.len());
    for function in &window.functions {
        functions.push((FrameOf::new(&function.frame, cx)?, ValueOf::new(function, cx), function.result));
    }
    for at in 0..records.len() {
        cx.tick()?;
        let present = rows.go_to(at, cx)?;
        let mut found = Vec::with_capacity(functions.len());
        for (frame, value, result) in &mut functions {
            let frame = frame.of(&rows, cx)?;
            found.push((*result, eval::own(value.at(&rows, frame, cx)?)));
        }
        let results = enter(present, windows, cx)?;
        cx.frame[usize::from(windows.slot)].row =
            if is_last { all(results, found, windows.results)? } else { with(&results, &found) };
        if each(cx)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    Ok(Flow::Continue)
}
