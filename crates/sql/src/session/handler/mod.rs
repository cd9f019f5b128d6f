//! HANDLER: a table that a client reads row by row, in its own order or in an index's.
//!
//! OPEN gives it a name in the session, and READ goes on from where the last one ended. Nothing is locked in between: a table that another session has
//! changed meanwhile is read from its beginning, or is not there any more. Each READ sees what a query would see that ran then. How far a table was
//! read is in `state::handlers`; who changes a table's definition closes his own handlers of it (`close_changed`).

mod close;
mod place;
mod read;

pub(super) use close::close_changed;

use super::{Call, StatementContext};
use crate::api::{Outcome, Priv};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::memory::MemoryLimits;
use crate::store::tables_are_locked;
use omnibus_parser::ast::{HandlerStatement, ObjectName};

/// Runs a HANDLER statement.
pub(super) fn execute(
    cx: &mut StatementContext<'_>,
    tree: &HandlerStatement,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    if cx.trx.locks.has_locked_tables() {
        return Err(tables_are_locked().into());
    }
    match tree {
        HandlerStatement::Open { table, alias } => {
            let alias = alias.as_ref().unwrap_or(&table.name);
            open(cx, table, alias.as_str(), call)?;
            Ok(Outcome::ok())
        }
        HandlerStatement::Read(tree) => read::read(cx, tree, call),
        HandlerStatement::Close(alias) => match cx.state.held.handlers.close(alias) {
            true => Ok(Outcome::ok()),
            false => Err(not_open(alias).into()),
        },
    }
}

fn open(cx: &mut StatementContext<'_>, name: &ObjectName, alias: &str, call: &Call<'_>) -> SqlResult<()> {
    if cx.state.held.handlers.get(alias).is_some() {
        return Err(SqlError::nonuniq_table(alias));
    }
    let db = cx.schema_of(name)?;
    let catalog = cx.catalog();
    let temporary = catalog.find_table(&db, &name.name).is_some_and(|table| table.temporary);
    if !temporary {
        call.access.check(&db, Some(&name.name), Priv::Select)?;
    }
    if db.eq_ignore_ascii_case("information_schema") {
        return Err(SqlError::wrong_object(&db, name.name.to_uppercase(), "BASE TABLE"));
    }
    if db.eq_ignore_ascii_case("performance_schema") {
        let message = format!("Table storage engine for '{}' doesn't have this option", name.name);
        return Err(SqlError::new(1031, b"HY000", message));
    }
    let table = catalog.table(&db, &name.name)?.clone();
    let limits = MemoryLimits::of(&cx.state.settings);
    cx.state.held.handlers.open((db, alias), table, &cx.state.connection.memory, limits)
}

fn not_open(alias: &str) -> SqlError {
    SqlError::unknown_table(alias, "HANDLER")
}
