//! From the values of a condition to the keys of an index range.
//!
//! A value may not be one that the column can hold: `int_column > 5.5`, a string that is no date, a
//! number past the column's range. What is asked of the index is then a range that has all rows
//! that may satisfy the condition, and the condition is checked again (`exact` is false).

use crate::catalog::codec::successor;
use crate::catalog::{Column, Table};
use crate::expr::compare::as_f64;
use crate::expr::convert::text_to_f64;
use crate::expr::like::LikeMatcher;
use crate::storage::Scan;
use bytes::Bytes;
use omnibus_value::decimal::Decimal;
use omnibus_value::temporal::{DateMode, DateTime, Instant, Zone, parse_datetime, parse_time};
use omnibus_value::{ColumnKind, Value};

/// How a value of a condition stands to the values that a column can hold.
#[derive(Clone, Debug)]
pub enum Fit {
    /// It is one of them.
    Exact(Value),
    /// It lies behind this one and before the next.
    After(Value),
    /// Below all of them.
    Below,
    /// Above all of them.
    Above,
    /// NULL.
    Null,
    /// Cannot be said: no bound can be made of it.
    Unknown,
}

/// The value as a column's index has it.
#[must_use]
pub fn fit(value: &Value, column: &Column, zone: Zone) -> Fit {
    use ColumnKind as K;
    if matches!(value, Value::Null) {
        return Fit::Null;
    }
    let ty = &column.ty;
    match ty.kind {
        K::TinyInt | K::SmallInt | K::MediumInt | K::Int | K::BigInt => integer(value, ty.kind, ty.unsigned),
        K::Decimal => decimal(value, ty.length as u8, ty.decimals),
        K::Double => match value {
            Value::Bytes(text) => Fit::Exact(Value::Double(text_to_f64(text).0)),
            Value::Json(_) => Fit::Unknown,
            value => Fit::Exact(Value::Double(as_f64(value))),
        },
        K::Date => match datetime(value) {
            Some(at) if at == DateTime::from(at.date()) => Fit::Exact(Value::Date(at.date())),
            Some(at) => Fit::After(Value::Date(at.date())),
            None => Fit::Unknown,
        },
        K::DateTime => match datetime(value) {
            Some(at) => truncated(at, ty.decimals),
            None => Fit::Unknown,
        },
        K::Timestamp => match datetime(value) {
            // What clocks showed twice or never is not where its order among local times would have it.
            Some(at) if !matches!(at.instant(zone), Some(Instant::Once(_)) | None) => Fit::Unknown,
            Some(at) => at.local_to_timestamp(zone).map_or(Fit::Unknown, |at| truncated(at, ty.decimals)),
            None => Fit::Unknown,
        },
        K::Time => match value {
            Value::Time(t) if t.truncate(ty.decimals) == *t => Fit::Exact(value.clone()),
            Value::Bytes(text) => match parse_time(text, 6) {
                Ok(parsed) if !parsed.truncated && parsed.value.truncate(ty.decimals) == parsed.value => {
                    Fit::Exact(Value::Time(parsed.value))
                }
                _ => Fit::Unknown,
            },
            _ => Fit::Unknown,
        },
        K::Year => match value {
            Value::Year(_) => Fit::Exact(value.clone()),
            Value::Int(n @ (0 | 1901..=2155)) => Fit::Exact(Value::Year(*n as u16)),
            _ => Fit::Unknown,
        },
        K::Enum => match value {
            Value::Enum(_) => Fit::Exact(value.clone()),
            Value::Int(n) => u16::try_from(*n).map_or(Fit::Unknown, |n| Fit::Exact(Value::Enum(n))),
            _ => Fit::Unknown,
        },
        K::Bit => match value {
            Value::Bit(_) => Fit::Exact(value.clone()),
            Value::Int(n) => u64::try_from(*n).map_or(Fit::Below, |n| Fit::Exact(Value::Bit(n))),
            Value::UInt(n) => Fit::Exact(Value::Bit(*n)),
            _ => Fit::Unknown,
        },
        K::Float | K::Set | K::Json | K::Geometry => Fit::Unknown,
        K::Uuid | K::Inet4 | K::Inet6 => match value {
            Value::Fixed(v) if v.kind().column() == ty.kind => Fit::Exact(value.clone()),
            _ => Fit::Unknown,
        },
        _ => match value {
            Value::Bytes(_) => Fit::Exact(value.clone()),
            _ => Fit::Unknown,
        },
    }
}

