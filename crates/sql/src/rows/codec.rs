//! Values and rows of a frame as bytes, for temporary files. Not a format that anything else reads.

use super::Row;
use crate::error::SqlError;
use crate::memory;
use bytes::{Buf, Bytes};
use omnibus_value::decimal::Decimal;
use omnibus_value::temporal::{Date, DateTime, Time};
use omnibus_value::{FixedKind, Value};
use std::rc::Rc;

/// Appends a row of values.
pub fn write_values(values: &[Value], out: &mut Vec<u8>) {
    out.extend_from_slice(&(values.len() as u32).to_le_bytes());
    values.iter().for_each(|value| write_value(value, out));
}

/// Appends a row of the frame.
pub fn write_row(row: &Row, out: &mut Vec<u8>) {
    match row {
        Row::Unset => out.push(0),
        Row::Nulls => out.push(1),
        Row::Image(image) => {
            out.push(2);
            write_bytes(image, out);
        }
        Row::Values(values) => {
            out.push(3);
            write_values(values, out);
        }
        Row::Keyed(row) => {
            out.push(4);
            write_bytes(&row.0, out);
            write_bytes(&row.1, out);
        }
    }
}

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Appends a value.
pub fn write_value(value: &Value, out: &mut Vec<u8>) {
    let mut fixed = |tag: u8, bytes: &[u8]| {
        out.push(tag);
        out.extend_from_slice(bytes);
    };
    match value {
        Value::Null => fixed(0, &[]),
        Value::Int(n) => fixed(1, &n.to_le_bytes()),
        Value::UInt(n) => fixed(2, &n.to_le_bytes()),
        Value::Float(n) => fixed(3, &n.to_le_bytes()),
        Value::Double(n) => fixed(4, &n.to_le_bytes()),
        Value::Decimal(d) => fixed(5, &d.to_raw()),
        Value::Bytes(bytes) => {
            out.push(6);
            write_bytes(bytes, out);
        }
        Value::Date(d) => fixed(7, &d.packed().to_le_bytes()),
        Value::DateTime(d) => fixed(8, &d.packed().to_le_bytes()),
        Value::Time(t) => fixed(9, &t.packed().to_le_bytes()),
        Value::Year(n) => fixed(10, &n.to_le_bytes()),
        Value::Bit(n) => fixed(11, &n.to_le_bytes()),
        Value::Enum(n) => fixed(12, &n.to_le_bytes()),
        Value::Set(n) => fixed(13, &n.to_le_bytes()),
        Value::Fixed(v) => {
            let tag = match v.kind() {
                FixedKind::Uuid => 15,
                FixedKind::Inet4 => 16,
                FixedKind::Inet6 => 17,
            };
            fixed(tag, v.bytes());
        }
        Value::Json(bytes) => {
            out.push(14);
            write_bytes(bytes, out);
        }
    }
}

/// Reads a row of values, which share the record's memory.
///
/// # Errors
/// The bytes are none of ours: the file was damaged.
pub fn read_values(record: &mut Bytes) -> Result<Vec<Value>, SqlError> {
    let mut values = Vec::new();
    read_values_into(record, &mut values)?;
    Ok(values)
}

/// As `read_values`, in place of what is there.
///
/// # Errors
/// As `read_values`.
pub fn read_values_into(record: &mut Bytes, values: &mut Vec<Value>) -> Result<(), SqlError> {
    values.clear();
    let len = record.try_get_u32_le().map_err(|_| damaged())? as usize;
    values.reserve(len.min(record.len()));
    for _ in 0..len {
        values.push(read_value(record)?);
    }
    Ok(())
}

/// Reads a row of the frame.
///
/// # Errors
/// As `read_values`.
pub fn read_row(record: &mut Bytes) -> Result<Row, SqlError> {
    Ok(match record.try_get_u8().map_err(|_| damaged())? {
        0 => Row::Unset,
        1 => Row::Nulls,
        2 => Row::Image(read_bytes(record)?),
        3 => Row::Values(Rc::from(read_values(record)?)),
        4 => Row::Keyed(Rc::new((read_bytes(record)?, read_bytes(record)?))),
        _ => return Err(damaged()),
    })
}

fn read_bytes(record: &mut Bytes) -> Result<Bytes, SqlError> {
    let len = record.try_get_u32_le().map_err(|_| damaged())? as usize;
    if len > record.len() {
        return Err(damaged());
    }
    Ok(record.split_to(len))
}

/// Reads a value, which shares the record's memory.
///
/// # Errors
/// As `read_values`.
pub fn read_value(record: &mut Bytes) -> Result<Value, SqlError> {
    fn array<const N: usize>(record: &mut Bytes) -> Result<[u8; N], SqlError> {
        let found = *record.first_chunk().ok_or_else(damaged)?;
        record.advance(N);
        Ok(found)
    }
    let tag = record.try_get_u8().map_err(|_| damaged())?;
    Ok(match tag {
        0 => Value::Null,
        1 => Value::Int(i64::from_le_bytes(array(record)?)),
        2 => Value::UInt(u64::from_le_bytes(array(record)?)),
        3 => Value::Float(f32::from_le_bytes(array(record)?)),
        4 => Value::Double(f64::from_le_bytes(array(record)?)),
        5 => Value::Decimal(Decimal::from_raw(&array(record)?)),
        6 => Value::Bytes(read_bytes(record)?),
        7 => Value::Date(Date::from_packed(u32::from_le_bytes(array(record)?)).ok_or_else(damaged)?),
        8 => Value::DateTime(DateTime::from_packed(i64::from_le_bytes(array(record)?)).ok_or_else(damaged)?),
        9 => Value::Time(Time::from_packed(i64::from_le_bytes(array(record)?)).ok_or_else(damaged)?),
        10 => Value::Year(u16::from_le_bytes(array(record)?)),
        11 => Value::Bit(u64::from_le_bytes(array(record)?)),
        12 => Value::Enum(u16::from_le_bytes(array(record)?)),
        13 => Value::Set(u64::from_le_bytes(array(record)?)),
        14 => Value::Json(read_bytes(record)?),
        15 => read_fixed(FixedKind::Uuid, &array::<16>(record)?)?,
        16 => read_fixed(FixedKind::Inet4, &array::<4>(record)?)?,
        17 => read_fixed(FixedKind::Inet6, &array::<16>(record)?)?,
        _ => return Err(damaged()),
    })
}

fn read_fixed(kind: FixedKind, bytes: &[u8]) -> Result<Value, SqlError> {
    kind.from_stored(bytes).map(Value::Fixed).ok_or_else(damaged)
}

fn damaged() -> SqlError {
    SqlError::new(1024, b"HY000", "Error reading file in tmpdir (a record is damaged)")
}

/// The same of a row of the frame.
#[must_use]
pub fn memory_of_row(row: &Row) -> usize {
    size_of::<Row>()
        + match row {
            Row::Unset | Row::Nulls => 0,
            Row::Image(image) => image.len(),
            Row::Values(values) => memory::memory_of(values),
            Row::Keyed(row) => row.0.len() + row.1.len() + 64,
        }
}

/// A row that holds on to nothing but itself: an image may share the memory of a block of the engine.
#[must_use]
pub fn own_row(row: &Row) -> Row {
    match row {
        Row::Image(image) => Row::Image(Bytes::copy_from_slice(image)),
        Row::Keyed(row) => Row::Keyed(Rc::new((row.0.clone(), Bytes::copy_from_slice(&row.1)))),
        row => row.clone(),
    }
}
