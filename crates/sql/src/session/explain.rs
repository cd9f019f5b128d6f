//! EXPLAIN, of statements here and of what other sessions run.

use super::query::{begin_query, plan_query, plan_write, warn};
use super::{Call, StatementContext};
use crate::api::{AccessCheck, Outcome, Priv, ResultColumn, RowSink, VariableScope};
use crate::catalog::{Table, View};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::exec;
use crate::plan::QueryPlan;
use crate::state::SessionState;
use crate::storage::Storage;
use omnibus_parser::ast::{self, Statement};
use omnibus_value::Value;
use std::sync::Arc;

/// EXPLAIN tells what a view is made of.
fn may_explain(plan: &QueryPlan, access: &dyn AccessCheck) -> SqlResult<()> {
    let shown = |view: &Arc<View>| access.check(&view.def.db, Some(&view.def.name), Priv::ShowView);
    let read = |table: &Arc<Table>| access.check(&table.def.db, Some(&table.def.name), Priv::Select);
    let mut tables =
        plan.statement.tables.iter().filter(|table| !table.temporary && !plan.statement.views.is_empty());
    plan.statement.views.iter().try_for_each(shown).and_then(|()| tables.try_for_each(read)).map_err(|_| {
        let message = "EXPLAIN/SHOW can not be issued; lacking privileges for underlying table";
        SqlError::new(1345, b"HY000", message)
    })
}

/// Takes a result of one value.
#[derive(Default)]
struct OneValue(Value);

impl RowSink for OneValue {
    fn columns(&mut self, _: &[ResultColumn]) -> SqlResult<()> {
        Ok(())
    }
    fn row(&mut self, values: &[Value]) -> SqlResult<()> {
        self.0 = values.first().cloned().unwrap_or_default();
        Ok(())
    }
}

/// EXPLAIN, EXPLAIN ANALYZE and MariaDB's ANALYZE, where it is to be understood, and into where it goes.
pub(super) fn execute(
    cx: &mut StatementContext<'_>,
    explain: &ast::Explain,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    if let Some(schema) = &explain.schema {
        let own = cx.state.database.clone();
        cx.use_database(schema, call)?;
        let done = execute(cx, &ast::Explain { schema: None, ..explain.clone() }, call);
        cx.state.database = own;
        return done;
    }
    let Some(name) = &explain.into else { return to_sink(cx, explain, call) };
    if explain.analyze || !explain.format.as_ref().is_some_and(|format| format.is("JSON")) {
        return Err(SqlError::not_supported_yet("EXPLAIN INTO without FORMAT=JSON").into());
    }
    let mut only = OneValue::default();
    to_sink(cx, explain, &mut Call { sink: &mut only, ..*call })?;
    let ty = crate::expr::types::string_column(u32::MAX, 45);
    cx.state.set_user_variable(name.to_lowercase(), (only.0, ty))?;
    Ok(Outcome::ok())
}

