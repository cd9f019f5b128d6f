//! ALTER TABLE, CREATE INDEX and DROP INDEX.
//!
//! The stored definition's tree is edited and built again, so ALTER knows exactly what CREATE
//! knows. What the two definitions have in common keeps its spaces: new indexes are built, removed
//! ones dropped. What each clause does to the tree is in `alter_edit`. Only when rows themselves change are they copied (`copy`).

use super::affected_rows::counted;
use super::alter_edit::{Added, Edit};
use super::build::{BuildContext, build_table, pick_engine, refuse_conflicts};
use super::copy::{self, ColumnSource};
use super::exec::{Change, Ddl, ids};
use super::expressions::{check_dependents, check_expressions, rename_checks};
use super::foreign_keys::{check_columns, check_indexes, named_parents, rename_own};
use super::keys::warn_of_duplicates;
use super::not_built::without_encryption;
use super::online::{Online, Way};
use super::parse_create;
use super::refused::refuse;
use crate::api::{Info, Outcome, Priv};
use crate::catalog::codec::RowVersions;
use crate::catalog::sequence::no_option;
use crate::catalog::show_table;
use crate::catalog::{Check, Index, Schema, Table, TableDef};
use crate::dml::defaults::has_no_default;
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::store::Names;
use crate::store::kept_statistics::histogram_key;
use omnibus_locks::TableMode;
use omnibus_parser::ast::{
    AlterAction, AlterTable, CreateIndex, DefaultValue, DropIndex, Expr, Ident, ObjectName, OrderItem,
    TableOption,
};
use omnibus_value::FixedKind;
use std::sync::Arc;

/// CREATE INDEX.
pub(crate) fn create_index(ddl: &mut Ddl<'_>, tree: &CreateIndex) -> ExecResult<Outcome> {
    let CreateIndex { or_replace, table, index, online } = tree;
    let mut actions = vec![AlterAction::AddIndex(Box::new(index.clone()))];
    if let Some(name) = index.name.clone().filter(|_| *or_replace) {
        actions.insert(0, AlterAction::DropIndex { name, if_exists: true });
    }
    let online = Online::of(online, ddl.state)?;
    alter(ddl, table, &actions, Priv::Index, false, online)
}

/// DROP INDEX.
pub(crate) fn drop_index(ddl: &mut Ddl<'_>, tree: &DropIndex) -> ExecResult<Outcome> {
    let action = if tree.name.is("primary") {
        AlterAction::DropPrimaryKey
    } else {
        AlterAction::DropIndex { name: tree.name.clone(), if_exists: tree.if_exists }
    };
    let online = Online::of(&tree.online, ddl.state)?;
    alter(ddl, &tree.table, &[action], Priv::Index, false, online)
}

/// ALTER TABLE.
pub(crate) fn alter_table(ddl: &mut Ddl<'_>, tree: &AlterTable) -> ExecResult<Outcome> {
    let db = ddl.schema_of(&tree.table)?;
    let table = Some(tree.table.name.as_str());
    // Rows may be copied into what is a new table then.
    ddl.check(&db, table, Priv::Alter)?;
    ddl.check(&db, table, Priv::Create)?;
    ddl.check(&db, table, Priv::Insert)?;
    if tree.actions.iter().any(|action| matches!(action, AlterAction::Rename(_))) {
        ddl.check(&db, table, Priv::Drop)?;
    }
    let online = Online::of(&tree.online, ddl.state)?;
    alter(ddl, &tree.table, &tree.actions, Priv::Alter, tree.if_exists, online)
}

