//! UNION, INTERSECT, EXCEPT, queries in parentheses, and WITH RECURSIVE.

use super::order::{Sorter, owned};
use super::plan::{Compound, QueryPlan, Recursive, SetOperation};
use super::run::{Consumer, Flow, run as run_query, window};
use super::subquery::SubqueryState;
use crate::error::{ExecResult, SqlError};
use crate::expr::{Exec, Expr, ExprType, Kind, Row, cast, hash_key};
use omnibus_value::Value;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

fn key_of(row: &[Value], types: &[ExprType]) -> Box<[u8]> {
    let mut key = Vec::new();
    for (value, ty) in row.iter().zip(types) {
        hash_key::write(value, ty.column.collation, &mut key);
    }
    key.into()
}

/// All rows of an operand, as the common types.
fn rows_of(plan: &QueryPlan, types: &[ExprType], cx: &mut Exec<'_>) -> ExecResult<Vec<Vec<Value>>> {
    let mut rows = Vec::new();
    run_query(plan, cx, &mut |cx, row| {
        rows.push(fit(row, plan, types, cx));
        Ok(Flow::Continue)
    })?;
    Ok(rows)
}

fn fit(row: &[Value], plan: &QueryPlan, types: &[ExprType], cx: &mut Exec<'_>) -> Vec<Value> {
    let mut row = owned(row);
    for ((value, from), to) in row.iter_mut().zip(&plan.types).zip(types) {
        if from.column != to.column {
            let e = Expr { kind: Kind::Const(Value::Null), ty: from.clone() };
            *value = cast::fit_common(&e, std::mem::take(value), to, cx);
        }
    }
    row
}

/// Runs a set operation.
pub(super) fn run(compound: &Compound, cx: &mut Exec<'_>, out: &mut Consumer<'_>) -> ExecResult<Flow> {
    let limits = window(&compound.limit, cx)?;
    if limits.count == 0 {
        return Ok(Flow::Continue);
    }
    let types = &compound.types;
    let streams =
        compound.order.is_empty() && compound.rest.iter().all(|(op, _)| *op == SetOperation::UnionAll);
    if streams {
        let (mut offset, mut count) = (limits.offset, limits.count);
        // An operand that has reached a LIMIT of its own also says that it stopped.
        let mut enough = false;
        for plan in std::iter::once(&compound.left).chain(compound.rest.iter().map(|(_, plan)| plan)) {
            run_query(plan, cx, &mut |cx, row| {
                if offset > 0 {
                    offset -= 1;
                    cx.skipped += 1;
                    return Ok(Flow::Continue);
                }
                let row = fit(row, plan, types, cx);
                count -= 1;
                enough = out(cx, &row)? == Flow::Stop || count == 0;
                Ok(if enough { Flow::Stop } else { Flow::Continue })
            })?;
            if enough {
                return Ok(Flow::Stop);
            }
        }
        return Ok(Flow::Continue);
    }
    let mut rows = rows_of(&compound.left, types, cx)?;
    for (op, plan) in &compound.rest {
        let more = rows_of(plan, types, cx)?;
        rows = combine(*op, rows, more, types);
    }
    let mut sorter = Sorter::of_rows(&compound.order, limits, compound.left.columns.len());
    for row in rows {
        cx.frame[usize::from(compound.slot)].row = Row::Values(row.clone().into());
        sorter.add_row(row, cx)?;
    }
    sorter.finish(cx, out)
}

fn combine(
    op: SetOperation,
    left: Vec<Vec<Value>>,
    right: Vec<Vec<Value>>,
    types: &[ExprType],
) -> Vec<Vec<Value>> {
    let mut counts: HashMap<Box<[u8]>, usize> = HashMap::new();
    let distinct = |rows: Vec<Vec<Value>>| -> Vec<Vec<Value>> {
        let mut seen = HashSet::new();
        rows.into_iter().filter(|row| seen.insert(key_of(row, types))).collect()
    };
    match op {
        SetOperation::UnionAll => left.into_iter().chain(right).collect(),
        SetOperation::Union => distinct(left.into_iter().chain(right).collect()),
        SetOperation::Intersect(all) | SetOperation::Except(all) => {
            for row in &right {
                *counts.entry(key_of(row, types)).or_default() += 1;
            }
            let keep_found = matches!(op, SetOperation::Intersect(_));
            let kept = left
                .into_iter()
                .filter(|row| match counts.get_mut(&key_of(row, types)) {
                    Some(0) | None => !keep_found,
                    Some(n) => {
                        if all {
                            *n -= 1;
                        }
                        keep_found
                    }
                })
                .collect();
            if all { kept } else { distinct(kept) }
        }
    }
}

/// Runs a recursive common table expression.
pub(super) fn run_recursive(
    recursive: &Recursive,
    cx: &mut Exec<'_>,
    out: &mut Consumer<'_>,
) -> ExecResult<Flow> {
    let types = &recursive.types;
    let mut seen = HashSet::new();
    let mut keep = |rows: Vec<Vec<Value>>| -> Vec<Vec<Value>> {
        if !recursive.distinct {
            return rows;
        }
        rows.into_iter().filter(|row| seen.insert(key_of(row, types))).collect()
    };
    let mut rows = keep(rows_of(&recursive.seed, types, cx)?);
    let most = cx.session.settings.cte_max_recursion_depth;
    for _ in 0..=most {
        if rows.is_empty() {
            cx.subqueries[recursive.id] = SubqueryState::Unknown;
            return Ok(Flow::Continue);
        }
        for row in &rows {
            if out(cx, row)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        cx.storage.check_killed()?;
        let shared: Vec<Rc<[Value]>> = rows.into_iter().map(Rc::from).collect();
        cx.subqueries[recursive.id] = SubqueryState::Table(Rc::new(shared));
        let mut next = Vec::new();
        for step in &recursive.steps {
            next.extend(rows_of(step, types, cx)?);
        }
        rows = keep(next);
    }
    Err(SqlError::new(
        3636,
        b"HY000",
        format!("Recursive query aborted after {} iterations. Try increasing @@cte_max_recursion_depth to a larger value.", most.saturating_add(1)),
    )
    .into())
}
