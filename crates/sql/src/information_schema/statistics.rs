//! STATISTICS: one row per index part; COLUMN_STATISTICS: one per histogram.

use super::computed::{Def, Reader, Ty, expression_text, text, yes_no};
use crate::catalog::{Index, Table};
use crate::error::ExecResult;
use omnibus_value::Value;

pub(super) const DEFS: &[Def] = &[
    Def {
        schema: "information_schema",
        name: "STATISTICS",
        columns: &[
            ("TABLE_CATALOG", Ty::Text(64)),
            ("TABLE_SCHEMA", Ty::Name),
            ("TABLE_NAME", Ty::Name),
            ("NON_UNIQUE", Ty::Int),
            ("INDEX_SCHEMA", Ty::Name),
            ("INDEX_NAME", Ty::Text(64)),
            ("SEQ_IN_INDEX", Ty::UInt),
            ("COLUMN_NAME", Ty::Text(64)),
            ("COLLATION", Ty::Text(1)),
            ("CARDINALITY", Ty::Int),
            ("SUB_PART", Ty::Int),
            ("PACKED", Ty::Text(1)),
            ("NULLABLE", Ty::Text(3)),
            ("INDEX_TYPE", Ty::Text(11)),
            ("COMMENT", Ty::Text(8)),
            ("INDEX_COMMENT", Ty::Text(2048)),
            ("IS_VISIBLE", Ty::Text(3)),
            ("EXPRESSION", Ty::Long),
        ],
        rows: statistics,
    },
    Def {
        schema: "information_schema",
        name: "COLUMN_STATISTICS",
        columns: &[
            ("SCHEMA_NAME", Ty::Name),
            ("TABLE_NAME", Ty::Name),
            ("COLUMN_NAME", Ty::Text(64)),
            ("HISTOGRAM", Ty::Json),
        ],
        rows: histograms,
    },
];

fn histograms(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    reader.of_tables(|_, table, rows| {
        for (at, column) in table.columns().iter().enumerate() {
            let document = table.histogram(at).and_then(|found| found.document().encode().ok());
            if let Some(document) = document {
                let names = [&table.def.db, &table.def.name, &column.name].map(text);
                rows.push(names.into_iter().chain([Value::Json(document)]).collect());
            }
        }
    })
}

fn statistics(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    reader.of_tables(|_, table, rows| {
        for index in table.indexes() {
            rows.extend((0..index.parts.len()).map(|at| row(table, index, at)));
        }
    })
}

fn row(table: &Table, index: &Index, at: usize) -> Vec<Value> {
    let part = &index.parts[at];
    let column = &table.columns()[part.column];
    let rows = i64::try_from(table.rows_estimate()).unwrap_or(i64::MAX);
    // Without ANALYZE TABLE: all of a unique key, and a guess otherwise.
    let last = at + 1 == index.parts.len();
    let position = table.indexes().iter().position(|other| other.space == index.space).unwrap_or(0);
    let cardinality = match table.cardinality(position, at + 1) {
        Some(counted) => i64::try_from(counted).unwrap_or(i64::MAX),
        None if index.unique() && last => rows,
        None => rows / 10 + i64::from(rows > 0),
    };
    vec![
        text("def"),
        text(&table.def.db),
        text(&table.def.name),
        Value::Int(i64::from(!index.unique())),
        text(&table.def.db),
        text(&index.name),
        Value::UInt(at as u64 + 1),
        if column.is_hidden() { Value::Null } else { text(&column.name) },
        text(if part.descending { "D" } else { "A" }),
        Value::Int(cardinality),
        part.prefix.map_or(Value::Null, |prefix| Value::Int(i64::from(prefix))),
        Value::Null,
        text(if column.nullable { "YES" } else { "" }),
        text("BTREE"),
        text(""),
        text(&index.comment),
        yes_no(!index.invisible),
        match &column.generated {
            Some(generated) if column.is_hidden() => text(&*expression_text(&generated.expr, false)),
            _ => Value::Null,
        },
    ]
}
