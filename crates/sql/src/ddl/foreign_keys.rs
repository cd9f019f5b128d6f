//! FOREIGN KEY clauses: what a definition makes of them, what must be true of the tables on both sides, and what a
//! definition that moves, changes or drops one side does to the other.

use super::alter_edit::Edit;
use super::build::{BuildContext, check_constraint_name};
use super::exec::{Change, Ddl};
use crate::api::Priv;
use crate::catalog::{Catalog, Child, Column, ForeignKey, ReferenceAction, Table, TableDef, same_name};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::store::{has_children, verify_foreign_key};
use omnibus_parser::ast::{self, CreateTable};
use omnibus_value::ColumnKind;
use std::sync::Arc;

/// The foreign keys of a tree, with names.
pub(super) fn build_foreign_keys(
    tree: &CreateTable,
    columns: &[Column],
    context: &BuildContext<'_>,
) -> SqlResult<Vec<ForeignKey>> {
    let mut keys: Vec<ForeignKey> = Vec::new();
    let numbers =
        tree.foreign_keys.iter().filter_map(|key| generated(key.constraint.as_deref()?, &tree.name.name));
    let mut last = numbers.max().unwrap_or(0);
    for key in &tree.foreign_keys {
        let name = match &key.constraint {
            Some(name) => name.to_string(),
            None => {
                last += 1;
                format!("{}_ibfk_{last}", tree.name.name)
            }
        };
        check_constraint_name(&name)?;
        if keys.iter().any(|other| same_name(&other.name, &name)) {
            return Err(duplicate_name(&name));
        }
        keys.push(build_foreign_key(key, name, columns, context)?);
    }
    // MySQL shows them by name, and tools compare what is shown.
    keys.sort_by_key(|key: &ForeignKey| key.name.to_lowercase());
    Ok(keys)
}

/// Names the keys that a statement adds to a table: the numbers of those that it drops count as well.
pub(super) fn name_added(tree: &mut CreateTable, def: &TableDef) {
    let old = def.foreign_keys.iter().map(|key| &*key.name);
    let given = tree.foreign_keys.iter().filter_map(|key| key.constraint.as_deref());
    let last = old.chain(given).filter_map(|name| generated(name, &def.name)).max().unwrap_or(0);
    let unnamed = tree.foreign_keys.iter_mut().filter(|key| key.constraint.is_none());
    for (key, number) in unnamed.zip(last + 1..) {
        key.constraint = Some(format!("{}_ibfk_{number}", def.name).into());
    }
}

/// The number of a generated name.
pub(super) fn generated(name: &str, table: &str) -> Option<u32> {
    name.strip_prefix(table)?.strip_prefix("_ibfk_")?.parse().ok()
}

fn build_foreign_key(
    key: &ast::ForeignKey,
    name: String,
    columns: &[Column],
    context: &BuildContext<'_>,
) -> SqlResult<ForeignKey> {
    let references = &key.references;
    if key.columns.len() != references.columns.len() {
        let message = format!(
            "Incorrect foreign key definition for '{name}': Key reference and table reference don't match"
        );
        return Err(SqlError::new(1239, b"42000", message));
    }
    let position = |wanted: &ast::Ident| {
        let found = columns.iter().position(|column| same_name(&column.name, wanted));
        found.ok_or_else(|| SqlError::key_column_does_not_exist(wanted))
    };
    let built = ForeignKey {
        columns: key.columns.iter().map(position).collect::<SqlResult<_>>()?,
        parent_db: Arc::from(references.table.schema.as_ref().map_or(context.db, |db| db.as_str())),
        parent: Arc::from(references.table.name.as_str()),
        parent_columns: references.columns.iter().map(|column| Arc::from(column.as_str())).collect(),
        on_delete: action(references.on_delete)?,
        on_update: action(references.on_update)?,
        name: Arc::from(name),
    };
    let nulls = [built.on_delete, built.on_update].contains(&ReferenceAction::SetNull);
    if let Some(column) =
        built.columns.iter().map(|&at| &columns[at]).find(|column| nulls && !column.nullable)
    {
        let message = format!(
            "Column '{}' cannot be NOT NULL: needed in a foreign key constraint '{}' SET NULL",
            column.name, built.name
        );
        return Err(SqlError::new(1830, b"HY000", message));
    }
    Ok(built)
}

