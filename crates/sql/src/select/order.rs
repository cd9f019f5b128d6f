//! ORDER BY: sorts rows in memory, keeping only the best when there is a LIMIT.

use super::plan::{Block, SortBy, SortKey};
use super::run::{Consumer, Flow, Window};
use crate::error::ExecResult;
use crate::expr::{Exec, Expr, compare, eval, hash_key};
use omnibus_value::Value;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashSet};
use std::rc::Rc;

/// How rows compare; shared by the rows so that a heap can order them.
#[derive(Debug)]
struct Orders(Vec<Order>);

#[derive(Debug)]
struct Order {
    /// Where in `Sortable::row` the key is.
    at: usize,
    collation: u16,
    descending: bool,
}

/// A row, with the sort keys behind it that are not in it.
#[derive(Debug)]
struct Sortable {
    row: Box<[Value]>,
    /// Arrival, which makes the sort stable.
    number: u64,
    orders: Rc<Orders>,
}

impl Sortable {
    fn order(&self, other: &Sortable) -> Ordering {
        self.key_order(other).then(self.number.cmp(&other.number))
    }

    fn key_order(&self, other: &Sortable) -> Ordering {
        for Order { at, collation, descending } in &self.orders.0 {
            let (Some(a), Some(b)) = (self.row.get(*at), other.row.get(*at)) else { continue };
            let order = compare::sort_order(a, b, *collation);
            if order != Ordering::Equal {
                return if *descending { order.reverse() } else { order };
            }
        }
        Ordering::Equal
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
    /// DISTINCT, by what has been seen.
    seen: Option<HashSet<Box<[u8]>>>,
    /// DISTINCT, where rows with equal sort keys are equal: sorting brings them together.
    unique: bool,
    collations: Vec<u16>,
    /// Columns of a row; sort keys that are no columns come behind them.
    width: usize,
    number: u64,
}

/// More rows than this are sorted rather than kept in a heap.
const HEAP_ROWS: u64 = 10_000;

impl<'p> Sorter<'p> {
    /// For the rows of a block.
    pub(super) fn new(block: &'p Block, window: Window) -> Sorter<'p> {
        let listed = &block.outputs[..block.width];
        Sorter::with_width(&block.order, window, block.distinct, listed, block.outputs.len())
    }

    /// For finished rows of `width` columns.
    pub(super) fn of_rows(keys: &'p [SortKey], window: Window, width: usize) -> Sorter<'p> {
        Sorter::with_width(keys, window, false, &[], width)
    }

    fn with_width(
        keys: &'p [SortKey],
        window: Window,
        distinct: bool,
        outputs: &[Expr],
        width: usize,
    ) -> Sorter<'p> {
        let wanted = window.offset.saturating_add(window.count);
        let few = wanted <= HEAP_ROWS;
        let unique = distinct && !few && sorted_by_all(keys, outputs);
        let mut extra = width..;
        let order = |key: &SortKey| {
            let at = match key.expr {
                SortBy::Output(at) => at,
                SortBy::Expr(_) => extra.next().unwrap_or(usize::MAX),
            };
            Order { at, collation: key.collation, descending: key.descending }
        };
        Sorter {
            keys,
            orders: Rc::new(Orders(keys.iter().map(order).collect())),
            window,
            best: few.then_some(wanted as usize),
            heap: BinaryHeap::new(),
            rows: Vec::new(),
            seen: (distinct && !unique).then(HashSet::new),
            unique,
            collations: outputs.iter().map(|e| e.ty.column.collation).collect(),
            width,
            number: 0,
        }
    }

    /// Takes up the row in the frame.
    pub(super) fn add(&mut self, outputs: &[Expr], cx: &mut Exec<'_>) -> ExecResult<()> {
        let mut row = Vec::with_capacity(outputs.len() + self.keys.len());
        for e in outputs {
            row.push(e.eval(cx)?);
        }
        self.add_row(row, cx)
    }

    /// Takes up a finished row; sort expressions are evaluated over the frame.
    pub(super) fn add_row(&mut self, mut row: Vec<Value>, cx: &mut Exec<'_>) -> ExecResult<()> {
        if let Some(seen) = &mut self.seen {
            let mut key = Vec::new();
            for (value, collation) in row.iter().zip(&self.collations) {
                hash_key::write(value, *collation, &mut key);
            }
            if !seen.insert(key.into()) {
                return Ok(());
            }
        }
        for key in self.keys {
            if let SortBy::Expr(e) = &key.expr {
                row.push(e.eval(cx)?);
            }
        }
        let sortable = Sortable { row: row.into(), number: self.number, orders: self.orders.clone() };
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
                if self.unique {
                    rows.dedup_by(|later, first| later.key_order(first).is_eq());
                }
                rows
            }
        };
        let skip = usize::try_from(self.window.offset).unwrap_or(usize::MAX);
        let take = usize::try_from(self.window.count).unwrap_or(usize::MAX);
        cx.skipped += skip.min(rows.len()) as u64;
        for sortable in rows.into_iter().skip(skip).take(take) {
            if out(cx, &sortable.row[..self.width.min(sortable.row.len())])? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Continue)
    }
}

/// Whether rows that sort as equal are equal to DISTINCT: every column is sorted by, under its own collation.
/// Text only, for which comparing is what DISTINCT does.
fn sorted_by_all(keys: &[SortKey], outputs: &[Expr]) -> bool {
    let sorted = |(at, e): (usize, &Expr)| {
        let (text, collation) = (crate::catalog::charset::is_character(&e.ty.column), e.ty.column.collation);
        let by = |k: &SortKey| matches!(k.expr, SortBy::Output(by) if by == at) && k.collation == collation;
        text && keys.iter().any(by)
    };
    outputs.iter().enumerate().all(sorted)
}

/// A row that no longer holds on to row images.
pub(super) fn owned(row: &[Value]) -> Vec<Value> {
    row.iter().cloned().map(eval::own).collect()
}
