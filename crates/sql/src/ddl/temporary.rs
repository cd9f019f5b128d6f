//! Definitions of temporary tables: changes of the session's own list, at once and without a log.
//!
//! Not a transaction of their own as other definitions are: nothing is committed here, and nothing that is
//! done here is undone. ALTER makes a new table, fills it and puts it in the old one's place.

use super::build::build_table;
use super::copy::{self, ColumnSource};
use super::exec::{Change, Ddl};
use super::expressions::{check_dependents, check_expressions, rename_checks};
use super::online::Online;
use crate::api::Priv;
use crate::catalog::{Catalog, Table, TableDef};
use crate::dml::RowExpressions;
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::memory::{Account, MemoryLimits};
use crate::store::{InsertOutcome, duplicate_error, not_locked};
use omnibus_parser::ast::{AlterAction, CreateTable, DropTable, ObjectName, OnlineOptions};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// CREATE TEMPORARY TABLE, without AS SELECT's rows. `None`: it is there and may be.
pub(crate) fn create_temporary(ddl: &mut Ddl<'_>, tree: &CreateTable) -> ExecResult<Option<Arc<Table>>> {
    let db = ddl.schema_of(&tree.name)?;
    let name = tree.name.name.as_str();
    ddl.check(&db, None, Priv::CreateTemporary)?;
    if !tree.foreign_keys.is_empty() {
        return Err(SqlError::cannot_add_foreign().into());
    }
    let schema = ddl.trx.catalog().schema(&db)?.clone();
    let existing = ddl.trx.temp.table(&db, name);
    if existing.is_some() && !tree.or_replace {
        if tree.if_not_exists {
            ddl.state.diagnostics.note(SqlError::table_exists(name));
            return Ok(None);
        }
        return Err(SqlError::table_exists(name).into());
    }
    let (def, counter) = match &tree.like {
        Some(source) => (temporary_like(ddl, source, &db, name)?, 1),
        None => {
            let tree = super::not_built::without_encryption(tree, ddl.state)?;
            let tree = super::primary_key::with_key(ddl, &tree)?;
            let tree = super::functional::with_hidden_columns(ddl, &tree, &db, &schema)?;
            let mut next = temporary_ids(ddl);
            let mut context = ddl.build_context(&db, &schema);
            let built = build_table(&tree, &mut context, &mut super::exec::ids(&mut next))?;
            keep_temporary_ids(ddl, &next);
            (built.def, built.auto_increment.unwrap_or(1))
        }
    };
    let account = account_of(ddl, &def)?;
    if existing.is_some() {
        ddl.trx.temp.drop_table(&db, name);
    }
    let table = Arc::new(Table::temporary(def, counter));
    check_expressions(&table, ddl.state, &ddl.trx.catalog())?;
    ddl.trx.temp.put_table(table.clone(), account);
    Ok(Some(table))
}

/// Asks for a definition's memory.
fn account_of(ddl: &Ddl<'_>, def: &TableDef) -> SqlResult<Account> {
    let mut account = Account::new(&ddl.state.connection.memory);
    let bytes = crate::catalog::memory::of_table(def);
    account.grow_exactly(bytes as usize, MemoryLimits::of(&ddl.state.settings))?;
    Ok(account)
}

/// The session's next ids, in a catalog, where building takes them from.
fn temporary_ids(ddl: &mut Ddl<'_>) -> Catalog {
    let (table, space) = ddl.trx.temp.ids();
    Catalog { next_table_id: *table, next_space_id: *space, ..Catalog::default() }
}

fn keep_temporary_ids(ddl: &mut Ddl<'_>, used: &Catalog) {
    let (table, space) = ddl.trx.temp.ids();
    (*table, *space) = (used.next_table_id, used.next_space_id);
}

fn temporary_like(ddl: &mut Ddl<'_>, source: &ObjectName, db: &str, name: &str) -> SqlResult<TableDef> {
    super::build::check_name(name)?;
    let source = table_to_copy(ddl, source)?;
    super::primary_key::refuse_without(ddl, super::primary_key::is_keyed(&source.def))?;
    let created = (ddl.state.statement.now_us / 1_000_000) as u64;
    let own = (Arc::from(db), Arc::from(name));
    let mut def = TableDef { db: own.0, name: own.1, created, ..source.def.of_new_rows() };
    def.foreign_keys.clear();
    rename_checks(&source.def, &mut def)?;
    Ok(renumbered(ddl, def))
}

/// The table of a LIKE clause.
pub(super) fn table_to_copy(ddl: &Ddl<'_>, name: &ObjectName) -> SqlResult<Arc<Table>> {
    let db = ddl.schema_of(name)?;
    if let Some(table) = ddl.trx.temp.table(&db, &name.name) {
        return Ok(table);
    }
    ddl.check(&db, Some(&name.name), Priv::Select)?;
    if ddl.state.held.locked.as_ref().is_some_and(|locked| locked.find(&db, &name.name).is_none()) {
        return Err(not_locked(&name.name));
    }
    ddl.trx.catalog().table(&db, &name.name).cloned()
}

/// The same definition over new spaces.
fn renumbered(ddl: &mut Ddl<'_>, mut def: TableDef) -> TableDef {
    let mut next = temporary_ids(ddl);
    let mut ids = super::exec::ids(&mut next);
    def.id = ids.table();
    for index in &mut def.indexes {
        index.space = ids.space(index.space.slot());
    }
    keep_temporary_ids(ddl, &next);
    def
}

