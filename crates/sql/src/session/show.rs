//! The SHOW statements that need only the session and the catalog: WARNINGS, ERRORS, CREATE TABLE,
//! CREATE DATABASE. Others are queries of computed tables (`crate::information_schema`).

use super::name_quotes::{self, NameQuotes};
use super::programs::show::show_create_program;
use super::{Call, StatementContext, show_query};
use crate::api::{Outcome, Priv, ResultColumn, VariableScope, sql_mode};
use crate::bind;
use crate::catalog::{self, Reader, charset};
use crate::error::{ExecResult, Level, SqlError, SqlResult};
use crate::state::SessionState;
use crate::store::sequence_row;
use bytes::Bytes;
use omnibus_parser::ast::{Expr, Limit, Literal, ObjectName, ProgramKind, Show};
use omnibus_value::{ColumnKind, ColumnType, Value};
use std::sync::Arc;

/// A column of text or numbers in an answer of the server's own.
pub(crate) fn answer_column(name: &str, kind: ColumnKind, length: u32) -> ResultColumn {
    let empty: Arc<str> = Arc::from("");
    ResultColumn {
        schema: empty.clone(),
        table: empty.clone(),
        org_table: empty.clone(),
        name: Arc::from(name),
        org_name: empty,
        ty: ColumnType {
            kind,
            unsigned: matches!(kind, ColumnKind::BigInt | ColumnKind::Int),
            zerofill: false,
            length,
            decimals: 0,
            collation: if kind == ColumnKind::VarChar { charset::server_default() } else { 63 },
            labels: Arc::from(Vec::new()),
        },
        flags: crate::api::flag::NOT_NULL,
    }
}

fn text(value: impl Into<String>) -> Value {
    Value::Bytes(Bytes::from(value.into()))
}

pub(super) fn execute(
    cx: &mut StatementContext<'_>,
    show: &Show,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    match show {
        Show::Warnings { count, limit } => show_conditions(cx.state, call, *count, limit.as_ref(), false),
        Show::Errors { count, limit } => show_conditions(cx.state, call, *count, limit.as_ref(), true),
        Show::CreateTable(name) => create_table(cx, name, call),
        Show::CreateView(name) => create_view(cx, name, call),
        Show::CreateSequence(name) => create_sequence(cx, name, call),
        Show::CreateDatabase { if_not_exists, name } => create_database(cx, name, *if_not_exists, call),
        Show::CreateProcedure(name) => show_create_program(cx, ProgramKind::Procedure, name, call),
        Show::CreateFunction(name) => show_create_program(cx, ProgramKind::Function, name, call),
        Show::CreateTrigger(name) => show_create_program(cx, ProgramKind::Trigger, name, call),
        Show::CreateEvent(name) => show_create_program(cx, ProgramKind::Event, name, call),
        other => show_query::show_query(cx, other, call),
    }
}

fn create_table(
    cx: &mut StatementContext<'_>,
    name: &ObjectName,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    let db = cx.schema_of(name)?;
    if cx.trx.temp.table(&db, &name.name).is_none() {
        call.access.check(&db, Some(&name.name), Priv::AnyOfAll)?;
    }
    if cx.catalog().find_view(&db, &name.name).is_some() {
        return create_view(cx, name, call);
    }
    let table = cx.catalog().table(&db, &name.name)?.clone();
    let next = match table.auto_column {
        Some(_) => cx.trx.counters.auto_increment(&table)?,
        None => 0,
    };
    call.sink.columns(&[
        answer_column("Table", ColumnKind::VarChar, 64),
        answer_column("Create Table", ColumnKind::VarChar, 1024),
    ])?;
    let reader = match (cx.state.settings.mariadb, has_mode(cx, sql_mode::ANSI)) {
        (true, _) => Reader::MariadbUser,
        (false, true) => Reader::AnsiUser,
        (false, false) => Reader::MysqlUser,
    };
    let mut definition = catalog::create_text(&table.def, next, cx.state.zone(), reader);
    definition = name_quotes::requoted(&definition, quotes(cx));
    if table.temporary {
        definition = definition.replacen("CREATE TABLE", "CREATE TEMPORARY TABLE", 1);
    }
    call.sink.row(&[text(&*table.def.name), text(definition)])?;
    Ok(Outcome::rows())
}

fn quotes(cx: &StatementContext<'_>) -> NameQuotes {
    let all = cx.state.connection.host.variable(VariableScope::Session, "sql_quote_show_create");
    NameQuotes {
        double: has_mode(cx, sql_mode::ANSI_QUOTES),
        needed_only: matches!(all, Ok((Value::Int(0) | Value::UInt(0), _))),
    }
}

fn has_mode(cx: &StatementContext<'_>, mode: u64) -> bool {
    cx.state.settings.sql_mode & mode != 0
}

fn create_view(cx: &mut StatementContext<'_>, name: &ObjectName, call: &mut Call<'_>) -> ExecResult<Outcome> {
    let db = cx.schema_of(name)?;
    call.access.check(&db, Some(&name.name), Priv::Select)?;
    call.access.check(&db, Some(&name.name), Priv::ShowView)?;
    let catalog = cx.catalog();
    let view = catalog.view(&db, &name.name)?;
    let (client, connection) = (view.def.client, view.def.connection);
    if let Err(error) = bind::outline(view, cx.state, &catalog, cx.database.virtual_tables()) {
        if error.is_of_the_statement() {
            return Err(error.into());
        }
        cx.state.diagnostics.warn(error);
    }
    let mut definition = view.def.show_create(cx.state.database.as_deref(), !cx.state.settings.mariadb);
    if has_mode(cx, sql_mode::ANSI) && !cx.state.settings.mariadb {
        leave_out_security(&mut definition);
    }
    call.sink.columns(&[
        answer_column("View", ColumnKind::VarChar, 64),
        answer_column("Create View", ColumnKind::VarChar, 1024),
        answer_column("character_set_client", ColumnKind::VarChar, 64),
        answer_column("collation_connection", ColumnKind::VarChar, 64),
    ])?;
    call.sink.row(&[
        text(&*view.def.name),
        text(name_quotes::requoted_view(&definition, quotes(cx))),
        text(charset::charset_name(client)),
        text(charset::collation_name(connection)),
    ])?;
    Ok(Outcome::rows())
}

