//! Row changes as a JSON line: the table and its columns, then the images of each row.

use super::json_value::{Line, bytes_or_text};
use crate::model::{RowsView, TableView};
use omnibus_format::DecodeError;
use omnibus_format::events::{ColumnMetadata, RowsKind};
use omnibus_format::field::{FieldType, code};
use omnibus_format::row::{JsonDiffOp, JsonDiffs, RowImage};
use omnibus_value::Value;
use omnibus_value::collation::{self, Charset};
use omnibus_value::json::Json;
use std::ops::ControlFlow;

/// The collation id of binary strings.
const BINARY: u16 = 63;

pub(super) fn rows_line(line: &mut Line, rows: &dyn RowsView) -> Result<(), DecodeError> {
    let table = rows.table();
    line.key("kind").text(match rows.kind() {
        RowsKind::Write => "insert",
        RowsKind::Update => "update",
        RowsKind::Delete => "delete",
    });
    line.key("timestamp_us").number(rows.timestamp_us());
    bytes_or_text(line.key("database"), table.database());
    bytes_or_text(line.key("table"), table.name());
    columns(line, table);
    if !table.primary_key().is_empty() {
        line.key("primary_key").open('[');
        for part in table.primary_key() {
            line.element().number(part.column);
        }
        line.close(']');
    }
    line.key("foreign_key_checks").boolean(rows.foreign_key_checks());
    line.key("unique_checks").boolean(rows.unique_checks());
    if rows.may_replace() {
        line.key("may_replace").boolean(true);
    }
    if let Some(query) = rows.query() {
        bytes_or_text(line.key("query"), query);
    }
    line.key("ends_statement").boolean(rows.ends_statement());
    line.key("rows").open('[');
    let mut damage = None;
    rows.each(&mut |change| {
        line.element().open('{');
        for (name, image) in [("before", &change.before), ("after", &change.after)] {
            let Some(image) = image else { continue };
            line.key(name);
            let before = change.before.as_ref().filter(|_| name == "after");
            if let Err(error) = put_image(line, table, image, before) {
                damage = Some(error);
                return ControlFlow::Break(());
            }
        }
        line.close('}');
        ControlFlow::Continue(())
    })?;
    line.close(']');
    damage.map_or(Ok(()), Err)
}

fn columns(line: &mut Line, table: &dyn TableView) {
    line.key("columns").open('[');
    for (at, field) in table.columns().iter().enumerate() {
        let metadata = table.metadata(at);
        line.element().open('{');
        if let Some(name) = &metadata.name {
            bytes_or_text(line.key("name"), name);
        }
        line.key("type").text(type_name(*field, metadata));
        line.key("code").number(field.code);
        line.key("meta").number(field.meta);
        line.key("nullable").boolean(table.nullable(at));
        if let Some(unsigned) = metadata.unsigned {
            line.key("unsigned").boolean(unsigned);
        }
        if let Some(collation) = metadata.collation {
            line.key("collation").number(collation);
        }
        if !metadata.labels.is_empty() {
            line.key("labels").open('[');
            for label in &metadata.labels {
                bytes_or_text(line.element(), label);
            }
            line.close(']');
        }
        line.close('}');
    }
    line.close(']');
}

/// Returns the SQL name of a type, as far as the log has it.
fn type_name(field: FieldType, metadata: &ColumnMetadata) -> &'static str {
    let binary = metadata.collation == Some(BINARY);
    match field.code {
        code::TINY => "tinyint",
        code::SHORT => "smallint",
        code::INT24 => "mediumint",
        code::LONG => "int",
        code::LONGLONG => "bigint",
        code::FLOAT => "float",
        code::DOUBLE => "double",
        code::NEWDECIMAL | code::DECIMAL => "decimal",
        code::BIT => "bit",
        code::YEAR => "year",
        code::DATE | code::NEWDATE => "date",
        code::TIME | code::TIME2 => "time",
        code::DATETIME | code::DATETIME2 => "datetime",
        code::TIMESTAMP | code::TIMESTAMP2 => "timestamp",
        code::ENUM => "enum",
        code::SET => "set",
        code::JSON => "json",
        code::GEOMETRY => "geometry",
        code::STRING if binary => "binary",
        code::STRING => "char",
        code::VARCHAR | code::VAR_STRING if binary => "varbinary",
        code::VARCHAR | code::VAR_STRING => "varchar",
        _ if field.is_blob() && !binary && metadata.collation.is_some() => "text",
        _ if field.is_blob() => "blob",
        _ => "unknown",
    }
}

/// Appends the columns of an image, by name or number. Documents with partial changes are whole if `before` has them.
fn put_image(
    line: &mut Line,
    table: &dyn TableView,
    image: &RowImage<'_>,
    before: Option<&RowImage<'_>>,
) -> Result<(), DecodeError> {
    line.open('{');
    let mut values = image.decode(table.shape())?;
    let mut diffs = image.json_diffs(table.shape())?;
    if !diffs.is_empty() {
        let old = before.map(|before| before.decode(table.shape())).transpose()?.unwrap_or_default();
        let mut left = Vec::new();
        for (at, diffs) in diffs {
            match old.get(at) {
                Some(Some(Value::Json(document))) => {
                    let changed = diffs.apply(document).map_err(|_| DecodeError::new(0, "JSON diff"))?;
                    values[at] = Some(Value::Json(changed));
                }
                _ => left.push((at, diffs)),
            }
        }
        diffs = left;
    }
    for (at, value) in values.iter().enumerate() {
        let changes = diffs.iter().find(|(column, _)| *column == at);
        if value.is_none() && changes.is_none() {
            continue;
        }
        let metadata = table.metadata(at);
        match &metadata.name {
            Some(name) => line.key(&String::from_utf8_lossy(name)),
            None => line.key(&format!("@{}", at + 1)),
        };
        match (value, changes) {
            (Some(value), _) => put_value(line, value, table.columns()[at], metadata),
            (None, Some((_, changes))) => put_diffs(line, changes)?,
            (None, None) => {}
        }
    }
    line.close('}');
    Ok(())
}

