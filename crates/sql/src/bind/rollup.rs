//! WITH ROLLUP: what is grouped by is NULL in the rows that sum up, so expressions behind the grouping read it from a slot of its
//! own, and GROUPING() says which of it is.

use super::scope::{Scope, same};
use crate::error::{SqlError, SqlResult};
use crate::expr::node::ArithOp;
use crate::expr::{Expr, ExprType, Kind, SlotSet};
use crate::logical::window::Windows;
use omnibus_parser::ast;
use omnibus_value::Value;
use std::sync::Arc;

/// The output that a member of GROUP BY names: the one of its name, of several that are the same, for each is NULL by itself.
pub(super) fn output_of(item: &ast::Expr, key: &Expr, names: &[Arc<str>], outputs: &[Expr]) -> Option<usize> {
    let alike = |at: &usize| {
        outputs[*at].same(key) || key.as_const().is_some() && outputs[*at].as_const() == key.as_const()
    };
    let named = match item {
        ast::Expr::Column(column) if column.table().is_none() => {
            (0..outputs.len()).find(|at| same(&names[*at], &column.name) && alike(at))
        }
        _ => None,
    };
    named.or_else(|| (0..outputs.len()).find(|at| outputs[*at].same(key)))
}

/// Has the outputs that are constants and grouped by read `slot`, and HAVING and ORDER BY by their aliases: a constant by
/// itself would be folded into what it stands in, and be no NULL in the rows that sum up.
pub(super) fn read_constants(
    scope: &mut Scope,
    outputs: &mut [Expr],
    names: &[Arc<str>],
    named: &[Option<usize>],
    slot: u16,
) {
    for (key, at) in named.iter().enumerate() {
        let Some(output) = at.and_then(|at| outputs.get_mut(at)) else { continue };
        let (Some(name), true) = (at.and_then(|at| names.get(at)), output.as_const().is_some()) else {
            continue;
        };
        let read = key_of(slot, key, output.ty.clone().nullable(true));
        let constant = std::mem::replace(output, read.clone());
        for (alias, e) in &mut scope.aliases {
            if same(alias, name) && e.as_const() == constant.as_const() {
                *e = read.clone();
            }
        }
        scope.constants.push((name.clone(), constant));
    }
}

/// A key as the rows of a rolled-up group have it; behind the keys are numbers that say which are summed up.
fn key_of(slot: u16, at: usize, ty: ExprType) -> Expr {
    Expr { kind: Kind::Column { slot, column: at as u16, utc: false }, ty }
}

/// The place of a key among those that are grouped by.
fn place_of(e: &Expr, group: &[Expr], rolled_up: Option<u16>) -> Option<usize> {
    match e.kind {
        Kind::Column { slot, column, .. } if Some(slot) == rolled_up => Some(usize::from(column)),
        _ => group.iter().position(|key| key.same(e)),
    }
}

/// Has each output that a member of GROUP BY names read that one, and all others what `put` says.
///
/// # Errors
/// Those of `put`.
pub(super) fn replace_outputs(
    outputs: &mut [Expr],
    named: &[Option<usize>],
    slot: u16,
    put: &mut dyn FnMut(&mut Expr) -> SqlResult<()>,
) -> SqlResult<()> {
    for (at, output) in outputs.iter_mut().enumerate() {
        match named.iter().position(|own| *own == Some(at)) {
            Some(key) => {
                *output = key_of(slot, key, output.ty.clone().nullable(true));
            }
            None => put(output)?,
        }
    }
    Ok(())
}

/// Makes the grouping expressions nullable, if the query rolls up.
pub(super) fn make_nullable(
    select: &ast::Select,
    group: &[Expr],
    named: &[Option<usize>],
    outputs: &mut [Expr],
) {
    if !select.with_rollup {
        return;
    }
    for (at, output) in outputs.iter_mut().enumerate() {
        if named.contains(&Some(at)) || group.iter().any(|key| key.same(output)) {
            output.ty.nullable = true;
        }
    }
}

/// Checks what GROUPING() is asked for in a block's expressions and windows.
///
/// # Errors
/// Those of `check_grouping`.
pub(super) fn check_groupings<'e>(
    mut told: impl Iterator<Item = &'e mut Expr>,
    windows: Option<&mut Windows>,
    group: &[Expr],
    rolled_up: Option<u16>,
) -> SqlResult<()> {
    let mut check = |e: &mut Expr| check_grouping(e, group, rolled_up);
    told.try_for_each(&mut check)?;
    windows.map_or(Ok(()), |windows| windows.try_visit_mut(&mut check))
}

/// Checks what GROUPING() is asked for; where nothing is rolled up it is 0.
///
/// # Errors
/// 1111 where nothing is grouped by, 1210 for a constant, 3602 for what is not grouped by.
fn check_grouping(e: &mut Expr, group: &[Expr], rolled_up: Option<u16>) -> SqlResult<()> {
    if let Kind::Call(def, args) = &e.kind
        && def.name == "GROUPING"
    {
        if group.is_empty() {
            return Err(SqlError::invalid_group_func_use());
        }
        for (number, arg) in args.iter().enumerate() {
            if arg.as_const().is_some() {
                return Err(SqlError::wrong_arguments("GROUPING function"));
            }
            if place_of(arg, group, rolled_up).is_none() {
                let message = format!("Argument #{} of GROUPING function is not in GROUP BY", number + 1);
                return Err(SqlError::new(3602, b"HY000", message));
            }
        }
        if rolled_up.is_none() {
            *e = Expr::constant(Value::Int(0), e.ty.clone().nullable(false));
        }
        return Ok(());
    }
    let mut checked = Ok(());
    e.children_mut(&mut |child| {
        if checked.is_ok() {
            checked = check_grouping(child, group, rolled_up);
        }
    });
    checked
}

/// Has an expression read what is grouped by from `slot`; `own` are the slots of the block's tables.
///
/// # Errors
/// 3602: an argument of GROUPING() that is not grouped by; 1235: a subquery that reads what is summed up.
pub(super) fn replace(e: &mut Expr, group: &[Expr], slot: u16, own: &SlotSet) -> SqlResult<()> {
    if let Some(at) = group.iter().position(|key| key.same(e)) {
        *e = key_of(slot, at, e.ty.clone().nullable(true));
        return Ok(());
    }
    match &e.kind {
        Kind::Call(def, args) if def.name == "GROUPING" => {
            let mut bits: Option<Expr> = None;
            for (number, arg) in args.iter().enumerate() {
                let Some(at) = place_of(arg, group, Some(slot)) else {
                    let message = format!("Argument #{} of GROUPING function is not in GROUP BY", number + 1);
                    return Err(SqlError::new(3602, b"HY000", message));
                };
                let bit = key_of(slot, group.len() + at, ExprType::bigint());
                let both = |op, a: Expr, b: Expr| Expr {
                    kind: Kind::Arith(op, Box::new([a, b])),
                    ty: ExprType::bigint(),
                };
                bits = Some(match bits {
                    None => bit,
                    Some(before) => both(ArithOp::Add, both(ArithOp::Mul, before, Expr::integer(2)), bit),
                });
            }
            if let Some(bits) = bits {
                *e = bits;
            }
            return Ok(());
        }
        Kind::Subquery(subquery) if subquery.outer_slots.meets(own) => {
            return Err(SqlError::not_supported_yet(
                "WITH ROLLUP and a subquery that reads a column of its query",
            ));
        }
        _ => {}
    }
    let mut done = Ok(());
    e.children_mut(&mut |child| {
        if done.is_ok() {
            done = replace(child, group, slot, own);
        }
    });
    done
}
