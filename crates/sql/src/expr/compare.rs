//! Comparison of two values of any tags, as MySQL compares operands of mixed types.
//!
//! Not collations themselves (`omnibus_value::collation`). Pure.

use super::charset;
use omnibus_value::Value;
use omnibus_value::decimal::Decimal;
use omnibus_value::temporal::{DateMode, DateTime, parse_datetime, parse_time};
use std::cmp::Ordering;

/// The order of two values; `None` if either is NULL. Strings under `collation`.
#[must_use]
#[inline]
pub fn values(a: &Value, b: &Value, collation: u16) -> Option<Ordering> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::UInt(a), Value::UInt(b)) => Some(a.cmp(b)),
        (Value::Bytes(a), Value::Bytes(b)) => Some(charset::compare(a, b, collation)),
        _ => mixed(a, b),
    }
}

/// Order for sorting: NULL first.
#[must_use]
pub fn sort_order(a: &Value, b: &Value, collation: u16) -> Ordering {
    match (a, b) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => Ordering::Less,
        (_, Value::Null) => Ordering::Greater,
        _ => values(a, b, collation).unwrap_or(Ordering::Equal),
    }
}

fn mixed(a: &Value, b: &Value) -> Option<Ordering> {
    use Value as V;
    match (a, b) {
        (V::Null, _) | (_, V::Null) => None,
        (V::Date(a), V::Date(b)) => Some(a.cmp(b)),
        (V::DateTime(a), V::DateTime(b)) => Some(a.cmp(b)),
        (V::Time(a), V::Time(b)) => Some(a.cmp(b)),
        (V::Date(a), V::DateTime(b)) => Some(DateTime::from(*a).cmp(b)),
        (V::DateTime(a), V::Date(b)) => Some(a.cmp(&DateTime::from(*b))),
        (V::Date(_) | V::DateTime(_) | V::Time(_), V::Bytes(text)) => temporal_text(a, text),
        (V::Bytes(text), V::Date(_) | V::DateTime(_) | V::Time(_)) => {
            temporal_text(b, text).map(Ordering::reverse)
        }
        (V::Json(a), V::Json(b)) => Some(crate::expr::json::compare(a, b)),
        (V::Json(json), other) => Some(crate::expr::json::compare_value(json, other)),
        (other, V::Json(json)) => Some(crate::expr::json::compare_value(json, other).reverse()),
        (V::Fixed(a), V::Fixed(b)) => Some(a.cmp(b)),
        (V::Enum(a), V::Enum(b)) => Some(a.cmp(b)),
        (V::Set(a), V::Set(b)) => Some(a.cmp(b)),
        _ => numbers(a, b).or_else(|| Some(as_f64(a).total_cmp(&as_f64(b)))),
    }
}

/// A temporal value against text: the text is read as the same kind; if it cannot be, the printed
/// forms are compared.
fn temporal_text(value: &Value, text: &[u8]) -> Option<Ordering> {
    match value {
        Value::Date(date) => match parse_datetime(text, 6, DateMode::RELAXED) {
            Ok(parsed) => Some(DateTime::from(*date).cmp(&parsed.value)),
            Err(_) => Some(super::convert::print(value, 0).as_slice().cmp(text)),
        },
        Value::DateTime(at) => match parse_datetime(text, 6, DateMode::RELAXED) {
            Ok(parsed) => Some(at.cmp(&parsed.value)),
            Err(_) => Some(super::convert::print(value, 0).as_slice().cmp(text)),
        },
        Value::Time(time) => match parse_time(text, 6) {
            Ok(parsed) => Some(time.cmp(&parsed.value)),
            Err(_) => Some(super::convert::print(value, 0).as_slice().cmp(text)),
        },
        _ => None,
    }
}

/// An exact number: an integer of either sign, or a decimal.
enum Exact {
    Integer(i128),
    Decimal(Decimal),
}

fn exact(value: &Value) -> Option<Exact> {
    Some(match value {
        Value::Int(n) => Exact::Integer(i128::from(*n)),
        Value::UInt(n) | Value::Bit(n) | Value::Set(n) => Exact::Integer(i128::from(*n)),
        Value::Year(n) | Value::Enum(n) => Exact::Integer(i128::from(*n)),
        Value::Decimal(d) => Exact::Decimal(d.as_shown()),
        Value::Date(d) => Exact::Integer(i128::from(d.to_number())),
        Value::DateTime(d) => fraction(i128::from(d.to_number()), d.micros()),
        Value::Time(t) => {
            let micros = if t.is_negative() { -i128::from(t.micros()) } else { i128::from(t.micros()) };
            match t.micros() {
                0 => Exact::Integer(i128::from(t.to_number())),
                _ => Exact::Decimal(Decimal::from_i128(i128::from(t.to_number()) * 1_000_000 + micros, 6)),
            }
        }
        _ => return None,
    })
}

fn fraction(whole: i128, micros: u32) -> Exact {
    match micros {
        0 => Exact::Integer(whole),
        _ => Exact::Decimal(Decimal::from_i128(whole * 1_000_000 + i128::from(micros), 6)),
    }
}

/// Exact numbers exactly; `None` if either side is inexact or text.
fn numbers(a: &Value, b: &Value) -> Option<Ordering> {
    Some(match (exact(a)?, exact(b)?) {
        (Exact::Integer(a), Exact::Integer(b)) => a.cmp(&b),
        (Exact::Integer(a), Exact::Decimal(b)) => Decimal::from_i128(a, 0).cmp(&b),
        (Exact::Decimal(a), Exact::Integer(b)) => a.cmp(&Decimal::from_i128(b, 0)),
        (Exact::Decimal(a), Exact::Decimal(b)) => a.cmp(&b),
    })
}

/// Whether text is read as a number to be compared with it.
pub fn is_number(value: &Value) -> bool {
    use Value as V;
    matches!(value, V::Int(_) | V::UInt(_) | V::Decimal(_) | V::Double(_) | V::Float(_) | V::Year(_))
}

/// As a double, text by its numeric prefix.
#[must_use]
pub fn as_f64(value: &Value) -> f64 {
    match value {
        Value::Float(n) => f64::from(*n),
        Value::Double(n) => *n + 0.0,
        Value::Bytes(text) => super::convert::text_to_f64(text).0,
        Value::Fixed(_) => super::convert::text_to_f64(&super::convert::print(value, 0)).0,
        Value::Decimal(d) => d.to_f64(),
        value => match exact(value) {
            Some(Exact::Integer(n)) => n as f64,
            Some(Exact::Decimal(d)) => d.to_f64(),
            None => 0.0,
        },
    }
}
