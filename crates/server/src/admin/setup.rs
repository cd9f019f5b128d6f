//! UPDATE of the tables that say what `performance_schema` collects.
//!
//! Monitors switch on with it what they want, at their start, and give up where it is refused. What is collected here needs no switch but
//! `setup_consumers`: the other tables have no rows, and none is changed.

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

/// Those of MySQL that may be updated.
const TABLES: [&str; 8] = [
    "setup_actors",
    CONSUMERS,
    "setup_instruments",
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

/// How many rows it changes.
pub(super) async fn update_setup(
    admin: &mut Admin<'_>,
    statement: &Statement,
    table: &'static str,
) -> SqlResult<u64> {
    let Statement::Update(update) = statement else { return Ok(0) };
    check(admin.login.account(), update, table)?;
    if table == CONSUMERS { update_consumers(admin, update).await } else { Ok(0) }
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
        None if table != CONSUMERS => return Ok(()),
        None => {}
    }
    // The names of rows are the server's.
    match update.assignments.iter().any(|assignment| assignment.column.name.is("NAME")) {
        true => Err(SqlError::new(1683, b"HY000", "Invalid performance_schema usage.")),
        false => Ok(()),
    }
}

/// Switches the consumers that the condition names.
async fn update_consumers(admin: &mut Admin<'_>, update: &Update) -> SqlResult<u64> {
    let mut enabled = None;
    for assignment in update.assignments.iter().filter(|one| one.column.name.is("ENABLED")) {
        let (value, ty) = admin.evaluate(&assignment.value).await?;
        let text = value.to_bytes(&ty);
        enabled = match (text.eq_ignore_ascii_case(b"YES"), text.eq_ignore_ascii_case(b"NO")) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => return Err(SqlError::warn_data_truncated("ENABLED", 1)),
        };
    }
    let Some(enabled) = enabled else { return Ok(0) };
    let mut names = Names::default();
    // Whoever names no rows needs no right to read them.
    if update.filter.is_some() || update.limit.is_some() {
        admin.run_internal(Statement::Select(Box::new(named(update))), &mut names)?;
    } else {
        names.0.extend(admin.server.digests.consumers().all().map(|(name, _)| name.to_owned()));
    }
    let consumers = admin.server.digests.consumers();
    Ok(names.0.iter().filter(|name| consumers.switch(name, enabled)).count() as u64)
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
        if let Some(Value::Bytes(name)) = values.first() {
            self.0.push(String::from_utf8_lossy(name).into_owned());
        }
        Ok(())
    }
}
