//! UPDATE of the tables that say what `performance_schema` collects.
//!
//! Monitors switch on with it what they want, at their start, and give up where it is refused. Of `setup_consumers` and `setup_instruments`
//! rows can be switched; those of the others stay as they are, as do instruments that are always on.

use super::Admin;
use super::flush::PERFORMANCE_SCHEMA;
use crate::account::{Account, Privileges};
use crate::errors;
use omnibus_parser::ast::{
    ColumnRef, Expr, Query, QueryBody, Select, SelectItem, SelectOptions, Statement, TableRef, Update,
};
use omnibus_sql::{ResultColumn, RowSink, SqlError, SqlResult};
use omnibus_value::Value;

const CONSUMERS: &str = "setup_consumers";
const INSTRUMENTS: &str = "setup_instruments";

/// Those of MySQL that may be updated.
const TABLES: [&str; 8] = [
    "setup_actors",
    CONSUMERS,
    INSTRUMENTS,
    "setup_loggers",
    "setup_meters",
    "setup_metrics",
    "setup_objects",
    "setup_threads",
];

/// The one that a statement is about.
pub(super) fn table_of(update: &Update, database: Option<&str>) -> Option<&'static str> {
    let [TableRef::Table(table)] = &update.tables[..] else { return None };
    let schema = table.name.schema.as_ref().map(|schema| schema.as_str()).or(database)?;
    let named = TABLES.iter().find(|own| table.name.name.eq_ignore_ascii_case(own))?;
    schema.eq_ignore_ascii_case(PERFORMANCE_SCHEMA).then_some(*named)
}

/// The columns that say YES or NO, of a table whose rows can be switched.
fn columns_of(table: &str) -> &'static [&'static str] {
    match table {
        CONSUMERS => &["ENABLED"],
        INSTRUMENTS => &["ENABLED", "TIMED"],
        _ => &[],
    }
}

/// How many rows it changes.
pub(super) async fn update_setup(
    admin: &mut Admin<'_>,
    statement: &Statement,
    table: &'static str,
) -> SqlResult<u64> {
    let Statement::Update(update) = statement else { return Ok(0) };
    check(admin.login.account(), update, table)?;
    if columns_of(table).is_empty() { Ok(0) } else { switch(admin, update, table).await }
}

fn check(account: &Account, update: &Update, table: &str) -> SqlResult<()> {
    if !account.rights().on_table(PERFORMANCE_SCHEMA, table).has(Privileges::UPDATE) {
        return Err(errors::command_denied("UPDATE", &account.user, account.host.as_str(), table));
    }
    let columns = omnibus_sql::computed_columns(PERFORMANCE_SCHEMA, table);
    let known = |column: &str| columns.iter().any(|own| own.eq_ignore_ascii_case(column));
    let mut set = update.assignments.iter().map(|assignment| assignment.column.name.as_str());
    match set.find(|column| !known(column)) {
        Some(column) => return Err(SqlError::bad_field(column, "field list")),
        None if columns_of(table).is_empty() => return Ok(()),
        None => {}
    }
    // The names of rows, and what else is said of them, are the server's.
    let switches = |column: &str| columns_of(table).iter().any(|own| own.eq_ignore_ascii_case(column));
    match update.assignments.iter().all(|assignment| switches(assignment.column.name.as_str())) {
        true => Ok(()),
        false => Err(SqlError::new(1683, b"HY000", "Invalid performance_schema usage.")),
    }
}

/// Switches the rows that the condition names. Whether times are measured is not to be chosen.
async fn switch(admin: &mut Admin<'_>, update: &Update, table: &'static str) -> SqlResult<u64> {
    let mut enabled = None;
    for assignment in &update.assignments {
        let (value, ty) = admin.evaluate(&assignment.value).await?;
        let (text, column) = (value.to_bytes(&ty), &assignment.column.name);
        let on = match (text.eq_ignore_ascii_case(b"YES"), text.eq_ignore_ascii_case(b"NO")) {
            (true, _) => true,
            (_, true) => false,
            _ => return Err(SqlError::warn_data_truncated(column.as_str(), 1)),
        };
        if column.is("ENABLED") {
            enabled = Some(on);
        }
    }
    let Some(enabled) = enabled else { return Ok(0) };
    let mut names = Names::default();
    // Whoever names no rows needs no right to read them.
    if update.filter.is_some() || update.limit.is_some() {
        admin.run_internal(Statement::Select(Box::new(named(update))), &mut names)?;
    } else {
        let rows = crate::monitoring::rows(admin.server, table, &|_| false);
        let values = rows.into_iter().filter_map(|row| row.into_iter().next());
        values.for_each(|(_, name)| names.add(&name));
    }
    let consumers = admin.server.digests.consumers();
    let switched = |name: &&String| match table {
        CONSUMERS => consumers.switch(name, enabled),
        _ => consumers.switch_instrument(name, enabled),
    };
    Ok(names.0.iter().filter(switched).count() as u64)
}

/// The query of the rows that are meant.
fn named(update: &Update) -> Query {
    let name = Expr::Column(ColumnRef { qualifier: None, name: "NAME".into() });
    let select = Select {
        options: SelectOptions::default(),
        hints: Vec::new(),
        items: vec![SelectItem::Expr { expr: name, alias: None, text: Default::default() }],
        from: update.tables.clone(),
        filter: update.filter.clone(),
        group_by: Vec::new(),
        with_rollup: false,
        having: None,
        windows: Vec::new(),
    };
    Query {
        with: None,
        body: QueryBody::Select(Box::new(select)),
        order_by: update.order_by.clone(),
        limit: update.limit.clone(),
        locking: Vec::new(),
        into: None,
    }
}

/// Keeps the first value of each row.
#[derive(Default)]
struct Names(Vec<String>);

impl RowSink for Names {
    fn columns(&mut self, _: &[ResultColumn]) -> SqlResult<()> {
        Ok(())
    }
    fn row(&mut self, values: &[Value]) -> SqlResult<()> {
        values.iter().take(1).for_each(|name| self.add(name));
        Ok(())
    }
}

impl Names {
    fn add(&mut self, name: &Value) {
        if let Value::Bytes(name) = name {
            self.0.push(String::from_utf8_lossy(name).into_owned());
        }
    }
}
