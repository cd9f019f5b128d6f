//! Comparing values of any types, with MySQL's coercions.
//!
//! Strings compare by a collation, integers and decimals exactly, dates as dates also against
//! strings, everything else as doubles. `None` is unknown: one side is NULL.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use crate::Value;
use crate::collation::Collation;
use crate::column::{ColumnKind, ColumnType};
use crate::convert::Converted;
use crate::json::Json;
use crate::temporal::{Date, DateMode, DateTime};

/// The order of two values; types give ENUM and SET their labels.
pub fn compare(
    a: &Value,
    a_type: &ColumnType,
    b: &Value,
    b_type: &ColumnType,
    collation: &Collation,
) -> Option<Ordering> {
    if let Some(order) = same_kind(a, b, collation) {
        return Some(order);
    }
    if a.is_null() || b.is_null() {
        return None;
    }
    Some(mixed(&labelled(a, a_type, b), &labelled(b, b_type, a), collation))
}

/// ENUM and SET are strings unless they meet a number.
fn labelled<'a>(value: &'a Value, ty: &ColumnType, other: &Value) -> Cow<'a, Value> {
    let is_label = matches!(value, Value::Enum(_) | Value::Set(_));
    let meets_text = matches!(other, Value::Bytes(_) | Value::Enum(_) | Value::Set(_) | Value::Json(_))
        || is_temporal(other);
    if is_label && meets_text && matches!(ty.kind, ColumnKind::Enum | ColumnKind::Set) {
        return Cow::Owned(Value::Bytes(value.to_bytes(ty)));
    }
    Cow::Borrowed(value)
}

fn is_temporal(value: &Value) -> bool {
    matches!(value, Value::Date(_) | Value::DateTime(_) | Value::Time(_))
}

/// Values of one variant, the common case: two columns or a column and its key.
fn same_kind(a: &Value, b: &Value, collation: &Collation) -> Option<Ordering> {
    Some(match (a, b) {
        (Value::Int(x), Value::Int(y)) => x.cmp(y),
        (Value::Bytes(x), Value::Bytes(y)) => collation.compare(x, y),
        (Value::UInt(x), Value::UInt(y)) => x.cmp(y),
        (Value::Decimal(x), Value::Decimal(y)) => x.cmp(y),
        (Value::Double(x), Value::Double(y)) => floats(*x, *y),
        (Value::Float(x), Value::Float(y)) => floats(f64::from(*x), f64::from(*y)),
        (Value::DateTime(x), Value::DateTime(y)) => x.cmp(y),
        (Value::Date(x), Value::Date(y)) => x.cmp(y),
        (Value::Time(x), Value::Time(y)) => x.cmp(y),
        (Value::Year(x), Value::Year(y)) => x.cmp(y),
        (Value::Bit(x), Value::Bit(y)) => x.cmp(y),
        (Value::Fixed(x), Value::Fixed(y)) => x.cmp(y),
        _ => return None,
    })
}

fn floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or(Ordering::Equal)
}

/// An integer of any kind, exactly.
fn integer(value: &Value) -> Option<i128> {
    Some(match value {
        Value::Int(n) => i128::from(*n),
        Value::UInt(n) | Value::Bit(n) | Value::Set(n) => i128::from(*n),
        Value::Year(n) | Value::Enum(n) => i128::from(*n),
        _ => return None,
    })
}

fn is_exact(value: &Value) -> bool {
    matches!(value, Value::Decimal(_)) || integer(value).is_some()
}

/// A date or datetime, or a string or number that reads as one.
fn as_datetime(value: &Value) -> Option<DateTime> {
    match value {
        Value::DateTime(dt) => Some(*dt),
        Value::Date(d) => Some(DateTime::from(*d)),
        Value::Bytes(_) | Value::Int(_) | Value::UInt(_) => {
            let Converted { value, .. } = value.to_datetime(6, DateMode::RELAXED, Date::ZERO);
            value
        }
        _ => None,
    }
}