/// Appends the changes of a document that the log does not have.
fn put_diffs(line: &mut Line, diffs: &JsonDiffs<'_>) -> Result<(), DecodeError> {
    line.open('{');
    line.key("json_diffs").open('[');
    for diff in diffs.iter() {
        let diff = diff?;
        line.element().open('{');
        line.key("op").text(match diff.op {
            JsonDiffOp::Replace => "replace",
            JsonDiffOp::Insert => "insert",
            JsonDiffOp::Remove => "remove",
        });
        line.key("path").text(diff.path);
        if let Some(value) = diff.value {
            put_json(line.key("value"), value);
        }
        line.close('}');
    }
    line.close(']');
    line.close('}');
    Ok(())
}

fn put_value(line: &mut Line, value: &Value, field: FieldType, metadata: &ColumnMetadata) {
    match value {
        Value::Null => line.raw("null"),
        Value::Int(n) => line.number(n),
        Value::UInt(n) | Value::Bit(n) | Value::Set(n) => line.number(n),
        Value::Year(n) | Value::Enum(n) => line.number(n),
        Value::Float(n) => line.float(*n),
        Value::Double(n) => line.double(*n),
        Value::Bytes(bytes) => put_string(line, bytes, field, metadata),
        Value::Json(binary) => put_json(line, binary),
        other => put_printed(line, other, field.meta.min(6) as u8),
    }
}

/// Appends DECIMAL, DATE, TIME, DATETIME and TIMESTAMP in their printed form.
fn put_printed(line: &mut Line, value: &Value, digits: u8) {
    let mut out = Vec::with_capacity(32);
    match value {
        Value::Decimal(v) => v.write_text(&mut out),
        Value::Date(v) => v.write_text(&mut out),
        Value::DateTime(v) => v.write_text(digits, &mut out),
        Value::Time(v) => v.write_text(digits, &mut out),
        _ => {}
    }
    bytes_or_text(line, &out);
}

/// Returns a string as text; bytes outside of its character set are replaced.
pub(super) fn text_of(bytes: &[u8], metadata: &ColumnMetadata) -> String {
    let known = metadata.collation.and_then(collation::by_id).map(|collation| collation.charset);
    match known {
        Some(charset) if !matches!(charset, Charset::Utf8mb4 | Charset::Utf8mb3 | Charset::Binary) => {
            let mut text = Vec::with_capacity(bytes.len());
            charset.convert(Charset::Utf8mb4, bytes, &mut text);
            String::from_utf8_lossy(&text).into_owned()
        }
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// Appends a string as text if that loses nothing.
fn put_string(line: &mut Line, bytes: &[u8], field: FieldType, metadata: &ColumnMetadata) {
    let charset = match metadata.collation {
        Some(id) => collation::by_id(id).map(|collation| collation.charset),
        // Without metadata: what is UTF-8 is very likely meant so, and comes back as the same bytes.
        None => Some(Charset::Utf8mb4),
    };
    match charset {
        Some(Charset::Utf8mb4 | Charset::Utf8mb3) if field.code != code::GEOMETRY => {
            bytes_or_text(line, bytes)
        }
        Some(charset) if charset != Charset::Binary && field.code != code::GEOMETRY => {
            let (mut text, mut back) = (Vec::with_capacity(bytes.len()), Vec::with_capacity(bytes.len()));
            charset.convert(Charset::Utf8mb4, bytes, &mut text);
            Charset::Utf8mb4.convert(charset, &text, &mut back);
            match std::str::from_utf8(&text) {
                Ok(text) if back == bytes => line.text(text),
                _ => line.base64(bytes),
            }
        }
        _ => line.base64(bytes),
    }
}

/// Appends `{"json": document}`, or the document's binary form if JSON text cannot express its contents.
fn put_json(line: &mut Line, binary: &[u8]) {
    let Ok(document) = Json::decode(binary) else { return line.base64(binary) };
    if !is_plain(&document) {
        return line.base64(binary);
    }
    let mut text = Vec::new();
    document.write_text(&mut text);
    match std::str::from_utf8(&text) {
        Ok(text) => {
            line.open('{');
            line.key("json").raw(text);
            line.close('}');
        }
        Err(_) => line.base64(binary),
    }
}

/// Returns whether JSON text can express a document completely.
fn is_plain(document: &Json) -> bool {
    match document {
        Json::Decimal(_)
        | Json::Date(_)
        | Json::DateTime(_)
        | Json::Timestamp(_)
        | Json::Time(_)
        | Json::Opaque(..) => false,
        Json::Array(members) => members.iter().all(is_plain),
        Json::Object(members) => members.iter().all(|(_, member)| is_plain(member)),
        _ => true,
    }
}