/// With `sql_mode=ANSI` a view is shown without its algorithm and its definer.
fn leave_out_security(definition: &mut String) {
    let head = "CREATE ".len();
    let end = definition.find(" SQL SECURITY ").and_then(|at| Some(at + definition[at..].find("VIEW ")?));
    if let Some(end) = end {
        definition.replace_range(head..end, "");
    }
}

fn create_sequence(
    cx: &mut StatementContext<'_>,
    name: &ObjectName,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    let db = cx.schema_of(name)?;
    call.access.check(&db, Some(&name.name), Priv::Any)?;
    let table = cx.catalog().table(&db, &name.name)?.clone();
    if !table.def.is_sequence() {
        return Err(catalog::sequence::not_sequence(&table).into());
    }
    let row = sequence_row(cx.trx, &table)?;
    cx.trx.floor().see_everything();
    let def = &table.def;
    let mut sql = format!("CREATE SEQUENCE {} {}", catalog::quote_ident(&def.name), row.text());
    sql.push_str(&catalog::engine_text(&def.engine));
    if !def.comment.is_empty() {
        sql.push_str(&format!(" COMMENT={}", catalog::quote_string(&def.comment)));
    }
    call.sink.columns(&[
        answer_column("Table", ColumnKind::VarChar, 64),
        answer_column("Create Table", ColumnKind::VarChar, 1024),
    ])?;
    call.sink.row(&[text(&*def.name), text(sql)])?;
    Ok(Outcome::rows())
}

fn create_database(
    cx: &mut StatementContext<'_>,
    name: &str,
    if_not_exists: bool,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    call.access.check(name, None, Priv::Any)?;
    let schema = cx.catalog().schema(name)?.clone();
    let exists = if if_not_exists { "/*!32312 IF NOT EXISTS*/ " } else { "" };
    let set = charset::charset_name(schema.collation);
    // Which of utf8mb4's is its own differs between servers.
    let collation =
        match set == "utf8mb4" || cx.state.settings.mariadb || charset::is_not_default(schema.collation) {
            true => format!(" COLLATE {}", charset::collation_name(schema.collation)),
            false => String::new(),
        };
    let sql = format!(
        "CREATE DATABASE {exists}{} /*!40100 DEFAULT CHARACTER SET {set}{collation} */ /*!80016 DEFAULT ENCRYPTION='{}' */",
        catalog::quote_ident(name),
        if crate::api::tables_are_encrypted(&*cx.state.connection.host) { 'Y' } else { 'N' },
    );
    let sql = name_quotes::requoted(&sql, quotes(cx));
    call.sink.columns(&[
        answer_column("Database", ColumnKind::VarChar, 64),
        answer_column("Create Database", ColumnKind::VarChar, 1024),
    ])?;
    call.sink.row(&[text(name), text(sql)])?;
    Ok(Outcome::rows())
}

/// LIMIT of SHOW WARNINGS: numbers only.
fn window(limit: Option<&Limit>) -> SqlResult<(usize, usize)> {
    let number = |expr: &Expr| match expr {
        Expr::Literal(Literal::Int(number)) => {
            usize::try_from(*number).map_err(|_| SqlError::wrong_arguments("LIMIT"))
        }
        _ => Err(SqlError::wrong_arguments("LIMIT")),
    };
    let Some(limit) = limit else { return Ok((0, usize::MAX)) };
    let offset = limit.offset.as_ref().map(number).transpose()?.unwrap_or(0);
    Ok((offset, number(&limit.count)?))
}

fn show_conditions(
    state: &mut SessionState,
    call: &mut Call<'_>,
    count: bool,
    limit: Option<&Limit>,
    errors: bool,
) -> ExecResult<Outcome> {
    let wanted = |level: Level| !errors || level == Level::Error;
    let diagnostics = &state.diagnostics;
    if count {
        let (name, number) = match errors {
            true => ("@@session.error_count", diagnostics.error_count()),
            false => ("@@session.warning_count", u64::from(diagnostics.count())),
        };
        call.sink.columns(&[answer_column(name, ColumnKind::BigInt, 21)])?;
        call.sink.row(&[Value::UInt(number)])?;
        return Ok(Outcome::rows());
    }
    call.sink.columns(&[
        answer_column("Level", ColumnKind::VarChar, 7),
        answer_column("Code", ColumnKind::Int, 4),
        answer_column("Message", ColumnKind::VarChar, 512),
    ])?;
    let (offset, count) = window(limit)?;
    let shown = diagnostics.conditions().iter().filter(|(level, _)| wanted(*level));
    for (level, condition) in shown.skip(offset).take(count) {
        let row =
            [text(level.name()), Value::UInt(u64::from(condition.code)), text(condition.message.clone())];
        call.sink.row(&row)?;
    }
    Ok(Outcome::rows())
}
