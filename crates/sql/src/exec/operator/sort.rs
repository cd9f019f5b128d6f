//! ORDER BY over the rows of a block: an external sort, or the best rows in a heap when there is a LIMIT.

use super::Consumer;
use super::distinct::Once;
use super::limit::Limit;
use crate::error::ExecResult;
use crate::expr::{Context, Expr, ExprType, eval};
use crate::logical::{SortBy, SortKey};
use crate::memory::Account;
use crate::plan::physical::Block;
use crate::rows::Flow;
use crate::rows::codec;
use crate::sort::{ExternalSort, KeyForm, Part};
use omnibus_value::Value;
use std::collections::BinaryHeap;

/// More rows than this are sorted rather than kept in a heap.
const HEAP_ROWS: u64 = 10_000;

/// Gathers rows and gives them back in order.
pub(super) struct Sorter<'p> {
    keys: &'p [SortKey],
    /// Where in a row the values of its keys are.
    places: Vec<usize>,
    limit: Limit,
    best: Option<Best>,
    all: ExternalSort,
    /// DISTINCT, by what has been seen.
    distinct: Option<Once>,
    /// DISTINCT, where rows with equal sort keys are equal: sorting brings them together.
    unique: bool,
    /// Columns of a row; sort keys that are no columns come behind them.
    width: usize,
    number: u64,
    key: Vec<u8>,
    record: Vec<u8>,
}

/// The best rows so far, the worst of them at hand.
struct Best {
    rows: BinaryHeap<Ranked>,
    wanted: usize,
    account: Account,
}

/// A row of the heap. The heap's order is the derived one: by key, then by arrival, which no two rows share.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ranked {
    key: Box<[u8]>,
    /// Arrival, which makes the sort stable.
    number: u64,
    row: Encoded,
}

/// A row as bytes, so that what the heap holds is known.
type Encoded = Box<[u8]>;

/// What a row of the heap takes beside its bytes.
const RANKED_COST: usize = size_of::<Ranked>() + 32;

impl Best {
    fn cost(row: &Ranked) -> usize {
        RANKED_COST + row.key.len() + row.row.len()
    }
}