fn alter(
    ddl: &mut Ddl<'_>,
    name: &ObjectName,
    actions: &[AlterAction],
    need: Priv,
    if_exists: bool,
    online: Online,
) -> ExecResult<Outcome> {
    let db = ddl.schema_of(name)?;
    ddl.check(&db, Some(&name.name), need)?;
    let mut names = vec![(db.clone(), name.name.to_string())];
    for action in actions {
        // As RENAME TABLE, it waits for who has locked a table of the new name. Under LOCK TABLES that one is not there.
        if let AlterAction::Rename(new) = action
            && !ddl.trx.locks.has_locked_tables()
        {
            names.push((ddl.schema_of(new)?, new.name.to_string()));
        }
    }
    let added = actions.iter().filter_map(|action| match action {
        AlterAction::AddForeignKey(key) => Some(&**key),
        _ => None,
    });
    names.extend(named_parents(added, &db));
    let mut change = ddl.begin(Names::Tables(&names))?;
    let table = match change.next.table(&db, &name.name) {
        Ok(table) => table.clone(),
        Err(error) if if_exists && error.code == 1146 => {
            ddl.state.diagnostics.note(error);
            ddl.trx.rollback();
            return Ok(Outcome::ok());
        }
        Err(error) => return Err(error.into()),
    };
    if table.def.is_sequence() && !actions.iter().all(|action| matches!(action, AlterAction::Rename(_))) {
        return Err(no_option(&table).into());
    }
    let mut edit = edit(ddl, &table, actions)?;
    check_dependents(&table.def, &mut edit)?;
    edit.finish_checks();
    let children = change.next.children(&db, &name.name);
    check_columns(&table, &edit, &children)?;
    let def = rebuild(ddl, &table, &edit, &mut change)?;
    if !ddl.state.settings.mariadb {
        refuse(&def, Some(&table.def))?;
    }
    warn_of_duplicates(ddl.state, &def, Some(&table.def));
    check_indexes(&def, &edit, &children)?;
    let shape = Arc::new(Table::new(def.clone(), Default::default()));
    check_expressions(&shape, ddl.state, &change.next)?;
    apply(ddl, &mut change, Names::Tables(&names), &table, def, &edit, online)?;
    let warnings = ddl.state.diagnostics.count();
    let outcome = ddl.commit(change)?;
    if let (Some(to), Some(locked)) = (&edit.rename, &mut ddl.state.held.locked) {
        locked.rename((&db, &name.name), (to.schema.as_deref().unwrap_or(&db), &to.name));
    }
    let renames = |action: &AlterAction| matches!(action, AlterAction::Rename(_));
    let info = match actions.iter().all(renames) {
        true => Info::None,
        false => Info::Inserted { records: outcome.affected, duplicates: 0, warnings: warnings.into() },
    };
    Ok(Outcome { info, ..outcome })
}

pub(super) fn edit(ddl: &mut Ddl<'_>, table: &Table, actions: &[AlterAction]) -> SqlResult<Edit> {
    let zone = ddl.state.zone();
    let shown = || table.def.columns.iter().filter(|column| !column.is_hidden());
    let mut tree = parse_create(&show_table(&table.def, 0, zone))?;
    for (column, known) in tree.columns.iter_mut().zip(shown()) {
        if known.nullable && has_no_default(known) {
            column.default = Some(DefaultValue::Dropped);
        }
    }
    for key in &mut tree.indexes {
        let known = key.name.as_deref().and_then(|name| table.index_named(name));
        key.of_foreign_key = known.is_some_and(|at| table.indexes()[at].of_foreign_key);
    }
    let mut edit = Edit {
        // Columns for keys over expressions are made again.
        tree,
        sources: (0..shown().count()).map(ColumnSource::Old).collect(),
        old: shown().map(|column| (Arc::from(&*column.name), false)).collect(),
        renamed: Vec::new(),
        added: Added::default(),
        dropped_columns: Vec::new(),
        dropped_indexes: Vec::new(),
        adds_foreign_keys: false,
        null_defaults: Vec::new(),
        rename: None,
        force: false,
        auto_increment: None,
    };
    let redefines =
        |option: &TableOption| matches!(option, TableOption::Charset(_) | TableOption::Collate(_));
    if actions.iter().any(|action| matches!(action, AlterAction::Option(option) if redefines(option))) {
        edit.keep_collations(table);
    }
    refuse_conflicts(&stated_sets(actions))?;
    super::primary_key::refuse_changes(table, actions)?;
    for action in actions {
        edit_one(ddl, &mut edit, action, table)?;
    }
    edit.finish_indexes();
    super::primary_key::keep(ddl, &mut edit, table)?;
    super::foreign_keys::name_added(&mut edit.tree, &table.def);
    super::functional::add_hidden_columns(ddl, &mut edit, table)?;
    if edit.tree.columns.is_empty() {
        return Err(SqlError::cant_remove_all_fields());
    }
    Ok(edit)
}

/// The character sets and collations that clauses name, in their order.
fn stated_sets(actions: &[AlterAction]) -> Vec<TableOption> {
    let of = |action: &AlterAction| match action {
        AlterAction::Option(option) => vec![option.clone()],
        AlterAction::ConvertCharset { charset, collation } => {
            let charset = charset.clone().map(TableOption::Charset);
            charset.into_iter().chain(collation.clone().map(TableOption::Collate)).collect()
        }
        _ => Vec::new(),
    };
    actions.iter().flat_map(of).collect()
}

