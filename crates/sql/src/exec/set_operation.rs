//! UNION, INTERSECT, EXCEPT, queries in parentheses, and WITH RECURSIVE.
//!
//! Operands are read one after another, and rows go on as they come; what must be known of earlier rows is in `exec`.

use super::order::{Sorter, owned};
use super::run::{Consumer, Flow, limit_of, run as run_query};
use crate::error::{ExecResult, SqlError};
use crate::expr::subquery::SubqueryState;
use crate::expr::{Context, Expr, ExprType, Kind, Row, cast, hash_key};
use crate::logical::SetOperation;
use crate::memory::Account;
use crate::plan::tree::{Compound, QueryPlan, Recursive};
use crate::rows::codec;
use crate::rows::collected::{Rows, RowsBuilder};
use crate::rows::distinct::{Distinct, KEY_COST, Seen};
use crate::rows::matching::{Matches, Rule};
use foldhash::fast::RandomState;
use omnibus_value::Value;
use std::collections::HashSet;
use std::rc::Rc;

/// Takes the rows of an operand, as the common types.
type Each<'e> = dyn FnMut(&mut Context<'_>, Vec<Value>) -> ExecResult<Flow> + 'e;

fn key_of(row: &[Value], types: &[ExprType]) -> Vec<u8> {
    let mut key = Vec::new();
    for (value, ty) in row.iter().zip(types) {
        hash_key::write(value, ty.column.collation, &mut key);
    }
    key
}

/// Gives all rows of an operand. Says whether `each` has had enough: a LIMIT of the operand's own also stops it.
fn operand(
    plan: &QueryPlan,
    types: &[ExprType],
    cx: &mut Context<'_>,
    each: &mut Each<'_>,
) -> ExecResult<Flow> {
    let mut flow = Flow::Continue;
    run_query(plan, cx, &mut |cx, row| {
        let row = fit(row, plan, types, cx);
        flow = each(cx, row)?;
        Ok(flow)
    })?;
    Ok(flow)
}

fn fit(row: &[Value], plan: &QueryPlan, types: &[ExprType], cx: &mut Context<'_>) -> Vec<Value> {
    let mut row = owned(row);
    for ((value, from), to) in row.iter_mut().zip(&plan.types).zip(types) {
        if from.column != to.column {
            let e = Expr { kind: Kind::Const(Value::Null), ty: from.clone() };
            *value = cast::fit_common(&e, std::mem::take(value), to, cx);
        }
        if let Value::Decimal(d) = value {
            *d = d.as_shown();
        }
    }
    row
}

/// Runs a set operation.
pub(super) fn run(compound: &Compound, cx: &mut Context<'_>, out: &mut Consumer<'_>) -> ExecResult<Flow> {
    let mut limits = limit_of(&compound.limit, cx)?;
    if limits.count == 0 {
        return Ok(Flow::Continue);
    }
    if compound.order.is_empty() {
        return operands(compound, compound.rest.len(), cx, &mut |cx, row| {
            if limits.offset > 0 {
                limits.offset -= 1;
                cx.skipped += 1;
                return Ok(Flow::Continue);
            }
            limits.count -= 1;
            let enough = out(cx, &row)? == Flow::Stop || limits.count == 0;
            Ok(if enough { Flow::Stop } else { Flow::Continue })
        });
    }
    let types: Vec<&ExprType> = compound.types.iter().collect();
    let mut sorter = Sorter::of_rows(&compound.order, limits, &types, cx);
    operands(compound, compound.rest.len(), cx, &mut |cx, row| {
        cx.frame[usize::from(compound.slot)].row = Row::Values(row.clone().into());
        sorter.add_row(row, cx)?;
        Ok(Flow::Continue)
    })?;
    sorter.finish(cx, out)
}