fn action(action: Option<ast::ReferenceAction>) -> SqlResult<ReferenceAction> {
    Ok(match action {
        None | Some(ast::ReferenceAction::NoAction) => ReferenceAction::NoAction,
        Some(ast::ReferenceAction::Restrict) => ReferenceAction::Restrict,
        Some(ast::ReferenceAction::Cascade) => ReferenceAction::Cascade,
        Some(ast::ReferenceAction::SetNull) => ReferenceAction::SetNull,
        Some(ast::ReferenceAction::SetDefault) => return Err(SqlError::cannot_add_foreign()),
    })
}

fn duplicate_name(name: &str) -> SqlError {
    SqlError::new(1826, b"HY000", format!("Duplicate foreign key constraint name '{name}'"))
}

/// The tables that foreign keys of a table in `db` refer to, by database and name.
pub(super) fn named_parents<'t>(
    keys: impl Iterator<Item = &'t ast::ForeignKey> + 't,
    db: &'t str,
) -> impl Iterator<Item = (String, String)> + 't {
    keys.map(move |key| {
        let table = &key.references.table;
        (table.schema.as_ref().map_or(db, |db| db.as_str()).to_owned(), table.name.to_string())
    })
}

/// Checks one foreign key against the table that it refers to; whether it refers to a whole unique key.
fn check_pair(child: &TableDef, key: &ForeignKey, parent: &TableDef, any_index: bool) -> SqlResult<bool> {
    let place = |what: &str| {
        format!(
            "Failed to add the foreign key constraint. Missing {what} for constraint '{}' in the referenced table '{}'",
            key.name, parent.name
        )
    };
    let mut positions = Vec::with_capacity(key.columns.len());
    for (&own, theirs) in key.columns.iter().zip(&key.parent_columns) {
        let found = parent.columns.iter().position(|column| same_name(&column.name, theirs));
        let Some(at) = found else {
            return Err(SqlError::new(3734, b"HY000", place(&format!("column '{theirs}'"))));
        };
        if !comparable(&child.columns[own], &parent.columns[at]) {
            let message = format!(
                "Referencing column '{}' and referenced column '{}' in foreign key constraint '{}' are incompatible.",
                child.columns[own].name, parent.columns[at].name, key.name
            );
            return Err(SqlError::new(3780, b"HY000", message));
        }
        positions.push(at);
    }
    let Some(index) = parent.index_over(&positions) else {
        return Err(SqlError::new(1822, b"HY000", place("index")));
    };
    let exact = parent.indexes[index].unique() && parent.indexes[index].parts.len() == positions.len();
    if exact || any_index { Ok(exact) } else { Err(SqlError::new(6125, b"HY000", place("unique key"))) }
}

/// Whether a value of one column can be looked up among those of the other.
fn comparable(a: &Column, b: &Column) -> bool {
    use ColumnKind as K;
    let text = |kind| matches!(kind, K::Char | K::VarChar);
    let binary = |kind| matches!(kind, K::Binary | K::VarBinary);
    let (a, b) = (&a.ty, &b.ty);
    if text(a.kind) && text(b.kind) {
        return a.collation == b.collation;
    }
    if binary(a.kind) && binary(b.kind) {
        return true;
    }
    if a.kind != b.kind {
        return false;
    }
    match a.kind {
        K::TinyInt | K::SmallInt | K::MediumInt | K::Int | K::BigInt => a.unsigned == b.unsigned,
        // These are numbers: the first member of one is the first of the other.
        K::Enum => (a.labels.len() > 255) == (b.labels.len() > 255),
        K::Set => set_bytes(a.labels.len()) == set_bytes(b.labels.len()),
        _ => true,
    }
}

/// Bytes that a SET of so many members takes.
fn set_bytes(members: usize) -> usize {
    match members.div_ceil(8) {
        bytes @ 0..=4 => bytes,
        _ => 8,
    }
}

