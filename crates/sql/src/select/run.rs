//! Runs a compiled query: nested loops that push each joined row into grouping, sorting, or
//! straight to the consumer.
//!
//! Push rather than pull: no state machine per operator, and a consumer that has enough says so
//! with `Flow::Stop`. Recursion is as deep as the query has tables. On the session's thread.

use super::plan::{Block, Body, Keep, Node, NodeSource, OuterNode, QueryPlan, ScanNode};
use super::reader::RowReader;
use super::{group, order, set_operation};
use crate::error::{ExecResult, SqlError};
use crate::expr::{Exec, Expr, Row, Slot, hash_key};
use crate::select::storage::LockMode;
use crate::select::subquery::SubqueryState;
use omnibus_value::Value;
use std::collections::HashMap;
use std::rc::Rc;

/// Whether a consumer wants more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Yes.
    Continue,
    /// No.
    Stop,
}

/// Takes result rows.
pub type Consumer<'c> = dyn FnMut(&mut Exec<'_>, &[Value]) -> ExecResult<Flow> + 'c;
/// Takes joined rows, which are in the frame.
type Joined<'c> = dyn FnMut(&mut Exec<'_>) -> ExecResult<Flow> + 'c;

/// Rows of a kept table by their key.
#[derive(Debug, Default)]
pub struct KeptRows {
    rows: HashMap<Box<[u8]>, Vec<Row>>,
}

/// LIMIT's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Rows to leave out first.
    pub offset: u64,
    /// Rows to give then.
    pub count: u64,
}

/// Evaluates a LIMIT.
///
/// # Errors
/// 1210 for what is no count.
pub fn window(limit: &super::plan::Limit, cx: &mut Exec<'_>) -> ExecResult<Window> {
    let mut number = |e: &Option<Expr>, missing: u64| -> ExecResult<u64> {
        let Some(e) = e else { return Ok(missing) };
        match e.eval(cx)? {
            Value::Int(n) => u64::try_from(n).map_err(|_| SqlError::wrong_arguments("LIMIT").into()),
            Value::UInt(n) => Ok(n),
            Value::Null => Ok(0),
            value => Ok(u64::try_from(e.to_int(&value, cx)).unwrap_or(0)),
        }
    };
    Ok(Window { offset: number(&limit.offset, 0)?, count: number(&limit.count, u64::MAX)? })
}

/// Runs a query for the outer rows now in the frame.
///
/// # Errors
/// Whatever evaluation or storage meets, interrupts among them.
pub fn run(plan: &QueryPlan, cx: &mut Exec<'_>, out: &mut Consumer<'_>) -> ExecResult<Flow> {
    let skipped = cx.skipped;
    let flow = run_outermost(plan, cx, out);
    cx.skipped = skipped;
    flow
}

