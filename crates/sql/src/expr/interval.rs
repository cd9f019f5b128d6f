//! `date ± INTERVAL n unit` and EXTRACT.

use super::context::Context;
use super::convert::print;
use super::node::Expr;
use super::types::{ExprType, Family};
use crate::error::{ExecResult, SqlError};
use omnibus_value::Value;
use omnibus_value::decimal::Decimal;
use omnibus_value::json::Json;
use omnibus_value::temporal::{DateTime, Interval, IntervalUnit, Time, parse_time};

/// The amount of an INTERVAL; `None` for NULL or what is no amount.
fn amount(e: &Expr, unit: IntervalUnit, cx: &mut Context<'_>) -> ExecResult<Option<Interval>> {
    let value = e.eval(cx)?;
    if matches!(value, Value::Null) {
        return Ok(None);
    }
    if unit.is_compound() {
        let text = e.to_str(&value);
        return Ok(Interval::parse(&text, unit));
    }
    if unit == IntervalUnit::Second && !matches!(value, Value::Int(_) | Value::UInt(_)) {
        let million = Decimal::from(1_000_000_i64);
        let micros = e.to_decimal(&value, cx).truncate(6).mul(&million).ok().and_then(|n| n.to_i64().ok());
        return match micros {
            Some(micros) => Ok(Some(Interval::of_micros(micros))),
            None => overflow(cx),
        };
    }
    let n = match &value {
        Value::Bytes(text) => {
            i128::from(e.to_decimal(&Value::Bytes(text.clone()), cx).truncate(0).to_i64().unwrap_or(0))
        }
        value => e.to_int(value, cx),
    };
    match i64::try_from(n).ok().and_then(|n| Interval::of(n, unit)) {
        Some(interval) => Ok(Some(interval)),
        None => overflow(cx),
    }
}

fn overflow<T>(cx: &mut Context<'_>) -> ExecResult<Option<T>> {
    cx.complain(SqlError::new(1441, b"22008", "Datetime function: datetime field overflow"))?;
    Ok(None)
}

/// The type of `date ± INTERVAL n unit`.
#[must_use]
pub fn date_arith_type(date: &Expr, amount: &Expr, unit: IntervalUnit, mariadb: bool) -> ExprType {
    let fraction = if unit.has_micros() {
        6
    } else if unit == IntervalUnit::Second {
        amount.ty.fixed_decimals().min(6)
    } else {
        0
    };
    let decimals = date.ty.column.decimals.min(6).max(fraction);
    match date.ty.family() {
        Family::Date if !unit.has_time() => ExprType::date(),
        Family::Date => ExprType::datetime(fraction),
        Family::DateTime => ExprType::datetime(decimals),
        Family::Time if unit.is_of_time() => ExprType::time(decimals),
        Family::Time if mariadb && unit.has_time() => ExprType::time(decimals),
        Family::Time if mariadb && matches!(unit, IntervalUnit::Day | IntervalUnit::Week) => {
            ExprType::time(decimals)
        }
        Family::Time => ExprType::datetime(decimals),
        _ => ExprType::varchar(29, 255),
    }
    .nullable(true)
}

/// Evaluates `date ± INTERVAL n unit`.
///
/// # Errors
/// As evaluation of the operands.
pub fn date_arith(
    args: &[Expr; 2],
    unit: IntervalUnit,
    subtract: bool,
    ty: &ExprType,
    cx: &mut Context<'_>,
) -> ExecResult<Value> {
    let value = args[0].eval(cx)?;
    if matches!(value, Value::Null) {
        return Ok(Value::Null);
    }
    let Some(interval) = amount(&args[1], unit, cx)? else { return Ok(Value::Null) };
    let interval = if subtract { interval.negate() } else { interval };
    if let (Value::Time(time), Family::Time) = (&value, ty.family()) {
        return Ok(time.add(interval).map_or(Value::Null, Value::Time));
    }
    let Some(date) = args[0].to_datetime(&value, cx) else { return Ok(Value::Null) };
    if date.date().month() == 0 || date.date().day() == 0 {
        if cx.session.settings.mariadb || refuses_zero(&value, cx) {
            let text = String::from_utf8_lossy(&args[0].to_str(&value)).into_owned();
            cx.warn(SqlError::new(1292, b"22007", format!("Incorrect datetime value: '{text}'")));
        }
        return Ok(Value::Null);
    }
    // MariaDB's arithmetic of days knows no year 0; months lead into it.
    let known =
        |sum: &DateTime| !cx.session.settings.mariadb || interval.micros == 0 || sum.date().year() > 0;
    let Some(sum) = (match date.add(interval).filter(known) {
        None => overflow(cx)?,
        sum => sum,
    }) else {
        return Ok(Value::Null);
    };
    Ok(match ty.family() {
        Family::Date => Value::Date(sum.date()),
        Family::DateTime => Value::DateTime(sum),
        _ => text_result(&args[0], &value, sum, unit, cx),
    })
}

