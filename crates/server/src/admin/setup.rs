//! UPDATE of the tables that say what `performance_schema` collects.
//!
//! Monitors switch on with it what they want, at their start, and give up where it is refused. What is collected here needs no switch:
//! `setup_consumers` says what there is, the others have no rows, and none is changed.

use super::flush::PERFORMANCE_SCHEMA;
use crate::account::{Account, Privileges};
use crate::errors;
use omnibus_parser::ast::{TableRef, Update};
use omnibus_sql::{SqlError, SqlResult};

/// Those of MySQL that may be updated.
const TABLES: [&str; 8] = [
    "setup_actors",
    "setup_consumers",
    "setup_instruments",
    "setup_loggers",
    "setup_meters",
    "setup_metrics",
    "setup_objects",
    "setup_threads",
];

/// The one that a statement is about.
fn table_of(update: &Update, database: Option<&str>) -> Option<&'static str> {
    let [TableRef::Table(table)] = &update.tables[..] else { return None };
    let schema = table.name.schema.as_ref().map(|schema| schema.as_str()).or(database)?;
    let named = TABLES.iter().find(|own| table.name.name.eq_ignore_ascii_case(own))?;
    schema.eq_ignore_ascii_case(PERFORMANCE_SCHEMA).then_some(*named)
}

/// `None`: it is about another table.
pub(super) fn update_setup(
    account: &Account,
    database: Option<&str>,
    update: &Update,
) -> Option<SqlResult<()>> {
    let table = table_of(update, database)?;
    if !account.rights().on_table(PERFORMANCE_SCHEMA, table).has(Privileges::UPDATE) {
        return Some(Err(errors::command_denied("UPDATE", &account.user, account.host.as_str(), table)));
    }
    let columns = omnibus_sql::computed_columns(PERFORMANCE_SCHEMA, table);
    let known = |column: &str| columns.iter().any(|own| own.eq_ignore_ascii_case(column));
    let mut set = update.assignments.iter().map(|assignment| assignment.column.name.as_str());
    match set.find(|column| !known(column)) {
        Some(column) => Some(Err(SqlError::bad_field(column, "field list"))),
        None => Some(Ok(())),
    }
}
