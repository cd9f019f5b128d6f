//! Field bytes to `Value`.

use bytes::Bytes;
use omnibus_value::decimal::Decimal;
use omnibus_value::{Value, temporal};

use super::field_type::{FieldType, code};
use crate::cursor::{be_uint, le_uint};
use crate::error::DecodeError;

/// Decodes one field, which is all of `bytes` (length prefix included). `slice` makes `Bytes` of
/// a part of `bytes`: a zero-copy slice when the caller holds the row as `Bytes`.
///
/// DATETIME and TIMESTAMP become `Value::DateTime`; TIMESTAMP in UTC. BINARY and VARBINARY become
/// `Value::Bytes` as stored; `RowShape` pads BINARY back to its length.
///
/// # Errors
/// The bytes are truncated or malformed.
pub fn decode_field(
    field: FieldType,
    unsigned: bool,
    bytes: &[u8],
    slice: impl FnOnce(&[u8]) -> Bytes,
) -> Result<Value, DecodeError> {
    let error = |what| DecodeError::new(0, what);
    if field.len(bytes) != Some(bytes.len()) {
        return Err(error("field length"));
    }
    let fsp = field.meta.min(6) as u8;
    let text = || &bytes[field.prefix_len()..];
    Ok(match field.code {
        code::TINY | code::SHORT | code::INT24 | code::LONG | code::LONGLONG => integer(bytes, unsigned),
        code::FLOAT => Value::Float(f32::from_bits(le_uint(bytes) as u32)),
        code::DOUBLE => Value::Double(f64::from_bits(le_uint(bytes))),
        code::NEWDECIMAL => decimal(field, bytes)?,
        code::BIT => Value::Bit(be_uint(bytes)),
        code::YEAR => Value::Year(temporal::year_from_binlog(bytes[0])),
        code::DATE | code::NEWDATE => {
            Value::Date(temporal::date_from_binlog(bytes).map_err(|_| error("DATE"))?)
        }
        code::TIME2 => Value::Time(temporal::time_from_binlog(fsp, bytes).map_err(|_| error("TIME"))?.0),
        code::DATETIME2 => {
            Value::DateTime(temporal::datetime_from_binlog(fsp, bytes).map_err(|_| error("DATETIME"))?.0)
        }
        code::TIMESTAMP2 => {
            Value::DateTime(temporal::timestamp_from_binlog(fsp, bytes).map_err(|_| error("TIMESTAMP"))?.0)
        }
        code::TIMESTAMP => old_timestamp(bytes)?,
        code::DATETIME => {
            Value::DateTime(temporal::old_datetime_from_binlog(bytes).map_err(|_| error("DATETIME"))?)
        }
        code::TIME => Value::Time(temporal::old_time_from_binlog(bytes).map_err(|_| error("TIME"))?),
        code::ENUM => Value::Enum(le_uint(bytes) as u16),
        code::SET => Value::Set(le_uint(bytes)),
        code::JSON => Value::Json(slice(text())),
        code::STRING
        | code::VAR_STRING
        | code::VARCHAR
        | code::BLOB
        | code::TINY_BLOB
        | code::MEDIUM_BLOB
        | code::LONG_BLOB
        | code::GEOMETRY
        | code::VECTOR => Value::Bytes(slice(text())),
        code::NULL => Value::Null,
        _ => return Err(error("column type that cannot be decoded")),
    })
}

#[inline]
fn integer(bytes: &[u8], unsigned: bool) -> Value {
    let bits = le_uint(bytes);
    if unsigned {
        return Value::UInt(bits);
    }
    let shift = 64 - 8 * bytes.len() as u32;
    Value::Int(((bits << shift) as i64) >> shift)
}

fn decimal(field: FieldType, bytes: &[u8]) -> Result<Value, DecodeError> {
    let (precision, scale) = ((field.meta >> 8) as u8, field.meta as u8);
    let decoded = Decimal::from_binlog(precision, scale, bytes);
    let (value, _) = decoded.map_err(|_| DecodeError::new(0, "DECIMAL"))?;
    Ok(Value::Decimal(value))
}

/// TIMESTAMP before MySQL 5.6: little-endian seconds; the newer form is big-endian.
fn old_timestamp(bytes: &[u8]) -> Result<Value, DecodeError> {
    let mut reversed = [0; 4];
    reversed.copy_from_slice(bytes);
    reversed.reverse();
    let decoded = temporal::timestamp_from_binlog(0, &reversed);
    Ok(Value::DateTime(decoded.map_err(|_| DecodeError::new(0, "TIMESTAMP"))?.0))
}
