//! The names whose rows a query asks for, before they are made: conditions on the columns that name a row's table are asked of every table's
//! name first. A client that asks for one table's columns does not wait for those of thousands.

use super::computed::{Def, text};
use crate::expr::{Context, Expr};
use crate::logical::Asked;
use omnibus_value::Value;

/// The columns of a computed table that say which schema's, and which table's, a row is.
fn columns(def: &Def) -> (&'static [&'static str], &'static [&'static str]) {
    match def.name {
        "COLUMNS" | "TABLES" | "VIEWS" => (&["TABLE_SCHEMA"], &["TABLE_NAME"]),
        "STATISTICS" => (&["TABLE_SCHEMA", "INDEX_SCHEMA"], &["TABLE_NAME"]),
        "KEY_COLUMN_USAGE" | "TABLE_CONSTRAINTS" => (&["TABLE_SCHEMA", "CONSTRAINT_SCHEMA"], &["TABLE_NAME"]),
        "REFERENTIAL_CONSTRAINTS" => (&["CONSTRAINT_SCHEMA"], &["TABLE_NAME"]),
        "CHECK_CONSTRAINTS" => (&["CONSTRAINT_SCHEMA"], &[]),
        "COLUMN_STATISTICS" => (&["SCHEMA_NAME"], &["TABLE_NAME"]),
        "VIEW_TABLE_USAGE" => (&["VIEW_SCHEMA"], &["VIEW_NAME"]),
        "table_io_waits_summary_by_table" | "table_io_waits_summary_by_index_usage" => {
            (&["OBJECT_SCHEMA"], &["OBJECT_NAME"])
        }
        _ => (&[], &[]),
    }
}

/// The names that a query asks for.
pub(super) struct Names<'a> {
    asked: Asked<'a>,
    conditions: Vec<&'a Expr>,
    schemas: Vec<u16>,
    tables: Vec<u16>,
    width: usize,
}

impl<'a> Names<'a> {
    /// Of a table's rows.
    pub fn of(def: &Def, asked: Asked<'a>) -> Names<'a> {
        let at = |names: &[&str]| -> Vec<u16> {
            (0..).zip(def.columns).filter(|(_, (name, _))| names.contains(name)).map(|(at, _)| at).collect()
        };
        let (schemas, tables) = columns(def);
        let (schemas, tables) = (at(schemas), at(tables));
        let conditions = asked.only(&[&schemas[..], &tables].concat());
        Names { asked, conditions, schemas, tables, width: def.columns.len() }
    }

    /// Whether rows of this table can be asked for.
    pub fn asked(&self, schema: &str, table: &str, cx: &mut Context<'_>) -> bool {
        if self.conditions.is_empty() {
            return true;
        }
        let mut row = vec![Value::Null; self.width];
        for (columns, name) in [(&self.schemas, schema), (&self.tables, table)] {
            columns.iter().for_each(|at| row[usize::from(*at)] = text(name));
        }
        self.asked.met(&self.conditions, row.into(), cx)
    }
}
