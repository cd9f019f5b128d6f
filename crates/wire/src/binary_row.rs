//! Rows of the binary protocol (prepared statements), by the column's declared type.
//!
//! A value that is not of its column's family is converted as a client would expect to read it,
//! never sent with the wrong layout: a client that gets a wrong layout loses the connection.

use crate::buf::{put_lenenc_bytes, put_lenenc_with};
use crate::column::field_type;
use crate::consts::FieldType;
use crate::value_text;
use omnibus_value::temporal::{Date, DateTime, Time};
use omnibus_value::{ColumnType, Value};

/// Appends a row's payload. `values` and `types` are of one length.
pub fn put_binary_row<'a>(out: &mut Vec<u8>, values: &[Value], types: impl Iterator<Item = &'a ColumnType>) {
    out.push(0);
    let nulls = out.len();
    out.resize(nulls + (values.len() + 9) / 8, 0);
    for (i, (value, ty)) in values.iter().zip(types).enumerate() {
        if matches!(value, Value::Null) {
            out[nulls + (i + 2) / 8] |= 1 << ((i + 2) % 8);
        } else {
            put_binary(out, value, ty);
        }
    }
}

fn put_binary(out: &mut Vec<u8>, value: &Value, ty: &ColumnType) {
    use FieldType as T;
    match field_type(ty.kind) {
        T::Tiny => out.push(to_integer(value) as u8),
        T::Short | T::Year => out.extend_from_slice(&(to_integer(value) as u16).to_le_bytes()),
        T::Long | T::Int24 => out.extend_from_slice(&(to_integer(value) as u32).to_le_bytes()),
        T::LongLong => out.extend_from_slice(&to_integer(value).to_le_bytes()),
        T::Float => out.extend_from_slice(&(to_double(value) as f32).to_le_bytes()),
        T::Double => out.extend_from_slice(&to_double(value).to_le_bytes()),
        T::Date => put_date(out, to_datetime(value).date()),
        T::DateTime | T::Timestamp => put_datetime(out, to_datetime(value)),
        T::Time => put_time(out, to_time(value)),
        _ => match value {
            Value::Bytes(bytes) => put_lenenc_bytes(out, bytes),
            other => put_lenenc_with(out, |out| value_text::put(out, other, ty)),
        },
    }
}

/// The two's complement bits of an integer, or of the integer a value reads as.
fn to_integer(value: &Value) -> u64 {
    match value {
        Value::Int(n) => *n as u64,
        Value::UInt(n) | Value::Bit(n) | Value::Set(n) => *n,
        Value::Year(n) | Value::Enum(n) => u64::from(*n),
        Value::Decimal(d) => d.to_i64().unwrap_or_else(|clipped| clipped) as u64,
        other => to_double(other).round() as i64 as u64,
    }
}

fn to_double(value: &Value) -> f64 {
    match value {
        Value::Float(f) => f64::from(*f),
        Value::Double(f) => *f,
        Value::Int(n) => *n as f64,
        Value::UInt(n) | Value::Bit(n) | Value::Set(n) => *n as f64,
        Value::Year(n) | Value::Enum(n) => f64::from(*n),
        Value::Decimal(d) => d.to_f64(),
        Value::Bytes(b) => std::str::from_utf8(b).ok().and_then(|s| s.trim().parse().ok()).unwrap_or(0.0),
        _ => 0.0,
    }
}

fn to_datetime(value: &Value) -> DateTime {
    match value {
        Value::DateTime(t) => *t,
        Value::Date(d) => DateTime::from_parts(*d, Time::ZERO).unwrap_or(DateTime::ZERO),
        _ => DateTime::ZERO,
    }
}

fn to_time(value: &Value) -> Time {
    match value {
        Value::Time(t) => *t,
        Value::DateTime(t) => t.time(),
        _ => Time::ZERO,
    }
}

fn put_ymd(out: &mut Vec<u8>, date: Date) {
    let (year, month, day) = date.ymd();
    out.extend_from_slice(&(year as u16).to_le_bytes());
    out.extend_from_slice(&[month as u8, day as u8]);
}

fn put_date(out: &mut Vec<u8>, date: Date) {
    if date.is_zero() {
        out.push(0);
    } else {
        out.push(4);
        put_ymd(out, date);
    }
}

fn put_datetime(out: &mut Vec<u8>, t: DateTime) {
    let clock = t.hour() != 0 || t.minute() != 0 || t.second() != 0;
    let len = match (t.micros() != 0, clock, t.is_zero()) {
        (true, _, _) => 11,
        (false, true, _) => 7,
        (false, false, false) => 4,
        (false, false, true) => 0,
    };
    out.push(len);
    if len >= 4 {
        put_ymd(out, t.date());
    }
    if len >= 7 {
        out.extend_from_slice(&[t.hour() as u8, t.minute() as u8, t.second() as u8]);
    }
    if len == 11 {
        out.extend_from_slice(&t.micros().to_le_bytes());
    }
}

fn put_time(out: &mut Vec<u8>, t: Time) {
    if t.packed() == 0 {
        out.push(0);
        return;
    }
    out.push(if t.micros() == 0 { 8 } else { 12 });
    out.push(u8::from(t.is_negative()));
    out.extend_from_slice(&(t.hour() / 24).to_le_bytes());
    out.extend_from_slice(&[(t.hour() % 24) as u8, t.minute() as u8, t.second() as u8]);
    if t.micros() != 0 {
        out.extend_from_slice(&t.micros().to_le_bytes());
    }
}
