//! Runs a compiled query: nested loops that push each joined row into grouping, sorting, or
//! straight to the consumer.
//!
//! Push rather than pull: no state machine per operator, and a consumer that has enough says so
//! with `Flow::Stop`. Recursion is as deep as the query has tables. On the session's thread.

use super::late_outputs::LateOutputs;
use super::order::Sorter;
use super::reader::RowReader;
use super::window::Stage;
use super::{group, set_operation};
use crate::api::ResultColumn;
use crate::error::{ExecResult, SqlError};
use crate::expr::profile::{self, Step};
pub use crate::expr::subquery::Consumer;
use crate::expr::subquery::{Subplan, SubqueryState};
use crate::expr::{Context, Expr, Row, Slot, hash_key, in_place};
use crate::logical::{Asked, Numbers};
use crate::plan::tree::{Block, Body, Keep, Node, NodeSource, OuterNode, QueryPlan, ScanNode};
pub use crate::rows::Flow;
use crate::rows::codec;
use crate::rows::collected::{Rows, RowsBuilder};
use crate::rows::distinct::{Distinct, Seen};
use crate::rows::kept::{KeptBuilder, KeptRows};
use omnibus_value::Value;
use std::rc::Rc;

/// Takes joined rows, which are in the frame.
pub(super) type Joined<'c> = dyn FnMut(&mut Context<'_>) -> ExecResult<Flow> + 'c;

/// LIMIT's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Rows to leave out first.
    pub offset: u64,
    /// Rows to give then.
    pub count: u64,
}

/// Evaluates a LIMIT.
///
/// # Errors
/// 1210 for what is no count.
pub fn limit_of(limit: &crate::logical::Limit, cx: &mut Context<'_>) -> ExecResult<Limit> {
    let mut number = |e: &Option<Expr>, missing: u64| -> ExecResult<u64> {
        let Some(e) = e else { return Ok(missing) };
        match e.eval(cx)? {
            Value::Int(n) => u64::try_from(n).map_err(|_| SqlError::wrong_arguments("LIMIT").into()),
            Value::UInt(n) => Ok(n),
            Value::Null => Ok(0),
            value => Ok(u64::try_from(e.to_int(&value, cx)).unwrap_or(0)),
        }
    };
    Ok(Limit { offset: number(&limit.offset, 0)?, count: number(&limit.count, u64::MAX)? })
}

impl Subplan for QueryPlan {
    fn run(&self, cx: &mut Context<'_>, out: &mut Consumer<'_>) -> ExecResult<Flow> {
        run(self, cx, out)
    }

    fn is_volatile(&self) -> bool {
        self.volatile
    }

    fn rows(&self) -> f64 {
        self.rows
    }

    fn cost(&self) -> f64 {
        crate::plan::cost::of_plan(self)
    }

    fn columns(&self) -> &[ResultColumn] {
        &self.columns
    }

    fn is_unique(&self, column: usize) -> bool {
        crate::plan::rows::is_unique(self, column)
    }

    fn reads_no_table(&self) -> bool {
        matches!(&self.body, Body::Block(block) if block.nodes.is_empty())
    }
}

/// Runs a query for the outer rows now in the frame.
///
/// # Errors
/// Whatever evaluation or storage meets, interrupts among them.
pub fn run(plan: &QueryPlan, cx: &mut Context<'_>, out: &mut Consumer<'_>) -> ExecResult<Flow> {
    let skipped = cx.skipped;
    let flow = run_outermost(plan, cx, out);
    cx.skipped = skipped;
    flow
}

/// Runs a query that is a statement: what its OFFSET leaves out is counted.
pub(super) fn run_outermost(
    plan: &QueryPlan,
    cx: &mut Context<'_>,
    out: &mut Consumer<'_>,
) -> ExecResult<Flow> {
    cx.check_stack()?;
    profile::given(plan, cx, out, |cx, out| run_body(plan, cx, out))
}