impl<'p> Sorter<'p> {
    /// For the rows of a block.
    pub(super) fn new(block: &'p Block, limit: Limit, cx: &Context<'_>) -> Sorter<'p> {
        let types: Vec<&ExprType> = block.outputs.iter().map(|e| &e.ty).collect();
        let mut sorter = Sorter::of_rows(&block.order, limit, &types, cx);
        if block.distinct {
            let listed = &block.outputs[..block.width];
            sorter.unique = sorter.best.is_none() && sorted_by_all(&block.order, listed);
            sorter.distinct = (!sorter.unique).then(|| Once::new(listed, cx));
        }
        sorter
    }

    /// For finished rows of columns of these types.
    pub(super) fn of_rows(
        keys: &'p [SortKey],
        limit: Limit,
        types: &[&ExprType],
        cx: &Context<'_>,
    ) -> Sorter<'p> {
        let width = types.len();
        let mut extra = width..;
        let (mut places, mut parts) = (Vec::new(), Vec::new());
        for key in keys {
            let (place, ty) = match &key.expr {
                SortBy::Output(at) => (*at, types[*at]),
                SortBy::Expr(e) => (extra.next().unwrap_or(width), &e.ty),
            };
            places.push(place);
            parts.push(Part::new(ty, key.collation, key.descending));
        }
        let form = KeyForm::new(parts);
        let wanted = limit.offset.saturating_add(limit.count);
        let best = (wanted <= HEAP_ROWS && form.is_bytes()).then(|| Best {
            rows: BinaryHeap::new(),
            wanted: wanted as usize,
            account: Account::new(&cx.session.memory),
        });
        Sorter {
            keys,
            places,
            limit,
            best,
            all: ExternalSort::new(form, cx),
            distinct: None,
            unique: false,
            width,
            number: 0,
            key: Vec::new(),
            record: Vec::new(),
        }
    }

    /// Takes up the row in the frame.
    pub(super) fn add(&mut self, outputs: &[Expr], cx: &mut Context<'_>) -> ExecResult<()> {
        let mut row = Vec::with_capacity(outputs.len() + self.keys.len());
        for e in outputs {
            row.push(e.eval(cx)?);
        }
        self.add_row(row, cx)
    }

    /// Takes up a finished row; sort expressions are evaluated over the frame.
    pub(super) fn add_row(&mut self, mut row: Vec<Value>, cx: &mut Context<'_>) -> ExecResult<()> {
        for key in self.keys {
            if let SortBy::Expr(e) = &key.expr {
                row.push(e.eval(cx)?);
            }
        }
        if let Some(distinct) = &mut self.distinct
            && !distinct.is_first(&row, cx)?
        {
            return Ok(());
        }
        self.push(&row, cx)
    }

    fn push(&mut self, row: &[Value], cx: &mut Context<'_>) -> ExecResult<()> {
        self.number += 1;
        cx.tick()?;
        self.key.clear();
        self.all.form().write(self.places.iter().filter_map(|at| row.get(*at)), &mut self.key);
        let Some(best) = &mut self.best else {
            self.record.clear();
            codec::write_values(&row[..self.width], &mut self.record);
            return self.all.add(&self.key, &self.record, cx);
        };
        if best.rows.len() >= best.wanted {
            // A later row of the same key is not better.
            if best.rows.peek().is_none_or(|worst| self.key[..] >= worst.key[..]) {
                return Ok(());
            }
            if let Some(worst) = best.rows.pop() {
                best.account.shrink(Best::cost(&worst));
            }
        }
        self.record.clear();
        codec::write_values(&row[..self.width], &mut self.record);
        let ranked = Ranked { key: self.key[..].into(), number: self.number, row: self.record[..].into() };
        let cost = Best::cost(&ranked);
        let budget = cx.session.settings.sort_buffer_size;
        let fits = best.account.has_room(cost, budget, &cx.session.settings);
        best.rows.push(ranked);
        if fits { Ok(()) } else { self.sort_all(cx) }
    }

    /// The best rows are too large for memory: sorts them with all that come.
    fn sort_all(&mut self, cx: &mut Context<'_>) -> ExecResult<()> {
        let Some(best) = self.best.take() else { return Ok(()) };
        let rows = best.rows.into_sorted_vec();
        for Ranked { key, row, .. } in rows {
            self.all.add(&key, &row, cx)?;
        }
        Ok(())
    }

    /// Gives the rows of the limit in order.
    pub(super) fn finish(mut self, cx: &mut Context<'_>, out: &mut Consumer<'_>) -> ExecResult<Flow> {
        if let Some(distinct) = self.distinct.take() {
            distinct.finish(cx, &mut |cx, row| {
                self.push(&row, cx)?;
                Ok(Flow::Continue)
            })?;
        }
        let mut output = Output { limit: self.limit, row: Vec::with_capacity(self.width) };
        if let Some(best) = self.best {
            for ranked in best.rows.into_sorted_vec() {
                if output.is_full() {
                    break;
                }
                if output.give(ranked.row.into_vec().into(), cx, out)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
            return Ok(Flow::Continue);
        }
        let mut sorted = self.all.finish(cx)?;
        let mut last = None;
        while !output.is_full()
            && let Some((key, record)) = sorted.next_record()?
        {
            cx.tick()?;
            if self.unique && last.as_ref() == Some(&key) {
                continue;
            }
            if output.give(record, cx, out)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
            last = self.unique.then_some(key);
        }
        Ok(Flow::Continue)
    }
}

/// Where sorted rows go.
struct Output {
    limit: Limit,
    row: Vec<Value>,
}

impl Output {
    fn give(
        &mut self,
        mut record: bytes::Bytes,
        cx: &mut Context<'_>,
        out: &mut Consumer<'_>,
    ) -> ExecResult<Flow> {
        if self.limit.skips(cx) {
            return Ok(Flow::Continue);
        }
        self.limit.count -= 1;
        codec::read_values_into(&mut record, &mut self.row)?;
        out(cx, &self.row)
    }

    fn is_full(&self) -> bool {
        self.limit.count == 0
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
    // Another key would tell rows apart that are equal.
    let listed = |k: &SortKey| matches!(k.expr, SortBy::Output(at) if at < outputs.len());
    keys.iter().all(listed) && outputs.iter().enumerate().all(sorted)
}

/// A row that no longer holds on to row images.
pub(super) fn owned(row: &[Value]) -> Vec<Value> {
    row.iter().cloned().map(eval::own).collect()
}
