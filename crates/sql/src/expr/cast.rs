//! CAST, CONVERT, and the conversion of a branch's value to the common type of CASE, IF, UNION.

use super::context::Context;
use super::convert::{literal_number, text_in, to_text};
use super::node::{Expr, Kind};
use super::types::{BINARY, ExprType, Family, NOT_FIXED};
use super::{charset, json};
use crate::error::{ExecResult, SqlError};
use bytes::Bytes;
use omnibus_value::temporal::{DateTime, year_from_number};
use omnibus_value::{ColumnKind, ColumnType, FixedKind, Value, collation};

/// Evaluates CAST(e AS type).
///
/// # Errors
/// As evaluation of the operand; JSON text that is none.
pub fn cast(e: &Expr, ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = e.eval(cx)?;
    if matches!(value, Value::Null) {
        return Ok(Value::Null);
    }
    let target = &ty.column;
    Ok(match ty.family() {
        Family::Integer if target.kind == ColumnKind::Year => year(e, &value, cx)?,
        Family::Integer => {
            super::convert::refuse_huge(e, &value, cx)?;
            integer(e, &value, target.unsigned, cx)
        }
        Family::Decimal => decimal(e, &value, target, cx),
        Family::Real => {
            let n = e.to_f64(&value, cx);
            if target.kind == ColumnKind::Float { float(e, n, cx)? } else { Value::Double(n) }
        }
        Family::Date => dated(e, &value, true, cx).map_or(Value::Null, |d| Value::Date(d.date())),
        Family::DateTime => {
            let mode = cx.session.settings.date_mode();
            dated(e, &value, false, cx)
                .and_then(|d| d.fit(target.decimals, mode))
                .map_or(Value::Null, Value::DateTime)
        }
        Family::Time => match value {
            Value::Time(t) => Value::Time(t.fit(target.decimals, cx.session.settings.date_mode())),
            value => {
                let mode = cx.session.settings.date_mode();
                let constant = Expr::constant(value, e.ty.clone());
                constant.eval_time(cx)?.map_or(Value::Null, |t| Value::Time(t.fit(target.decimals, mode)))
            }
        },
        Family::Json => {
            if let Value::Bytes(text) = &value {
                cx.ask(omnibus_value::json::memory_of_text(text))?;
            }
            match value {
                Value::Int(_) if e.is_truth() => json::to_value(&json::member(e, &value)),
                // Binary strings and bits become members of a document as they are; they are not read as its text.
                Value::Bytes(_) | Value::Bit(_) if json::is_bytes(e) => {
                    json::to_value(&json::member(e, &value))
                }
                value => to_json(&value, &e.ty)?,
            }
        }
        Family::Fixed => fit_common(e, value, ty, cx),
        // Its bytes, where all else gives the bytes of its text.
        Family::String if let (Value::Fixed(v), BINARY) = (&value, target.collation) => {
            let bytes = Expr::constant(
                Value::Bytes(Bytes::copy_from_slice(v.bytes())),
                ExprType::varchar(16, BINARY),
            );
            string(&bytes, &bytes.eval(cx)?, target, cx)?
        }
        Family::String => string(e, &value, target, cx)?,
    })
}

/// A value as a UUID or an address; NULL with a warning if it is none.
pub fn fixed(e: &Expr, value: &Value, kind: FixedKind, cx: &mut Context<'_>) -> Value {
    let charset = match e.ty.family() {
        Family::String => collation::by_id_or_binary(e.ty.column.collation).charset,
        _ => collation::Charset::Utf8mb4,
    };
    let text = || Value::Bytes(e.to_str(value));
    let read = omnibus_value::convert::fixed(value, kind, charset)
        .or_else(|| omnibus_value::convert::fixed(&text(), kind, charset));
    match read {
        Some(Ok(value)) => Value::Fixed(value),
        _ => {
            let shown = omnibus_value::convert::printable(&e.to_str(value));
            let message = format!("Incorrect {} value: '{shown}'", kind.name());
            cx.warn(SqlError::new(1292, b"22007", message));
            Value::Null
        }
    }
}

