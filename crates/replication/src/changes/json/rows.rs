//! A `rows` line as views: converts values back to the bytes of the log.

use super::parse::Node;
use super::statement::{flag, number};
use super::{BadLine, bad};
use crate::changes::EventTable;
use crate::model::{RowsView, TableView};
use bytes::Bytes;
use omnibus_format::DecodeError;
use omnibus_format::events::{ColumnMetadata, PrimaryKeyPart, Rows, RowsKind, TableMap};
use omnibus_format::field::{FieldType, code};
use omnibus_format::row::{Bitmap, Images, JsonDiff, JsonDiffOp, RowChange, put_json_diff};
use omnibus_value::collation::{self, Charset};
use omnibus_value::decimal::Decimal;
use omnibus_value::temporal::{DateMode, parse_date, parse_datetime, parse_time};
use omnibus_value::{Value, json};
use std::ops::ControlFlow;

/// Consecutive rows of one line that have the same columns.
#[derive(Debug)]
pub struct JsonRows {
    table: EventTable,
    kind: RowsKind,
    timestamp_us: i64,
    before: Vec<u8>,
    after: Vec<u8>,
    images: Vec<u8>,
    foreign_key_checks: bool,
    unique_checks: bool,
    may_replace: bool,
    query: Option<Vec<u8>>,
    ends_statement: bool,
    /// After images may have changes of documents.
    partial: bool,
}

impl JsonRows {
    /// Reads the line's rows in order: one view for every run of rows with the same columns.
    pub(super) fn read(node: &Node<'_>) -> Result<Vec<JsonRows>, BadLine> {
        let table = EventTable::new(table(node)?);
        let kind = match node.get("kind").and_then(Node::text) {
            Some("insert") => RowsKind::Write,
            Some("update") => RowsKind::Update,
            Some("delete") => RowsKind::Delete,
            _ => return Err(bad("kind")),
        };
        let rows = node.get("rows").and_then(Node::list).ok_or_else(|| bad("rows"))?;
        let mut out: Vec<JsonRows> = Vec::new();
        for row in rows {
            let mut images = Vec::new();
            let mut image = |name: &str, wanted: bool| match (wanted, row.get(name)) {
                (false, _) => Ok((Vec::new(), false)),
                (true, Some(image)) => encode(&table, image, &mut images),
                (true, None) => Err(bad(name)),
            };
            let (before, wrong) = image("before", kind != RowsKind::Write)?;
            let (after, partial) = image("after", kind != RowsKind::Delete)?;
            if wrong || partial && kind != RowsKind::Update {
                return Err(bad("json_diffs"));
            }
            let same = |last: &&mut JsonRows| {
                last.before == before && last.after == after && last.partial == partial
            };
            match out.last_mut().filter(same) {
                Some(last) => last.images.extend_from_slice(&images),
                None => out.push(JsonRows {
                    table: table.clone(),
                    kind,
                    timestamp_us: number(node, "timestamp_us")?.unwrap_or(0),
                    before,
                    after,
                    images,
                    partial,
                    foreign_key_checks: flag(node, "foreign_key_checks")?.unwrap_or(true),
                    unique_checks: flag(node, "unique_checks")?.unwrap_or(true),
                    may_replace: flag(node, "may_replace")?.unwrap_or(false),
                    query: node
                        .get("query")
                        .map(|text| text.bytes().ok_or_else(|| bad("query")))
                        .transpose()?,
                    ends_statement: false,
                }),
            }
        }
        if let Some(last) = out.last_mut() {
            last.ends_statement = flag(node, "ends_statement")?.unwrap_or(true);
        }
        Ok(out)
    }

    /// The table, in the form of its event.
    #[must_use]
    pub fn table_map(&self) -> &TableMap {
        &self.table.map
    }

    /// The images, in the form of a rows event.
    #[must_use]
    pub fn images(&self) -> &[u8] {
        &self.images
    }
}

