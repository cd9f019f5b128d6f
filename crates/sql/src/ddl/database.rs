//! CREATE, ALTER and DROP DATABASE.

use super::build::check_name;
use super::exec::{Change, Ddl, spaces};
use super::not_built;
use crate::api::{Outcome, Priv, tables_are_encrypted};
use crate::bind::types::pick_collation;
use crate::catalog::{Schema, persist};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::store::Names;
use omnibus_parser::ast::{AlterDatabase, CreateDatabase, DatabaseOptions};
use std::sync::Arc;

/// Schemas that only the server itself may make or drop.
fn is_system(name: &str) -> bool {
    ["information_schema", "performance_schema", "sys"].iter().any(|system| name.eq_ignore_ascii_case(system))
}

/// CREATE DATABASE.
pub(crate) fn create_database(ddl: &mut Ddl<'_>, tree: &CreateDatabase) -> ExecResult<Outcome> {
    let name = tree.name.as_str();
    check_name(name).map_err(|_| SqlError::wrong_db_name(name))?;
    ddl.check(name, None, Priv::Create)?;
    if is_system(name) {
        return Err(SqlError::dbaccess_denied(&ddl.state.login.user, &ddl.state.login.host_name, name).into());
    }
    let mut change = ddl.begin(match tree.or_replace {
        true => Names::Database(name),
        false if ddl.trx.locks.has_locked_tables() => Names::Database(name),
        false => Names::Tables(&[]),
    })?;
    if change.next.schemas.contains_key(name) {
        if tree.if_not_exists {
            ddl.state.diagnostics.note(SqlError::db_create_exists(name));
            ddl.trx.rollback();
            return Ok(Outcome { affected: 1, ..Outcome::ok() });
        }
        if !tree.or_replace || name == "mysql" {
            return Err(SqlError::db_create_exists(name).into());
        }
        ddl.check(name, None, Priv::Drop)?;
        take_out(ddl, &mut change, name)?;
    }
    let picked = picked_collation(ddl, &tree.options)?;
    let schema = Schema::new(Arc::from(name), picked.unwrap_or_else(|| ddl.server_collation()));
    persist::put_schema(&mut ddl.trx.transaction.writes, &schema);
    change.next.schemas.insert(schema.name.clone(), Arc::new(schema));
    change.affected = 1;
    ddl.commit(change)
}

/// Fails for options that somebody asks for to be safe and that are not had: they are not passed over.
fn check_options(ddl: &mut Ddl<'_>, options: &DatabaseOptions) -> SqlResult<()> {
    if options.read_only == Some(true) {
        return Err(SqlError::not_supported_yet("READ ONLY databases"));
    }
    let asks = options.encryption.as_ref().is_some_and(|value| value.eq_ignore_ascii_case(b"Y"));
    if !asks || tables_are_encrypted(&*ddl.state.connection.host) {
        return Ok(());
    }
    if !ddl.state.settings.ignore_unsupported_constraints {
        return Err(SqlError::no_master_key());
    }
    let message = "ENCRYPTION='Y': the database is made without (ignore_unsupported_constraints=ON)";
    ddl.state.diagnostics.warn(SqlError::new(1235, b"42000", message));
    Ok(())
}

/// The collation that a database's options name.
fn picked_collation(ddl: &mut Ddl<'_>, options: &DatabaseOptions) -> SqlResult<Option<u16>> {
    check_options(ddl, options)?;
    let utf8mb4 = ddl.state.settings.default_collation_for_utf8mb4;
    if ddl.state.settings.ignore_unsupported_constraints
        && let Some((said, options)) = not_built::database_charset(options)
    {
        let message =
            format!("{said}: the database is made with utf8mb4 (ignore_unsupported_constraints=ON)");
        ddl.state.diagnostics.warn(SqlError::new(1235, b"42000", message));
        return pick_collation(options.charset.as_ref(), options.collation.as_ref(), utf8mb4);
    }
    pick_collation(options.charset.as_ref(), options.collation.as_ref(), utf8mb4)
}

/// ALTER DATABASE.
pub(crate) fn alter_database(ddl: &mut Ddl<'_>, tree: &AlterDatabase) -> ExecResult<Outcome> {
    let current = ddl.state.database.clone();
    let name =
        tree.name.as_ref().map(|name| name.to_string()).or_else(|| current.map(|name| name.to_string()));
    let name = name.ok_or_else(SqlError::no_db)?;
    ddl.check(&name, None, Priv::Alter)?;
    let mut change = ddl.begin(match ddl.trx.locks.has_locked_tables() {
        true => Names::Database(&name),
        false => Names::Tables(&[]),
    })?;
    if !ddl.state.settings.mariadb && !change.next.schemas.contains_key(&*name) {
        return Err(SqlError::new(3503, b"HY000", format!("Database '{name}' doesn't exist")).into());
    }
    change.next.schema(&name)?;
    let picked = picked_collation(ddl, &tree.options)?;
    if let (Some(collation), Some(schema)) = (picked, change.next.schemas.get_mut(&*name)) {
        let schema = Arc::make_mut(schema);
        schema.collation = collation;
        persist::put_schema(&mut ddl.trx.transaction.writes, schema);
    }
    change.affected = 1;
    ddl.commit(change)
}

/// DROP DATABASE: its tables go with it.
pub(crate) fn drop_database(ddl: &mut Ddl<'_>, name: &str, if_exists: bool) -> ExecResult<Outcome> {
    ddl.check(name, None, Priv::Drop)?;
    if is_system(name) || name == "mysql" {
        return Err(SqlError::dbaccess_denied(&ddl.state.login.user, &ddl.state.login.host_name, name).into());
    }
    let mut change = ddl.begin(Names::Database(name))?;
    if !change.next.schemas.contains_key(name) {
        if if_exists {
            ddl.state.diagnostics.note(SqlError::db_drop_exists(name));
            ddl.trx.rollback();
            return Ok(Outcome::ok());
        }
        return Err(SqlError::db_drop_exists(name).into());
    }
    change.affected = take_out(ddl, &mut change, name)?;
    let outcome = ddl.commit(change)?;
    if ddl.state.database.as_deref() == Some(name) {
        ddl.state.database = None;
    }
    Ok(outcome)
}

/// Takes a database and its tables out of the next catalog, and returns the number of tables.
fn take_out(ddl: &mut Ddl<'_>, change: &mut Change, name: &str) -> SqlResult<u64> {
    for table in change.next.schemas.get(name).into_iter().flat_map(|schema| schema.tables.values()) {
        super::table::refuse_to_drop(ddl, change, table, |child| *child.table.def.db == *name)?;
    }
    let Some(schema) = change.next.remove_schema(name) else { return Ok(0) };
    for table in schema.tables.values() {
        super::table::forget_table(ddl, table);
        change.dropped.extend(spaces(table));
        change.stale.push(table.clone());
    }
    for view in schema.views.values() {
        super::view::forget_view(ddl, change, view);
    }
    for program in schema.programs.values() {
        persist::delete_program(&mut ddl.trx.transaction.writes, program);
    }
    persist::delete_schema(&mut ddl.trx.transaction.writes, name);
    Ok((schema.tables.len() + schema.views.len()) as u64)
}