/// A number as a FLOAT.
///
/// # Errors
/// 1690 beyond its range, in the mysql dialect.
fn float(e: &Expr, n: f64, cx: &mut Context<'_>) -> ExecResult<Value> {
    if n.is_finite() && (n as f32).is_infinite() && !cx.session.settings.mariadb {
        let cast = format!("cast({} as float)", super::print::expr(e, cx));
        return Err(SqlError::data_out_of_range("DOUBLE", cast).into());
    }
    Ok(Value::Float(n as f32))
}

/// A date that sql_mode lets in; anything else is NULL with a warning. `day`: no more than a date is wanted.
fn dated(e: &Expr, value: &Value, day: bool, cx: &mut Context<'_>) -> Option<DateTime> {
    let at = if day { e.to_calendar(value, cx)? } else { e.to_datetime(value, cx)? };
    let mode = cx.session.settings.date_mode();
    if matches!(value, Value::Date(_) | Value::DateTime(_)) || at.check(mode).is_ok() {
        return Some(at);
    }
    if day && !cx.session.settings.mariadb {
        super::convert::no_day(e, value, cx);
        return None;
    }
    let text = String::from_utf8_lossy(&e.to_str(value)).into_owned();
    cx.warn(SqlError::new(1292, b"22007", format!("Incorrect datetime value: '{text}'")));
    None
}

/// A double or decimal as a BIGINT, clipped with a warning.
fn whole(e: &Expr, value: &Value, unsigned: bool, cx: &mut Context<'_>) -> Value {
    let real = matches!(value, Value::Float(_) | Value::Double(_));
    let mysql = !cx.session.settings.mariadb;
    let (n, lost) = if unsigned && mysql && (real || e.to_f64(value, cx) < 0.0) {
        // The bits of a signed number, as of an integer or a text.
        let n = value.to_i64();
        (Value::UInt(n.value as u64), n.problem)
    } else if unsigned {
        let n = value.to_u64();
        let below = n.problem.is_some() && e.to_f64(value, cx) < 0.0;
        (Value::UInt(if below { 0 } else { n.value }), n.problem)
    } else {
        let n = value.to_i64();
        (Value::Int(n.value), n.problem)
    };
    if lost.is_some() {
        let text = String::from_utf8_lossy(&e.to_str(value)).into_owned();
        let kind = if real { "INTEGER" } else { "DECIMAL" };
        cx.warn(SqlError::truncated_wrong_value(kind, text));
    }
    n
}

/// A year as a number: unlike a column's it shows no zeros in front, and is read as a number where a date is wanted.
fn year(e: &Expr, value: &Value, cx: &mut Context<'_>) -> ExecResult<Value> {
    let found = match value {
        Value::Year(y) => Some(*y),
        Value::Time(_) => Some(cx.now().date().year() as u16),
        Value::Bytes(text) => return year_of_text(e, text, cx),
        Value::Date(d) => year_in_range(i64::from(d.year())),
        Value::DateTime(d) => year_in_range(i64::from(d.date().year())),
        value => i64::try_from(e.to_int(value, cx)).ok().and_then(|n| year_from_number(n).ok()),
    };
    if found.is_none() {
        let text = String::from_utf8_lossy(&e.to_str(value)).into_owned();
        cx.complain(SqlError::truncated_wrong_value("YEAR", text))?;
    }
    Ok(found.map_or(Value::Null, |year| Value::UInt(u64::from(year))))
}

fn year_in_range(year: i64) -> Option<u16> {
    if year == 0 || year > 99 { year_from_number(year).ok() } else { None }
}

/// The year that a text begins with: '0' is 2000, and what has no digits is none.
fn year_of_text(e: &Expr, text: &Bytes, cx: &mut Context<'_>) -> ExecResult<Value> {
    let shown = || String::from_utf8_lossy(text).into_owned();
    let number = text.trim_ascii_start();
    let number = number.strip_prefix(b"+").or(number.strip_prefix(b"-")).unwrap_or(number);
    if !number.first().is_some_and(u8::is_ascii_digit) {
        cx.complain(SqlError::new(1525, b"HY000", format!("Incorrect YEAR value: '{}'", shown())))?;
        return Ok(Value::Null);
    }
    let found = match e.to_int(&Value::Bytes(text.clone()), cx) {
        0 => Some(2000),
        number => i64::try_from(number).ok().and_then(|n| year_from_number(n).ok()),
    };
    if found.is_none() {
        cx.complain(SqlError::truncated_wrong_value("YEAR", shown()))?;
    }
    Ok(found.map_or(Value::Null, |year| Value::UInt(u64::from(year))))
}