fn integer_range(kind: ColumnKind, unsigned: bool) -> (i128, i128) {
    let bits = match kind {
        ColumnKind::TinyInt => 8,
        ColumnKind::SmallInt => 16,
        ColumnKind::MediumInt => 24,
        ColumnKind::Int => 32,
        _ => 64,
    };
    if unsigned { (0, (1 << bits) - 1) } else { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) }
}

fn integer(value: &Value, kind: ColumnKind, unsigned: bool) -> Fit {
    let (whole, fraction) = match value {
        Value::Int(n) => (i128::from(*n), false),
        Value::UInt(n) | Value::Bit(n) | Value::Set(n) => (i128::from(*n), false),
        Value::Year(n) | Value::Enum(n) => (i128::from(*n), false),
        Value::Decimal(d) => {
            let d = d.as_shown();
            let floor = d.floor();
            match floor.to_i64() {
                Ok(n) => (i128::from(n), floor != d),
                Err(i64::MAX) if unsigned => match floor.to_u64() {
                    Ok(n) => (i128::from(n), floor != d),
                    Err(_) => return Fit::Above,
                },
                Err(clipped) => return if clipped < 0 { Fit::Below } else { Fit::Above },
            }
        }
        Value::Float(_) | Value::Double(_) => match double(as_f64(value)) {
            Some(split) => split,
            None => return Fit::Unknown,
        },
        Value::Bytes(text) => match double(text_to_f64(text).0) {
            Some(split) => split,
            None => return Fit::Unknown,
        },
        _ => return Fit::Unknown,
    };
    let (min, max) = integer_range(kind, unsigned);
    if whole < min {
        return Fit::Below;
    }
    if whole > max {
        return Fit::Above;
    }
    let held = if unsigned { Value::UInt(whole as u64) } else { Value::Int(whole as i64) };
    if fraction { Fit::After(held) } else { Fit::Exact(held) }
}

/// A double's floor and whether there is a fraction; `None` where doubles are no longer exact.
fn double(n: f64) -> Option<(i128, bool)> {
    (n.abs() < 9e15).then(|| (n.floor() as i128, n.fract() != 0.0))
}

fn decimal(value: &Value, precision: u8, scale: u8) -> Fit {
    let exact = match value {
        Value::Decimal(d) => d.as_shown(),
        Value::Int(n) => Decimal::from_i128(i128::from(*n), 0),
        Value::UInt(n) => Decimal::from_i128(i128::from(*n), 0),
        _ => return Fit::Unknown,
    };
    match exact.fit(precision, scale) {
        Ok((held, false)) => Fit::Exact(Value::Decimal(held)),
        _ => Fit::Unknown,
    }
}

fn datetime(value: &Value) -> Option<DateTime> {
    match value {
        Value::Date(d) => Some(DateTime::from(*d)),
        Value::DateTime(d) => Some(*d),
        Value::Bytes(text) => {
            let parsed = parse_datetime(text, 6, DateMode::RELAXED).ok()?;
            (!parsed.truncated && parsed.offset.is_none()).then_some(parsed.value)
        }
        _ => None,
    }
}

fn truncated(at: DateTime, decimals: u8) -> Fit {
    let held = at.truncate(decimals);
    if held == at { Fit::Exact(Value::DateTime(held)) } else { Fit::After(Value::DateTime(held)) }
}

