//! JSON values inside expressions: printing, comparing, converting. The format and its operations
//! are `omnibus_value::json`; this is the glue.

use super::{Expr, Kind};
use crate::error::{SqlError, SqlResult};
use omnibus_value::json::Json;
use omnibus_value::{ColumnKind, Value};
use std::cmp::Ordering;

/// The collation of JSON's text: `utf8mb4_bin`.
pub const COLLATION: u16 = 46;

/// Decodes a stored document; damaged bytes read as null, since the codec checked them.
#[must_use]
pub fn decode(binary: &[u8]) -> Json {
    Json::decode(binary).unwrap_or(Json::Null)
}

/// Appends the text of a stored document.
pub fn print(binary: &[u8], out: &mut Vec<u8>) {
    decode(binary).write_text(out);
}

/// Order of two stored documents.
#[must_use]
pub fn compare(a: &[u8], b: &[u8]) -> Ordering {
    decode(a).compare(&decode(b))
}

/// Order of two stored documents in ORDER BY: arrays by their lengths alone, and objects.
#[must_use]
pub fn sort_order(a: &[u8], b: &[u8]) -> Ordering {
    match (decode(a), decode(b)) {
        (Json::Array(a), Json::Array(b)) => a.len().cmp(&b.len()),
        (Json::Object(a), Json::Object(b)) => a.len().cmp(&b.len()),
        (a, b) => a.compare(&b),
    }
}

/// Order of a stored document and an SQL value.
#[must_use]
pub fn compare_value(binary: &[u8], value: &Value) -> Ordering {
    decode(binary).compare(&from_value(value))
}

/// An SQL value as JSON: text becomes a string, numbers numbers.
#[must_use]
pub fn from_value(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Int(n) => Json::Int(*n),
        Value::UInt(n) | Value::Bit(n) | Value::Set(n) => Json::UInt(*n),
        Value::Year(n) | Value::Enum(n) => Json::UInt(u64::from(*n)),
        Value::Float(n) => Json::Double(f64::from(*n)),
        Value::Double(n) => Json::Double(*n),
        Value::Decimal(d) => Json::Decimal(*d),
        Value::Bytes(text) => Json::String(String::from_utf8_lossy(text).into_owned()),
        Value::Date(d) => Json::Date(*d),
        Value::DateTime(d) => Json::DateTime(*d),
        Value::Time(t) => Json::Time(*t),
        Value::Fixed(_) => {
            Json::String(String::from_utf8_lossy(&super::convert::print(value, 0)).into_owned())
        }
        Value::Json(binary) => decode(binary),
    }
}

/// An expression's value as a member of a document: labels and text are strings, conditions true and false, bytes what no string
/// of a document can be (shown in base64, with MySQL's number of the type).
#[must_use]
pub fn member(e: &Expr, value: &Value) -> Json {
    match value {
        Value::Enum(_) | Value::Set(_) => from_value(&Value::Bytes(e.to_str(value))),
        Value::Int(n @ (0 | 1)) if e.is_truth() => Json::Bool(*n == 1),
        Value::DateTime(at) if e.ty.column.kind == ColumnKind::Timestamp => Json::Timestamp(*at),
        Value::Bit(n) if e.ty.column.kind == ColumnKind::Bit => {
            let bytes = n.to_be_bytes();
            let width = (e.ty.column.length as usize).div_ceil(8).min(bytes.len());
            Json::Opaque(16, bytes::Bytes::copy_from_slice(&bytes[bytes.len() - width..]))
        }
        Value::Bytes(bytes) => match type_number(e) {
            Some(kind) => Json::Opaque(kind, bytes.clone()),
            None => from_value(value),
        },
        value => from_value(value),
    }
}

/// MYSQL_TYPE of values that are bytes and no text.
fn type_number(e: &Expr) -> Option<u8> {
    let column = matches!(e.kind, Kind::Column { .. });
    match e.ty.column.kind {
        ColumnKind::TinyBlob if column => Some(249),
        ColumnKind::MediumBlob if column => Some(250),
        ColumnKind::LongBlob if column => Some(251),
        ColumnKind::TinyBlob | ColumnKind::Blob | ColumnKind::MediumBlob | ColumnKind::LongBlob => Some(252),
        ColumnKind::Binary if column => Some(254),
        ColumnKind::Binary | ColumnKind::VarBinary => Some(15),
        _ => None,
    }
}

/// Whether values of an expression are bytes or bits, which no text of a document has.
#[must_use]
pub fn is_bytes(e: &Expr) -> bool {
    type_number(e).is_some() || e.ty.column.kind == ColumnKind::Bit
}

/// Text of a document, or the name of a member: bytes are none.
///
/// # Errors
/// 3144 for bytes.
pub fn string(e: &Expr, bytes: &[u8]) -> SqlResult<String> {
    if type_number(e).is_some() {
        return Err(SqlError::binary_json());
    }
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

/// A part of a document that there is, as a value.
#[must_use]
pub fn to_value(json: &Json) -> Value {
    json.encode().map_or(Value::Null, Value::Json)
}

/// A document that was made of others, as a value.
///
/// # Errors
/// 3157 for more levels than documents may have, 3151 for a name of a member that is too long.
pub fn made(json: &Json) -> SqlResult<Value> {
    json.encode().map(Value::Json).map_err(|error| super::functions::json::failure(&error, 1, "json"))
}