fn run_body(plan: &QueryPlan, cx: &mut Context<'_>, out: &mut Consumer<'_>) -> ExecResult<Flow> {
    match &plan.body {
        Body::Block(block) => run_block(block, cx, out),
        Body::Compound(compound) => set_operation::run(compound, cx, out),
        Body::Values(rows) => {
            let mut values = Vec::new();
            for row in rows {
                values.clear();
                cx.tick()?;
                for e in row {
                    values.push(e.eval(cx)?);
                }
                if out(cx, &values)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
            Ok(Flow::Continue)
        }
        Body::Recursive(recursive) => set_operation::run_recursive(recursive, cx, out),
    }
}

fn run_block(block: &Block, cx: &mut Context<'_>, out: &mut Consumer<'_>) -> ExecResult<Flow> {
    let limit = limit_of(&block.limit, cx)?;
    if limit.count == 0 {
        return Ok(Flow::Continue);
    }
    // Only a plain LIMIT bounds what the innermost loop may read ahead.
    let plain = block.grouping.is_none()
        && block.windows.is_none()
        && block.order.is_empty()
        && block.having.is_none()
        && !block.distinct;
    let read_limit = plain.then(|| limit.offset.saturating_add(limit.count));
    let mut output = Output::new(block, limit, cx);
    match &block.windows {
        None => rows(block, read_limit, cx, &mut |cx| output.give(block, cx, out))?,
        Some(windows) => {
            let mut stage = Stage::new(windows, cx);
            rows(block, None, cx, &mut |cx| stage.add(cx).map(|()| Flow::Continue))?;
            stage.finish(cx, &mut |cx| output.give(block, cx, out))?
        }
    };
    output.finish(cx, out)
}

/// The rows of a block, grouped or not, that meet HAVING.
fn rows(block: &Block, limit: Option<u64>, cx: &mut Context<'_>, each: &mut Joined<'_>) -> ExecResult<Flow> {
    let grouped = |grouping, cx: &mut Context<'_>, each: &mut Joined<'_>| {
        profile::joined(block, Step::Grouped, cx, each, |cx, each| group::run(block, grouping, cx, each))
    };
    match (&block.grouping, &block.having) {
        (None, None) => join(block, limit, cx, each),
        (None, Some(having)) => join(block, limit, cx, &mut |cx| filtered(having, cx, each)),
        (Some(grouping), None) => grouped(grouping, cx, each),
        (Some(grouping), Some(having)) => grouped(grouping, cx, &mut |cx| filtered(having, cx, each)),
    }
}

/// Gives the row in the frame on if it meets HAVING.
fn filtered(having: &Expr, cx: &mut Context<'_>, each: &mut Joined<'_>) -> ExecResult<Flow> {
    if having.eval_bool(cx)? == Some(true) { each(cx) } else { Ok(Flow::Continue) }
}

/// Where the rows of a block go.
enum Output<'p> {
    Plain(Box<Emitter>),
    Sorted(Box<Sorter<'p>>),
    Late(Box<LateOutputs<'p>>, Box<Emitter>),
}

impl<'p> Output<'p> {
    fn new(block: &'p Block, limit: Limit, cx: &Context<'_>) -> Output<'p> {
        let emitter = || Box::new(Emitter::new(block, limit, cx));
        match &block.late_outputs {
            _ if block.order.is_empty() => Output::Plain(emitter()),
            None => Output::Sorted(Box::new(Sorter::new(block, limit, cx))),
            Some(slots) => Output::Late(Box::new(LateOutputs::new(block, slots, cx)), emitter()),
        }
    }

    fn give(&mut self, block: &Block, cx: &mut Context<'_>, out: &mut Consumer<'_>) -> ExecResult<Flow> {
        match self {
            Output::Plain(emitter) => emitter.emit(&block.outputs, cx, out),
            Output::Sorted(sorter) => {
                as_output(cx, |cx| sorter.add(&block.outputs, cx))?;
                Ok(Flow::Continue)
            }
            Output::Late(rows, _) => {
                rows.add(cx)?;
                Ok(Flow::Continue)
            }
        }
    }

    fn finish(self, cx: &mut Context<'_>, out: &mut Consumer<'_>) -> ExecResult<Flow> {
        match self {
            Output::Plain(emitter) => emitter.finish(cx, out),
            Output::Sorted(sorter) => sorter.finish(cx, out),
            Output::Late(rows, emitter) => rows.finish(*emitter, cx, out),
        }
    }
}

/// Evaluates what a query selects.
fn as_output<T>(cx: &mut Context<'_>, evaluate: impl FnOnce(&mut Context<'_>) -> T) -> T {
    let strict = cx.strict;
    cx.strict |= cx.query.strict_outputs;
    let done = evaluate(cx);
    cx.strict = strict;
    done
}