/// A bound of a range, evaluated.
#[derive(Clone, Debug)]
pub struct BoundValue {
    /// The value.
    pub value: Value,
    /// Whether the value itself is in the range.
    pub inclusive: bool,
}

/// A range of an index, or the news that no row can be in it.
#[derive(Debug)]
pub enum KeyRange {
    /// A range, and whether it has exactly the rows that were asked for.
    Scan(Scan, bool),
    /// No row at all.
    Empty,
}

/// The range of index `index` whose leading parts equal `equal` and whose next part lies within the
/// bounds. `equal` says for each part whether NULL equals NULL (`<=>`, IS NULL).
#[must_use]
pub fn range(
    table: &Table,
    index: usize,
    equal: &[(Value, bool)],
    low: Option<&BoundValue>,
    high: Option<&BoundValue>,
    zone: Zone,
) -> KeyRange {
    let parts = &table.indexes()[index].parts;
    let mut values = Vec::with_capacity(equal.len() + 1);
    let mut exact = true;
    for ((value, null_safe), part) in equal.iter().zip(parts) {
        let column = &table.columns()[part.column];
        exact &= part.prefix.is_none();
        match fit(value, column, zone) {
            Fit::Exact(value) => values.push(value),
            Fit::Null if *null_safe && column.nullable => values.push(Value::Null),
            Fit::Unknown => {
                // The parts before still narrow it down.
                return finish(table, index, &values, None, None, false);
            }
            _ => return KeyRange::Empty,
        }
    }
    let Some(part) = parts.get(equal.len()).filter(|_| low.is_some() || high.is_some()) else {
        return finish(table, index, &values, None, None, exact);
    };
    let column = &table.columns()[part.column];
    let whole = part.prefix.is_none();
    exact &= whole;
    let mut from = None;
    let mut to = None;
    if let Some(low) = low {
        match fit(&low.value, column, zone) {
            Fit::Exact(value) => from = Some((value, low.inclusive || !whole)),
            Fit::After(value) => from = Some((value, false)),
            Fit::Below => {}
            Fit::Above | Fit::Null => return KeyRange::Empty,
            Fit::Unknown => exact = false,
        }
    }
    if let Some(high) = high {
        match fit(&high.value, column, zone) {
            Fit::Exact(value) => to = Some((value, high.inclusive || !whole)),
            Fit::After(value) => to = Some((value, true)),
            Fit::Above => {}
            Fit::Below | Fit::Null => return KeyRange::Empty,
            Fit::Unknown => exact = false,
        }
    }
    // A bound excludes NULL, which sorts first.
    if from.is_none() && column.nullable {
        from = Some((Value::Null, false));
    }
    if part.descending {
        (from, to) = (to, from);
    }
    finish(table, index, &values, from, to, exact)
}

/// The first key, and the one behind the last, of an index whose leading parts equal whole numbers, which are given one by one; `None` if
/// there is none for a part, or another kind of column: use `range` instead. Joins ask for such a range for each row, so that it is worth
/// making without vectors of values.
#[must_use]
pub fn of_numbers(
    table: &Table,
    index: usize,
    parts: usize,
    number: &mut dyn FnMut(usize) -> Option<i64>,
) -> Option<(Bytes, Bytes)> {
    use ColumnKind as K;
    let definition = &table.indexes()[index];
    let from = table.keys[index].prefix_by(parts, &mut |at| {
        let part = definition.parts.get(at).filter(|part| part.prefix.is_none())?;
        let ty = &table.columns()[part.column].ty;
        let kind = ty.kind;
        if !matches!(kind, K::TinyInt | K::SmallInt | K::MediumInt | K::Int | K::BigInt) {
            return None;
        }
        match integer(&Value::Int(number(at)?), kind, ty.unsigned) {
            Fit::Exact(value) => Some(value),
            _ => None,
        }
    })?;
    let to = successor(&from)?;
    Some((from, to))
}

