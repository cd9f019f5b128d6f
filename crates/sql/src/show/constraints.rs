//! TABLE_CONSTRAINTS, KEY_COLUMN_USAGE. Foreign keys and checks are not stored, so they are not here.

use super::computed::{Def, Reader, Ty, text};
use crate::catalog::IndexKind;
use crate::error::ExecResult;
use omnibus_value::Value;

pub(super) const DEFS: &[Def] = &[
    Def {
        schema: "information_schema",
        name: "TABLE_CONSTRAINTS",
        columns: &[
            ("CONSTRAINT_CATALOG", Ty::Text(64)),
            ("CONSTRAINT_SCHEMA", Ty::Name),
            ("CONSTRAINT_NAME", Ty::Text(64)),
            ("TABLE_SCHEMA", Ty::Name),
            ("TABLE_NAME", Ty::Name),
            ("CONSTRAINT_TYPE", Ty::Text(11)),
            ("ENFORCED", Ty::Text(3)),
        ],
        rows: table_constraints,
    },
    Def {
        schema: "information_schema",
        name: "KEY_COLUMN_USAGE",
        columns: &[
            ("CONSTRAINT_CATALOG", Ty::Text(64)),
            ("CONSTRAINT_SCHEMA", Ty::Name),
            ("CONSTRAINT_NAME", Ty::Text(64)),
            ("TABLE_CATALOG", Ty::Text(64)),
            ("TABLE_SCHEMA", Ty::Name),
            ("TABLE_NAME", Ty::Name),
            ("COLUMN_NAME", Ty::Text(64)),
            ("ORDINAL_POSITION", Ty::UInt),
            ("POSITION_IN_UNIQUE_CONSTRAINT", Ty::UInt),
            ("REFERENCED_TABLE_SCHEMA", Ty::Name),
            ("REFERENCED_TABLE_NAME", Ty::Name),
            ("REFERENCED_COLUMN_NAME", Ty::Text(64)),
        ],
        rows: key_column_usage,
    },
];

fn table_constraints(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    let mut rows = Vec::new();
    for table in reader.tables() {
        for index in table.indexes().iter().filter(|index| index.unique() && !index.parts.is_empty()) {
            let kind = if index.kind == IndexKind::Primary { "PRIMARY KEY" } else { "UNIQUE" };
            rows.push(vec![
                text("def"),
                text(&table.def.db),
                text(&index.name),
                text(&table.def.db),
                text(&table.def.name),
                text(kind),
                text("YES"),
            ]);
        }
    }
    Ok(rows)
}

fn key_column_usage(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    let mut rows = Vec::new();
    for table in reader.tables() {
        for index in table.indexes().iter().filter(|index| index.unique()) {
            for (at, part) in index.parts.iter().enumerate() {
                rows.push(vec![
                    text("def"),
                    text(&table.def.db),
                    text(&index.name),
                    text("def"),
                    text(&table.def.db),
                    text(&table.def.name),
                    text(&table.columns()[part.column].name),
                    Value::UInt(at as u64 + 1),
                    Value::Null,
                    Value::Null,
                    Value::Null,
                    Value::Null,
                ]);
            }
        }
    }
    Ok(rows)
}
