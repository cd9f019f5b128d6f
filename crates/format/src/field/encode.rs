//! Converts a `Value` to field bytes. The value must already be of the column's type and range (the SQL layer
//! converts); a value that does not fit is an error here and is never silently cut.

use omnibus_value::{Value, temporal};

use super::field_type::{FieldType, code};

/// Appends the field bytes of `value`.
///
/// # Errors
/// The value does not fit the type, or is NULL, which is a bit in the null bitmap and has no field. `out` may then hold a
/// part of the field; the caller truncates it.
pub fn encode_field(
    field: FieldType,
    unsigned: bool,
    value: &Value,
    out: &mut Vec<u8>,
) -> Result<(), &'static str> {
    match (field.code, value) {
        (code::TINY, _) => integer(1, unsigned, value, out),
        (code::SHORT, _) => integer(2, unsigned, value, out),
        (code::INT24, _) => integer(3, unsigned, value, out),
        (code::LONG, _) => integer(4, unsigned, value, out),
        (code::LONGLONG, _) => integer(8, unsigned, value, out),
        (code::FLOAT, Value::Float(v)) => put(out, &v.to_le_bytes()),
        (code::DOUBLE, Value::Double(v)) => put(out, &v.to_le_bytes()),
        (code::NEWDECIMAL, Value::Decimal(v)) => {
            v.to_binlog((field.meta >> 8) as u8, field.meta as u8, out);
            Ok(())
        }
        (code::BIT, Value::Bit(bits)) => bit(field.meta, *bits, out),
        (code::YEAR, Value::Year(year)) => put(out, &[temporal::year_to_binlog(*year)]),
        (code::DATE | code::NEWDATE, Value::Date(date)) => {
            date.to_binlog(out);
            Ok(())
        }
        (code::TIME2, Value::Time(time)) => {
            time.to_binlog(field.meta as u8, out);
            Ok(())
        }
        (code::DATETIME2, Value::DateTime(v)) => {
            v.to_binlog(field.meta as u8, out);
            Ok(())
        }
        (code::TIMESTAMP2, Value::DateTime(v)) => {
            v.to_binlog_timestamp(field.meta as u8, out);
            Ok(())
        }
        (code::ENUM, Value::Enum(index)) => bounded(u64::from(*index), field.meta, out),
        (code::SET, Value::Set(mask)) => bounded(*mask, field.meta, out),
        (code::JSON, Value::Json(bytes)) => string(field, bytes, out),
        (
            code::STRING
            | code::VAR_STRING
            | code::VARCHAR
            | code::BLOB
            | code::TINY_BLOB
            | code::MEDIUM_BLOB
            | code::LONG_BLOB
            | code::GEOMETRY
            | code::VECTOR,
            Value::Bytes(bytes),
        ) => string(field, bytes, out),
        _ => Err("value of another type than its column"),
    }
}

#[inline]
fn put(out: &mut Vec<u8>, bytes: &[u8]) -> Result<(), &'static str> {
    out.extend_from_slice(bytes);
    Ok(())
}

#[inline]
fn integer(size: u32, unsigned: bool, value: &Value, out: &mut Vec<u8>) -> Result<(), &'static str> {
    const RANGE: &str = "integer out of its column's range";
    let wide = match value {
        Value::Int(v) => i128::from(*v),
        Value::UInt(v) => i128::from(*v),
        _ => return Err("value of another type than its column"),
    };
    let bits = 8 * size;
    let (min, max) = match unsigned {
        true => (0, (1i128 << bits) - 1),
        false => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
    };
    if wide < min || wide > max {
        return Err(RANGE);
    }
    put(out, &(wide as u64).to_le_bytes()[..size as usize])
}

fn bit(width: u16, bits: u64, out: &mut Vec<u8>) -> Result<(), &'static str> {
    if width < 64 && bits >> width != 0 {
        return Err("bits beyond their column's width");
    }
    put(out, &bits.to_be_bytes()[8 - usize::from(width.min(64)).div_ceil(8)..])
}

fn bounded(value: u64, size: u16, out: &mut Vec<u8>) -> Result<(), &'static str> {
    if size < 8 && value >> (8 * size) != 0 {
        return Err("ENUM or SET value beyond its column's size");
    }
    put(out, &value.to_le_bytes()[..usize::from(size.min(8))])
}

#[inline]
fn string(field: FieldType, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
    const LONG: &str = "string longer than its column";
    let len = bytes.len() as u64;
    let prefix = field.prefix_len();
    let counted = matches!(field.code, code::STRING | code::VAR_STRING | code::VARCHAR);
    if counted && len > u64::from(field.meta) || len >> (8 * prefix) != 0 {
        return Err(LONG);
    }
    out.extend_from_slice(&len.to_le_bytes()[..prefix]);
    put(out, bytes)
}