impl RowsView for JsonRows {
    fn table(&self) -> &dyn TableView {
        &self.table
    }
    fn kind(&self) -> RowsKind {
        self.kind
    }
    fn timestamp_us(&self) -> i64 {
        self.timestamp_us
    }
    fn columns_before(&self) -> &[u8] {
        &self.before
    }
    fn columns_after(&self) -> &[u8] {
        &self.after
    }
    fn each(&self, each: &mut dyn FnMut(RowChange<'_>) -> ControlFlow<()>) -> Result<(), DecodeError> {
        let rows = Rows {
            kind: self.kind,
            table_id: self.table.map.table_id,
            flags: 0,
            extra: &[],
            partial: self.partial,
            columns: self.table.map.columns.len(),
            before: &self.before,
            after: &self.after,
            rows: &self.images,
            rows_offset: 0,
        };
        for change in Images::new(rows, self.table.shape())? {
            if each(change?).is_break() {
                break;
            }
        }
        Ok(())
    }
    fn has_json_diffs(&self) -> bool {
        self.partial
    }
    fn foreign_key_checks(&self) -> bool {
        self.foreign_key_checks
    }
    fn unique_checks(&self) -> bool {
        self.unique_checks
    }
    fn may_replace(&self) -> bool {
        self.may_replace
    }
    fn query(&self) -> Option<&[u8]> {
        self.query.as_deref()
    }
    fn ends_statement(&self) -> bool {
        self.ends_statement
    }
}

fn table(node: &Node<'_>) -> Result<TableMap, BadLine> {
    let name = |key: &str| node.get(key).and_then(Node::bytes).ok_or_else(|| bad(key));
    let columns = node.get("columns").and_then(Node::list).ok_or_else(|| bad("columns"))?;
    let mut map = TableMap { database: name("database")?, table: name("table")?, ..TableMap::default() };
    for column in columns {
        let (kind, meta) = (number(column, "code")?, number(column, "meta")?);
        let (Some(code), Some(meta)) = (kind, meta) else { return Err(bad("columns")) };
        map.columns.push(newer(FieldType { code, meta }));
        map.nullable.push(flag(column, "nullable")?.unwrap_or(true));
        map.metadata.push(ColumnMetadata {
            unsigned: flag(column, "unsigned")?,
            collation: number(column, "collation")?,
            name: column.get("name").map(|name| name.bytes().ok_or_else(|| bad("name"))).transpose()?,
            labels: match column.get("labels").and_then(Node::list) {
                Some(labels) => labels
                    .iter()
                    .map(|label| label.bytes().ok_or_else(|| bad("labels")))
                    .collect::<Result<_, _>>()?,
                None => Vec::new(),
            },
            ..ColumnMetadata::default()
        });
    }
    for column in node.get("primary_key").and_then(Node::list).unwrap_or_default() {
        let column = column.number().ok_or_else(|| bad("primary_key"))?;
        map.primary_key.push(PrimaryKeyPart { column, prefix: 0 });
    }
    Ok(map)
}

/// Returns the modern form of an old temporal type; the old forms are never written.
fn newer(field: FieldType) -> FieldType {
    let plain = |code| FieldType { code, meta: 0 };
    match field.code {
        code::TIMESTAMP => plain(code::TIMESTAMP2),
        code::DATETIME => plain(code::DATETIME2),
        code::TIME => plain(code::TIME2),
        code::NEWDATE => plain(code::DATE),
        _ => field,
    }
}

/// Appends an image; returns its columns, and whether one has changes of its document.
fn encode(table: &EventTable, image: &Node<'_>, out: &mut Vec<u8>) -> Result<(Vec<u8>, bool), BadLine> {
    let Node::Object(members) = image else { return Err(bad("image")) };
    let columns = table.map.columns.len();
    let named = |at: usize, name: &str| match &table.map.metadata[at].name {
        Some(own) => own == name.as_bytes(),
        None => name.strip_prefix('@').and_then(|digits| digits.parse().ok()) == Some(at + 1),
    };
    let mut present = Bitmap::empty(columns);
    let mut values = Vec::with_capacity(members.len());
    // Mostly the members are the columns in order: each search begins behind the last hit.
    let mut next = 0;
    for (name, node, raw) in members {
        let at = (next..columns).chain(0..next).find(|at| named(*at, name)).ok_or_else(|| bad(name))?;
        present.set(at);
        let field = table.map.columns[at];
        let column = match node.get("json_diffs") {
            Some(list) if field.code == code::JSON => {
                Column::Diffs(json_diffs(list).ok_or_else(|| bad(name))?)
            }
            _ => Column::Value(value(field, &table.map.metadata[at], node, raw).ok_or_else(|| bad(name))?),
        };
        values.push((at, column));
        next = at + 1;
    }
    values.sort_by_key(|(at, _)| *at);
    let partial = values.iter().any(|(_, column)| matches!(column, Column::Diffs(_)));
    if partial {
        let documents = (0..columns).filter(|at| table.map.columns[*at].code == code::JSON);
        let is_diffs =
            |at| values.iter().any(|(own, column)| *own == at && matches!(column, Column::Diffs(_)));
        let documents: Vec<bool> = documents.map(is_diffs).collect();
        let bits = Bitmap::of(documents.len(), (0..documents.len()).filter(|at| documents[*at]));
        out.push(1);
        out.extend_from_slice(bits.as_bytes());
    }
    let start = out.len();
    out.resize(start + values.len().div_ceil(8), 0);
    for (number, (at, value)) in values.iter().enumerate() {
        match value {
            Column::Value(Value::Null) => out[start + number / 8] |= 1 << (number % 8),
            Column::Value(value) => {
                let column = &table.shape().columns()[*at];
                column.encode(value, out).map_err(|what| bad(&format!("column {}: {what}", at + 1)))?;
            }
            Column::Diffs(diffs) => {
                out.extend_from_slice(&(diffs.len() as u32).to_le_bytes());
                out.extend_from_slice(diffs);
            }
        }
    }
    Ok((present.as_bytes().to_vec(), partial))
}

/// The content of an image's column.
enum Column {
    Value(Value),
    /// Changes of a document.
    Diffs(Vec<u8>),
}

/// Encodes `json_diffs` as in a rows event.
fn json_diffs(list: &Node<'_>) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for diff in list.list()? {
        let op = match diff.get("op")?.text()? {
            "replace" => JsonDiffOp::Replace,
            "insert" => JsonDiffOp::Insert,
            "remove" => JsonDiffOp::Remove,
            _ => return None,
        };
        let value = match diff.get("value") {
            Some(value) => Some(document(value)?),
            None if op == JsonDiffOp::Remove => None,
            None => return None,
        };
        let path = diff.get("path")?.text()?;
        put_json_diff(&mut out, &JsonDiff { op, path, value: value.as_deref() });
    }
    Some(out)
}