fn edit_one(ddl: &mut Ddl<'_>, edit: &mut Edit, action: &AlterAction, table: &Table) -> SqlResult<()> {
    match action {
        AlterAction::AddIndex(key) => {
            let name = key.name.as_ref().or(key.constraint.as_ref());
            let exists = name.is_some_and(|name| edit.find_index(name).is_some());
            if exists && key.if_not_exists {
                ddl.state.diagnostics.note(SqlError::dup_keyname(name.map_or("", Ident::as_str)));
                return Ok(());
            }
            edit.added.indexes.push((**key).clone());
            Ok(())
        }
        AlterAction::Rename(name) => {
            edit.rename = Some(name.clone());
            Ok(())
        }
        AlterAction::OrderBy(list) => order_rows(ddl, edit, list, table),
        AlterAction::Option(TableOption::AutoIncrement(value)) => {
            edit.auto_increment = Some(*value);
            Ok(())
        }
        AlterAction::Option(TableOption::Engine(name)) => {
            let schema = Schema::new(table.def.db.clone(), table.def.collation);
            let mut context = ddl.build_context(&table.def.db, &schema);
            let (engine, _) = pick_engine(name, &table.def.name, &mut context)?;
            // Rows of another engine are in other spaces: all are copied.
            edit.force |= engine != table.def.engine;
            edit.tree.options.retain(|option| !matches!(option, TableOption::Engine(_)));
            edit.tree.options.push(TableOption::Engine((*engine).into()));
            Ok(())
        }
        AlterAction::DropConstraint { name, if_exists: false } if !ddl.state.settings.mariadb => {
            one_constraint(edit, name, "DROP")?;
            edit.apply(action)
        }
        AlterAction::AlterConstraint { name, .. } => {
            one_constraint(edit, name, "ALTER")?;
            if edit.find_check(name).is_some() {
                return edit.apply(action);
            }
            let message = format!(
                "Altering constraint enforcement is not supported for the constraint '{name}'. Enforcement state alter is not supported for the PRIMARY, UNIQUE and FOREIGN KEY type constraints."
            );
            Err(SqlError::new(3941, b"HY000", message))
        }
        AlterAction::DropIndex { name, if_exists: true } if edit.find_index(name).is_none() => {
            ddl.state.diagnostics.note(SqlError::cant_drop_field_or_key(name));
            Ok(())
        }
        AlterAction::DropColumn { name, if_exists: true } if edit.find_column(name).is_none() => {
            ddl.state.diagnostics.note(SqlError::cant_drop_field_or_key(name));
            Ok(())
        }
        AlterAction::AddColumn { column, if_not_exists: true, .. }
            if edit.find_column(&column.name).is_some() =>
        {
            ddl.state.diagnostics.note(SqlError::dup_fieldname(&column.name));
            Ok(())
        }
        action => edit.apply(action),
    }
}

/// Refuses a name that no constraint has, or several of different kinds.
fn one_constraint(edit: &Edit, name: &str, clause: &str) -> SqlResult<()> {
    match edit.constraints_named(name) {
        0 => Err(SqlError::new(3940, b"HY000", format!("Constraint '{name}' does not exist."))),
        1 => Ok(()),
        _ => {
            let message = format!(
                "Table has multiple constraints with the name '{name}'. Please use constraint specific '{clause}' clause."
            );
            Err(SqlError::new(3939, b"HY000", message))
        }
    }
}

/// ORDER BY, which changes nothing where a key orders the rows already.
fn order_rows(ddl: &mut Ddl<'_>, edit: &Edit, list: &[OrderItem], table: &Table) -> SqlResult<()> {
    for item in list.iter().filter(|_| table.def.hidden_key) {
        if let Expr::Column(column) = &item.expr
            && edit.find_column(&column.name).is_none()
        {
            return Err(SqlError::bad_field(&*column.name, "order clause"));
        }
    }
    if !table.def.hidden_key && !ddl.state.settings.mariadb {
        let name = &table.def.name;
        let message =
            format!("ORDER BY ignored as there is a user-defined clustered index in the table '{name}'");
        ddl.state.diagnostics.warn(SqlError::new(1105, b"HY000", message));
    }
    Ok(())
}

/// Builds the edited tree; indexes that stay keep their spaces.
pub(super) fn rebuild(
    ddl: &mut Ddl<'_>,
    table: &Arc<Table>,
    edit: &Edit,
    change: &mut Change,
) -> SqlResult<TableDef> {
    let tree = without_encryption(&edit.tree, ddl.state)?;
    let mut context = BuildContext {
        created: table.def.created,
        uuids: ddl.state.settings.mariadb || has_uuids(table),
        ..ddl.build_context(&table.def.db, &Schema::new(table.def.db.clone(), table.def.collation))
    };
    // The table's own id stays; building hands out one that is not used.
    let mut def = build_table(&tree, &mut context, &mut ids(&mut change.next))?.def;
    def.id = table.def.id;
    Ok(def)
}