/// Text in, text out: a date stays a date unless a time of day comes into it.
fn text_result(e: &Expr, value: &Value, sum: DateTime, unit: IntervalUnit, cx: &mut Context<'_>) -> Value {
    // A document's date prints with a time of day, and its string with quotes.
    if let Value::Json(document) = value {
        let string = matches!(super::json::decode(document), Json::String(_));
        let out = match string && !unit.has_time() && sum.time() == Time::ZERO {
            true => print(&Value::Date(sum.date()), 0),
            false => print(&Value::DateTime(sum), if sum.micros() == 0 { 0 } else { 6 }),
        };
        return Value::Bytes(out.into());
    }
    let text = e.to_str(value);
    let parsed =
        omnibus_value::temporal::parse_datetime(&text, 6, omnibus_value::temporal::DateMode::RELAXED);
    let _ = cx;
    let has_time = match &parsed {
        _ if matches!(value, Value::Year(_)) => true,
        Ok(parsed) => parsed.has_time,
        Err(_) => false,
    };
    let out = if has_time || unit.has_time() {
        print(&Value::DateTime(sum), if sum.micros() == 0 { 0 } else { 6 })
    } else {
        print(&Value::Date(sum.date()), 0)
    };
    Value::Bytes(out.into())
}

/// Evaluates EXTRACT(unit FROM e), HOUR(e) and so on.
///
/// # Errors
/// As evaluation of the operand.
pub fn extract(unit: IntervalUnit, e: &Expr, cx: &mut Context<'_>) -> ExecResult<Value> {
    part(unit, e, false, cx)
}

/// Evaluates YEAR(e), MONTH(e) and so on.
///
/// # Errors
/// As evaluation of the operand.
pub fn date_part(unit: IntervalUnit, e: &Expr, cx: &mut Context<'_>) -> ExecResult<Value> {
    part(unit, e, true, cx)
}

/// A part of a date or time; `dated`: what is none is called an incorrect date.
fn part(unit: IntervalUnit, e: &Expr, dated: bool, cx: &mut Context<'_>) -> ExecResult<Value> {
    use IntervalUnit as U;
    let of_time = matches!(
        unit,
        U::Microsecond
            | U::Second
            | U::Minute
            | U::Hour
            | U::SecondMicrosecond
            | U::MinuteMicrosecond
            | U::MinuteSecond
            | U::HourMicrosecond
            | U::HourSecond
            | U::HourMinute
    );
    let of_days = matches!(unit, U::DayHour | U::DayMinute | U::DaySecond | U::DayMicrosecond);
    let value = e.eval(cx)?;
    let (date, time) = match &value {
        Value::Null => return Ok(Value::Null),
        value if of_time || of_days && counts_hours(e, value) => match e.to_time(value, cx) {
            Some(time) => (DateTime::ZERO.date(), time),
            None => return Ok(Value::Null),
        },
        value => match if dated { e.to_calendar(value, cx) } else { e.to_datetime(value, cx) } {
            Some(at) if at == DateTime::ZERO && refuses_zero(value, cx) && dated => {
                super::convert::no_day(e, value, cx);
                return Ok(Value::Null);
            }
            Some(at) if at == DateTime::ZERO && refuses_zero(value, cx) => {
                let text = String::from_utf8_lossy(&e.to_str(value)).into_owned();
                cx.warn(SqlError::new(1292, b"22007", format!("Incorrect datetime value: '{text}'")));
                return Ok(Value::Null);
            }
            Some(at) => (at.date(), at.time()),
            None => return Ok(Value::Null),
        },
    };
    let sign = if time.is_negative() { -1 } else { 1 };
    let (year, month, day) = date.ymd();
    Ok(Value::Int(match unit {
        U::Year => i64::from(year),
        U::Quarter => i64::from(month.div_ceil(3)),
        U::Month => i64::from(month),
        U::Week => return Ok(super::functions::week_of(date, 0).map_or(Value::Null, Value::Int)),
        U::Day => i64::from(day),
        U::YearMonth => i64::from(year * 100 + month),
        _ => sign * of_day(unit, day, time),
    }))
}

/// Whether a text that is the zero date is no date, as `sql_mode` says in MySQL.
pub(crate) fn refuses_zero(value: &Value, cx: &Context<'_>) -> bool {
    let settings = &cx.session.settings;
    matches!(value, Value::Bytes(_)) && !settings.mariadb && settings.date_mode().no_zero_date
}

/// Whether what days and hours are asked of is a time, whose days are hours: also a number that is too short for date and time, and a text that is no date.
fn counts_hours(e: &Expr, value: &Value) -> bool {
    match value {
        Value::Date(_) | Value::DateTime(_) => false,
        Value::Time(_) => true,
        value => {
            let text = e.to_str(value);
            let colons = || text.contains(&b':') && !parse_time(&text, 6).is_ok_and(|parsed| parsed.has_date);
            (text.len() < 12 || colons()) && !text.iter().skip(1).any(|c| *c == b'-')
        }
    }
}

fn of_day(unit: IntervalUnit, day: u32, time: Time) -> i64 {
    use IntervalUnit as U;
    let (d, h, m, s) =
        (i64::from(day), i64::from(time.hour()), i64::from(time.minute()), i64::from(time.second()));
    let us = i64::from(time.micros());
    let hms = h * 10_000 + m * 100 + s;
    match unit {
        U::Hour => h,
        U::Minute => m,
        U::Second => s,
        U::Microsecond => us,
        U::DayHour => d * 100 + h,
        U::DayMinute => d * 10_000 + h * 100 + m,
        U::DaySecond => d * 1_000_000 + hms,
        U::DayMicrosecond => (d * 1_000_000 + hms) * 1_000_000 + us,
        U::HourMinute => h * 100 + m,
        U::HourSecond => hms,
        U::HourMicrosecond => hms * 1_000_000 + us,
        U::MinuteSecond => m * 100 + s,
        U::MinuteMicrosecond => (m * 100 + s) * 1_000_000 + us,
        _ => s * 1_000_000 + us,
    }
}
