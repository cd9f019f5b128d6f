//! ORDER BY: sorts rows in memory, keeping only the best when there is a LIMIT.

use super::plan::{SortBy, SortKey};
use super::run::{Consumer, Flow, Window};
use crate::error::ExecResult;
use crate::expr::{Exec, Expr, compare, eval, hash_key};
use omnibus_value::Value;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashSet};
use std::rc::Rc;

/// How the keys compare; shared by the rows so that a heap can order them.
#[derive(Debug)]
struct Orders(Vec<(u16, bool)>);

/// A row and its sort keys.
#[derive(Debug)]
struct Sortable {
    keys: Box<[Value]>,
    row: Box<[Value]>,
    /// Arrival, which makes the sort stable.
    number: u64,
    orders: Rc<Orders>,
}

impl Sortable {
    fn order(&self, other: &Sortable) -> Ordering {
        for ((a, b), (collation, descending)) in self.keys.iter().zip(&other.keys).zip(&self.orders.0) {
            let order = compare::sort_order(a, b, *collation);
            if order != Ordering::Equal {
                return if *descending { order.reverse() } else { order };
            }
        }
        self.number.cmp(&other.number)
    }
}

impl PartialEq for Sortable {
    fn eq(&self, other: &Sortable) -> bool {
        self.order(other).is_eq()
    }
}
impl Eq for Sortable {}
impl PartialOrd for Sortable {
    fn partial_cmp(&self, other: &Sortable) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Sortable {
    fn cmp(&self, other: &Sortable) -> Ordering {
        self.order(other)
    }
}

/// Gathers rows and gives them back in order.
pub(super) struct Sorter<'p> {
    keys: &'p [SortKey],
    orders: Rc<Orders>,
    window: Window,
    /// Rows worth keeping, if few.
    best: Option<usize>,
    heap: BinaryHeap<Sortable>,
    rows: Vec<Sortable>,
    seen: Option<HashSet<Box<[u8]>>>,
    collations: Vec<u16>,
    number: u64,
}

/// More rows than this are sorted rather than kept in a heap.
const HEAP_ROWS: u64 = 10_000;

impl<'p> Sorter<'p> {
    pub(super) fn new(keys: &'p [SortKey], window: Window, distinct: bool, outputs: &[Expr]) -> Sorter<'p> {
        let wanted = window.offset.saturating_add(window.count);
        Sorter {
            keys,
            orders: Rc::new(Orders(keys.iter().map(|k| (k.collation, k.descending)).collect())),
            window,
            best: (wanted <= HEAP_ROWS).then_some(wanted as usize),
            heap: BinaryHeap::new(),
            rows: Vec::new(),
            seen: distinct.then(HashSet::new),
            collations: outputs.iter().map(|e| e.ty.column.collation).collect(),
            number: 0,
        }
    }

    /// Takes up the row in the frame.
    pub(super) fn add(&mut self, outputs: &[Expr], cx: &mut Exec<'_>) -> ExecResult<()> {
        let mut row = Vec::with_capacity(outputs.len());
        for e in outputs {
            row.push(e.eval(cx)?);
        }
        self.add_row(row, cx)
    }

    /// Takes up a finished row; sort expressions are evaluated over the frame.
    pub(super) fn add_row(&mut self, row: Vec<Value>, cx: &mut Exec<'_>) -> ExecResult<()> {
        if let Some(seen) = &mut self.seen {
            let mut key = Vec::new();
            for (value, collation) in row.iter().zip(&self.collations) {
                hash_key::write(value, *collation, &mut key);
            }
            if !seen.insert(key.into()) {
                return Ok(());
            }
        }
        let mut keys = Vec::with_capacity(self.keys.len());
        for key in self.keys {
            keys.push(match &key.expr {
                SortBy::Output(at) => row.get(*at).cloned().unwrap_or(Value::Null),
                SortBy::Expr(e) => e.eval(cx)?,
            });
        }
        let sortable =
            Sortable { keys: keys.into(), row: row.into(), number: self.number, orders: self.orders.clone() };
        self.number += 1;
        if self.number.is_multiple_of(4096) {
            cx.storage.check_killed()?;
        }
        match self.best {
            None => self.rows.push(sortable),
            Some(best) if self.heap.len() < best => self.heap.push(sortable),
            Some(_) => {
                if let Some(mut worst) = self.heap.peek_mut()
                    && sortable < *worst
                {
                    *worst = sortable;
                }
            }
        }
        Ok(())
    }

    /// Gives the rows of the window in order.
    pub(super) fn finish(self, cx: &mut Exec<'_>, out: &mut Consumer<'_>) -> ExecResult<Flow> {
        let rows = match self.best {
            Some(_) => self.heap.into_sorted_vec(),
            None => {
                let mut rows = self.rows;
                rows.sort_unstable();
                rows
            }
        };
        let skip = usize::try_from(self.window.offset).unwrap_or(usize::MAX);
        let take = usize::try_from(self.window.count).unwrap_or(usize::MAX);
        for sortable in rows.into_iter().skip(skip).take(take) {
            if out(cx, &sortable.row)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Continue)
    }
}

/// A row that no longer holds on to row images.
pub(super) fn owned(row: &[Value]) -> Vec<Value> {
    row.iter().cloned().map(eval::own).collect()
}
