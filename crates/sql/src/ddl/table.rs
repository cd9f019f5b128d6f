//! CREATE, DROP, TRUNCATE and RENAME TABLE.

use super::build::{Built, build_table};
use super::exec::{Change, Ddl, ids, spaces};
use super::expressions::{check_expressions, rename_checks};
use super::foreign_keys::{cannot_drop, cannot_truncate, named_parents, rename_own};
use super::keys::warn_of_duplicates;
use super::refused::refuse;
use crate::api::{Outcome, Priv, SessionSettings};
use crate::catalog::sequence::no_option;
use crate::catalog::{Child, Column, ColumnDefault, Table, TableDef, TableState, persist};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::store::Names;
use crate::store::kept_statistics::histogram_key;
use bytes::Bytes;
use omnibus_parser::ast::{CreateTable, DropTable, ObjectName};
use omnibus_value::Value;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// CREATE TABLE, without AS SELECT's rows.
pub(crate) fn create_table(ddl: &mut Ddl<'_>, tree: &CreateTable) -> ExecResult<Outcome> {
    let Some(change) = new_table(ddl, tree)? else { return Ok(Outcome::ok()) };
    end(ddl, tree, change, |ddl, change| ddl.commit(change))
}

/// CREATE TABLE whose rows follow in the same transaction.
pub(crate) fn create_table_open(ddl: &mut Ddl<'_>, tree: &CreateTable) -> ExecResult<Outcome> {
    if let Some(change) = new_table(ddl, tree)? {
        end(ddl, tree, change, |ddl, change| ddl.leave_open(change))?;
    }
    Ok(Outcome::ok())
}

