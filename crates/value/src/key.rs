//! Index keys: columns as bytes whose `memcmp` order is the columns' order.
//!
//! Every column is a marker byte (1 NULL, 2 a value; so NULL sorts first) and the value's bytes,
//! which end by themselves: fixed width by type, or the sort key's own end. A descending column is
//! the complement of the ascending one. Equal keys are equal values under the collation, so a
//! unique index is a unique key. Keys are compared and skipped; only integers are
//! decoded, for queries that an index answers by itself.

use crate::Value;
use crate::collation::skip_sort_key;
use crate::column::{ColumnKind, ColumnType};
use crate::decimal;
use crate::fixed::FixedKind;

const NULL: u8 = 1;
const VALUE: u8 = 2;

/// Appends one column. `prefix` is the length of a key part in characters (bytes for binary
/// strings). The value must be of the column's type, as stored there.
pub fn encode(value: &Value, ty: &ColumnType, prefix: Option<u32>, descending: bool, out: &mut Vec<u8>) {
    let start = out.len();
    if value.is_null() {
        out.push(NULL);
    } else {
        out.push(VALUE);
        encode_value(value, ty, prefix, out);
    }
    if descending {
        out[start..].iter_mut().for_each(|b| *b = !*b);
    }
}

/// Bytes of the column at the start of `key`; `None` if it has no end.
pub fn skip(key: &[u8], ty: &ColumnType, descending: bool) -> Option<usize> {
    let flip = if descending { 0xff } else { 0 };
    if key.first()? ^ flip == NULL {
        return Some(1);
    }
    if let Some(width) = fixed_width(ty) {
        return (key.len() > width).then_some(1 + width);
    }
    if !descending {
        return skip_sort_key(ty.collation(), &key[1..]).map(|n| n + 1);
    }
    let plain: Vec<u8> = key[1..].iter().map(|b| !b).collect();
    skip_sort_key(ty.collation(), &plain).map(|n| n + 1)
}

/// Returns whether values of a type can be decoded from their keys: integers.
#[must_use]
pub fn is_decodable(ty: &ColumnType) -> bool {
    ty.kind.is_integer()
}

/// The value at the start of `key`, of a decodable type, and its bytes there; `None` if it has no end.
#[must_use]
pub fn decode(key: &[u8], ty: &ColumnType, descending: bool) -> Option<(Value, usize)> {
    let flip = if descending { 0xff } else { 0 };
    if key.first()? ^ flip == NULL {
        return Some((Value::Null, 1));
    }
    if !is_decodable(ty) {
        return None;
    }
    let width = ty.kind.integer_bytes();
    let bits = 8 * width as u32;
    let encoded = key.get(1..1 + width)?.iter().fold(0u64, |n, byte| n << 8 | u64::from(byte ^ flip));
    let value = if ty.unsigned {
        Value::UInt(encoded)
    } else {
        let inverted = encoded ^ 1 << (bits - 1);
        Value::Int(((inverted << (64 - bits)) as i64) >> (64 - bits))
    };
    Some((value, 1 + width))
}

/// Bytes of a value of fixed width.
fn fixed_width(ty: &ColumnType) -> Option<usize> {
    use ColumnKind::*;
    Some(match ty.kind {
        TinyInt | SmallInt | MediumInt | Int | BigInt => ty.kind.integer_bytes(),
        Float => 4,
        Double | DateTime | Timestamp | Time | Bit | Set => 8,
        Decimal => decimal::binlog_size(ty.length.min(65) as u8, ty.decimals),
        Year | Enum => 2,
        Date => 3,
        kind => return FixedKind::of(kind).map(FixedKind::width),
    })
}

fn push_be(out: &mut Vec<u8>, n: u64, bytes: usize) {
    out.extend_from_slice(&n.to_be_bytes()[8 - bytes.min(8)..]);
}

/// Two's complement with the sign bit inverted.
fn push_signed(out: &mut Vec<u8>, n: i64, bytes: usize) {
    let bits = 8 * bytes as u32;
    push_be(out, (n as u64) ^ 1u64.checked_shl(bits - 1).unwrap_or(0), bytes);
}

/// IEEE bits that sort: negative numbers complemented, the rest with the sign bit set.
fn push_f64(out: &mut Vec<u8>, n: f64) {
    let bits = (n + 0.0).to_bits();
    let sortable = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    out.extend_from_slice(&sortable.to_be_bytes());
}

fn push_f32(out: &mut Vec<u8>, n: f32) {
    let bits = (n + 0.0).to_bits();
    let sortable = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
    out.extend_from_slice(&sortable.to_be_bytes());
}

