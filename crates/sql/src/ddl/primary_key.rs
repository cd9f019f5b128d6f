//! Tables without a primary key: `sql_require_primary_key` refuses them, `sql_generate_invisible_primary_key` gives them one.
//!
//! A unique key of columns that are never NULL is as good. The key that is given is a column like others: what makes it the server's is its
//! name, its place, its type and that it is invisible, so that one whom a user writes down in full (a dump) is the same.

use super::alter_edit::Edit;
use super::copy::ColumnSource;
use super::exec::Ddl;
use super::parse_create;
use crate::catalog::{IndexKind as Kind, IndexPart, Table, TableDef, same_name};
use crate::error::{SqlError, SqlResult};
use omnibus_parser::ast::{
    AlterAction, ColumnDef, CreateTable, Ident, IndexKind, KeyPart, KeyTarget, TableOption, TypeName,
};
use omnibus_value::ColumnKind;
use std::borrow::Cow;

/// The column's name.
const NAME: &str = "my_row_id";
/// A table of nothing but the key.
const KEY: &str = "CREATE TABLE `t` (`my_row_id` bigint unsigned NOT NULL AUTO_INCREMENT INVISIBLE, \
                   PRIMARY KEY (`my_row_id`))";

/// Whether a new table gets a key.
pub(super) fn is_generated(ddl: &Ddl<'_>, tree: &CreateTable) -> bool {
    let settings = &ddl.state.settings;
    let foreign = |option: &TableOption| match option {
        TableOption::Engine(name) => {
            crate::api::is_foreign_engine(name) && !crate::api::is_default_engine(name)
        }
        _ => false,
    };
    settings.definitions.generate_primary_key
        && !settings.replicated
        && tree.like.is_none()
        && !tree.options.iter().any(foreign)
        && !has_key(tree)
}

/// The tree with a key, if the table has none and gets one.
///
/// # Errors
/// 4108 and 4109: another column is in the way. 3750: it has none and must.
pub(super) fn with_key<'t>(ddl: &Ddl<'_>, tree: &'t CreateTable) -> SqlResult<Cow<'t, CreateTable>> {
    if !is_generated(ddl, tree) {
        refuse_without(ddl, has_key(tree))?;
        return Ok(Cow::Borrowed(tree));
    }
    if tree.columns.iter().any(|column| same_name(&column.name, NAME)) {
        let message = format!("Failed to generate invisible primary key. Column '{NAME}' already exists.");
        return Err(SqlError::new(4108, b"HY000", message));
    }
    if tree.columns.iter().any(|column| column.auto_increment) {
        let message = "Failed to generate invisible primary key. Auto-increment column already exists.";
        return Err(SqlError::new(4109, b"HY000", message));
    }
    let key = parse_create(KEY)?;
    let mut full = tree.clone();
    full.columns.splice(0..0, key.columns.into_iter().take(1));
    full.indexes.splice(0..0, key.indexes);
    Ok(Cow::Owned(full))
}

/// Refuses a table without a key where `sql_require_primary_key` is ON.
///
/// # Errors
/// 3750.
pub(super) fn refuse_without(ddl: &Ddl<'_>, has_key: bool) -> SqlResult<()> {
    let settings = &ddl.state.settings;
    if has_key || !settings.definitions.require_primary_key || settings.replicated {
        return Ok(());
    }
    let message = "Unable to create or change a table without a primary key, when the system variable 'sql_require_primary_key' is set. Add a primary key to the table or unset this variable to avoid this message. Note that tables without a primary key can cause performance problems in row-based replication, so please consult your DBA before changing this setting.";
    Err(SqlError::new(3750, b"HY000", message))
}

/// Whether a table has a key that names each of its rows.
pub(super) fn is_keyed(def: &TableDef) -> bool {
    def.indexes.iter().any(|index| match index.kind {
        Kind::Primary | Kind::Unique => {
            let is_whole = |part: &IndexPart| {
                let column = &def.columns[part.column];
                part.prefix.is_none() && !column.nullable && !column.is_hidden()
            };
            !index.parts.is_empty() && (index.kind == Kind::Primary || index.parts.iter().all(is_whole))
        }
        Kind::Plain => false,
    })
}