fn to_sink(
    cx: &mut StatementContext<'_>,
    explain: &ast::Explain,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    let statement = match &explain.target {
        ast::ExplainTarget::Statement(statement) => statement,
        ast::ExplainTarget::Connection(id) => return of_connection(cx, explain, *id, call),
    };
    let mariadb = cx.state.settings.mariadb;
    let form = form_of(cx.state, explain)?;
    if explain.analyze && !mariadb && form != exec::Form::Tree {
        return Err(SqlError::not_supported_yet("EXPLAIN ANALYZE in another format than TREE").into());
    }
    match &**statement {
        Statement::Select(query) => {
            let mut plan = plan_query(cx, query, call.access, Some(call.params))?;
            may_explain(&plan, call.access)?;
            // Who decides by the number of rows asks for it before anybody has read the table.
            let unknown: Vec<_> =
                plan.statement.tables.iter().filter(|table| table.rows_estimate() == 0).cloned().collect();
            if !unknown.is_empty() {
                for table in &unknown {
                    cx.trx.estimate_rows(table);
                }
                plan = plan_query(cx, query, call.access, Some(call.params))?;
            }
            let mut profile = None;
            if explain.analyze {
                begin_query(cx, &plan)?;
                profile = Some(exec::profiled(&plan, cx.state, cx.trx, call.params)?);
            }
            warn(cx.state, &plan.statement.warnings);
            exec::explain(&exec::Subject::Query(&plan), form, profile.as_ref(), call.sink)?;
        }
        Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) => {
            if explain.analyze {
                let message = "EXPLAIN ANALYZE of a statement that changes rows";
                return Err(SqlError::not_supported_yet(message).into());
            }
            let catalog = cx.catalog();
            let plan = plan_write(cx, statement, &catalog, call.access, Some(call.params))?;
            warn(cx.state, &plan.uses.warnings);
            exec::explain(&plan.subject(), form, None, call.sink)?;
        }
        _ => {
            let message = "EXPLAIN of a statement that neither asks for rows nor changes them";
            return Err(SqlError::not_supported_yet(message).into());
        }
    }
    Ok(Outcome::rows())
}

/// EXPLAIN FOR CONNECTION: of what another session runs, planned anew in its database.
fn of_connection(
    cx: &mut StatementContext<'_>,
    explain: &ast::Explain,
    id: u64,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    let mariadb = cx.state.settings.mariadb;
    let lines = cx.state.connection.host.processlist();
    let line = lines.into_iter().find(|line| line[0] == Value::UInt(id));
    let Some([_, _, _, database, command, _, _, info]) = line else {
        return Err(SqlError::new(1094, b"HY000", format!("Unknown thread id: {id}")).into());
    };
    let unsupported = || match mariadb {
        true => SqlError::new(1933, b"HY000", "Target is not executing an operation with a query plan"),
        false => SqlError::new(
            3012,
            b"HY000",
            "EXPLAIN FOR CONNECTION command is supported only for SELECT/UPDATE/INSERT/DELETE/REPLACE",
        ),
    };
    let (Value::Bytes(text), Value::Bytes(command)) = (info, command) else {
        return if mariadb { Err(unsupported().into()) } else { Ok(Outcome::ok()) };
    };
    if !matches!(&command[..], b"Query" | b"Execute") {
        return if mariadb { Err(unsupported().into()) } else { Ok(Outcome::ok()) };
    }
    let parsed = omnibus_parser::parse(&text, &cx.state.settings.parse_options());
    let statement = parsed.ok().and_then(|statements| statements.into_iter().next()).map(|s| s.node);
    use Statement as S;
    let Some(statement @ (S::Select(_) | S::Insert(_) | S::Update(_) | S::Delete(_))) = statement else {
        return Err(unsupported().into());
    };
    let target = ast::ExplainTarget::Statement(Box::new(statement));
    let explain = ast::Explain { target, ..explain.clone() };
    let database = match database {
        Value::Bytes(name) => Some(String::from_utf8_lossy(&name).into()),
        _ => None,
    };
    let own = std::mem::replace(&mut cx.state.database, database);
    let done = execute(cx, &explain, call);
    cx.state.database = own;
    done
}

/// The form that an EXPLAIN names, or `explain_format`.
fn form_of(state: &SessionState, explain: &ast::Explain) -> SqlResult<exec::Form> {
    let mariadb = state.settings.mariadb;
    if let Some(name) = &explain.format {
        return exec::Form::named(name, mariadb);
    }
    if mariadb {
        return Ok(exec::Form::Table);
    }
    let usual = state.connection.host.variable(VariableScope::Session, "explain_format");
    let form = match usual {
        Ok((Value::Bytes(name), _)) => exec::Form::named(&String::from_utf8_lossy(&name), mariadb)?,
        _ => exec::Form::Table,
    };
    Ok(if explain.analyze && form == exec::Form::Table { exec::Form::Tree } else { form })
}
