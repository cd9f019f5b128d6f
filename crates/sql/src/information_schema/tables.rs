//! TABLES.

use super::computed::{Def, Reader, Ty, text};
use super::sizes::{Size, tables_and_sizes};
use crate::catalog::{Table, charset};
use crate::error::ExecResult;
use omnibus_value::Value;
use std::sync::atomic::Ordering;

pub(super) const DEFS: &[Def] = &[Def {
    schema: "information_schema",
    name: "TABLES",
    columns: &[
        ("TABLE_CATALOG", Ty::Text(64)),
        ("TABLE_SCHEMA", Ty::Name),
        ("TABLE_NAME", Ty::Name),
        ("TABLE_TYPE", Ty::Text(64)),
        ("ENGINE", Ty::Text(64)),
        ("VERSION", Ty::UInt),
        ("ROW_FORMAT", Ty::Text(10)),
        ("TABLE_ROWS", Ty::UInt),
        ("AVG_ROW_LENGTH", Ty::UInt),
        ("DATA_LENGTH", Ty::UInt),
        ("MAX_DATA_LENGTH", Ty::UInt),
        ("INDEX_LENGTH", Ty::UInt),
        ("DATA_FREE", Ty::UInt),
        ("AUTO_INCREMENT", Ty::UInt),
        ("CREATE_TIME", Ty::Time),
        ("UPDATE_TIME", Ty::Time),
        ("CHECK_TIME", Ty::Time),
        ("TABLE_COLLATION", Ty::Text(64)),
        ("CHECKSUM", Ty::UInt),
        ("CREATE_OPTIONS", Ty::Text(256)),
        ("TABLE_COMMENT", Ty::Text(2048)),
    ],
    rows: tables,
}];

fn tables(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    let mut rows: Vec<Vec<Value>> =
        reader.computed().into_iter().map(|def| computed(def.schema, def.name)).collect();
    rows.sort_by_key(|row| (bytes_of(&row[1]), bytes_of(&row[2])));
    let sized = tables_and_sizes(reader);
    let mut others = Vec::with_capacity(sized.len());
    for (table, size) in &sized {
        let row = stored(reader, table, size);
        reader.made(std::slice::from_ref(&row))?;
        others.push(row);
    }
    others.extend(views(reader)?);
    // The catalog has tables and views apart.
    others.sort_by_key(|row| (bytes_of(&row[1]), bytes_of(&row[2])));
    rows.append(&mut others);
    Ok(rows)
}

fn bytes_of(value: &Value) -> bytes::Bytes {
    match value {
        Value::Bytes(bytes) => bytes.clone(),
        _ => bytes::Bytes::new(),
    }
}

fn computed(schema: &str, name: &str) -> Vec<Value> {
    // Dump programs take what has no engine for a view, whose rows are nobody's.
    let engine = if schema == "mysql" { text("MEMORY") } else { Value::Null };
    let mut row = vec![text("def"), text(schema), text(name), text("SYSTEM VIEW"), engine, Value::UInt(10)];
    row.push(Value::Null);
    row.extend([0; 6].map(Value::UInt));
    row.extend([Value::Null, Value::Null, Value::Null, Value::Null, Value::Null, Value::Null]);
    row.extend([text(""), text("")]);
    row
}

fn views(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    let mut rows = Vec::new();
    for (view, outline) in reader.views()? {
        let comment = match outline {
            Ok(_) => "VIEW".to_owned(),
            Err(error) => {
                let message = error.message.clone();
                reader.cx.warn(error);
                message
            }
        };
        let mut row = vec![text("def"), text(&view.def.db), text(&view.def.name), text("VIEW")];
        row.resize(20, Value::Null);
        row[14] = reader.time(view.def.created);
        row.push(text(comment));
        reader.made(std::slice::from_ref(&row))?;
        rows.push(row);
    }
    Ok(rows)
}

fn stored(reader: &Reader<'_, '_>, table: &Table, size: &Size) -> Vec<Value> {
    let def = &table.def;
    let auto = table.auto_column.map_or(Value::Null, |_| {
        let next = table.state.auto_increment.load(Ordering::Relaxed);
        Value::UInt(next.max(1))
    });
    let format = def.options.iter().find_map(|option| option.strip_prefix("ROW_FORMAT="));
    let options: Vec<String> = def
        .options
        .iter()
        .filter(|option| !option.starts_with("/*"))
        .map(|option| option.to_lowercase())
        .collect();
    vec![
        text("def"),
        text(&def.db),
        text(&def.name),
        text(if def.is_sequence() { "SEQUENCE" } else { "BASE TABLE" }),
        text(&def.engine),
        Value::UInt(10),
        text(title(format.unwrap_or("Dynamic"))),
        Value::UInt(size.rows),
        Value::UInt(size.row),
        Value::UInt(size.data),
        Value::UInt(0),
        Value::UInt(size.indexes),
        Value::UInt(0),
        auto,
        reader.time(def.created),
        Value::Null,
        Value::Null,
        text(charset::collation_name(def.collation)),
        Value::Null,
        text(options.join(" ")),
        text(&def.comment),
    ]
}

/// `DYNAMIC` as `Dynamic`.
fn title(word: &str) -> String {
    let mut out = word.to_ascii_lowercase();
    if let Some(first) = out.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    out
}