/// Ends the statement by `run`. The log has its full text if its table has a key that it does not name.
fn end<T>(
    ddl: &mut Ddl<'_>,
    tree: &CreateTable,
    change: Change,
    run: fn(&mut Ddl<'_>, Change) -> ExecResult<T>,
) -> ExecResult<T> {
    let generated = super::primary_key::is_generated(ddl, tree);
    match change.fresh.last().filter(|_| generated) {
        Some(table) => {
            let text = full_text(ddl, table);
            run(&mut ddl.told_as(&text), change)
        }
        None => run(ddl, change),
    }
}

/// CREATE TABLE ... SELECT: logged as the definition that it amounts to. `None`: it is there and may be.
pub(crate) fn create_table_as(ddl: &mut Ddl<'_>, tree: &CreateTable) -> ExecResult<Option<Arc<Table>>> {
    let Some(change) = new_table(ddl, tree)? else { return Ok(None) };
    let table = change.fresh.last().cloned().ok_or_else(SqlError::unknown_error)?;
    let text = full_text(ddl, &table);
    ddl.told_as(&text).leave_open(change)?;
    Ok(Some(table))
}

/// The statement that makes a table as it is. The event says that it is in the client's character set.
fn full_text(ddl: &Ddl<'_>, table: &Table) -> Vec<u8> {
    let name = crate::catalog::quote_ident(&table.def.name);
    let full = format!("{}.{name}", crate::catalog::quote_ident(&table.def.db));
    let text = crate::catalog::show_table(&table.def, 0, ddl.state.zone()).replacen(&name, &full, 1);
    crate::api::client_text::of_client(text.as_bytes(), ddl.state.settings.collation_client).into_owned()
}

/// The change that adds a table; `None` if it is there and may be.
pub(super) fn new_table(ddl: &mut Ddl<'_>, tree: &CreateTable) -> ExecResult<Option<Change>> {
    let db = ddl.schema_of(&tree.name)?;
    let name = tree.name.name.as_str();
    ddl.check(&db, Some(name), Priv::Create)?;
    if tree.or_replace {
        ddl.check(&db, Some(name), Priv::Drop)?;
    }
    // A table that is there is of no concern to others, unless it is to go. The tables that it refers to, and those
    // that wait for it, are.
    let mut names: Vec<_> = named_parents(tree.foreign_keys.iter(), &db).collect();
    names.retain(|parent| *parent != (db.clone(), name.to_owned()));
    let is_there = ddl.trx.catalog().find_table(&db, name).is_some();
    if tree.or_replace || ddl.trx.locks.has_locked_tables() && !is_there {
        names.push((db.clone(), name.to_owned()));
    }
    let mut change = ddl.begin(Names::Tables(&names))?;
    let schema = change.next.schema(&db)?.clone();
    if let Some(existing) = schema.tables.get(name).filter(|_| tree.or_replace).cloned() {
        refuse_to_drop(ddl, &change, &existing, |_| false)?;
        super::triggers::drop_triggers(ddl, &mut change, &existing);
        drop_one(ddl, &mut change, &existing);
    } else if schema.has(name) && refuse_definition(ddl, tree)? && tree.if_not_exists {
        ddl.state.diagnostics.note(SqlError::table_exists(name));
        ddl.trx.rollback();
        return Ok(None);
    } else if schema.has(name) {
        let view = super::view::is_a_view(ddl, &change, &db, name).filter(|_| tree.or_replace);
        return Err(view.unwrap_or_else(|| SqlError::table_exists(name)).into());
    }
    let built = match &tree.like {
        Some(source) => like(ddl, &mut change, source, &db, name)?,
        None => {
            let tree = super::not_built::without_encryption(tree, ddl.state)?;
            let tree = super::primary_key::with_key(ddl, &tree)?;
            let tree = super::functional::with_hidden_columns(ddl, &tree, &db, &schema)?;
            let mut context = ddl.build_context(&db, &schema);
            let built = build_table(&tree, &mut context, &mut ids(&mut change.next))?;
            if !ddl.state.settings.mariadb {
                refuse(&built.def, None)?;
            }
            warn_of_duplicates(ddl.state, &built.def, None);
            built
        }
    };
    ddl.trx.locks.lock_successor(ddl.trx.statement.waits(), built.def.id)?;
    let table = add_table(ddl, &mut change, built);
    check_expressions(&table, ddl.state, &change.next)?;
    super::foreign_keys::check_relations(ddl, &mut change, &table, None)?;
    Ok(Some(change))
}

/// Puts a new table into the catalog to be.
pub(super) fn add_table(ddl: &mut Ddl<'_>, change: &mut Change, built: Built) -> Arc<Table> {
    let writes = &mut ddl.trx.transaction.writes;
    persist::put_table(writes, &built.def);
    if let Some(counter) = built.auto_increment.filter(|counter| *counter > 1) {
        writes.put(persist::counter_key(built.def.id, counter), Bytes::new());
    }
    let table = Arc::new(Table::new(built.def, Arc::new(TableState::default())));
    change.fresh.push(table.clone());
    change.next.put_table(table.clone());
    table
}

/// Fails for what is wrong with a definition whatever its name, before it is said that the name is taken; true if nothing is.
fn refuse_definition(ddl: &mut Ddl<'_>, tree: &CreateTable) -> SqlResult<bool> {
    if let Some(source) = tree.like.as_ref().filter(|_| !ddl.state.settings.mariadb) {
        super::temporary::table_to_copy(ddl, source)?;
    }
    let settings = &ddl.state.settings;
    if !settings.ignore_unsupported_constraints {
        super::build::stated_collation(&tree.options, settings.default_collation_for_utf8mb4)?;
    }
    Ok(true)
}

fn like(
    ddl: &mut Ddl<'_>,
    change: &mut Change,
    source: &ObjectName,
    db: &str,
    name: &str,
) -> SqlResult<Built> {
    let source = super::temporary::table_to_copy(ddl, source)?;
    if source.def.is_sequence() {
        return Err(no_option(&source));
    }
    super::primary_key::refuse_without(ddl, super::primary_key::is_keyed(&source.def))?;
    let mut def = source.def.of_new_rows();
    let mut ids = ids(&mut change.next);
    def.id = ids.table();
    for index in &mut def.indexes {
        index.space = ids.space(index.space.slot());
        index.of_foreign_key = false;
    }
    def.db = Arc::from(db);
    def.name = Arc::from(name);
    def.created = (ddl.state.statement.now_us / 1_000_000) as u64;
    def.foreign_keys.clear();
    rename_checks(&source.def, &mut def)?;
    if let Some(column) = def.columns.iter().find(|column| has_zero_default(&ddl.state.settings, column)) {
        return Err(SqlError::invalid_default(&column.name));
    }
    Ok(Built { def, auto_increment: None })
}

/// Removes a table's rows of the catalog space.
pub(super) fn forget_table(ddl: &mut Ddl<'_>, table: &Table) {
    let covered = table.state.auto_covered.load(Ordering::Acquire);
    let writes = &mut ddl.trx.transaction.writes;
    persist::delete_table(writes, table.def.id);
    for column in table.state.histograms.read().keys() {
        writes.delete(histogram_key(table.def.id, column));
    }
    if covered != 0 {
        writes.delete(persist::counter_key(table.def.id, covered));
    }
}

pub(super) fn refuse_to_drop(
    ddl: &Ddl<'_>,
    change: &Change,
    table: &Table,
    goes_too: impl Fn(&Child) -> bool,
) -> SqlResult<()> {
    match super::foreign_keys::refuse_referenced(ddl, &change.next, table, goes_too)? {
        Some(child) => Err(cannot_drop(table, &child, ddl.state.settings.mariadb)),
        None => Ok(()),
    }
}

/// Drops a table that is locked.
fn drop_one(ddl: &mut Ddl<'_>, change: &mut Change, table: &Arc<Table>) {
    forget_table(ddl, table);
    change.next.remove_table(&table.def.db, &table.def.name);
    change.dropped.extend(spaces(table));
    change.stale.push(table.clone());
}

/// The names in a DROP, once the session may drop them.
pub(super) fn names_to_drop(ddl: &Ddl<'_>, tree: &DropTable) -> ExecResult<Vec<(String, String)>> {
    let mut names = Vec::with_capacity(tree.tables.len());
    for name in &tree.tables {
        let db = ddl.schema_of(name)?;
        ddl.check(&db, Some(&name.name), Priv::Drop)?;
        names.push((db, name.name.to_string()));
    }
    Ok(names)
}

/// DROP TABLE: all of them or none.
pub(crate) fn drop_tables(ddl: &mut Ddl<'_>, tree: &DropTable) -> ExecResult<Outcome> {
    let names = names_to_drop(ddl, tree)?;
    let mut dropped = HashSet::with_capacity(names.len());
    if let Some((_, twice)) = names.iter().find(|(db, name)| !dropped.insert((&**db, &**name))) {
        return Err(SqlError::nonuniq_table(twice).into());
    }
    let mut change = ddl.begin(Names::Tables(&names))?;
    let mut missing = Vec::new();
    for (db, name) in &names {
        match change.next.find_table(db, name).cloned() {
            Some(table) => {
                let goes_too =
                    |child: &Child| dropped.contains(&(&*child.table.def.db, &*child.table.def.name));
                refuse_to_drop(ddl, &change, &table, goes_too)?;
                super::triggers::drop_triggers(ddl, &mut change, &table);
                drop_one(ddl, &mut change, &table);
            }
            None if change.next.schemas.contains_key(&**db) || tree.if_exists => {
                match super::view::is_a_view(ddl, &change, db, name) {
                    Some(note) if tree.if_exists => ddl.state.diagnostics.note(note),
                    Some(error) => return Err(error.into()),
                    None => missing.push(format!("{db}.{name}")),
                }
            }
            None => return Err(SqlError::bad_db(db).into()),
        }
    }
    if !missing.is_empty() && !tree.if_exists {
        return Err(SqlError::bad_table(missing.join(",")).into());
    }
    note_missing(ddl, missing);
    if change.stale.is_empty() {
        ddl.trx.rollback();
        return Ok(Outcome::ok());
    }
    ddl.commit(change)
}

/// Notes the tables of DROP TABLE IF EXISTS that are not there: each by itself, or in the mariadb dialect all at once.
pub(super) fn note_missing(ddl: &mut Ddl<'_>, names: Vec<String>) {
    for names in told_together(ddl, names) {
        ddl.state.diagnostics.note(SqlError::bad_table(names));
    }
}

/// The names that each note tells of.
pub(super) fn told_together(ddl: &Ddl<'_>, names: Vec<String>) -> Vec<String> {
    match ddl.state.settings.mariadb && !names.is_empty() {
        true => vec![names.join(",")],
        false => names,
    }
}

/// TRUNCATE TABLE: the same definition over new spaces.
pub(crate) fn truncate(ddl: &mut Ddl<'_>, name: &ObjectName) -> ExecResult<Outcome> {
    let db = ddl.schema_of(name)?;
    ddl.check(&db, Some(&name.name), Priv::Drop)?;
    let mut change = ddl.begin(Names::Tables(&[(db.clone(), name.name.to_string())]))?;
    if change.next.find_view(&db, &name.name).is_some() {
        return Err(SqlError::no_such_table(&db, &name.name).into());
    }
    let table = change.next.table(&db, &name.name)?.clone();
    if table.def.is_sequence() {
        return Err(no_option(&table).into());
    }
    if let Some(child) = super::foreign_keys::refuse_referenced(ddl, &change.next, &table, |_| false)? {
        return Err(cannot_truncate(&child).into());
    }
    drop_one(ddl, &mut change, &table);
    let mut def = table.def.of_new_rows();
    let mut ids = ids(&mut change.next);
    def.id = ids.table();
    for index in &mut def.indexes {
        index.space = ids.space(index.space.slot());
    }
    ddl.trx.locks.lock_successor(ddl.trx.statement.waits(), def.id)?;
    add_table(ddl, &mut change, Built { def, auto_increment: None });
    ddl.commit(change)
}

/// RENAME TABLE: from left to right, all or none.
pub(crate) fn rename_tables(ddl: &mut Ddl<'_>, pairs: &[(ObjectName, ObjectName)]) -> ExecResult<Outcome> {
    let mut names = Vec::with_capacity(pairs.len());
    for (from, to) in pairs {
        let from_db = ddl.schema_of(from)?;
        let to_db = ddl.schema_of(to)?;
        ddl.check(&from_db, Some(&from.name), Priv::Alter)?;
        ddl.check(&from_db, Some(&from.name), Priv::Drop)?;
        ddl.check(&to_db, Some(&to.name), Priv::Create)?;
        ddl.check(&to_db, Some(&to.name), Priv::Insert)?;
        names.push((from_db, from.name.to_string(), to_db, to.name.to_string()));
    }
    // The tables before the names that they get: whoever waits for one of them must not get in between.
    let sources = names.iter().map(|(db, name, ..)| (db.clone(), name.clone()));
    let targets = names.iter().map(|(.., db, name)| (db.clone(), name.clone()));
    let locks: Vec<_> = match ddl.trx.locks.has_locked_tables() {
        true => sources
            .filter(|source| !names.iter().any(|(.., db, name)| (db, name) == (&source.0, &source.1)))
            .collect(),
        false => sources.chain(targets).collect(),
    };
    let mut change = ddl.begin(Names::Tables(&locks))?;
    for (from_db, from, to_db, to) in &names {
        if let Some(view) = change.next.find_view(from_db, from).cloned() {
            super::view::rename_view(ddl, &mut change, &view, (to_db, to))?;
            continue;
        }
        let table = change.next.table(from_db, from)?.clone();
        rename(ddl, &mut change, &table, to_db, to)?;
    }
    let outcome = ddl.commit(change)?;
    if let Some(locked) = &mut ddl.state.held.locked {
        names.iter().for_each(|(db, from, to_db, to)| locked.rename((db, from), (to_db, to)));
    }
    Ok(outcome)
}

/// Moves a table to another name; its contents stay.
pub(super) fn rename(
    ddl: &mut Ddl<'_>,
    change: &mut Change,
    table: &Arc<Table>,
    db: &str,
    name: &str,
) -> SqlResult<()> {
    super::build::check_name(name)?;
    if change.next.schema(db)?.has(name) {
        return Err(SqlError::table_exists(name));
    }
    let mut def = TableDef { db: Arc::from(db), name: Arc::from(name), ..table.def.clone() };
    rename_own(table, &mut def, &[])?;
    rename_checks(&table.def, &mut def)?;
    super::foreign_keys::follow_names(ddl, change, table, &def, &[]);
    super::triggers::move_triggers(ddl, change, table, db, name)?;
    replace_def(ddl, change, table, def);
    Ok(())
}

/// A definition over the same contents takes the place of another.
pub(crate) fn replace_def(
    ddl: &mut Ddl<'_>,
    change: &mut Change,
    table: &Arc<Table>,
    def: TableDef,
) -> Arc<Table> {
    persist::put_table(&mut ddl.trx.transaction.writes, &def);
    let new = Arc::new(Table::new(def, table.state.clone()));
    new.valid_from.store(table.valid_from.load(Ordering::Acquire), Ordering::Release);
    change.next.remove_table(&table.def.db, &table.def.name);
    change.next.put_table(new.clone());
    change.stale.push(table.clone());
    new
}

/// Whether the session's sql_mode refuses a column's default: a date of zeros.
fn has_zero_default(settings: &SessionSettings, column: &Column) -> bool {
    settings.strict()
        && settings.date_mode().no_zero_date
        && match &column.default {
            ColumnDefault::Value(Value::Date(date)) => date.is_zero(),
            ColumnDefault::Value(Value::DateTime(at)) => at.is_zero(),
            _ => false,
        }
}
