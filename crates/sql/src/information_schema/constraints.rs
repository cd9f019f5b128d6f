//! TABLE_CONSTRAINTS, KEY_COLUMN_USAGE, REFERENTIAL_CONSTRAINTS, CHECK_CONSTRAINTS.

use super::computed::{Def, Reader, Ty, expression_text, text};
use crate::catalog::{ForeignKey, IndexKind, Table};
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
    Def {
        schema: "information_schema",
        name: "REFERENTIAL_CONSTRAINTS",
        columns: &[
            ("CONSTRAINT_CATALOG", Ty::Text(64)),
            ("CONSTRAINT_SCHEMA", Ty::Name),
            ("CONSTRAINT_NAME", Ty::Text(64)),
            ("UNIQUE_CONSTRAINT_CATALOG", Ty::Text(64)),
            ("UNIQUE_CONSTRAINT_SCHEMA", Ty::Name),
            ("UNIQUE_CONSTRAINT_NAME", Ty::Text(64)),
            ("MATCH_OPTION", Ty::Text(7)),
            ("UPDATE_RULE", Ty::Text(11)),
            ("DELETE_RULE", Ty::Text(11)),
            ("TABLE_NAME", Ty::Name),
            ("REFERENCED_TABLE_NAME", Ty::Name),
        ],
        rows: referential_constraints,
    },
    Def {
        schema: "information_schema",
        name: "CHECK_CONSTRAINTS",
        columns: &[
            ("CONSTRAINT_CATALOG", Ty::Text(64)),
            ("CONSTRAINT_SCHEMA", Ty::Name),
            ("CONSTRAINT_NAME", Ty::Text(64)),
            ("CHECK_CLAUSE", Ty::Long),
        ],
        rows: check_constraints,
    },
];

fn check_constraints(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    let mariadb = reader.cx.session.settings.mariadb;
    reader.of_tables(|_, table, rows| {
        for check in &table.def.checks {
            let clause = expression_text(&check.expr, mariadb);
            rows.push(["def", &table.def.db, &check.name, &*clause].map(text).to_vec());
        }
    })
}

fn table_constraints(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    reader.of_tables(|_, table, rows| {
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
        for key in &table.def.foreign_keys {
            let (db, name) = (&table.def.db, &table.def.name);
            let kind = "FOREIGN KEY";
            rows.push(["def", db, &key.name, db, name, kind, "YES"].map(text).to_vec());
        }
        for check in &table.def.checks {
            let (db, name) = (&table.def.db, &table.def.name);
            let enforced = if check.enforced { "YES" } else { "NO" };
            rows.push(["def", db, &check.name, db, name, "CHECK", enforced].map(text).to_vec());
        }
    })
}

fn key_column_usage(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    reader.of_tables(|_, table, rows| {
        for index in table.indexes().iter().filter(|index| index.unique()) {
            for (at, part) in index.parts.iter().enumerate() {
                if table.columns()[part.column].is_hidden() {
                    continue;
                }
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
        for key in &table.def.foreign_keys {
            rows.extend((0..key.columns.len()).map(|at| foreign_key_column(table, key, at)));
        }
    })
}

fn foreign_key_column(table: &Table, key: &ForeignKey, at: usize) -> Vec<Value> {
    let (db, name) = (&*table.def.db, &*table.def.name);
    let column = &*table.columns()[key.columns[at]].name;
    let place = Value::UInt(at as u64 + 1);
    let mut row = ["def", db, &key.name, "def", db, name, column].map(text).to_vec();
    row.extend([place.clone(), place]);
    row.extend([&*key.parent_db, &key.parent, &key.parent_columns[at]].map(text));
    row
}

fn referential_constraints(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    reader.of_tables(|reader, table, rows| {
        for key in &table.def.foreign_keys {
            let index = reader.parent(key).and_then(|parent| {
                let at = parent.def.index_over(&key.positions_in(&parent.def)?)?;
                Some(text(&parent.def.indexes[at].name))
            });
            let mut row = ["def", &table.def.db, &key.name, "def", &key.parent_db].map(text).to_vec();
            row.push(index.unwrap_or(Value::Null));
            row.extend(
                ["NONE", key.on_update.name(), key.on_delete.name(), &table.def.name, &key.parent].map(text),
            );
            rows.push(row);
        }
    })
}
