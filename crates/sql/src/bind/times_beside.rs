//! Dates and times that are compared with values of other types: constants that are none, texts, and parameters.

use super::binder::Binder;
use crate::error::{SqlError, SqlResult};
use crate::expr::node::{Expr, Kind};
use crate::expr::types::{ExprType, Family};
use omnibus_value::temporal::{parse_datetime, parse_time};
use omnibus_value::{ColumnKind, Value};

/// MySQL refuses a constant text beside a date that is none, except in CASE, BETWEEN and among several of IN; MariaDB takes it for the
/// zero date.
///
/// # Errors
/// 1525.
pub(super) fn refuse_no_dates(binder: &Binder<'_>, left: &Expr, right: &Expr) -> SqlResult<()> {
    if let (Kind::Row(a), Kind::Row(b)) = (&left.kind, &right.kind) {
        return a.iter().zip(b).try_for_each(|(a, b)| refuse_no_dates(binder, a, b));
    }
    refuse_no_date(binder, left, right)?;
    refuse_no_date(binder, right, left)
}

fn refuse_no_date(binder: &Binder<'_>, constant: &Expr, date: &Expr) -> SqlResult<()> {
    let settings = &binder.session.settings;
    let (Some(Value::Bytes(text)), Family::Date | Family::DateTime) = (constant.as_const(), date.ty.family())
    else {
        return Ok(());
    };
    if settings.mariadb || settings.replicated || parse_datetime(text, 6, settings.date_mode()).is_ok() {
        return Ok(());
    }
    let kind = match date.ty.column.kind {
        ColumnKind::Date => "DATE",
        ColumnKind::Timestamp => "TIMESTAMP",
        _ => "DATETIME",
    };
    let text = String::from_utf8_lossy(text);
    Err(SqlError::new(1525, b"HY000", format!("Incorrect {kind} value: '{text}'")))
}

/// MySQL compares a time and a text as texts, except a column and a constant that is a time.
pub(super) fn times_as_text(binder: &mut Binder<'_>, left: Expr, right: Expr) -> (Expr, Expr) {
    let time = |e: &Expr| e.ty.family() == Family::Time;
    let text = |e: &Expr| e.ty.family() == Family::String && !e.ty.is_null();
    let is_time = |e: &Expr| matches!(e.as_const(), Some(Value::Bytes(text)) if parse_time(text, 6).is_ok());
    let as_times =
        |time: &Expr, text: &Expr| matches!(time.kind, Kind::Column { .. }) && (is_time(text) || given(text));
    if binder.session.settings.mariadb {
        return (left, right);
    }
    if time(&left) && text(&right) && !as_times(&left, &right) {
        return (time_text(binder, left), right);
    }
    if text(&left) && time(&right) && !as_times(&right, &left) {
        let right = time_text(binder, right);
        return (left, right);
    }
    (left, right)
}

fn time_text(binder: &mut Binder<'_>, time: Expr) -> Expr {
    let ty = ExprType::varchar(17, binder.collation()).nullable(time.ty.nullable);
    binder.fold(Expr { kind: Kind::Cast(Box::new(time)), ty })
}

/// MySQL takes a parameter for what it is compared with: a time, or a date and time. What cannot be one is NULL.
pub(super) fn params_as_times(binder: &Binder<'_>, left: Expr, right: Expr) -> (Expr, Expr) {
    if !types_params(binder) {
        return (left, right);
    }
    let (a, b) = (left.ty.family(), right.ty.family());
    (param_beside(left, b), param_beside(right, a))
}

/// In BETWEEN, and in IN of several, it takes parameters for dates and times beside one of these only: beside a day or a time they are the
/// values that they are. A parameter that is looked for among days is one (`is_sought`: the first operand is what is looked for).
pub(super) fn params_as_datetimes(binder: &Binder<'_>, operands: &mut [Expr], is_sought: bool) {
    let is_param = |e: &Expr| matches!(e.kind, Kind::Param(_));
    let sought = is_sought && operands.first().is_some_and(is_param);
    let typed = operands.iter().filter(|e| !is_param(e)).any(|e| match e.ty.family() {
        Family::DateTime => true,
        family => sought && family == Family::Date,
    });
    if !typed || !types_params(binder) {
        return;
    }
    for e in operands {
        *e = param_beside(std::mem::replace(e, Expr::null()), Family::DateTime);
    }
}

fn types_params(binder: &Binder<'_>) -> bool {
    !binder.session.settings.mariadb && !binder.session.settings.replicated
}

fn param_beside(e: Expr, other: Family) -> Expr {
    let own = e.ty.family();
    let ty = match other {
        Family::Time if own != Family::Time => ExprType::time(6),
        Family::Date | Family::DateTime if !e.ty.is_temporal() => ExprType::datetime(6),
        _ => return e,
    };
    if !matches!(e.kind, Kind::Param(_)) || own == Family::Json || e.ty.is_null() {
        return e;
    }
    Expr { kind: Kind::Cast(Box::new(e)), ty: ty.nullable(true) }
}

/// Whether it is a value that comes with the execution: a constant although nobody knows it yet.
pub(super) fn given(e: &Expr) -> bool {
    e.as_const().is_none() && (e.is_fixed() || matches!(e.kind, Kind::UserVariable(_)))
}