/// The type decides the width, the value what goes there; a value of another type is converted, so
/// that a key always has its type's shape.
fn encode_value(value: &Value, ty: &ColumnType, prefix: Option<u32>, out: &mut Vec<u8>) {
    use ColumnKind::*;
    match ty.kind {
        TinyInt | SmallInt | MediumInt | Int | BigInt => {
            let bytes = ty.kind.integer_bytes();
            match (value, ty.unsigned) {
                (Value::Int(n), false) => push_signed(out, *n, bytes),
                (Value::UInt(n), true) => push_be(out, *n, bytes),
                (other, true) => push_be(out, other.to_u64().value, bytes),
                (other, false) => push_signed(out, other.to_i64().value, bytes),
            }
        }
        Float => push_f32(out, value.to_f64().value as f32),
        Double => push_f64(out, value.to_f64().value),
        Decimal => {
            let precision = ty.length.min(65) as u8;
            value.to_decimal().value.to_binlog(precision, ty.decimals, out);
        }
        Bit | Set => push_be(out, value.to_u64().value, 8),
        Year | Enum => push_be(out, value.to_u64().value, 2),
        Date | DateTime | Timestamp | Time => encode_temporal(value, ty, out),
        kind => match FixedKind::of(kind) {
            Some(kind) => encode_fixed(value, kind, out),
            None => encode_string(value, ty, prefix, out),
        },
    }
}

fn encode_temporal(value: &Value, ty: &ColumnType, out: &mut Vec<u8>) {
    let relaxed = crate::temporal::DateMode::RELAXED;
    let none = crate::temporal::Date::ZERO;
    match (ty.kind, value) {
        (ColumnKind::Date, Value::Date(d)) => push_be(out, u64::from(d.packed()), 3),
        (ColumnKind::Date, other) => {
            let d = other.to_date(relaxed, none).value.unwrap_or_default();
            push_be(out, u64::from(d.packed()), 3);
        }
        (ColumnKind::Time, Value::Time(t)) => push_signed(out, t.packed(), 8),
        (ColumnKind::Time, other) => {
            push_signed(out, other.to_time(6).value.unwrap_or_default().packed(), 8);
        }
        (_, Value::DateTime(dt)) => push_be(out, dt.packed() as u64, 8),
        (_, other) => {
            let dt = other.to_datetime(6, relaxed, none).value.unwrap_or_default();
            push_be(out, dt.packed() as u64, 8);
        }
    }
}

fn encode_fixed(value: &Value, kind: FixedKind, out: &mut Vec<u8>) {
    let value = match value {
        Value::Fixed(value) if value.kind() == kind => *value,
        Value::Bytes(text) => kind.parse(text).unwrap_or(kind.zero()),
        _ => kind.zero(),
    };
    out.extend_from_slice(&value.sort_key()[..kind.width()]);
}