/// Runs a query that is a statement: what its OFFSET leaves out is counted.
pub(super) fn run_outermost(plan: &QueryPlan, cx: &mut Exec<'_>, out: &mut Consumer<'_>) -> ExecResult<Flow> {
    cx.check_stack()?;
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

fn run_block(block: &Block, cx: &mut Exec<'_>, out: &mut Consumer<'_>) -> ExecResult<Flow> {
    let window = window(&block.limit, cx)?;
    if window.count == 0 {
        return Ok(Flow::Continue);
    }
    if let Some(grouping) = &block.grouping {
        return group::run(block, grouping, window, cx, out);
    }
    if !block.order.is_empty() {
        let mut sorter = order::Sorter::new(block, window);
        join(block, None, cx, &mut |cx| {
            if accepts_having(block, cx)? {
                sorter.add(&block.outputs, cx)?;
            }
            Ok(Flow::Continue)
        })?;
        return sorter.finish(cx, out);
    }
    // Only a plain LIMIT bounds what the innermost loop may read ahead.
    let plain = !block.distinct && block.having.is_none();
    let read_limit = plain.then(|| window.offset.saturating_add(window.count));
    let mut emitter = Emitter::new(block, window);
    join(block, read_limit, cx, &mut |cx| {
        if !accepts_having(block, cx)? {
            return Ok(Flow::Continue);
        }
        emitter.emit(&block.outputs, cx, out)
    })
}

/// Whether the row in the frame meets HAVING.
pub(super) fn accepts_having(block: &Block, cx: &mut Exec<'_>) -> ExecResult<bool> {
    match &block.having {
        Some(having) => Ok(having.eval_bool(cx)? == Some(true)),
        None => Ok(true),
    }
}

/// DISTINCT, OFFSET and LIMIT over rows that come one by one.
pub(super) struct Emitter {
    window: Window,
    seen: Option<std::collections::HashSet<Box<[u8]>>>,
    collations: Vec<u16>,
    values: Vec<Value>,
}

impl Emitter {
    pub(super) fn new(block: &Block, window: Window) -> Emitter {
        let listed = if block.distinct { &block.outputs[..block.width] } else { &[] };
        let collations = listed.iter().map(|e| e.ty.column.collation).collect();
        Emitter {
            window,
            seen: block.distinct.then(Default::default),
            collations,
            values: Vec::with_capacity(block.outputs.len()),
        }
    }

    pub(super) fn emit(
        &mut self,
        outputs: &[Expr],
        cx: &mut Exec<'_>,
        out: &mut Consumer<'_>,
    ) -> ExecResult<Flow> {
        if self.seen.is_none() && self.window.offset > 0 {
            self.window.offset -= 1;
            cx.skipped += 1;
            return Ok(Flow::Continue);
        }
        self.values.clear();
        for e in outputs {
            let value = e.eval(cx)?;
            self.values.push(value);
        }
        if let Some(seen) = &mut self.seen {
            let mut key = Vec::new();
            for (value, collation) in self.values.iter().zip(&self.collations) {
                hash_key::write(value, *collation, &mut key);
            }
            if !seen.insert(key.into()) {
                return Ok(Flow::Continue);
            }
            if self.window.offset > 0 {
                self.window.offset -= 1;
                cx.skipped += 1;
                return Ok(Flow::Continue);
            }
        }
        if out(cx, &self.values)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
        self.window.count -= 1;
        Ok(if self.window.count == 0 { Flow::Stop } else { Flow::Continue })
    }
}

/// Runs the loops of a block.
pub(super) fn join(
    block: &Block,
    limit: Option<u64>,
    cx: &mut Exec<'_>,
    joined: &mut Joined<'_>,
) -> ExecResult<Flow> {
    for condition in &block.constants {
        if condition.eval_bool(cx)? != Some(true) {
            return Ok(Flow::Continue);
        }
    }
    let limit = limit.and_then(|n| usize::try_from(n).ok()).filter(|_| block.nodes.len() == 1);
    run_nodes(&block.nodes, limit, cx, joined)
}

fn run_nodes(
    nodes: &[Node],
    limit: Option<usize>,
    cx: &mut Exec<'_>,
    joined: &mut Joined<'_>,
) -> ExecResult<Flow> {
    cx.check_stack()?;
    match nodes.split_first() {
        None => joined(cx),
        Some((Node::Scan(scan), rest)) => {
            run_scan(scan, limit, cx, &mut |cx| run_nodes(rest, None, cx, joined))
        }
        Some((Node::Outer(outer), rest)) => run_outer(outer, cx, &mut |cx| run_nodes(rest, None, cx, joined)),
    }
}

fn meets(conditions: &[Expr], cx: &mut Exec<'_>) -> ExecResult<bool> {
    for condition in conditions {
        if condition.eval_bool(cx)? != Some(true) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn run_outer(outer: &OuterNode, cx: &mut Exec<'_>, joined: &mut Joined<'_>) -> ExecResult<Flow> {
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
    cx: &mut Exec<'_>,
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
    cx: &mut Exec<'_>,
    joined: &mut Joined<'_>,
) -> ExecResult<Flow> {
    let slot = usize::from(scan.slot);
    match &scan.source {
        NodeSource::Table { table, path, lock, wait } => {
            if cx.frame[slot].table.is_none() {
                cx.frame[slot] = Slot { table: Some(table.clone()), row: Row::Unset };
            }
            // With further conditions a LIMIT says nothing about how many rows must be read; but
            // rows that are locked one by one are not locked for nothing.
            let limit = match limit {
                Some(_) if path.filter.is_empty() => limit,
                Some(_) if *lock != LockMode::None => Some(1),
                _ => None,
            };
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
                    let mut rows: Vec<Rc<[Value]>> = Vec::new();
                    run(plan, cx, &mut |_, row| {
                        rows.push(row.iter().cloned().map(crate::expr::eval::own).collect());
                        Ok(Flow::Continue)
                    })?;
                    let rows = Rc::new(rows);
                    if outer_slots.is_empty() {
                        cx.subqueries[*id] = SubqueryState::Table(rows.clone());
                    }
                    rows
                }
            };
            push_rows(&rows, scan.slot, filter, cx, joined)
        }
        NodeSource::Virtual { table, filter, id } => {
            let rows = match kept(cx, *id) {
                Some(rows) => rows,
                None => {
                    let rows: Vec<Rc<[Value]>> = table.rows(cx)?.into_iter().map(Rc::from).collect();
                    let rows = Rc::new(rows);
                    cx.subqueries[*id] = SubqueryState::Table(rows.clone());
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
fn kept(cx: &Exec<'_>, id: usize) -> Option<Rc<Vec<Rc<[Value]>>>> {
    match &cx.subqueries[id] {
        SubqueryState::Table(rows) => Some(rows.clone()),
        _ => None,
    }
}

fn push_rows(
    rows: &Rc<Vec<Rc<[Value]>>>,
    slot: u16,
    filter: &[Expr],
    cx: &mut Exec<'_>,
    joined: &mut Joined<'_>,
) -> ExecResult<Flow> {
    for row in rows.iter() {
        cx.tick()?;
        cx.frame[usize::from(slot)].row = Row::Values(row.clone());
        if meets(filter, cx)? && joined(cx)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    Ok(Flow::Continue)
}

/// Looks a kept table up; reads it first if that has not been done.
fn run_kept(scan: &ScanNode, keep: &Keep, cx: &mut Exec<'_>, joined: &mut Joined<'_>) -> ExecResult<Flow> {
    let kept = match &cx.subqueries[keep.id] {
        SubqueryState::Kept(kept) => Some(kept.clone()),
        _ => None,
    };
    let kept = match kept {
        Some(kept) => kept,
        None => {
            let mut kept = KeptRows::default();
            read(scan, None, cx, &mut |cx| {
                if let Some(key) = kept_key(&keep.own, &keep.collations, cx)? {
                    let row = cx.frame[usize::from(scan.slot)].row.clone();
                    kept.rows.entry(key.into()).or_default().push(row);
                }
                Ok(Flow::Continue)
            })?;
            let kept = Rc::new(kept);
            cx.subqueries[keep.id] = SubqueryState::Kept(kept.clone());
            kept
        }
    };
    let Some(key) = kept_key(&keep.probe, &keep.collations, cx)? else { return Ok(Flow::Continue) };
    let Some(rows) = kept.rows.get(&key[..]) else { return Ok(Flow::Continue) };
    for row in rows {
        cx.tick()?;
        cx.frame[usize::from(scan.slot)].row = row.clone();
        if meets(&keep.filter, cx)? && joined(cx)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    Ok(Flow::Continue)
}

/// The key of a kept row; `None` if a part is NULL, which equals nothing.
fn kept_key(parts: &[Expr], collations: &[u16], cx: &mut Exec<'_>) -> ExecResult<Option<Vec<u8>>> {
    let mut key = Vec::new();
    for (part, collation) in parts.iter().zip(collations) {
        match part.eval(cx)? {
            Value::Null => return Ok(None),
            value => hash_key::write(&value, *collation, &mut key),
        }
    }
    Ok(Some(key))
}