fn has_key(tree: &CreateTable) -> bool {
    let is_required = |column: &ColumnDef| {
        column.nullable == Some(false) || column.auto_increment || column.ty.name == TypeName::Serial
    };
    let is_whole = |part: &KeyPart| match &part.target {
        KeyTarget::Column { name, prefix: None } => {
            tree.columns.iter().any(|column| same_name(&column.name, name) && is_required(column))
        }
        _ => false,
    };
    let of_column = |column: &ColumnDef| {
        column.primary_key || column.ty.name == TypeName::Serial || column.unique && is_required(column)
    };
    tree.columns.iter().any(of_column)
        || tree.indexes.iter().any(|key| match key.kind {
            IndexKind::Primary => true,
            IndexKind::Unique => key.parts.iter().all(is_whole),
            _ => false,
        })
}

/// Whether a table's key is one that the server gives.
fn is_of_server(def: &TableDef) -> bool {
    let Some(column) = def.columns.first() else { return false };
    same_name(&column.name, NAME)
        && column.ty.kind == ColumnKind::BigInt
        && column.ty.unsigned
        && column.auto_increment
        && column.invisible
        && def
            .indexes
            .iter()
            .any(|index| index.kind == Kind::Primary && index.parts.len() == 1 && index.parts[0].column == 0)
}

/// The column that a clause changes, other than its visibility.
fn changed_column(action: &AlterAction) -> Option<&Ident> {
    match action {
        AlterAction::ModifyColumn { column, .. } => Some(&column.name),
        AlterAction::ChangeColumn { old, .. } | AlterAction::RenameColumn { old, .. } => Some(old),
        AlterAction::SetDefault { column, .. } | AlterAction::DropDefault { column } => Some(column),
        _ => None,
    }
}

/// Refuses to change the server's key.
///
/// # Errors
/// 4110.
pub(super) fn refuse_changes(table: &Table, actions: &[AlterAction]) -> SqlResult<()> {
    let mut changed = actions.iter().filter_map(changed_column);
    if is_of_server(&table.def) && changed.any(|name| same_name(name, NAME)) {
        let message = format!("Altering generated invisible primary key column '{NAME}' is not allowed.");
        return Err(SqlError::new(4110, b"HY000", message));
    }
    Ok(())
}

/// Looks at what clauses have left of the table's key. The server's stays before all columns.
///
/// # Errors
/// 1235 and 3750: nothing. 4111: the server's without its column.
pub(super) fn keep(ddl: &Ddl<'_>, edit: &mut Edit, table: &Table) -> SqlResult<()> {
    let settings = &ddl.state.settings;
    let keeps = has_key(&edit.tree);
    if is_keyed(&table.def) && !keeps && settings.definitions.generate_primary_key && !settings.replicated {
        return Err(SqlError::not_supported_yet(
            "an operation that leaves the table without a PRIMARY KEY or a UNIQUE NOT NULL key while @@sql_generate_invisible_primary_key=ON.",
        ));
    }
    refuse_without(ddl, keeps)?;
    if !is_of_server(&table.def) {
        return Ok(());
    }
    let Some(at) = edit.sources.iter().position(|source| *source == ColumnSource::Old(0)) else {
        return Ok(());
    };
    if edit.dropped_indexes.iter().any(|name| same_name(name, "PRIMARY")) {
        let message = "Please drop primary key column to be able to drop generated invisible primary key.";
        return Err(SqlError::new(4111, b"HY000", message));
    }
    if edit.tree.columns[at].invisible == Some(true) {
        edit.tree.columns[..=at].rotate_right(1);
        edit.sources[..=at].rotate_right(1);
    }
    Ok(())
}