fn encode_string(value: &Value, ty: &ColumnType, prefix: Option<u32>, out: &mut Vec<u8>) {
    let collation = ty.collation();
    let owned;
    let text: &[u8] = match value {
        Value::Bytes(b) => b,
        other => {
            owned = other.to_bytes(ty);
            &owned
        }
    };
    let text = match prefix {
        Some(chars) => &text[..collation.charset.byte_offset(text, chars as usize)],
        None => text,
    };
    collation.write_sort_key(text, out);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::decimal::Decimal;
    use crate::temporal::{Date, DateTime, Time};
    use bytes::Bytes;
    use proptest::prelude::*;

    fn typed() -> impl Strategy<Value = (ColumnType, Value, Value)> {
        let pair = |ty: ColumnType, v: BoxedStrategy<Value>| {
            let v = prop_oneof![1 => Just(Value::Null), 9 => v].boxed();
            (Just(ty), v.clone(), v)
        };
        let of = ColumnType::of;
        let text = prop::collection::vec(
            prop_oneof![Just(' '), Just('a'), Just('A'), Just('\t'), Just('ä'), any::<char>()],
            0..5,
        )
        .prop_map(|v| Value::Bytes(Bytes::from(v.into_iter().collect::<String>())))
        .boxed();
        let blob = prop::collection::vec(prop_oneof![Just(0u8), Just(255), any::<u8>()], 0..5)
            .prop_map(|v| Value::Bytes(v.into()))
            .boxed();
        let fixed = |kind: FixedKind| {
            prop::collection::vec(prop_oneof![Just(0u8), Just(0x80), any::<u8>()], kind.width())
                .prop_map(move |bytes| Value::Fixed(kind.from_bytes(&bytes).unwrap_or(kind.zero())))
                .boxed()
        };
        let varchar = |id| ColumnType::string(ColumnKind::VarChar, 10, id);
        prop_oneof![
            pair(of(ColumnKind::Int), any::<i32>().prop_map(|n| Value::Int(n.into())).boxed()),
            pair(of(ColumnKind::TinyInt), any::<i8>().prop_map(|n| Value::Int(n.into())).boxed()),
            pair(of(ColumnKind::MediumInt), (-8_388_608i64..8_388_608).prop_map(Value::Int).boxed()),
            pair(of(ColumnKind::BigInt), any::<i64>().prop_map(Value::Int).boxed()),
            pair(of(ColumnKind::BigInt).unsigned(), any::<u64>().prop_map(Value::UInt).boxed()),
            pair(of(ColumnKind::Double), any::<f64>().prop_map(Value::Double).boxed()),
            pair(of(ColumnKind::Float), any::<f32>().prop_map(Value::Float).boxed()),
            pair(
                ColumnType::decimal(18, 4),
                any::<i32>().prop_map(|n| Value::Decimal(Decimal::from_i128(n.into(), 4))).boxed()
            ),
            pair(
                of(ColumnKind::DateTime),
                (0i64..1 << 40)
                    .prop_map(|s| Value::DateTime(DateTime::from_micros(86_400_000_000 + s).unwrap()))
                    .boxed()
            ),
            pair(
                of(ColumnKind::Date),
                (1i64..3_000_000).prop_map(|n| Value::Date(Date::from_days(n).unwrap())).boxed()
            ),
            pair(
                of(ColumnKind::Time),
                (-3_000_000_000_000i64..3_000_000_000_000)
                    .prop_map(|n| Value::Time(Time::from_micros(n).unwrap()))
                    .boxed()
            ),
            pair(varchar(45), text.clone()),
            pair(varchar(46), text.clone()),
            pair(varchar(309), text),
            pair(varchar(63), blob),
            pair(of(ColumnKind::Uuid), fixed(FixedKind::Uuid)),
            pair(of(ColumnKind::Inet4), fixed(FixedKind::Inet4)),
            pair(of(ColumnKind::Inet6), fixed(FixedKind::Inet6)),
        ]
    }

    fn key(v: &Value, ty: &ColumnType, descending: bool) -> Vec<u8> {
        let mut out = Vec::new();
        encode(v, ty, None, descending, &mut out);
        out
    }

    proptest! {
        #[test]
        fn key_order_is_value_order((ty, a, b) in typed(), tail in any::<[u8; 3]>()) {
            let want = crate::compare::order(&a, &b, &ty);
            prop_assert_eq!(key(&a, &ty, false).cmp(&key(&b, &ty, false)), want);
            prop_assert_eq!(key(&a, &ty, true).cmp(&key(&b, &ty, true)), want.reverse());
            for descending in [false, true] {
                let mut long = key(&a, &ty, descending);
                let len = long.len();
                long.extend_from_slice(&tail);
                prop_assert_eq!(skip(&long, &ty, descending), Some(len));
            }
        }
    }

    #[test]
    fn a_prefix_key_sees_only_its_characters() {
        let ty = ColumnType::string(ColumnKind::VarChar, 10, 45);
        let part = |s: &str| {
            let mut out = Vec::new();
            encode(&Value::Bytes(Bytes::copy_from_slice(s.as_bytes())), &ty, Some(2), false, &mut out);
            out
        };
        assert_eq!(part("äbc"), part("ABd"));
        assert_ne!(part("äbc"), part("acc"));
    }

    #[test]
    fn integers_come_back_from_their_keys() {
        use ColumnKind::{BigInt, Int, MediumInt, SmallInt, TinyInt};
        for kind in [TinyInt, SmallInt, MediumInt, Int, BigInt] {
            let bits = 8 * kind.integer_bytes() as u32;
            let (low, high) = (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits));
            let signed = ColumnType::of(kind);
            let unsigned = ColumnType { unsigned: true, ..ColumnType::of(kind) };
            let values = [Value::Null, Value::Int(low), Value::Int(-1), Value::Int(0), Value::Int(high)];
            let positive = [Value::Null, Value::UInt(0), Value::UInt(u64::MAX >> (64 - bits))];
            let all = values.iter().map(|v| (&signed, v)).chain(positive.iter().map(|v| (&unsigned, v)));
            for (ty, value) in all {
                for descending in [false, true] {
                    let mut key = Vec::new();
                    encode(value, ty, None, descending, &mut key);
                    let width = key.len();
                    key.extend_from_slice(b"more");
                    assert_eq!(decode(&key, ty, descending), Some((value.clone(), width)));
                    assert_eq!(decode(&key[..width - 1], ty, descending), None);
                }
            }
        }
    }
}