/// The scan between two bounds behind a common prefix; a bound's flag says whether keys that start
/// with it are inside.
fn finish(
    table: &Table,
    index: usize,
    prefix: &[Value],
    from: Option<(Value, bool)>,
    to: Option<(Value, bool)>,
    exact: bool,
) -> KeyRange {
    let whole = table.key_prefix(index, prefix);
    let key_of = |value: Value| table.key_prefix(index, &[prefix, &[value]].concat());
    let start = match from {
        None => Some(whole.clone()),
        Some((value, true)) => Some(key_of(value)),
        Some((value, false)) => successor(&key_of(value)),
    };
    let end = match to {
        None => successor(&whole),
        Some((value, true)) => successor(&key_of(value)),
        Some((value, false)) => Some(key_of(value)),
    };
    match (start, end) {
        (Some(start), Some(end)) if start < end => KeyRange::Scan(Scan::new(index, (start, end)), exact),
        _ => KeyRange::Empty,
    }
}

/// The range of index `index` whose leading parts equal `equal` and whose next part, which is text, begins as the pattern of a LIKE does.
/// The column's collation says how, whatever the pattern's own is.
#[must_use]
pub fn prefix_range(
    table: &Table,
    index: usize,
    equal: &[(Value, bool)],
    (pattern, escape): (&[u8], Option<u32>),
    zone: Zone,
) -> KeyRange {
    let KeyRange::Scan(whole, exact) = range(table, index, equal, None, None, zone) else {
        return KeyRange::Empty;
    };
    let Some(part) = table.indexes()[index].parts.get(equal.len()).filter(|_| exact) else {
        return KeyRange::Scan(whole, exact);
    };
    let column = &table.columns()[part.column];
    let matcher = LikeMatcher::new(pattern, escape, column.ty.collation);
    let prefix = matcher.prefix();
    if prefix.is_empty() {
        return KeyRange::Scan(whole, exact);
    }
    // The end of a text is written behind its weights; without it the key of the prefix is how the
    // keys of all texts begin that begin with it.
    let mut end = Vec::new();
    crate::expr::charset::collation(column.ty.collation).write_sort_key(b"", &mut end);
    let mut values = Vec::with_capacity(equal.len() + 1);
    for ((value, _), part) in equal.iter().zip(&table.indexes()[index].parts) {
        match fit(value, &table.columns()[part.column], zone) {
            Fit::Exact(value) => values.push(value),
            _ => values.push(Value::Null),
        }
    }
    values.push(Value::Bytes(Bytes::copy_from_slice(prefix)));
    let key = table.key_prefix(index, &values);
    match key.strip_suffix(&end[..]) {
        Some(start) if !part.descending => {
            let start = key.slice(..start.len());
            let to = successor(&start).unwrap_or(whole.to);
            KeyRange::Scan(Scan::new(index, (start, to)), exact)
        }
        _ => KeyRange::Scan(whole, exact),
    }
}

/// The complete key of a unique index, its space in front, if every value is one that its column can hold. `Ok(None)`:
/// no row can have it. `Err`: use `range` instead.
#[allow(clippy::result_unit_err)]
pub fn point(table: &Table, index: usize, values: &[Value], zone: Zone) -> Result<Option<Bytes>, ()> {
    let parts = &table.indexes()[index].parts;
    // One-column integer keys, nearly all of them, need no vector.
    if let ([value], [part]) = (values, &parts[..]) {
        return match fit(value, &table.columns()[part.column], zone) {
            Fit::Exact(value) => Ok(Some(table.key_prefix(index, &[value]))),
            Fit::Unknown => Err(()),
            _ => Ok(None),
        };
    }
    let mut held = Vec::with_capacity(values.len());
    for (value, part) in values.iter().zip(parts) {
        match fit(value, &table.columns()[part.column], zone) {
            Fit::Exact(value) => held.push(value),
            Fit::Unknown => return Err(()),
            _ => return Ok(None),
        }
    }
    Ok(Some(table.key_prefix(index, &held)))
}
