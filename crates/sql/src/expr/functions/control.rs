//! Choosing among values: IF, IFNULL, NULLIF, COALESCE, GREATEST, LEAST, INTERVAL.

use super::{Def, MANY, ty};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::types::{Family, column_type};
use crate::expr::unify::unify;
use crate::expr::{BindContext, Context, Expr, ExprType, Kind, cast, compare, json};
use bytes::Bytes;
use omnibus_value::temporal::{Date, DateMode, DateTime};
use omnibus_value::{ColumnKind, Value};
use std::cmp::Ordering;

pub(super) const DEFS: &[Def] = &[
    Def::new("IF", 3, 3, if_type, if_),
    Def::new("IFNULL", 2, 2, ifnull_type, coalesce),
    Def::new("NULLIF", 2, 2, first_type, nullif),
    Def::new("COALESCE", 1, MANY, coalesce_type, coalesce),
    Def::new("ANY_VALUE", 1, 1, |args, _| Ok(args[0].ty.clone()), any_value),
    Def::new("ISNULL", 1, 1, |_, _| Ok(ExprType::boolean()), is_null),
    Def::collating("GREATEST", 2, MANY, all_type, greatest),
    Def::collating("LEAST", 2, MANY, all_type, least),
    Def::new("INTERVAL", 2, MANY, |_, _| Ok(ExprType::int(2)), interval),
    Def::new("GROUPING", 1, 64, ty::int, grouping),
];

fn unify_all(args: &[Expr], name: &str) -> SqlResult<ExprType> {
    let mut ty = args[0].ty.clone().as_chosen();
    for arg in &args[1..] {
        ty = unify(&ty, &arg.ty, name)?;
    }
    Ok(ty)
}

fn if_type(args: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
    unify_all(&args[1..], "if")
}

fn ifnull_type(args: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
    let nullable = args[0].ty.nullable && args[1].ty.nullable;
    Ok(unify_all(args, "ifnull")?.nullable(nullable))
}

fn coalesce_type(args: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
    let nullable = args.iter().all(|a| a.ty.nullable);
    let mut ty = unify_all(args, "coalesce")?.nullable(nullable);
    if ty.is_binary_literal() {
        // It gives bytes, and no number where one is wanted.
        ty.column.kind = ColumnKind::VarBinary;
    }
    Ok(ty)
}

fn all_type(args: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
    let is = |family: fn(&ExprType) -> bool| args.iter().any(|arg| family(&arg.ty));
    // Text beside a date may be none.
    let dates_of_text = is(ExprType::is_temporal) && is(|ty| ty.family() == Family::String);
    let nullable = ty::any_null(args) || dates_of_text;
    let mut found = unify_all(args, "greatest")?.nullable(nullable);
    // Documents have no order here: their texts have.
    if found.family() == Family::Json {
        found.column = column_type(ColumnKind::LongText, false, u32::MAX, 0, json::COLLATION);
    }
    Ok(found)
}

fn first_type(args: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
    Ok(args[0].ty.clone().nullable(true))
}

fn if_(args: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let branch = if args[0].eval_bool(cx)? == Some(true) { &args[1] } else { &args[2] };
    cast::to_common(branch, ty, cx)
}

fn coalesce(args: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    for arg in args {
        let value = arg.eval(cx)?;
        if !matches!(value, Value::Null) {
            return Ok(cast::fit_common(arg, value, ty, cx));
        }
    }
    Ok(Value::Null)
}

/// Its operand's value in a row of the group: what the binder lets pass beside the group.
fn any_value(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    args[0].eval(cx)
}

/// Never called under WITH ROLLUP: the binder makes columns of it.
fn grouping(_: &[Expr], _: &ExprType, _: &mut Context<'_>) -> ExecResult<Value> {
    Err(SqlError::invalid_group_func_use().into())
}

/// Never called: the binder makes a CASE of it.
fn nullif(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    args[0].eval(cx)
}

fn is_null(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    Ok(super::boolean(matches!(args[0].eval(cx)?, Value::Null)))
}

/// Whether arguments are compared as dates: one is a date, and the others are dates, times or text.
fn compares_dates(args: &[Expr]) -> bool {
    let dated = |e: &Expr| matches!(e.ty.family(), Family::Date | Family::DateTime);
    let other = |e: &Expr| {
        e.ty.is_temporal() || e.ty.family() == Family::String || e.ty.column.kind == ColumnKind::Year
    };
    args.iter().any(dated) && args.iter().all(other)
}

/// Whether integers and decimals beside dates are compared as dates, too, which they are where nothing is but these.
fn numbers_are_dates(args: &[Expr]) -> bool {
    let dated = |e: &Expr| matches!(e.ty.family(), Family::Date | Family::DateTime);
    let number = |e: &Expr| {
        matches!(e.ty.family(), Family::Integer | Family::Decimal | Family::Real)
            && e.ty.column.kind != ColumnKind::Bit
    };
    args.iter().any(dated)
        && args.iter().any(number)
        && args.iter().all(|e| e.ty.is_temporal() || e.ty.family() == Family::String || number(e))
}

/// Digits behind the seconds that an argument asks for where dates are compared.
fn shown_decimals(arg: &Expr) -> u8 {
    match (arg.as_const(), arg.ty.family()) {
        (_, Family::Date | Family::DateTime | Family::Time) => arg.ty.column.decimals,
        (Some(Value::Bytes(text)), _) => {
            let fraction = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
            let point = text.len() > fraction && text[text.len() - fraction - 1] == b'.';
            if point { fraction.min(6) as u8 } else { 0 }
        }
        (None, Family::String) => 6,
        _ => 0,
    }
}

