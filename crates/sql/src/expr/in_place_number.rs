//! Numbers and days where they lie: constants, and columns of the rows in the frame, compared and hashed without making a `Value`.
//!
//! A `Value` has room for the largest decimal, and moving it through an evaluation costs more than reading four bytes of a row.
//! Only what reads alike everywhere is read here; everything else (TIMESTAMP, which has a zone, unsigned numbers past BIGINT,
//! rows of earlier forms) is evaluated.

use super::context::Context;
use super::eval::both;
use super::hash_key;
use super::in_place::{Lying, Rows};
use super::node::{Expr, Kind};
use crate::catalog::codec::Stored;
use crate::error::ExecResult;
use omnibus_format::cursor::le_uint;
use omnibus_format::field::code;
use omnibus_format::row::ColumnShape;
use omnibus_value::decimal::Decimal;
use omnibus_value::temporal::{Date, DateTime};
use omnibus_value::{ColumnKind, Value, temporal};
use std::cmp::Ordering;

/// The number of an expression where it lies, without evaluating it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    Integer(i64),
    Decimal(Decimal),
    Date(Date),
    DateTime(DateTime),
    /// NULL.
    Null,
    /// Nobody knows yet.
    Other,
}

/// An expression's number or day, if it lies somewhere.
#[inline]
pub(super) fn number(e: &Expr, rows: &impl Rows) -> ExecResult<Number> {
    match &e.kind {
        Kind::Const(value) => Ok(of_value(value)),
        Kind::Column { slot, column, utc: false } if is_read_here(e) => Ok(match rows.row(*slot) {
            Lying::Image(table, image) => match table.rows.field(image, usize::from(*column))? {
                Stored::Elsewhere => Number::Other,
                Stored::Null => Number::Null,
                Stored::Field(shape, bytes) => of_field(shape, bytes),
            },
            Lying::Values(values) => values.get(usize::from(*column)).map_or(Number::Null, of_value),
            Lying::Nulls => Number::Null,
            Lying::Elsewhere => Number::Other,
        }),
        _ => Ok(Number::Other),
    }
}

#[inline]
fn is_read_here(e: &Expr) -> bool {
    use ColumnKind as K;
    matches!(
        e.ty.column.kind,
        K::TinyInt | K::SmallInt | K::MediumInt | K::Int | K::BigInt | K::Decimal | K::Date | K::DateTime
    )
}

#[inline]
fn of_value(value: &Value) -> Number {
    match value {
        Value::Int(n) => Number::Integer(*n),
        Value::UInt(n) => i64::try_from(*n).map_or(Number::Other, Number::Integer),
        Value::Decimal(d) => Number::Decimal(d.as_shown()),
        Value::Date(d) => Number::Date(*d),
        Value::DateTime(d) => Number::DateTime(*d),
        Value::Null => Number::Null,
        _ => Number::Other,
    }
}

/// Reads the number of a field; one that cannot be read is decoded, and then told.
#[inline]
fn of_field(shape: &ColumnShape, bytes: &[u8]) -> Number {
    let field = shape.field;
    match field.code {
        code::TINY | code::SHORT | code::INT24 | code::LONG | code::LONGLONG => {
            integer(bytes, shape.unsigned)
        }
        code::DATE | code::NEWDATE => temporal::date_from_binlog(bytes).map_or(Number::Other, Number::Date),
        code::NEWDECIMAL => {
            let decoded = Decimal::from_binlog((field.meta >> 8) as u8, field.meta as u8, bytes);
            decoded.map_or(Number::Other, |(decimal, _)| Number::Decimal(decimal))
        }
        code::DATETIME2 => temporal::datetime_from_binlog(field.meta.min(6) as u8, bytes)
            .map_or(Number::Other, |(at, _)| Number::DateTime(at)),
        _ => Number::Other,
    }
}