fn integer(e: &Expr, value: &Value, unsigned: bool, cx: &mut Context<'_>) -> Value {
    // A binary literal is a number by its bytes.
    if let (Value::Bytes(bytes), Kind::Const(_)) = (value, &e.kind)
        && e.ty.coercibility == super::types::Coercibility::Literal
        && e.ty.column.kind == ColumnKind::Binary
    {
        let n = literal_number(bytes, cx);
        return if unsigned { Value::UInt(n) } else { Value::Int(n as i64) };
    }
    if let Value::Float(_) | Value::Double(_) | Value::Decimal(_) = value {
        return whole(e, value, unsigned, cx);
    }
    // CAST reads the text of any column aloud.
    let n = match value {
        Value::Bytes(_) => Expr::constant(value.clone(), e.ty.clone()).to_int(value, cx),
        value => e.to_int(value, cx),
    };
    if unsigned {
        if n < 0 && !matches!(value, Value::Decimal(_)) {
            return Value::UInt(n as i64 as u64);
        }
        return Value::UInt(u64::try_from(n).unwrap_or(0));
    }
    match value {
        // An unsigned value past BIGINT wraps, as MySQL's own CAST does.
        Value::UInt(n) => Value::Int(*n as i64),
        _ => Value::Int(n.clamp(i128::from(i64::MIN), i128::from(u64::MAX)) as i64),
    }
}

fn decimal(e: &Expr, value: &Value, target: &ColumnType, cx: &mut Context<'_>) -> Value {
    let d = e.to_decimal(value, cx);
    Value::Decimal(match d.fit(target.length as u8, target.decimals) {
        Ok((fitted, _)) => fitted,
        Err(clipped) => {
            let mut text = Vec::new();
            d.write_text(&mut text);
            let text = String::from_utf8_lossy(&text).into_owned();
            cx.warn(SqlError::new(
                1264,
                b"22003",
                format!("Out of range value for column '{text}' at row 1"),
            ));
            clipped
        }
    })
}

fn string(e: &Expr, value: &Value, target: &ColumnType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let text = text_in(e, value, cx);
    let bits = e.ty.column.kind == ColumnKind::Bit;
    let from = if bits { BINARY } else { e.ty.column.collation };
    let text = if e.ty.family() != Family::String && !bits || from == target.collation {
        text
    } else if from == BINARY {
        match taken_for_text(text, target.collation, cx) {
            Some(text) => text,
            None => return Ok(Value::Null),
        }
    } else {
        charset::convert(&text, from, target.collation)
    };
    // CHAR without a length keeps everything; its type says how long that may be.
    let fixed = matches!(target.kind, ColumnKind::Char | ColumnKind::Binary);
    let length = target.length as usize;
    if !fixed {
        return Ok(Value::Bytes(text));
    }
    let count = charset::char_count(&text, target.collation);
    if count > length {
        let kind = if target.kind == ColumnKind::Binary { "BINARY" } else { "CHAR" };
        let shown = String::from_utf8_lossy(&text).into_owned();
        cx.warn(SqlError::truncated_wrong_value(format!("{kind}({length})"), shown));
        return Ok(Value::Bytes(charset::slice_chars(&text, 0, length, target.collation)));
    }
    if target.kind == ColumnKind::Binary && count < length {
        if !crate::expr::functions::fits(length, "cast_as_binary", cx) {
            return Ok(Value::Null);
        }
        cx.ask(length)?;
        let mut padded = Vec::with_capacity(length);
        padded.extend_from_slice(&text);
        padded.resize(length, 0);
        return Ok(Value::Bytes(padded.into()));
    }
    Ok(Value::Bytes(text))
}