/// Gives the rows of the first operand and the `count` operations behind it.
fn operands(
    compound: &Compound,
    count: usize,
    cx: &mut Context<'_>,
    each: &mut Each<'_>,
) -> ExecResult<Flow> {
    cx.check_stack()?;
    let types = &compound.types;
    let Some(before) = count.checked_sub(1) else { return operand(&compound.left, types, cx, each) };
    let (op, plan) = &compound.rest[before];
    match op {
        SetOperation::UnionAll => match operands(compound, before, cx, each)? {
            Flow::Continue => operand(plan, types, cx, each),
            Flow::Stop => Ok(Flow::Stop),
        },
        SetOperation::Union => {
            distinct(types, cx, each, &mut |cx, each| match operands(compound, before, cx, each)? {
                Flow::Continue => operand(plan, types, cx, each),
                Flow::Stop => Ok(Flow::Stop),
            })
        }
        SetOperation::Intersect(all) | SetOperation::Except(all) => {
            let rule = Rule { wants_match: matches!(op, SetOperation::Intersect(_)), all: *all };
            let mut matching = |cx: &mut Context<'_>, each: &mut Each<'_>| {
                let mut matches = Matches::new(rule, cx);
                operand(plan, types, cx, &mut |cx, row| {
                    matches.count(&key_of(&row, types), cx)?;
                    Ok(Flow::Continue)
                })?;
                let flow = operands(compound, before, cx, &mut |cx, row| match matches
                    .passes(&key_of(&row, types), &row)?
                {
                    Some(true) => each(cx, row),
                    _ => Ok(Flow::Continue),
                })?;
                if flow == Flow::Stop { Ok(flow) } else { matches.finish(cx, each) }
            };
            if *all { matching(cx, each) } else { distinct(types, cx, each, &mut matching) }
        }
    }
}

/// Gives each of the rows that `rows` gives once.
fn distinct(
    types: &[ExprType],
    cx: &mut Context<'_>,
    each: &mut Each<'_>,
    rows: &mut dyn FnMut(&mut Context<'_>, &mut Each<'_>) -> ExecResult<Flow>,
) -> ExecResult<Flow> {
    let mut distinct = Distinct::new(cx);
    let flow = rows(cx, &mut |cx, row| match distinct.add(
        &key_of(&row, types),
        |out| codec::write_values(&row, out),
        cx,
    )? {
        Seen::First => each(cx, row),
        _ => Ok(Flow::Continue),
    })?;
    if flow == Flow::Stop { Ok(flow) } else { distinct.finish(cx, each) }
}

/// The rows of a recursive common table expression that were found before. They stay in memory: each step asks for them.
struct Found {
    rows: HashSet<Box<[u8]>, RandomState>,
    account: Account,
}

impl Found {
    fn is_new(&mut self, row: &[Value], types: &[ExprType], cx: &Context<'_>) -> ExecResult<bool> {
        let key = key_of(row, types);
        if self.rows.contains(&key[..]) {
            return Ok(false);
        }
        self.account.grow(key.len() + KEY_COST, &cx.session.settings)?;
        Ok(self.rows.insert(key.into()))
    }
}

/// Runs a recursive common table expression.
pub(super) fn run_recursive(
    recursive: &Recursive,
    cx: &mut Context<'_>,
    out: &mut Consumer<'_>,
) -> ExecResult<Flow> {
    let mut found = recursive
        .distinct
        .then(|| Found { rows: HashSet::default(), account: Account::new(&cx.session.memory) });
    let mut rows = step(&recursive.seeds, recursive, &mut found, cx)?;
    let most = cx.session.settings.cte_max_recursion_depth;
    for _ in 0..=most {
        if rows.is_empty() {
            cx.subqueries[recursive.id] = SubqueryState::Unknown;
            return Ok(Flow::Continue);
        }
        let mut reader = rows.read();
        while let Some(row) = reader.next_row()? {
            if out(cx, &row)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        cx.storage.check_killed()?;
        cx.subqueries[recursive.id] = SubqueryState::Table(rows);
        rows = step(&recursive.steps, recursive, &mut found, cx)?;
    }
    Err(SqlError::new(
        3636,
        b"HY000",
        format!("Recursive query aborted after {} iterations. Try increasing @@cte_max_recursion_depth to a larger value.", most.saturating_add(1)),
    )
    .into())
}

/// What these parts yield that was not found before.
fn step(
    parts: &[QueryPlan],
    recursive: &Recursive,
    found: &mut Option<Found>,
    cx: &mut Context<'_>,
) -> ExecResult<Rc<Rows>> {
    let types = &recursive.types;
    let mut rows = RowsBuilder::new(cx);
    for plan in parts {
        operand(plan, types, cx, &mut |cx, row| {
            let new = match found {
                None => true,
                Some(found) => found.is_new(&row, types, cx)?,
            };
            if new {
                rows.push(row.into(), cx)?;
            }
            Ok(Flow::Continue)
        })?;
    }
    Ok(Rc::new(rows.finish()?))
}