/// Checks what a new definition, already in the catalog to be, says about other tables and they about it. `old` is the
/// definition that it replaces.
pub(super) fn check_relations(
    ddl: &mut Ddl<'_>,
    change: &mut Change,
    table: &Arc<Table>,
    old: Option<&Table>,
) -> ExecResult<()> {
    let settings = &ddl.state.settings;
    let checked = settings.foreign_key_checks;
    let any_index = settings.mariadb || !settings.definitions.restrict_fk_on_non_standard_key;
    let told = !settings.mariadb;
    for key in &table.def.foreign_keys {
        let known = old.is_some_and(|old| old.def.foreign_keys.iter().any(|o| same_name(&o.name, &key.name)));
        if !known {
            ddl.check(&key.parent_db, Some(&key.parent), Priv::References)?;
            check_name_is_free(&change.next, table, &key.name)?;
        }
        match change.next.find_table(&key.parent_db, &key.parent) {
            Some(parent) => {
                let exact = check_pair(&table.def, key, &parent.def, any_index || known)?;
                if !exact && !known && told {
                    ddl.state.diagnostics.warn(loose(&key.name));
                }
            }
            None if known || !checked => {}
            None => {
                let message = format!("Failed to open the referenced table '{}'", key.parent);
                return Err(SqlError::new(1824, b"HY000", message).into());
            }
        }
        if !known && checked {
            check_rows(ddl, change, table, key)?;
        }
    }
    if checked {
        for child in change.next.children(&table.def.db, &table.def.name) {
            let adopted =
                old.is_none_or(|old| *old.def.name != *table.def.name || *old.def.db != *table.def.db);
            check_pair(&child.table.def, child.foreign_key(), &table.def, any_index || !adopted)?;
        }
    }
    Ok(())
}

fn loose(name: &str) -> SqlError {
    let message = format!(
        "Foreign key '{name}' refers to non-unique key or partial key. This is deprecated and will be removed in a future release."
    );
    SqlError::new(6124, b"HY000", message)
}

/// The rows that are there must have their parents. Both tables are locked.
fn check_rows(
    ddl: &mut Ddl<'_>,
    change: &mut Change,
    table: &Arc<Table>,
    key: &ForeignKey,
) -> ExecResult<()> {
    let parent = change.next.find_table(&key.parent_db, &key.parent);
    let Some(parent) = parent.cloned() else { return Ok(()) };
    change.affected = verify_foreign_key(ddl.trx, table, key, &parent)?.max(change.affected);
    Ok(())
}

/// Refuses to drop or empty a table that others refer to.
pub(super) fn refuse_referenced(
    ddl: &Ddl<'_>,
    catalog: &Catalog,
    table: &Table,
    goes_too: impl Fn(&Child) -> bool,
) -> SqlResult<Option<Child>> {
    if !ddl.state.settings.foreign_key_checks {
        return Ok(None);
    }
    let children = catalog.children(&table.def.db, &table.def.name).into_iter();
    Ok(children.filter(|child| child.table.def.id != table.def.id).find(|child| !goes_too(child)))
}

/// Foreign keys of other tables follow a table and its columns to new names.
pub(super) fn follow_names(
    ddl: &mut Ddl<'_>,
    change: &mut Change,
    old: &Table,
    new: &TableDef,
    renamed: &[(ast::Ident, ast::Ident)],
) {
    let moved = *old.def.name != *new.name || *old.def.db != *new.db;
    if !moved && renamed.is_empty() {
        return;
    }
    let mut children = change.next.children(&old.def.db, &old.def.name);
    children.dedup_by_key(|child| child.table.def.id);
    for child in children.into_iter().filter(|child| child.table.def.id != old.def.id) {
        let mut def = child.table.def.clone();
        for key in def.foreign_keys.iter_mut().filter(|key| key.refers_to(&old.def.db, &old.def.name)) {
            rename_in(key, old, new, renamed);
        }
        super::table::replace_def(ddl, change, &child.table, def);
    }
}

fn rename_in(key: &mut ForeignKey, old: &Table, new: &TableDef, renamed: &[(ast::Ident, ast::Ident)]) {
    debug_assert!(key.refers_to(&old.def.db, &old.def.name));
    (key.parent_db, key.parent) = (new.db.clone(), new.name.clone());
    for column in &mut key.parent_columns {
        if let Some((_, to)) = renamed.iter().find(|(from, _)| same_name(from, column)) {
            *column = Arc::from(to.as_str());
        }
    }
}

