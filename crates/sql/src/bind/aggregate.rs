//! Calls of aggregate functions.

use super::Binder;
use super::block::{BlockScope, OuterReads};
use super::calls::{in_one_charset, in_utf8};
use super::compare;
use super::leaf;
use super::operators::as_text;
use super::windows;
use crate::api::sql_mode;
use crate::error::{SqlError, SqlResult};
use crate::expr::functions::aggregate::{self, AggregateSpec};
use crate::expr::node::{Expr, Kind};
use crate::expr::slot_set::SlotSet;
use crate::expr::types::ExprType;
use omnibus_parser::ast::{self, AggregateKind};
use omnibus_value::{ColumnKind, Value};

pub(super) fn aggregate(binder: &mut Binder<'_>, call: &ast::Aggregate) -> SqlResult<Expr> {
    if let Some(over) = &call.over {
        return windows::windowed_aggregate(binder, call, over);
    }
    let outer: Vec<OuterReads> = binder.blocks.iter().map(|block| block.outer.clone()).collect();
    let was_inside = set_in_aggregate(binder, true);
    let bound = aggregate_operands(binder, call);
    set_in_aggregate(binder, was_inside);
    let (args, mut order) = bound?;
    // The servers find what is distinct in a tree, and show it in its order.
    if call.kind == AggregateKind::GroupConcat && call.distinct && order.is_empty() {
        order.extend(args.iter().map(|e| (e.clone(), false)));
    }
    let args = aggregate_args(binder, call.kind, args)?;
    let at = aggregating_block(binder, args.iter().chain(order.iter().map(|(e, _)| e)))?;
    // What is read for an aggregate of an outer block is that block's to read.
    for (block, before) in binder.blocks.iter_mut().zip(outer).skip(at + 1) {
        block.outer = before;
    }
    let ty = aggregate::result_type(call.kind, &args, &binder.context())?;
    let limit = match &call.limit {
        Some(limit) => {
            let count = binder.expr(&limit.count)?;
            let count = binder.evaluate(&count);
            match count {
                Some(Value::Int(n)) => usize::try_from(n).ok(),
                _ => None,
            }
        }
        None => None,
    };
    let separator = separator(binder, call.separator.as_ref(), &ty)?;
    let spec = AggregateSpec {
        kind: call.kind,
        distinct: call.distinct,
        args,
        ty: ty.clone(),
        order,
        separator,
        limit,
    };
    let slot = match binder.blocks[at].aggregate_slot {
        Some(slot) => slot,
        None => binder.new_slot(),
    };
    let block = &mut binder.blocks[at];
    block.aggregate_slot = Some(slot);
    block.aggregates.push(spec);
    let column = (block.aggregates.len() - 1) as u16;
    let result = Expr { kind: Kind::Column { slot, column, utc: false }, ty };
    binder.blocks[at + 1..].iter_mut().for_each(|inner| inner.outer.add(&result));
    Ok(result)
}

/// The text that GROUP_CONCAT puts between values, in the character set of its result.
fn separator(
    binder: &mut Binder<'_>,
    written: Option<&bytes::Bytes>,
    ty: &ExprType,
) -> SqlResult<bytes::Bytes> {
    let comma = bytes::Bytes::from_static(b",");
    let Some(written) = written.filter(|text| !text.is_ascii()) else {
        return Ok(written.cloned().unwrap_or(comma));
    };
    let literal = leaf::literal(binder, &ast::Literal::Str(written.clone()))?;
    match compare::in_collation(binder, literal, ty.column.collation).as_const() {
        Some(Value::Bytes(text)) => Ok(text.clone()),
        _ => Ok(written.clone()),
    }
}

/// Arguments as the aggregate takes them.
pub(super) fn aggregate_args(
    binder: &mut Binder<'_>,
    kind: AggregateKind,
    args: Vec<Expr>,
) -> SqlResult<Vec<Expr>> {
    if let AggregateKind::JsonArrayAgg | AggregateKind::JsonObjectAgg = kind {
        return Ok(args.into_iter().map(|arg| in_utf8(binder, arg)).collect());
    }
    // Labels come in the order of their text, not of their numbers.
    let labels = |e: &Expr| matches!(e.ty.column.kind, ColumnKind::Enum | ColumnKind::Set);
    Ok(match kind {
        AggregateKind::Min | AggregateKind::Max => {
            args.into_iter().map(|arg| if labels(&arg) { as_text(arg) } else { arg }).collect()
        }
        AggregateKind::GroupConcat => in_one_charset(binder, args, "group_concat")?,
        _ => args,
    })
}

/// The block that computes an aggregate: the innermost one whose columns its arguments read, or the next one further in
/// where an aggregate may stand; without columns, the block it is written in, or in MySQL the next one further out where it may stand.
fn aggregating_block<'e>(binder: &Binder<'_>, args: impl Iterator<Item = &'e Expr>) -> SqlResult<usize> {
    let innermost = binder.blocks.len().checked_sub(1).ok_or_else(SqlError::invalid_group_func_use)?;
    let mut slots = SlotSet::default();
    args.for_each(|e| slots.extend(&e.slots()));
    let owns = |block: &BlockScope| {
        block.scope.tables.iter().any(|table| slots.contains(table.slot))
            || block.aggregate_slot.is_some_and(|slot| slots.contains(slot))
    };
    let allowed = |at: &usize| binder.blocks[*at].aggregates_allowed;
    // As the standard has it: the block that it is written in computes none of what outer ones have.
    let ansi = !binder.session.settings.mariadb && binder.session.settings.sql_mode & sql_mode::ANSI != 0;
    let found = match binder.blocks.iter().rposition(owns) {
        Some(owner) if ansi && owner < innermost => (owner..innermost).find(allowed),
        Some(owner) => (owner..=innermost).find(allowed),
        None if binder.session.settings.mariadb => Some(innermost).filter(allowed),
        None => (0..=innermost).rev().find(allowed),
    };
    let at = found.ok_or_else(SqlError::invalid_group_func_use)?;
    let block = &binder.blocks[at];
    if block.in_aggregate || block.aggregate_slot.is_some_and(|slot| slots.contains(slot)) {
        return Err(SqlError::invalid_group_func_use());
    }
    Ok(at)
}

/// Says whether an aggregate's arguments are bound now, and whether they were before.
fn set_in_aggregate(binder: &mut Binder<'_>, inside: bool) -> bool {
    binder.blocks.last_mut().is_some_and(|block| std::mem::replace(&mut block.in_aggregate, inside))
}

#[allow(clippy::type_complexity)]
fn aggregate_operands(
    binder: &mut Binder<'_>,
    call: &ast::Aggregate,
) -> SqlResult<(Vec<Expr>, Vec<(Expr, bool)>)> {
    let mut args = Vec::with_capacity(call.args.len());
    for arg in &call.args {
        args.push(binder.expr(arg)?);
    }
    let mut order = Vec::with_capacity(call.order_by.len());
    for item in &call.order_by {
        let e = match super::query::position(&item.expr, args.len(), "order clause")? {
            Some(at) => args[at].clone(),
            None => binder.expr(&item.expr)?,
        };
        order.push((e, item.descending));
    }
    Ok((args, order))
}