fn apply(
    ddl: &mut Ddl<'_>,
    change: &mut Change,
    names: Names<'_>,
    table: &Arc<Table>,
    mut def: TableDef,
    edit: &Edit,
    online: Online,
) -> ExecResult<()> {
    let locked = ddl.trx.locks.has_locked_tables();
    let beside = |way| online.beside(way).filter(|_| !locked);
    let kept = match edit.force || online.copies() {
        true => None,
        false => versions(ddl, table, &def, edit)?,
    };
    let Some(versions) = kept else {
        let follow = !online.copies() && copy::rows_follow(&table.def, &def, &edit.sources);
        let way = if follow { Way::Rebuild } else { Way::Copy };
        online.allow(way, table)?;
        let loaded = ddl.reserve_ids(change, def.indexes.iter().map(|index| index.space))?;
        let copy = |ddl: &mut Ddl<'_>| copy::copy_rows(ddl, table, &def, &edit.sources);
        let rows = match beside(way) {
            Some(TableMode::IntentShared) => {
                super::background::copy_beside_writers(ddl, change, names, table, &def, &edit.sources)?
            }
            Some(_) => super::background::beside_readers(ddl, change, names, table, copy)?,
            None => copy(ddl)?,
        };
        change.loaded.push(loaded);
        let strict = ddl.state.settings.strict();
        change.affected = counted(&table.def, &def, &edit.sources, (strict, online.copies()), rows);
        change.dropped.extend(table.def.indexes.iter().map(|index| index.space));
        return replace_contents(ddl, change, table, def, edit);
    };
    def.versions = versions;
    let mut built = Vec::new();
    for at in 0..def.indexes.len() {
        let new = &def.indexes[at];
        let kept = table.def.indexes.iter().find(|old| same_index(&table.def, old, &def, new, &edit.sources));
        match kept {
            Some(old) => def.indexes[at].space = old.space,
            None => built.push(at),
        }
    }
    let asked = |new: &Check| {
        !new.enforced || table.def.checks.iter().any(|old| old.enforced && old.expr.text == new.expr.text)
    };
    let checked = def.checks.iter().all(asked);
    let related = edit.adds_foreign_keys && ddl.state.settings.foreign_key_checks;
    let way = match (checked && !related, built.is_empty()) {
        (true, true) => Way::Instant,
        (true, false) => Way::Beside,
        (false, _) => Way::InPlace,
    };
    online.allow(way, table)?;
    if !built.is_empty() {
        let loaded = ddl.reserve_ids(change, built.iter().map(|at| def.indexes[*at].space))?;
        match beside(way) {
            Some(TableMode::IntentShared) => {
                super::background::build_beside_writers(ddl, change, names, table, &def, &built)?;
            }
            Some(_) => super::background::beside_readers(ddl, change, names, table, |ddl| {
                build_indexes(ddl, table, &def, &built)
            })?,
            None => build_indexes(ddl, table, &def, &built)?,
        }
        change.loaded.push(loaded);
        change.built.extend(built.iter().map(|at| (def.id, def.indexes[*at].space)));
    }
    if !checked {
        change.affected = copy::check_rows(ddl, table, &def)?;
    }
    let gone = |old: &&Index| !def.indexes.iter().any(|new| new.space == old.space);
    change.dropped.extend(table.def.indexes.iter().filter(gone).map(|old| old.space));
    let new = finish(ddl, change, table, def, edit)?;
    if !built.is_empty() {
        change.fresh.push(new);
    }
    Ok(())
}

fn build_indexes(ddl: &mut Ddl<'_>, table: &Arc<Table>, def: &TableDef, built: &[usize]) -> ExecResult<()> {
    built.iter().try_for_each(|at| copy::build_index(ddl, table, def, *at))
}

/// The versions of the rows behind the statement if they stay as they are; `None` if they are copied.
fn versions(
    ddl: &mut Ddl<'_>,
    table: &Arc<Table>,
    def: &TableDef,
    edit: &Edit,
) -> ExecResult<Option<RowVersions>> {
    if !same_index(&table.def, &table.def.indexes[0], def, &def.indexes[0], &edit.sources) {
        return Ok(None);
    }
    if copy::rows_stay(&table.def, def, &edit.sources) {
        return Ok(Some(table.def.versions.clone()));
    }
    copy::versions_after(ddl, table, def, &edit.sources)
}

