//! Tables of `performance_schema` about how often rows were read and changed, by table and by index. Times are not measured.

use super::computed::{Reader, text};
use super::hosted::filled;
use crate::api::VariableScope;
use crate::catalog::{Table, Uses};
use crate::error::ExecResult;
use omnibus_value::Value;
use std::sync::Arc;

/// All that the account may see; none where `performance_schema` is off.
fn tables(reader: &mut Reader<'_, '_>) -> Vec<Arc<Table>> {
    let shown = reader.cx.session.connection.host.variable(VariableScope::Global, "performance_schema");
    if shown.is_ok_and(|(value, _)| matches!(value, Value::Int(0) | Value::UInt(0))) {
        return Vec::new();
    }
    let mut tables = reader.tables();
    tables.retain(|table| !table.def.is_sequence());
    tables
}

fn row(table: &Table, index: Option<&str>, uses: Uses) -> Vec<(&'static str, Value)> {
    let written = uses.inserted + uses.updated + uses.deleted;
    vec![
        ("OBJECT_TYPE", text("TABLE")),
        ("OBJECT_SCHEMA", text(&table.def.db)),
        ("OBJECT_NAME", text(&table.def.name)),
        ("INDEX_NAME", index.map_or(Value::Null, text)),
        ("COUNT_STAR", Value::UInt(uses.fetched + written)),
        ("COUNT_READ", Value::UInt(uses.fetched)),
        ("COUNT_WRITE", Value::UInt(written)),
        ("COUNT_FETCH", Value::UInt(uses.fetched)),
        ("COUNT_INSERT", Value::UInt(uses.inserted)),
        ("COUNT_UPDATE", Value::UInt(uses.updated)),
        ("COUNT_DELETE", Value::UInt(uses.deleted)),
    ]
}

pub(super) fn table_io_waits_summary_by_table(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    let rows = tables(reader).iter().map(|table| row(table, None, table.usage.all())).collect();
    Ok(filled(reader.name, rows))
}

pub(super) fn table_io_waits_summary_by_index_usage(
    reader: &mut Reader<'_, '_>,
) -> ExecResult<Vec<Vec<Value>>> {
    let mut rows = Vec::new();
    for table in tables(reader) {
        for (at, index) in table.def.indexes.iter().enumerate() {
            // The key of a table without one has no name that anybody knows.
            let name = (at > 0 || !table.def.hidden_key).then_some(&*index.name);
            rows.extend(name.map(|name| row(&table, Some(name), table.usage.of(Some(at)))));
        }
        let mut none = table.usage.of(None);
        if table.def.hidden_key {
            let hidden = table.usage.of(Some(0));
            (none.fetched, none.updated, none.deleted) =
                (none.fetched + hidden.fetched, hidden.updated, hidden.deleted);
        }
        rows.push(row(&table, None, none));
    }
    Ok(filled(reader.name, rows))
}
