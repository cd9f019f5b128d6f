//! ORDER BY over results: an external sort, or the best rows in a heap when there is a LIMIT.

use super::distinct::Once;
use super::limit::Bounds;
use super::project::{self, as_output};
use super::{Consumer, dispatch};
use crate::error::ExecResult;
use crate::expr::{Context, Row};
use crate::logical::{SortBy, SortKey};
use crate::memory::Account;
use crate::plan::physical::{Distinct, ResultOperator, Sort};
use crate::rows::Flow;
use crate::rows::codec;
use crate::sort::{ExternalSort, KeyForm, Part};
use omnibus_value::Value;
use std::collections::BinaryHeap;

/// More rows than this are sorted rather than kept in a heap.
const HEAP_ROWS: u64 = 10_000;

/// Gives the results within bounds, in order.
pub(super) fn run(
    sort: &Sort,
    bounds: Bounds,
    cx: &mut Context<'_>,
    out: &mut Consumer<'_>,
) -> ExecResult<Flow> {
    let mut sorter = Sorter::new(sort, bounds, cx);
    let project = match &sort.input {
        ResultOperator::Project(project) => project,
        ResultOperator::Distinct(distinct) => {
            sorter.give_once(sort, distinct, cx);
            &distinct.project
        }
        input => {
            dispatch::results(input, Bounds::ALL, cx, &mut |cx, row| {
                if let Some(slot) = sort.slot {
                    cx.frame[usize::from(slot)].row = Row::Values(row.into());
                }
                sorter.add(&mut row.to_vec(), cx).map(|()| Flow::Continue)
            })?;
            return sorter.finish(cx, out);
        }
    };
    project::each(project, cx, |cx, row| as_output(cx, |cx| sorter.add(row, cx)).map(|()| Flow::Continue))?;
    sorter.finish(cx, out)
}

/// Gathers rows and gives them back in order.
struct Sorter<'p> {
    keys: &'p [SortKey],
    /// Where in a row the values of its keys are.
    places: Vec<usize>,
    bounds: Bounds,
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

/// Bytes of a row of the heap beside its own.
const RANKED_COST: usize = size_of::<Ranked>() + 32;

impl Best {
    fn cost(row: &Ranked) -> usize {
        RANKED_COST + row.key.len() + row.row.len()
    }
}

impl<'p> Sorter<'p> {
    fn new(sort: &'p Sort, bounds: Bounds, cx: &Context<'_>) -> Sorter<'p> {
        let width = sort.input.width();
        let mut extra = width..;
        let (mut places, mut parts) = (Vec::new(), Vec::new());
        for (key, ty) in sort.keys.iter().zip(&sort.types) {
            places.push(match &key.expr {
                SortBy::Output(at) => *at,
                SortBy::Expr(_) => extra.next().unwrap_or(width),
            });
            let part = Part::new(ty, key.collation, key.descending);
            parts.push(if cx.session.settings.mariadb { part } else { part.by_length() });
        }
        let form = KeyForm::new(parts);
        let wanted = bounds.offset.saturating_add(bounds.count);
        let best = (wanted <= HEAP_ROWS && form.is_bytes()).then(|| Best {
            rows: BinaryHeap::new(),
            wanted: wanted as usize,
            account: Account::new(&cx.session.connection.memory),
        });
        Sorter {
            keys: &sort.keys,
            places,
            bounds,
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

    /// Leaves out what is equal to a row before: a row is told apart before it is sorted, by sorting where that brings equal rows together.
    fn give_once(&mut self, sort: &Sort, distinct: &Distinct, cx: &Context<'_>) {
        self.unique = self.best.is_none() && sort.unites && self.all.form().is_bytes();
        self.distinct = (!self.unique).then(|| Once::new(distinct, cx));
    }

    /// Takes up a row; keys that are no columns are evaluated over the frame, and stand behind its columns then.
    fn add(&mut self, row: &mut Vec<Value>, cx: &mut Context<'_>) -> ExecResult<()> {
        for e in self.keys.iter().filter_map(SortKey::expression) {
            row.push(e.eval(cx)?);
        }
        if let Some(distinct) = &mut self.distinct
            && !distinct.is_first(row, cx)?
        {
            return Ok(());
        }
        self.push(row, cx)
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
    fn finish(mut self, cx: &mut Context<'_>, out: &mut Consumer<'_>) -> ExecResult<Flow> {
        if let Some(distinct) = self.distinct.take() {
            distinct.finish(cx, &mut |cx, row| {
                self.push(&row, cx)?;
                Ok(Flow::Continue)
            })?;
        }
        let mut output = Output { bounds: self.bounds, row: Vec::with_capacity(self.width) };
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
    bounds: Bounds,
    row: Vec<Value>,
}

impl Output {
    fn give(
        &mut self,
        mut record: bytes::Bytes,
        cx: &mut Context<'_>,
        out: &mut Consumer<'_>,
    ) -> ExecResult<Flow> {
        if self.bounds.skips(cx) {
            return Ok(Flow::Continue);
        }
        self.bounds.count -= 1;
        codec::read_values_into(&mut record, &mut self.row)?;
        out(cx, &self.row)
    }

    fn is_full(&self) -> bool {
        self.bounds.count == 0
    }
}