fn mixed(a: &Value, b: &Value, collation: &Collation) -> Ordering {
    if let Some(order) = same_kind(a, b, collation) {
        return order;
    }
    if let (Some(x), Some(y)) = (integer(a), integer(b)) {
        return x.cmp(&y);
    }
    if matches!(a, Value::Json(_)) || matches!(b, Value::Json(_)) {
        return as_json(a).compare(&as_json(b));
    }
    if is_exact(a) && is_exact(b) {
        return a.to_decimal().value.cmp(&b.to_decimal().value);
    }
    if let Some(order) = temporals(a, b, collation) {
        return order;
    }
    floats(a.to_f64().value, b.to_f64().value)
}

fn temporals(a: &Value, b: &Value, collation: &Collation) -> Option<Ordering> {
    let is_date = |v: &Value| matches!(v, Value::Date(_) | Value::DateTime(_));
    if is_date(a) != is_date(b)
        && (integer(a).is_some() || integer(b).is_some())
        && let (Some(x), Some(y)) = (as_datetime(a), as_datetime(b))
    {
        return Some(x.cmp(&y));
    }
    let texty = |v: &Value| is_temporal(v) || matches!(v, Value::Bytes(_));
    if !texty(a) || !texty(b) {
        return None;
    }
    if matches!(a, Value::Time(_)) || matches!(b, Value::Time(_)) {
        if let (Some(x), Some(y)) = (a.to_time(6).value, b.to_time(6).value) {
            return Some(x.cmp(&y));
        }
    } else if let (Some(x), Some(y)) = (as_datetime(a), as_datetime(b)) {
        return Some(x.cmp(&y));
    }
    // A string that is no date compares as a string, as MySQL does after its warning.
    let plain = ColumnType::of(ColumnKind::VarBinary);
    Some(collation.compare(&a.to_bytes(&plain), &b.to_bytes(&plain)))
}

fn as_json(value: &Value) -> Json {
    crate::convert::scalar_json(value)
}

/// ORDER BY's total order: NULL first, then [`compare`] of two values of one type.
pub fn order(a: &Value, b: &Value, ty: &ColumnType) -> Ordering {
    match (a.is_null(), b.is_null()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => match (a, b) {
            // ENUM and SET columns sort by index, not by label.
            (Value::Enum(x), Value::Enum(y)) => x.cmp(y),
            (Value::Set(x), Value::Set(y)) => x.cmp(y),
            _ => mixed(a, b, ty.collation()),
        },
    }
}

/// Hashes a value so that values of one type that [`order`] finds equal hash equally (GROUP BY,
/// DISTINCT, hash joins on equal types).
pub fn hash<H: Hasher>(value: &Value, ty: &ColumnType, state: &mut H) {
    match value {
        Value::Null => state.write_u8(0),
        Value::Int(n) => n.hash(state),
        Value::UInt(n) | Value::Bit(n) | Value::Set(n) => (*n as i64).hash(state),
        Value::Year(n) | Value::Enum(n) => i64::from(*n).hash(state),
        Value::Float(n) => hash_f64(f64::from(*n), state),
        Value::Double(n) => hash_f64(*n, state),
        Value::Decimal(n) => n.hash(state),
        Value::Bytes(b) => ty.collation().hash(b, state),
        Value::Fixed(v) => v.hash(state),
        Value::Date(d) => DateTime::from(*d).hash(state),
        Value::DateTime(dt) => dt.hash(state),
        Value::Time(t) => t.hash(state),
        // Equal documents may differ in bytes (1 and 1.0), so only the class of JSON is hashed.
        Value::Json(_) => state.write_u8(1),
    }
}

fn hash_f64<H: Hasher>(n: f64, state: &mut H) {
    // -0.0 equals 0.0.
    (n + 0.0).to_bits().hash(state);
}