fn replace_contents(
    ddl: &mut Ddl<'_>,
    change: &mut Change,
    table: &Arc<Table>,
    def: TableDef,
    edit: &Edit,
) -> ExecResult<()> {
    let new = finish(ddl, change, table, def, edit)?;
    change.fresh.push(new);
    Ok(())
}

/// Puts the new definition in place, under a new name if there is one.
fn finish(
    ddl: &mut Ddl<'_>,
    change: &mut Change,
    table: &Arc<Table>,
    mut def: TableDef,
    edit: &Edit,
) -> ExecResult<Arc<Table>> {
    if let Some(name) = &edit.rename {
        let db = ddl.schema_of(name)?;
        ddl.check(&db, Some(&name.name), Priv::Create)?;
        ddl.check(&db, Some(&name.name), Priv::Insert)?;
        super::build::check_name(&name.name)?;
        change.next.schema(&db)?;
        let same = *db == *table.def.db && *name.name == *table.def.name;
        if !same && change.next.find_table(&db, &name.name).is_some() {
            return Err(SqlError::table_exists(&name.name).into());
        }
        def.db = Arc::from(db.as_str());
        def.name = Arc::from(name.name.as_str());
    }
    if def.name != table.def.name || def.db != table.def.db {
        super::triggers::move_triggers(ddl, change, table, &def.db, &def.name)?;
    }
    rename_own(table, &mut def, &edit.renamed)?;
    if edit.rename.is_some() {
        rename_checks(&table.def, &mut def)?;
    }
    super::foreign_keys::follow_names(ddl, change, table, &def, &edit.renamed);
    drop_histograms(ddl, change, table, &def, &edit.sources);
    let new = super::table::replace_def(ddl, change, table, def);
    super::foreign_keys::check_relations(ddl, change, &new, Some(table))?;
    if let Some(value) = edit.auto_increment {
        set_auto_increment(ddl, change, &new, value)?;
    }
    Ok(new)
}

/// Histograms go with their columns, and with their columns' names and types.
fn drop_histograms(
    ddl: &mut Ddl<'_>,
    change: &mut Change,
    table: &Table,
    def: &TableDef,
    sources: &[ColumnSource],
) {
    let known: Vec<String> = table.state.histograms.read().keys().cloned().collect();
    let stays = |name: &String| {
        def.columns.iter().zip(sources).any(|(new, source)| {
            let ColumnSource::Old(at) = *source else { return false };
            let old = &table.columns()[at];
            old.name.to_lowercase() == *name && new.name.to_lowercase() == *name && old.ty == new.ty
        })
    };
    let gone: Vec<String> = known.into_iter().filter(|name| !stays(name)).collect();
    if gone.is_empty() {
        return;
    }
    for name in &gone {
        ddl.trx.transaction.writes.delete(histogram_key(table.def.id, name));
    }
    let state = table.state.clone();
    change.hooks.push(Box::new(move |_| state.histograms.write().retain(|name, _| !gone.contains(name))));
}

/// AUTO_INCREMENT = value: never below what is in the table.
fn set_auto_increment(
    ddl: &mut Ddl<'_>,
    change: &mut Change,
    table: &Arc<Table>,
    value: u64,
) -> SqlResult<()> {
    if table.auto_column.is_none() {
        return Ok(());
    }
    let next = value.max(ddl.trx.counters.least_auto_increment(table)?).max(1);
    ddl.trx.counters.replace_auto_counter(table, next, &mut ddl.trx.transaction.writes);
    let state = table.state.clone();
    change.hooks.push(Box::new(move |_| state.reset_auto_increment(next)));
    Ok(())
}

/// Whether two indexes hold the same entries: kind of uniqueness, columns, prefixes, order. Names
/// and visibility do not matter.
fn same_index(
    old_def: &TableDef,
    old: &Index,
    new_def: &TableDef,
    new: &Index,
    sources: &[ColumnSource],
) -> bool {
    let same_part = |(a, b): (&crate::catalog::IndexPart, &crate::catalog::IndexPart)| {
        sources[b.column] == ColumnSource::Old(a.column)
            && a.prefix == b.prefix
            && a.descending == b.descending
            && copy::same_key_encoding(&old_def.columns[a.column], &new_def.columns[b.column])
    };
    old.unique() == new.unique()
        && old.clustered == new.clustered
        && old.parts.len() == new.parts.len()
        && old.parts.iter().zip(&new.parts).all(same_part)
}

/// Whether a table has columns that only a statement of the mariadb dialect could give it.
fn has_uuids(table: &Table) -> bool {
    table.columns().iter().any(|column| FixedKind::of(column.ty.kind).is_some())
}