/// DISTINCT, OFFSET and LIMIT over rows that come one by one.
pub(super) struct Emitter {
    limit: Limit,
    distinct: Option<Distinct>,
    collations: Vec<u16>,
    values: Vec<Value>,
    key: Vec<u8>,
    /// The consumer, or LIMIT, has had enough.
    stopped: bool,
}

impl Emitter {
    pub(super) fn new(block: &Block, limit: Limit, cx: &Context<'_>) -> Emitter {
        let listed = if block.distinct { &block.outputs[..block.width] } else { &[] };
        let collations = listed.iter().map(|e| e.ty.column.collation).collect();
        Emitter {
            limit,
            distinct: block.distinct.then(|| Distinct::new(cx)),
            collations,
            values: Vec::with_capacity(block.outputs.len()),
            key: Vec::new(),
            stopped: false,
        }
    }

    pub(super) fn emit(
        &mut self,
        outputs: &[Expr],
        cx: &mut Context<'_>,
        out: &mut Consumer<'_>,
    ) -> ExecResult<Flow> {
        if self.distinct.is_none() && self.limit.offset > 0 {
            self.limit.offset -= 1;
            cx.skipped += 1;
            return Ok(Flow::Continue);
        }
        self.values.clear();
        as_output(cx, |cx| {
            for e in outputs {
                let value = e.eval(cx)?;
                self.values.push(value);
            }
            ExecResult::Ok(())
        })?;
        if let Some(distinct) = &mut self.distinct {
            self.key.clear();
            for (value, collation) in self.values.iter().zip(&self.collations) {
                hash_key::write(value, *collation, &mut self.key);
            }
            let values = &self.values;
            if distinct.add(&self.key, |out| codec::write_values(values, out), cx)? != Seen::First {
                return Ok(Flow::Continue);
            }
        }
        give(&self.values, &mut self.limit, &mut self.stopped, cx, out)
    }

    /// Gives what DISTINCT put off.
    pub(super) fn finish(mut self, cx: &mut Context<'_>, out: &mut Consumer<'_>) -> ExecResult<Flow> {
        if self.stopped {
            return Ok(Flow::Stop);
        }
        let Some(distinct) = self.distinct.take() else { return Ok(Flow::Continue) };
        distinct.finish(cx, &mut |cx, values| give(&values, &mut self.limit, &mut self.stopped, cx, out))
    }
}

/// Gives a row, if OFFSET and LIMIT want it.
fn give(
    values: &[Value],
    limit: &mut Limit,
    stopped: &mut bool,
    cx: &mut Context<'_>,
    out: &mut Consumer<'_>,
) -> ExecResult<Flow> {
    if limit.offset > 0 {
        limit.offset -= 1;
        cx.skipped += 1;
        return Ok(Flow::Continue);
    }
    let flow = out(cx, values)?;
    limit.count -= 1;
    *stopped = flow == Flow::Stop || limit.count == 0;
    Ok(if *stopped { Flow::Stop } else { Flow::Continue })
}

/// Runs the loops of a block.
pub(super) fn join(
    block: &Block,
    limit: Option<u64>,
    cx: &mut Context<'_>,
    joined: &mut Joined<'_>,
) -> ExecResult<Flow> {
    for condition in &block.constants {
        if condition.eval_bool(cx)? != Some(true) {
            return Ok(Flow::Continue);
        }
    }
    let limit = limit.and_then(|n| usize::try_from(n).ok()).filter(|_| block.nodes.len() == 1);
    profile::joined(block, Step::Joined, cx, joined, |cx, joined| run_nodes(&block.nodes, limit, cx, joined))
}