/// Encodes a document in MySQL's binary form.
fn document(node: &Node<'_>) -> Option<Bytes> {
    match node.raw("json") {
        Some(document) => json::text_to_binary(document.as_bytes()).ok(),
        None => Some(node.bytes()?.into()),
    }
}

const ANY_DATE: DateMode = DateMode { allow_invalid: true, ..DateMode::RELAXED };

/// Converts a JSON value to the value of a column's field.
fn value(field: FieldType, meta: &ColumnMetadata, node: &Node<'_>, raw: &str) -> Option<Value> {
    if matches!(node, Node::Null) {
        return Some(Value::Null);
    }
    let digits = field.meta.min(6) as u8;
    Some(match field.code {
        code::TINY | code::SHORT | code::INT24 | code::LONG | code::LONGLONG => {
            match meta.unsigned.unwrap_or(false) {
                true => Value::UInt(node.number()?),
                false => Value::Int(node.number()?),
            }
        }
        code::FLOAT => Value::Float(node.number()?),
        code::DOUBLE => Value::Double(node.number()?),
        code::NEWDECIMAL => Value::Decimal(Decimal::parse(node.text()?.as_bytes()).value),
        code::BIT => Value::Bit(node.number()?),
        code::YEAR => Value::Year(node.number()?),
        code::ENUM => Value::Enum(node.number()?),
        code::SET => Value::Set(node.number()?),
        code::DATE => Value::Date(parse_date(node.text()?.as_bytes(), ANY_DATE).ok()?.value),
        code::TIME2 => Value::Time(parse_time(node.text()?.as_bytes(), digits).ok()?.value),
        code::DATETIME2 | code::TIMESTAMP2 => {
            Value::DateTime(parse_datetime(node.text()?.as_bytes(), digits, ANY_DATE).ok()?.value)
        }
        code::JSON => Value::Json(document(node)?),
        _ => Value::Bytes(string(field, meta, node, raw)?),
    })
}

/// Converts a string to the column's character set, or returns the stored bytes themselves.
fn string(field: FieldType, meta: &ColumnMetadata, node: &Node<'_>, _raw: &str) -> Option<Bytes> {
    let Node::Text(text) = node else { return node.bytes().map(Bytes::from) };
    let charset = meta.collation.and_then(collation::by_id).map(|collation| collation.charset);
    match charset {
        Some(charset)
            if !matches!(charset, Charset::Binary | Charset::Utf8mb4 | Charset::Utf8mb3)
                && field.code != code::GEOMETRY =>
        {
            let mut out = Vec::with_capacity(text.len());
            Charset::Utf8mb4.convert(charset, text.as_bytes(), &mut out);
            Some(out.into())
        }
        _ => Some(Bytes::copy_from_slice(text.as_bytes())),
    }
}