/// A little-endian number of up to eight bytes.
#[inline]
fn integer(bytes: &[u8], unsigned: bool) -> Number {
    let bits = le_uint(bytes);
    if unsigned {
        return i64::try_from(bits).map_or(Number::Other, Number::Integer);
    }
    let shift = 64 - 8 * bytes.len() as u32;
    Number::Integer(((bits << shift) as i64) >> shift)
}

/// The order of two operands; `None` if they must be evaluated first, `Some(None)` if one is NULL.
#[inline]
pub(super) fn order(a: &Expr, b: &Expr, rows: &impl Rows) -> ExecResult<Option<Option<Ordering>>> {
    let left = match number(a, rows)? {
        Number::Other => return Ok(None),
        left => left,
    };
    Ok(order_of(&left, &number(b, rows)?))
}

/// As [`order`], of what was read.
#[inline]
pub(super) fn order_of(left: &Number, right: &Number) -> Option<Option<Ordering>> {
    use Number as N;
    let whole = |n: &i64| Decimal::from_i128(i128::from(*n), 0);
    Some(Some(match (left, right) {
        (N::Other, _) | (_, N::Other) => return None,
        (N::Null, _) | (_, N::Null) => return Some(None),
        (N::Integer(a), N::Integer(b)) => a.cmp(b),
        (N::Decimal(a), N::Decimal(b)) => a.cmp(b),
        (N::Integer(a), N::Decimal(b)) => whole(a).cmp(b),
        (N::Decimal(a), N::Integer(b)) => a.cmp(&whole(b)),
        (N::Date(a), N::Date(b)) => a.cmp(b),
        (N::DateTime(a), N::DateTime(b)) => a.cmp(b),
        (N::Date(a), N::DateTime(b)) => DateTime::from(*a).cmp(b),
        (N::DateTime(a), N::Date(b)) => a.cmp(&DateTime::from(*b)),
        // A day and a number: compared as numbers, rarely.
        _ => return None,
    }))
}

/// Looks a number up in a list of constants; `None` if something must be evaluated.
pub(super) fn is_in(operand: &Expr, list: &[Expr], rows: &impl Rows) -> ExecResult<Option<Option<bool>>> {
    let number = match number(operand, rows)? {
        Number::Other => return Ok(None),
        Number::Null => return Ok(Some(None)),
        number => number,
    };
    let mut unknown = false;
    for member in list {
        rows.tick()?;
        let Kind::Const(constant) = &member.kind else { return Ok(None) };
        match order_of(&number, &of_value(constant)) {
            Some(Some(Ordering::Equal)) => return Ok(Some(Some(true))),
            Some(Some(_)) => {}
            Some(None) => unknown = true,
            None => return Ok(None),
        }
    }
    Ok(Some(if unknown { None } else { Some(false) }))
}

/// BETWEEN; `None` if something must be evaluated.
pub(super) fn is_between(args: &[Expr; 3], rows: &impl Rows) -> ExecResult<Option<Option<bool>>> {
    let value = match number(&args[0], rows)? {
        Number::Other => return Ok(None),
        Number::Null => return Ok(Some(None)),
        number => number,
    };
    let Some(low) = order_of(&value, &number(&args[1], rows)?) else { return Ok(None) };
    let low = low.map(Ordering::is_ge);
    if low == Some(false) {
        return Ok(Some(low));
    }
    let Some(high) = order_of(&value, &number(&args[2], rows)?) else { return Ok(None) };
    Ok(Some(both(low, high.map(Ordering::is_le))))
}

/// Appends the hash key of an integer or a day; false if it must be evaluated.
#[inline]
pub(super) fn write_key(e: &Expr, cx: &Context<'_>, out: &mut Vec<u8>) -> ExecResult<bool> {
    match number(e, cx)? {
        Number::Integer(n) => hash_key::integer(i128::from(n), out),
        Number::Date(day) => hash_key::day(DateTime::from(day), out),
        Number::DateTime(at) => hash_key::day(at, out),
        _ => return Ok(false),
    }
    Ok(true)
}
