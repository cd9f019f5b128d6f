//! Binds JSON_TABLE: types, paths and defaults of its columns, and a document that may read the tables in front of it.

use super::binder::Binder;
use super::block::Clause;
use super::from::{From, computed};
use super::types::column_type;
use crate::api::ResultColumn;
use crate::catalog::{Column, first_double};
use crate::error::{SqlError, SqlResult};
use crate::expr::functions::json::failure;
use crate::logical::json_table::{Cell, CellKind, Instead, JsonTable, Level};
use crate::logical::nest::{ItemSource, Nest};
use omnibus_parser::ast::{self, JsonColumn, JsonInstead, JsonPlace};
use omnibus_value::json::{Json, Path};
use omnibus_value::{ColumnKind, ColumnType};
use std::sync::Arc;

/// As MySQL: levels in one table.
const MOST_LEVELS: usize = 16;

impl From<'_> {
    /// JSON_TABLE(..) AS alias.
    pub(super) fn json_table(
        &mut self,
        binder: &mut Binder<'_>,
        tree: &ast::JsonTable,
        nest: &mut Nest,
    ) -> SqlResult<()> {
        let Some(alias) = &tree.alias else {
            return Err(SqlError::new(3667, b"42000", "Every table function must have an alias"));
        };
        binder.set_clause(Clause::TableFunction);
        let doc = binder.expr(&tree.doc)?;
        let mut all = Vec::new();
        let level = level(binder, &tree.path, &tree.columns, &mut all, 1)?;
        if let Some(at) = first_double(all.iter().map(|column| &*column.name)) {
            return Err(SqlError::dup_fieldname(&all[at].name));
        }
        let empty: Arc<str> = "".into();
        let shown = |column: &Column| ResultColumn {
            schema: empty.clone(),
            table: (&**alias).into(),
            org_table: empty.clone(),
            name: column.name.clone(),
            org_name: column.name.clone(),
            ty: column.ty.clone(),
            flags: 0,
        };
        let columns: Arc<[ResultColumn]> = all.iter().map(shown).collect();
        let outer = doc.slots();
        let table = JsonTable { doc, outer, level, alias: (&**alias).into(), columns: columns.clone() };
        let scope = computed(binder.new_slot(), alias, columns);
        self.add(binder, scope, ItemSource::Virtual(Arc::new(table)), Vec::new(), nest)
    }
}

fn path(text: &[u8]) -> SqlResult<Path> {
    Path::parse(text).map_err(|error| failure(&error, 1, "json_table"))
}

fn instead(tree: &JsonInstead) -> SqlResult<Instead> {
    Ok(match tree {
        JsonInstead::Null => Instead::Null,
        JsonInstead::Error => Instead::Error,
        JsonInstead::Default(text) => {
            let parsed = Json::parse(text).map_err(|error| failure(&error, 1, "JSON_TABLE"))?;
            Instead::Default(parsed)
        }
    })
}

fn level(
    binder: &Binder<'_>,
    row: &[u8],
    trees: &[JsonColumn],
    all: &mut Vec<Column>,
    depth: usize,
) -> SqlResult<Level> {
    if depth > MOST_LEVELS {
        let message = format!("More than supported {MOST_LEVELS} NESTED PATHs were found in JSON_TABLE");
        return Err(SqlError::new(3670, b"42000", message));
    }
    let mut made = Level { path: path(row)?, cells: Vec::new(), nested: Vec::new() };
    for tree in trees {
        let (column, kind) = match tree {
            JsonColumn::Nested { path, columns } => {
                made.nested.push(level(binder, path, columns, all, depth + 1)?);
                continue;
            }
            JsonColumn::Ordinality(name) => (Column::free(name, ordinality(binder)), CellKind::Ordinality),
            JsonColumn::Place(place) => placed(binder, place)?,
        };
        made.cells.push(Cell { at: all.len(), column: column.clone(), kind });
        all.push(column);
    }
    Ok(made)
}

/// MySQL's numbers of rows have a sign.
fn ordinality(binder: &Binder<'_>) -> ColumnType {
    match binder.session.settings.mariadb {
        true => ColumnType::of(ColumnKind::Int).unsigned(),
        false => ColumnType::of(ColumnKind::BigInt),
    }
}

fn placed(binder: &Binder<'_>, place: &JsonPlace) -> SqlResult<(Column, CellKind)> {
    let settings = &binder.session.settings;
    let (collation, utf8mb4) = (settings.collation_connection, settings.default_collation_for_utf8mb4);
    let (mut ty, _) = column_type(&place.name, &place.ty, collation, utf8mb4)?;
    // A document has no time zone.
    if ty.kind == ColumnKind::Timestamp {
        ty.kind = ColumnKind::DateTime;
    }
    let path = path(&place.path)?;
    let kind = match place.exists {
        true => CellKind::Exists(path),
        false => {
            let (on_empty, on_error) = (instead(&place.on_empty)?, instead(&place.on_error)?);
            CellKind::Value { path, on_empty, on_error }
        }
    };
    Ok((Column::free(&place.name, ty), kind))
}