/// DROP TEMPORARY TABLE: all of them or none.
pub(crate) fn drop_temporary(ddl: &mut Ddl<'_>, tree: &DropTable) -> SqlResult<()> {
    let mut found = Vec::new();
    let mut missing = Vec::new();
    for name in &tree.tables {
        let db = ddl.schema_of(name)?;
        match ddl.trx.temp.table(&db, &name.name) {
            Some(table) => found.push(table),
            None => missing.push(format!("{db}.{}", name.name)),
        }
    }
    if !missing.is_empty() && !tree.if_exists {
        return Err(SqlError::bad_table(missing.join(",")));
    }
    super::table::note_missing(ddl, missing);
    for table in found {
        ddl.trx.temp.drop_table(&table.def.db, &table.def.name);
    }
    Ok(())
}

/// DROP TABLE: a temporary table goes before the stored one that it hides. What is left to drop.
pub(crate) fn drop_shadowing(ddl: &mut Ddl<'_>, tree: &DropTable) -> SqlResult<Option<DropTable>> {
    let mut rest = DropTable { tables: Vec::new(), ..*tree };
    for name in &tree.tables {
        let db = ddl.schema_of(name)?;
        if ddl.trx.temp.drop_table(&db, &name.name).is_none() {
            rest.tables.push(name.clone());
        }
    }
    Ok(Some(rest).filter(|rest| !rest.tables.is_empty()))
}

/// TRUNCATE of a temporary table.
///
/// # Errors
/// 3170: there is no memory for a second definition.
pub(crate) fn truncate_temporary(ddl: &mut Ddl<'_>, table: &Table) -> SqlResult<()> {
    let def = renumbered(ddl, table.def.clone());
    let account = account_of(ddl, &def)?;
    ddl.trx.temp.drop_table(&table.def.db, &table.def.name);
    ddl.trx.temp.put_table(Arc::new(Table::temporary(def, 1)), account);
    Ok(())
}

/// ALTER TABLE, CREATE INDEX and DROP INDEX of a temporary table; the number of rows.
pub(crate) fn alter_temporary(
    ddl: &mut Ddl<'_>,
    table: &Arc<Table>,
    actions: &[AlterAction],
    online: &OnlineOptions,
) -> ExecResult<u64> {
    let online = Online::of(online, ddl.state)?;
    let mut edit = super::alter::edit(ddl, table, actions)?;
    check_dependents(&table.def, &mut edit)?;
    edit.finish_checks();
    let mut change = Change { next: temporary_ids(ddl), ..Change::default() };
    let mut def = super::alter::rebuild(ddl, table, &edit, &mut change)?;
    keep_temporary_ids(ddl, &change.next);
    def.id = change.next.next_table_id - 1;
    if let Some(name) = &edit.rename {
        super::build::check_name(&name.name)?;
        let db = ddl.schema_of(name)?;
        ddl.trx.catalog().schema(&db)?;
        let same = *db == *table.def.db && *name.name == *table.def.name;
        if !same && ddl.trx.temp.table(&db, &name.name).is_some() {
            return Err(SqlError::table_exists(&name.name).into());
        }
        (def.db, def.name) = (Arc::from(db), Arc::from(name.name.as_str()));
    }
    if actions.iter().all(|action| matches!(action, AlterAction::Rename(_))) {
        let def = TableDef { db: def.db, name: def.name, ..table.def.clone() };
        ddl.trx.temp.rename_table(table, def);
        return Ok(0);
    }
    online.allow_temporary(table)?;
    let counter = match edit.auto_increment {
        Some(value) => value,
        None => table.state.auto_increment.load(Ordering::Acquire),
    };
    rename_checks(&table.def, &mut def)?;
    let new = Arc::new(Table::temporary(def, counter));
    check_expressions(&new, ddl.state, &ddl.trx.catalog())?;
    let account = account_of(ddl, &new.def)?;
    let count = refill(ddl, table, &new, &edit.sources)?;
    ddl.trx.temp.drop_table(&table.def.db, &table.def.name);
    ddl.trx.temp.put_table(new, account);
    Ok(count)
}

fn refill(
    ddl: &mut Ddl<'_>,
    table: &Arc<Table>,
    new: &Arc<Table>,
    sources: &[ColumnSource],
) -> ExecResult<u64> {
    let added = copy::added_values(ddl, &new.def, sources)?;
    let expressions = RowExpressions::bind(new, ddl.state, &ddl.trx.catalog(), None)?;
    let mut count = 0;
    for row in ddl.trx.temp.all_rows(table, ddl.trx.budget.kill())? {
        count += 1;
        let old = table.decode(&row.row)?;
        let mut values = copy::new_values(table, &new.def, sources, &added, &old, count, ddl.state)?;
        copy::apply_expressions(expressions.as_ref(), sources, &mut values, count, ddl.state, ddl.trx)?;
        let row = new.rows.encode(&values)?;
        if let InsertOutcome::Duplicate(duplicate) = ddl.trx.insert_row(new, &values, row)? {
            return Err(duplicate_error(new, duplicate.index, &values).into());
        }
    }
    Ok(count)
}