/// The text of a date that was compared: without a time if all of them are dates.
fn shown_date(at: &Value, args: &[Expr]) -> Value {
    let timed = args.iter().any(|arg| matches!(arg.ty.family(), Family::DateTime | Family::Time));
    let text = crate::expr::convert::print(at, args.iter().map(shown_decimals).max().unwrap_or(0));
    let length = if timed { text.len() } else { 10 };
    Value::Bytes(Bytes::copy_from_slice(&text[..length]))
}

/// The expressions of which IF or CASE gives one; none of another expression.
pub(crate) fn branches(e: &Expr) -> Vec<&Expr> {
    match &e.kind {
        Kind::Case { whens, otherwise } => {
            whens.iter().map(|(_, result)| result).chain(otherwise.as_deref()).collect()
        }
        Kind::Call(def, args) if def.name == "IF" => args[1..].iter().collect(),
        _ => Vec::new(),
    }
}

/// As `branches`, to change them.
pub(crate) fn branches_mut(e: &mut Expr) -> Vec<&mut Expr> {
    match &mut e.kind {
        Kind::Case { whens, otherwise } => {
            whens.iter_mut().map(|(_, result)| result).chain(otherwise.as_deref_mut()).collect()
        }
        Kind::Call(def, args) if def.name == "IF" => args[1..].iter_mut().collect(),
        _ => Vec::new(),
    }
}

/// The type of the dates that GREATEST or LEAST gives as text, which is what arithmetic computes with.
#[must_use]
pub(crate) fn extreme_date(e: &Expr) -> Option<ExprType> {
    let Kind::Call(def, args) = &e.kind else { return None };
    let extreme = matches!(def.name, "GREATEST" | "LEAST") && e.ty.family() == Family::String;
    let is_date = |arg: &Expr| {
        let known = arg.as_const().is_some_and(is_dated);
        arg.ty.is_temporal() || arg.ty.family() == Family::String || known
    };
    if !extreme || !(compares_dates(args) || numbers_are_dates(args) && args.iter().all(is_date)) {
        return None;
    }
    let timed = args.iter().any(|arg| matches!(arg.ty.family(), Family::DateTime | Family::Time));
    let decimals = args.iter().map(shown_decimals).max().unwrap_or(0);
    let ty = if timed { ExprType::datetime(decimals) } else { ExprType::date() };
    Some(ty.nullable(true))
}

/// Whether this is GREATEST or LEAST of times and numbers, which is text by itself.
#[must_use]
pub(crate) fn is_extreme_time(e: &Expr) -> bool {
    let Kind::Call(def, args) = &e.kind else { return false };
    let number = |e: &Expr| matches!(e.ty.family(), Family::Integer | Family::Decimal | Family::Real);
    let time = |e: &Expr| e.ty.family() == Family::Time;
    matches!(def.name, "GREATEST" | "LEAST")
        && e.ty.family() == Family::String
        && args.iter().any(time)
        && args.iter().all(|arg| time(arg) || number(arg))
}

/// Whether a number is one of a date.
fn is_dated(value: &Value) -> bool {
    match value {
        Value::Int(_) | Value::UInt(_) | Value::Decimal(_) | Value::Float(_) | Value::Double(_) => {
            let read = value.to_datetime(6, DateMode::RELAXED, Date::ZERO).value;
            read.is_some_and(|at| at != DateTime::ZERO)
        }
        _ => true,
    }
}

/// Whether a row's arguments are compared as dates. Numbers are if all of them are dates.
fn are_dates(args: &[Expr], values: &[Value], cx: &Context<'_>) -> bool {
    compares_dates(args)
        || !cx.session.settings.mariadb && numbers_are_dates(args) && values.iter().all(is_dated)
}

fn extreme(args: &[Expr], ty: &ExprType, wanted: Ordering, cx: &mut Context<'_>) -> ExecResult<Value> {
    let mut values = Vec::with_capacity(args.len());
    for arg in args {
        match arg.eval(cx)? {
            Value::Null => return Ok(Value::Null),
            value => values.push(value),
        }
    }
    let text = ty.family() == Family::String && !cx.session.settings.mariadb;
    let dates = are_dates(args, &values, cx);
    let mut best: Option<(Value, Value)> = None;
    for (arg, value) in args.iter().zip(values) {
        let key = match dates {
            true => match arg.to_datetime(&value, cx) {
                Some(at) => Value::DateTime(at),
                None => return Ok(Value::Null),
            },
            false => cast::fit_common(arg, value.clone(), ty, cx),
        };
        let better = match &best {
            None => true,
            Some((found, _)) => compare::values(&key, found, ty.column.collation) == Some(wanted),
        };
        if better {
            let shown = match (dates, &value) {
                (true, Value::Year(_)) => shown_date(&key, args),
                (true, _) if text => shown_date(&key, args),
                (true, _) => cast::fit_common(arg, value, ty, cx),
                (false, _) => key.clone(),
            };
            best = Some((key, shown));
        }
    }
    Ok(best.map_or(Value::Null, |(_, shown)| shown))
}

fn greatest(args: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    extreme(args, ty, Ordering::Greater, cx)
}

fn least(args: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    extreme(args, ty, Ordering::Less, cx)
}

fn interval(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let wanted = match args[0].eval(cx)? {
        Value::Null => return Ok(Value::Int(-1)),
        value => args[0].to_f64(&value, cx),
    };
    let mut place = 0;
    for (at, arg) in args.iter().enumerate().skip(1) {
        match arg.eval_f64(cx)? {
            Some(bound) if bound <= wanted => place = at as i64,
            Some(_) => break,
            None => place = at as i64,
        }
    }
    Ok(Value::Int(place))
}
