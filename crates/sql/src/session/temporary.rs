//! Statements that define temporary tables, as a session runs them.
//!
//! CREATE and DROP TEMPORARY TABLE belong to the open transaction and end none; other definitions end it
//! even when their table is a temporary one.

use super::{Call, StatementContext, query};
use crate::api::Outcome;
use crate::catalog::Table;
use crate::ddl::{self, Ddl};
use crate::dml::{InsertPlan, RowExpressions, WritePlan};
use crate::error::{ExecResult, SqlError};
use omnibus_parser::ast::{AlterAction, CreateTable, ObjectName, OnlineOptions, Query, Statement};
use std::sync::Arc;

/// Whether a statement drops temporary tables alone, though it does not say so.
pub(super) fn drops_only_temporary(cx: &StatementContext<'_>, statement: &Statement) -> bool {
    let Statement::DropTable(tree) = statement else { return false };
    let temporary =
        |name: &ObjectName| cx.schema_of(name).is_ok_and(|db| cx.trx.temp.table(&db, &name.name).is_some());
    tree.tables.iter().all(temporary)
}

/// Runs a definition that is about temporary tables only. `None`: it is not.
pub(super) fn define_temporary(
    cx: &mut StatementContext<'_>,
    statement: &Statement,
    call: &mut Call<'_>,
) -> Option<ExecResult<Outcome>> {
    let named = |cx: &StatementContext<'_>, name: &ObjectName| {
        let db = cx.schema_of(name).ok()?;
        cx.trx.temp.table(&db, &name.name)
    };
    let defines = match statement {
        Statement::CreateTable(tree) => tree.temporary,
        Statement::DropTable(tree) => tree.temporary,
        _ => false,
    };
    let reads =
        if cx.trx.is_open() { cx.trx.transaction.characteristics().1 } else { cx.state.settings.read_only };
    if defines && reads {
        return Some(Err(SqlError::cant_execute_in_read_only_transaction().into()));
    }
    match statement {
        Statement::CreateTable(tree) if tree.temporary => Some(create_temporary(cx, tree, call)),
        Statement::DropTable(tree) if tree.temporary => {
            let done = ddl::temporary::drop_temporary(&mut temporary_ddl(cx, call), tree);
            Some(done.map(|()| Outcome::ok()).map_err(Into::into))
        }
        _ if !cx.trx.temp.has_tables() => None,
        Statement::Truncate(name) => {
            let table = named(cx, name)?;
            Some(change_temporary(cx, call, |ddl| {
                ddl::temporary::truncate_temporary(ddl, &table)?;
                Ok(0)
            }))
        }
        Statement::AlterTable(tree) => {
            let table = named(cx, &tree.table)?;
            Some(alter_temporary(cx, &table, &tree.actions, &tree.online, call))
        }
        Statement::CreateIndex(tree) => {
            let table = named(cx, &tree.table)?;
            let action = AlterAction::AddIndex(Box::new(tree.index.clone()));
            Some(alter_temporary(cx, &table, &[action], &tree.online, call))
        }
        Statement::DropIndex(tree) => {
            let table = named(cx, &tree.table)?;
            let action = match tree.name.is("primary") {
                true => AlterAction::DropPrimaryKey,
                false => AlterAction::DropIndex { name: tree.name.clone(), if_exists: tree.if_exists },
            };
            Some(alter_temporary(cx, &table, &[action], &tree.online, call))
        }
        _ => None,
    }
}

fn temporary_ddl<'s>(cx: &'s mut StatementContext<'_>, call: &'s Call<'_>) -> Ddl<'s> {
    Ddl { trx: cx.trx, state: cx.state, access: call.access, sql: b"" }
}

fn alter_temporary(
    cx: &mut StatementContext<'_>,
    table: &Arc<Table>,
    actions: &[AlterAction],
    online: &OnlineOptions,
    call: &Call<'_>,
) -> ExecResult<Outcome> {
    change_temporary(cx, call, |ddl| ddl::temporary::alter_temporary(ddl, table, actions, online))
}

/// Commits what is open, then what `change` does.
fn change_temporary(
    cx: &mut StatementContext<'_>,
    call: &Call<'_>,
    change: impl FnOnce(&mut Ddl<'_>) -> ExecResult<u64>,
) -> ExecResult<Outcome> {
    cx.commit_before_definition()?;
    let mut ddl = Ddl { trx: cx.trx, state: cx.state, access: call.access, sql: b"" };
    let result = change(&mut ddl).map(|affected| Outcome { affected, ..Outcome::ok() });
    let outcome = cx.end_definition(result)?;
    let wait = cx.commit_now()?;
    Ok(Outcome { wait, ..outcome })
}

fn create_temporary(
    cx: &mut StatementContext<'_>,
    tree: &CreateTable,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    match &tree.query {
        Some(query) => create_temporary_select(cx, tree, query, call),
        None => {
            ddl::temporary::create_temporary(&mut temporary_ddl(cx, call), tree)?;
            Ok(Outcome::ok())
        }
    }
}

/// The query is planned before the table is there: it may read the table that this one hides.
fn create_temporary_select(
    cx: &mut StatementContext<'_>,
    tree: &CreateTable,
    query: &Query,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    let (plan, full, names) = super::create_select::planned(cx, tree, query, call)?;
    let Some(table) = ddl::temporary::create_temporary(&mut temporary_ddl(cx, call), &full)? else {
        return Ok(Outcome::ok());
    };
    cx.state.held.creating = Some(table.def.name.clone());
    let expressions = RowExpressions::bind(&table, cx.state, &cx.trx.catalog(), None);
    let result = expressions
        .and_then(|expressions| InsertPlan::for_query(&table, &names, plan, tree.on_duplicate, expressions))
        .map_err(Into::into)
        .and_then(|plan| {
            cx.enter();
            query::run_as_rows(cx, &WritePlan::of_insert(plan), call)
        });
    cx.state.held.creating = None;
    if result.is_err() {
        cx.trx.temp.drop_table(&table.def.db, &table.def.name);
    }
    result
}
