//! GROUP BY and aggregates: groups by hash key, then HAVING, ORDER BY, LIMIT over the groups.

use super::order::Sorter;
use super::plan::{Block, Grouping};
use super::run::{Consumer, Emitter, Flow, Window, accepts_having, join};
use crate::error::ExecResult;
use crate::expr::{Exec, Row, eval, hash_key};
use crate::functions::aggregate::Accumulator;
use omnibus_value::Value;
use std::collections::HashMap;
use std::rc::Rc;

/// One group: the rows that stand for it, and what it has gathered.
struct Group {
    rows: Vec<Row>,
    accumulators: Vec<Accumulator>,
}

fn start(grouping: &Grouping, cx: &Exec<'_>) -> Group {
    Group {
        rows: grouping.row_slots.iter().map(|slot| cx.frame[usize::from(*slot)].row.clone()).collect(),
        accumulators: grouping.aggregates.iter().map(|spec| spec.start()).collect(),
    }
}

/// Runs a block with grouping.
pub(super) fn run(
    block: &Block,
    grouping: &Grouping,
    window: Window,
    cx: &mut Exec<'_>,
    out: &mut Consumer<'_>,
) -> ExecResult<Flow> {
    let groups = if grouping.keys.is_empty() {
        vec![single(block, grouping, cx)?]
    } else {
        gather(block, grouping, cx)?
    };
    if block.order.is_empty() {
        let mut emitter = Emitter::new(block, window);
        for group in groups {
            cx.tick()?;
            enter(group, grouping, cx);
            if accepts_having(block, cx)? && emitter.emit(&block.outputs, cx, out)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        return Ok(Flow::Continue);
    }
    let mut sorter = Sorter::new(block, window);
    for group in groups {
        cx.tick()?;
        enter(group, grouping, cx);
        if accepts_having(block, cx)? {
            sorter.add(&block.outputs, cx)?;
        }
    }
    sorter.finish(cx, out)
}

/// Everything is one group, even if there are no rows.
fn single(block: &Block, grouping: &Grouping, cx: &mut Exec<'_>) -> ExecResult<Group> {
    let mut group: Option<Group> = None;
    join(block, None, cx, &mut |cx| {
        if group.is_none() {
            group = Some(start(grouping, cx));
        }
        if let Some(group) = &mut group {
            for (accumulator, spec) in group.accumulators.iter_mut().zip(&grouping.aggregates) {
                accumulator.add(spec, cx)?;
            }
            if grouping.first_only && group.accumulators[0].has_value() {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Continue)
    })?;
    Ok(group.unwrap_or_else(|| Group {
        rows: grouping.row_slots.iter().map(|_| Row::Nulls).collect(),
        accumulators: grouping.aggregates.iter().map(|spec| spec.start()).collect(),
    }))
}

fn gather(block: &Block, grouping: &Grouping, cx: &mut Exec<'_>) -> ExecResult<Vec<Group>> {
    let mut places: HashMap<Box<[u8]>, usize> = HashMap::new();
    let mut groups: Vec<Group> = Vec::new();
    let mut key = Vec::new();
    join(block, None, cx, &mut |cx| {
        key.clear();
        for e in &grouping.keys {
            let value = e.eval(cx)?;
            hash_key::write(&value, e.ty.column.collation, &mut key);
        }
        let at = match places.get(&key[..]) {
            Some(at) => *at,
            None => {
                groups.push(start(grouping, cx));
                places.insert(key.clone().into(), groups.len() - 1);
                groups.len() - 1
            }
        };
        for (accumulator, spec) in groups[at].accumulators.iter_mut().zip(&grouping.aggregates) {
            accumulator.add(spec, cx)?;
        }
        Ok(Flow::Continue)
    })?;
    Ok(groups)
}

/// Puts a group into the frame: its rows, and its results in the aggregates' slot.
fn enter(group: Group, grouping: &Grouping, cx: &mut Exec<'_>) {
    for (slot, row) in grouping.row_slots.iter().zip(group.rows) {
        cx.frame[usize::from(*slot)].row = row;
    }
    let Some(slot) = grouping.slot else { return };
    let mut results: Vec<Value> = Vec::with_capacity(grouping.aggregates.len());
    for (accumulator, spec) in group.accumulators.into_iter().zip(&grouping.aggregates) {
        results.push(eval::own(accumulator.finish(spec, cx)));
    }
    cx.frame[usize::from(slot)].row = Row::Values(Rc::from(results));
}