/// A value as a JSON document: text is parsed, everything else converted.
///
/// # Errors
/// 3140 for text that is not JSON.
pub fn to_json(value: &Value, ty: &ExprType) -> ExecResult<Value> {
    Ok(match value {
        Value::Json(_) | Value::Null => value.clone(),
        Value::Bytes(text) => {
            let parsed = omnibus_value::json::Json::parse(text)
                .map_err(|error| super::functions::json::failure(&error, 1, "cast_as_json"))?;
            json::made(&parsed)?
        }
        Value::Enum(_) | Value::Set(_) => {
            let text = to_text(value, &ty.column);
            json::to_value(&json::from_value(&Value::Bytes(text)))
        }
        Value::DateTime(at) if ty.column.kind == ColumnKind::Timestamp => {
            json::to_value(&omnibus_value::json::Json::Timestamp(*at))
        }
        value => json::to_value(&json::from_value(value)),
    })
}

/// Evaluates a branch of CASE, IF, COALESCE and the like as the common type.
///
/// # Errors
/// As evaluation of the branch.
pub fn to_common(e: &Expr, ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = e.eval(cx)?;
    Ok(fit_common(e, value, ty, cx))
}

/// A value of `e` as the common type `ty`.
pub fn fit_common(e: &Expr, value: Value, ty: &ExprType, cx: &mut Context<'_>) -> Value {
    match (ty.family(), &value) {
        (_, Value::Null) => Value::Null,
        (Family::String, Value::Bytes(text)) if e.ty.column.collation != ty.column.collation => {
            Value::Bytes(charset::convert(text, e.ty.column.collation, ty.column.collation))
        }
        (Family::String, Value::Bytes(_)) => value,
        (Family::String, Value::Enum(_) | Value::Set(_)) if e.ty.column == ty.column => value,
        (Family::String, value) => Value::Bytes(text_in(e, value, cx)),
        (Family::Decimal, value) if ty.column.decimals >= NOT_FIXED => {
            Value::Decimal(e.to_decimal(value, cx))
        }
        (Family::Decimal, value) => Value::Decimal(e.to_decimal(value, cx).show(ty.column.decimals)),
        (Family::Real, Value::Float(_) | Value::Double(_)) if ty.column.kind == e.ty.column.kind => value,
        (Family::Real, value) => {
            let n = e.to_f64(value, cx);
            if ty.column.kind == ColumnKind::Float { Value::Float(n as f32) } else { Value::Double(n) }
        }
        (Family::Integer, Value::Bit(n)) if ty.column.kind != ColumnKind::Bit => {
            if ty.column.unsigned {
                Value::UInt(*n)
            } else {
                Value::Int(*n as i64)
            }
        }
        (Family::Integer, Value::Year(n)) if ty.column.kind != ColumnKind::Year => match ty.column.unsigned {
            true => Value::UInt(u64::from(*n)),
            false => Value::Int(i64::from(*n)),
        },
        (Family::Integer, Value::Int(n)) if ty.column.unsigned => Value::UInt(*n as u64),
        (Family::Integer, Value::UInt(n)) if !ty.column.unsigned => Value::Int(*n as i64),
        (Family::Fixed, _) => match FixedKind::of(ty.column.kind) {
            Some(kind) => fixed(e, &value, kind, cx),
            None => value,
        },
        (Family::DateTime, Value::Date(d)) => Value::DateTime(DateTime::from(*d)),
        (Family::DateTime, Value::Time(_)) => e.to_datetime(&value, cx).map_or(Value::Null, Value::DateTime),
        _ => value,
    }
}

/// Evaluates CONVERT(e USING charset) and implicit changes of character set.
///
/// # Errors
/// As evaluation of the operand.
pub fn transcode(e: &Expr, ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let Some(text) = super::functions::text_arg(e, cx)? else { return Ok(Value::Null) };
    let (from, to) = (e.ty.column.collation, ty.column.collation);
    if e.ty.family() != Family::String {
        return Ok(Value::Bytes(text));
    }
    if from == BINARY {
        return Ok(taken_for_text(text, to, cx).map_or(Value::Null, Value::Bytes));
    }
    Ok(Value::Bytes(charset::convert(&text, from, to)))
}

/// Bytes as text of a character set: nothing in strict mode if they are none, else what of them is.
pub(super) fn taken_for_text(bytes: bytes::Bytes, to: u16, cx: &mut Context<'_>) -> Option<bytes::Bytes> {
    let good = charset::well_formed(&bytes, to);
    if good == bytes.len() {
        return Some(bytes);
    }
    cx.warn(charset::invalid(&bytes[good..], to));
    (!cx.session.settings.strict()).then(|| bytes.slice(..good))
}