fn run_nodes(
    nodes: &[Node],
    limit: Option<usize>,
    cx: &mut Context<'_>,
    joined: &mut Joined<'_>,
) -> ExecResult<Flow> {
    cx.check_stack()?;
    match nodes.split_first() {
        None => joined(cx),
        Some((node, rest)) => {
            let inner = &mut |cx: &mut Context<'_>| run_nodes(rest, None, cx, joined);
            profile::joined(node, Step::Whole, cx, inner, |cx, inner| match node {
                Node::Scan(scan) => run_scan(scan, limit, cx, inner),
                Node::Outer(outer) => run_outer(outer, cx, inner),
            })
        }
    }
}

fn meets(conditions: &[Expr], cx: &mut Context<'_>) -> ExecResult<bool> {
    for condition in conditions {
        if condition.eval_bool(cx)? != Some(true) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn run_outer(outer: &OuterNode, cx: &mut Context<'_>, joined: &mut Joined<'_>) -> ExecResult<Flow> {
    let mut matched = false;
    if meets(&outer.on, cx)? {
        let flow = run_nodes(&outer.nodes, None, cx, &mut |cx| {
            matched = true;
            if meets(&outer.filter, cx)? { joined(cx) } else { Ok(Flow::Continue) }
        })?;
        if flow == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    if matched {
        return Ok(Flow::Continue);
    }
    for slot in &outer.slots {
        cx.frame[usize::from(*slot)].row = Row::Nulls;
    }
    if meets(&outer.filter, cx)? { joined(cx) } else { Ok(Flow::Continue) }
}

fn run_scan(
    scan: &ScanNode,
    limit: Option<usize>,
    cx: &mut Context<'_>,
    joined: &mut Joined<'_>,
) -> ExecResult<Flow> {
    if let Some(keep) = &scan.keep {
        return run_kept(scan, keep, cx, joined);
    }
    read(scan, limit, cx, joined)
}

/// Reads a table's rows one by one into its slot.
fn read(
    scan: &ScanNode,
    limit: Option<usize>,
    cx: &mut Context<'_>,
    joined: &mut Joined<'_>,
) -> ExecResult<Flow> {
    let slot = usize::from(scan.slot);
    match &scan.source {
        NodeSource::Table { table, path, lock, wait } => {
            if cx.frame[slot].table.is_none() {
                cx.frame[slot] = Slot { table: Some(table.clone()), row: Row::Unset };
            }
            // With further conditions a LIMIT says nothing about how many rows must be read.
            let limit = limit.filter(|_| path.filter.is_empty());
            let mut reader = RowReader::open(table, path, *lock, *wait, limit, cx)?;
            while reader.step(scan.slot, cx)? {
                if joined(cx)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
            Ok(Flow::Continue)
        }
        NodeSource::Derived { plan, filter, id, outer_slots } => {
            let rows = match kept(cx, *id) {
                Some(rows) => rows,
                None => {
                    let mut rows = RowsBuilder::new(cx);
                    plan.run(cx, &mut |cx, row| {
                        rows.push(row.iter().cloned().map(crate::expr::eval::own).collect(), cx)?;
                        Ok(Flow::Continue)
                    })?;
                    let rows = Rc::new(rows.finish()?);
                    if outer_slots.is_empty() {
                        cx.subqueries[*id] = SubqueryState::Table(rows.clone());
                    }
                    rows
                }
            };
            push_rows(&rows, scan.slot, filter, cx, joined)
        }
        NodeSource::Virtual { table, filter, id } => {
            if let Some(numbers) = table.numbers() {
                return push_numbers(numbers, scan.slot, filter, cx, joined);
            }
            let rows = match kept(cx, *id) {
                Some(rows) => rows,
                None => {
                    let rows = Rc::new(table.rows(Asked { slot: scan.slot, conditions: filter }, cx)?);
                    if table.outer().is_none() {
                        cx.subqueries[*id] = SubqueryState::Table(rows.clone());
                    }
                    rows
                }
            };
            push_rows(&rows, scan.slot, filter, cx, joined)
        }
        NodeSource::Recursion { id, filter } => {
            let rows = kept(cx, *id).unwrap_or_default();
            push_rows(&rows, scan.slot, filter, cx, joined)
        }
    }
}

/// The rows of a derived table that were made before.
fn kept(cx: &Context<'_>, id: usize) -> Option<Rc<Rows>> {
    match &cx.subqueries[id] {
        SubqueryState::Table(rows) => Some(rows.clone()),
        _ => None,
    }
}

fn push_numbers(
    numbers: Numbers,
    slot: u16,
    filter: &[Expr],
    cx: &mut Context<'_>,
    joined: &mut Joined<'_>,
) -> ExecResult<Flow> {
    for number in numbers.iter() {
        cx.tick()?;
        cx.frame[usize::from(slot)].row = Row::Values(Rc::from([Value::UInt(number)]));
        if meets(filter, cx)? && joined(cx)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    Ok(Flow::Continue)
}

fn push_rows(
    rows: &Rc<Rows>,
    slot: u16,
    filter: &[Expr],
    cx: &mut Context<'_>,
    joined: &mut Joined<'_>,
) -> ExecResult<Flow> {
    let mut reader = rows.read();
    while let Some(row) = reader.next_row()? {
        cx.tick()?;
        cx.frame[usize::from(slot)].row = Row::Values(row);
        if meets(filter, cx)? && joined(cx)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    Ok(Flow::Continue)
}

/// Looks a kept table up; reads it first if that has not been done.
fn run_kept(scan: &ScanNode, keep: &Keep, cx: &mut Context<'_>, joined: &mut Joined<'_>) -> ExecResult<Flow> {
    let kept = match &cx.subqueries[keep.id] {
        SubqueryState::Kept(kept) => kept.clone(),
        _ => {
            let kept = Rc::new(read_kept(scan, keep, cx)?);
            cx.subqueries[keep.id] = SubqueryState::Kept(kept.clone());
            kept
        }
    };
    let mut key = std::mem::take(&mut cx.key);
    key.clear();
    if !write_kept_key(&keep.probe, &keep.collations, cx, &mut key)? {
        cx.key = key;
        return Ok(Flow::Continue);
    }
    let found = kept.find(&key);
    // The loops inside may want the buffer, too.
    let key = if found.is_in_memory() {
        cx.key = key;
        Vec::new()
    } else {
        key
    };
    for nth in 0..found.count() {
        cx.tick()?;
        let Some(row) = kept.row(&key, &found, nth)? else { continue };
        cx.frame[usize::from(scan.slot)].row = row;
        if meets(&keep.filter, cx)? && joined(cx)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    Ok(Flow::Continue)
}

fn read_kept(scan: &ScanNode, keep: &Keep, cx: &mut Context<'_>) -> ExecResult<KeptRows> {
    let mut kept = KeptBuilder::new(cx);
    let mut key = Vec::new();
    read(scan, None, cx, &mut |cx| {
        key.clear();
        if write_kept_key(&keep.own, &keep.collations, cx, &mut key)? {
            let row = cx.frame[usize::from(scan.slot)].row.clone();
            kept.push(&key, &row, cx)?;
        }
        Ok(Flow::Continue)
    })?;
    Ok(kept.finish()?)
}

/// Appends the key of a kept row; false if a part is NULL, which equals nothing.
fn write_kept_key(
    parts: &[Expr],
    collations: &[u16],
    cx: &mut Context<'_>,
    key: &mut Vec<u8>,
) -> ExecResult<bool> {
    for (part, collation) in parts.iter().zip(collations) {
        if in_place::write_key(part, *collation, cx, key)? {
            return Ok(false);
        }
    }
    Ok(true)
}
