//! Values as SQL literals.

use omnibus_format::DecodeError;
pub(super) use omnibus_format::describe::identifier;
use omnibus_format::events::ColumnMetadata;
use omnibus_format::field::{FieldType, code};
use omnibus_format::row::{JsonDiffOp, JsonDiffs};
use omnibus_value::{Value, json as mysql_json, literal};

/// Appends a value as MySQL would read it back. `field` and `metadata` describe its column.
pub(super) fn sql(value: &Value, field: FieldType, metadata: &ColumnMetadata, out: &mut String) {
    match value {
        Value::Null => out.push_str("NULL"),
        Value::Int(v) => out.push_str(&v.to_string()),
        Value::UInt(v) => out.push_str(&v.to_string()),
        Value::Float(v) => out.push_str(&v.to_string()),
        Value::Double(v) => out.push_str(&v.to_string()),
        Value::Year(v) => out.push_str(&format!("{v:04}")),
        Value::Bit(v) => out.push_str(&format!("b'{v:0width$b}'", width = usize::from(field.meta))),
        Value::Bytes(bytes) if metadata.collation != Some(63) && field.code != code::GEOMETRY => {
            quote(bytes, out);
        }
        Value::Bytes(bytes) => append(bytes, literal::write_hex, out),
        Value::Enum(_) | Value::Set(_) => match label(value, metadata) {
            Some(label) => quote(label.as_bytes(), out),
            None => out.push_str(&number(value)),
        },
        _ => match text(value, field) {
            Some(text) if matches!(value, Value::Decimal(_)) => out.push_str(&text),
            Some(text) => quote(text.as_bytes(), out),
            None => out.push_str("/* damaged */ NULL"),
        },
    }
}

/// DECIMAL, temporal and JSON values as MySQL prints them.
fn text(value: &Value, field: FieldType) -> Option<String> {
    let digits = field.meta.min(6) as u8;
    let mut out = Vec::new();
    match value {
        Value::Decimal(v) => v.write_text(&mut out),
        Value::Date(v) => v.write_text(&mut out),
        Value::DateTime(v) => v.write_text(digits, &mut out),
        Value::Time(v) => v.write_text(digits, &mut out),
        Value::Json(v) => mysql_json::binary_to_text(v, &mut out).ok()?,
        _ => return None,
    }
    Some(String::from_utf8_lossy(&out).into_owned())
}

/// The labels of an ENUM or SET value; `None` when the log does not have them all.
fn label(value: &Value, metadata: &ColumnMetadata) -> Option<String> {
    let labels = &metadata.labels;
    let name = |i: usize| labels.get(i).map(|label| String::from_utf8_lossy(label).into_owned());
    match *value {
        Value::Enum(0) => Some(String::new()),
        Value::Enum(index) => name(usize::from(index) - 1),
        Value::Set(mask) if !labels.is_empty() => {
            let names: Option<Vec<_>> = (0..64).filter(|i| mask >> i & 1 != 0).map(name).collect();
            names.map(|names| names.join(","))
        }
        _ => None,
    }
}

/// Calls of JSON functions that make the changes of a document, the first one innermost.
pub(super) fn json_calls(column: &str, diffs: &JsonDiffs<'_>) -> Result<String, DecodeError> {
    let mut calls = column.to_owned();
    for diff in diffs.iter() {
        let diff = diff?;
        let function = match diff.op {
            JsonDiffOp::Replace => "JSON_REPLACE",
            JsonDiffOp::Insert if diff.path.ends_with(']') => "JSON_ARRAY_INSERT",
            JsonDiffOp::Insert => "JSON_INSERT",
            JsonDiffOp::Remove => "JSON_REMOVE",
        };
        calls = format!("{function}({calls}, ");
        quote(diff.path.as_bytes(), &mut calls);
        if let Some(value) = diff.value {
            calls.push_str(", ");
            json_value(value, &mut calls)?;
        }
        calls.push(')');
    }
    Ok(calls)
}

/// A JSON value as an argument.
fn json_value(binary: &[u8], out: &mut String) -> Result<(), DecodeError> {
    let damaged = |_| DecodeError::new(0, "JSON value");
    let value = mysql_json::Json::decode(binary).map_err(damaged)?;
    let mut text = Vec::new();
    match &value {
        mysql_json::Json::String(string) => quote(string.as_bytes(), out),
        other => {
            other.write_text(&mut text);
            let text = String::from_utf8_lossy(&text);
            let plain = matches!(other.type_name(), "INTEGER" | "UNSIGNED INTEGER" | "DOUBLE" | "BOOLEAN");
            if plain {
                out.push_str(&text);
            } else {
                out.push_str("CAST(");
                quote(text.as_bytes(), out);
                out.push_str(" AS JSON)");
            }
        }
    }
    Ok(())
}

fn number(value: &Value) -> String {
    match value {
        Value::Enum(index) => index.to_string(),
        Value::Set(mask) => mask.to_string(),
        _ => String::new(),
    }
}

/// Appends a quoted string; what is not UTF-8 becomes a hexadecimal literal.
fn quote(bytes: &[u8], out: &mut String) {
    match std::str::from_utf8(bytes) {
        Ok(_) => append(bytes, literal::write_quoted, out),
        Err(_) => append(bytes, literal::write_hex, out),
    }
}

fn append(bytes: &[u8], write: fn(&[u8], &mut Vec<u8>), out: &mut String) {
    let mut text = Vec::with_capacity(bytes.len() + 2);
    write(bytes, &mut text);
    out.push_str(&String::from_utf8_lossy(&text));
}
