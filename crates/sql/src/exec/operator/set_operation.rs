//! UNION, INTERSECT, EXCEPT, and queries in parentheses.
//!
//! Operands are read one after another, and rows go on as they come; what must be known of earlier rows is in
//! [`crate::rows`].

use super::limit::Bounds;
use super::{Consumer, query};
use crate::error::ExecResult;
use crate::expr::types::Family;
use crate::expr::{Context, Expr, ExprType, Kind, cast, eval, hash_key};
use crate::logical::SetOperation;
use crate::plan::QueryPlan;
use crate::plan::physical::Compound;
use crate::rows::Flow;
use crate::rows::codec;
use crate::rows::distinct::{Distinct, Seen};
use crate::rows::matching::{Matches, Rule};
use bytes::Bytes;
use omnibus_value::Value;
use omnibus_value::text::{digits, write_f64_within};

/// Takes the rows of an operand, as the common types.
pub(super) type Each<'e> = dyn FnMut(&mut Context<'_>, Vec<Value>) -> ExecResult<Flow> + 'e;

/// The key by which rows are equal.
pub(super) fn key_of(row: &[Value], types: &[ExprType]) -> Vec<u8> {
    let mut key = Vec::new();
    for (value, ty) in row.iter().zip(types) {
        hash_key::write(value, ty.column.collation, &mut key);
    }
    key
}

/// Gives all rows of an operand. Says whether `each` has had enough: a LIMIT of the operand's own also stops it.
pub(super) fn operand(
    plan: &QueryPlan,
    types: &[ExprType],
    cx: &mut Context<'_>,
    each: &mut Each<'_>,
) -> ExecResult<Flow> {
    let mut flow = Flow::Continue;
    query::run(plan, cx, &mut |cx, row| {
        let row = fit(row, plan, types, cx);
        flow = each(cx, row)?;
        Ok(flow)
    })?;
    Ok(flow)
}

fn fit(row: &[Value], plan: &QueryPlan, types: &[ExprType], cx: &mut Context<'_>) -> Vec<Value> {
    // It no longer holds on to row images.
    let mut row: Vec<Value> = row.iter().cloned().map(eval::own).collect();
    for ((value, from), to) in row.iter_mut().zip(&plan.types).zip(types) {
        if let Some(text) = number_as_kept(value, to) {
            *value = text;
        } else if from.column != to.column {
            let e = Expr { kind: Kind::Const(Value::Null), ty: from.clone() };
            *value = cast::fit_common(&e, std::mem::take(value), to, cx);
        }
        if let Value::Decimal(d) = value {
            *d = d.as_shown();
        }
    }
    row
}

/// A number as the text that a column of the result's type keeps of it: bits as their number, and a double as what has room,
/// whatever its own digits.
fn number_as_kept(value: &Value, to: &ExprType) -> Option<Value> {
    if to.family() != Family::String {
        return None;
    }
    let n = match value {
        Value::Bit(n) => return Some(Value::Bytes(Bytes::copy_from_slice(digits(*n, &mut [0; 20])))),
        Value::Double(n) => *n,
        Value::Float(n) => f64::from(*n),
        _ => return None,
    };
    if to.column.kind.is_lob() {
        return None;
    }
    let mut text = Vec::with_capacity(24);
    write_f64_within(n, to.column.length as usize, &mut text);
    Some(Value::Bytes(text.into()))
}

/// Runs a set operation.
pub(super) fn run(
    compound: &Compound,
    mut bounds: Bounds,
    cx: &mut Context<'_>,
    out: &mut Consumer<'_>,
) -> ExecResult<Flow> {
    operands(compound, compound.rest.len(), cx, &mut |cx, row| bounds.give(&row, cx, out))
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