/// A definition's own foreign keys under its new name: those to itself, and those with generated names.
///
/// # Errors
/// 1059: such a name is too long.
pub(super) fn rename_own(
    old: &Table,
    new: &mut TableDef,
    renamed: &[(ast::Ident, ast::Ident)],
) -> SqlResult<()> {
    let mut keys = std::mem::take(&mut new.foreign_keys);
    for key in &mut keys {
        if key.refers_to(&old.def.db, &old.def.name) {
            rename_in(key, old, new, renamed);
        }
        if let Some(number) = generated(&key.name, &old.def.name) {
            key.name = Arc::from(format!("{}_ibfk_{number}", new.name));
            check_constraint_name(&key.name)?;
        }
    }
    new.foreign_keys = keys;
    Ok(())
}

fn check_name_is_free(catalog: &Catalog, table: &Table, name: &str) -> SqlResult<()> {
    let schema = catalog.schema(&table.def.db)?;
    let others = schema.tables.values().filter(|other| other.def.id != table.def.id);
    let taken = others.flat_map(|other| &other.def.foreign_keys).any(|key| same_name(&key.name, name));
    if taken { Err(duplicate_name(name)) } else { Ok(()) }
}

/// Refuses to drop columns that a foreign key needs.
pub(super) fn check_columns(old: &Table, edit: &Edit, children: &[Child]) -> SqlResult<()> {
    let gone = |name: &str| edit.dropped_columns.iter().any(|dropped| same_name(dropped, name));
    for key in &edit.tree.foreign_keys {
        if let Some(column) = key.columns.iter().find(|column| gone(column)) {
            let name = key.constraint.as_deref().unwrap_or_default();
            let message =
                format!("Cannot drop column '{column}': needed in a foreign key constraint '{name}'");
            return Err(SqlError::new(1828, b"HY000", message));
        }
    }
    for child in children.iter().filter(|child| child.table.def.id != old.def.id) {
        let key = child.foreign_key();
        if let Some(column) = key.parent_columns.iter().find(|column| gone(column)) {
            let message = format!(
                "Cannot drop column '{column}': needed in a foreign key constraint '{}' of table '{}'",
                key.name, child.table.def.name
            );
            return Err(SqlError::new(1829, b"HY000", message));
        }
    }
    Ok(())
}

/// Refuses to drop the only index that a foreign key has.
pub(super) fn check_indexes(new: &TableDef, edit: &Edit, children: &[Child]) -> SqlResult<()> {
    let Some(dropped) = edit.dropped_indexes.first() else { return Ok(()) };
    let needed = || {
        let message = format!("Cannot drop index '{dropped}': needed in a foreign key constraint");
        Err(SqlError::new(1553, b"HY000", message))
    };
    // An index that the definition got because a foreign key has no other.
    let made = new.indexes.iter().filter(|index| !index.parts.is_empty()).count() > edit.tree.indexes.len();
    if made && !edit.adds_foreign_keys {
        return needed();
    }
    let lacks = |child: &Child| {
        let renamed = |name: &Arc<str>| {
            let to = edit.renamed.iter().find(|(from, _)| same_name(from, name)).map(|(_, to)| to.as_str());
            new.columns.iter().position(|column| same_name(&column.name, to.unwrap_or(name)))
        };
        let columns: Option<Vec<usize>> = child.foreign_key().parent_columns.iter().map(renamed).collect();
        columns.is_some_and(|columns| new.index_over(&columns).is_none())
    };
    if children.iter().any(lacks) { needed() } else { Ok(()) }
}

/// Error 3730 or, as MariaDB has it, 1451.
pub(super) fn cannot_drop(table: &Table, child: &Child, mariadb: bool) -> SqlError {
    let (key, name) = (child.foreign_key(), &child.table.def.name);
    if mariadb {
        return has_children(&child.table, key);
    }
    let message = format!(
        "Cannot drop table '{}' referenced by a foreign key constraint '{}' on table '{name}'.",
        table.def.name, key.name
    );
    SqlError::new(3730, b"HY000", message)
}

/// Error 1701.
pub(super) fn cannot_truncate(child: &Child) -> SqlError {
    let key = child.foreign_key();
    let quote = crate::catalog::quote_ident;
    let message = format!(
        "Cannot truncate a table referenced in a foreign key constraint ({}.{}, CONSTRAINT {})",
        quote(&child.table.def.db),
        quote(&child.table.def.name),
        quote(&key.name)
    );
    SqlError::new(1701, b"42000", message)
}
