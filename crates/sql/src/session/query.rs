//! SELECT, DO and the data-changing statements as a session runs them: plan, check, run.

use super::{Call, StatementContext, evaluate, load, statement_log};
use crate::api::{AccessCheck, Mode, Outcome};
use crate::bind::uses::UsesCell;
use crate::catalog::Catalog;
use crate::dml::{Planner, Run, WritePlan};
use crate::error::{ExecResult, Interrupt, Level, SqlError, SqlResult};
use crate::plan::QueryPlan;
use crate::state::{Inside, SessionState};
use crate::storage::LockMode;
use crate::{bind, exec};
use omnibus_parser::ast::{Query, Statement};
use omnibus_value::Value;
use std::sync::Arc;

/// A compiled statement.
pub(super) enum Plan {
    Query(Box<QueryPlan>),
    Write(WritePlan),
}

impl Plan {
    /// Whether `other` is a plan over the same definitions of tables and views.
    pub(super) fn has_definitions_of(&self, other: &Plan) -> bool {
        fn same<'a, T: 'a>(
            left: impl IntoIterator<Item = &'a Arc<T>>,
            right: impl IntoIterator<Item = &'a Arc<T>>,
        ) -> bool {
            left.into_iter().map(Arc::as_ptr).eq(right.into_iter().map(Arc::as_ptr))
        }
        match (self, other) {
            (Plan::Query(left), Plan::Query(right)) => {
                same(&left.statement.tables, &right.statement.tables)
                    && same(&left.statement.views, &right.statement.views)
            }
            (Plan::Write(left), Plan::Write(right)) => {
                same(left.targets(), right.targets())
                    && same(&left.uses.views, &right.uses.views)
                    && left.uses.tables == right.uses.tables
            }
            _ => false,
        }
    }
}

pub(super) fn select(
    cx: &mut StatementContext<'_>,
    statement: &Statement,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    match statement {
        Statement::Select(query) => {
            let plan = plan_query(cx, query, call.access, Some(call.params))?;
            run_query(cx, &plan, call)
        }
        Statement::Do(list) => {
            for expr in list {
                evaluate::done(cx, expr, call.params, call.access)?;
            }
            Ok(Outcome::ok())
        }
        other => Err(SqlError::not_supported_yet(other.kind()).into()),
    }
}

/// Compiles a query and checks that the account may read its tables.
pub(crate) fn plan_query(
    cx: &StatementContext<'_>,
    query: &Query,
    access: &dyn AccessCheck,
    params: Option<&[Value]>,
) -> SqlResult<QueryPlan> {
    let plan = plan_reads(cx, query, access, params, LockMode::None)?;
    // Locks that are shared change nothing.
    if plan.locks == LockMode::Exclusive && cx.state.settings.server_read_only {
        return Err(SqlError::option_prevents_statement("--read-only"));
    }
    Ok(plan)
}

/// Compiles a query whose rows are locked as they are read.
pub(super) fn plan_reads(
    cx: &StatementContext<'_>,
    query: &Query,
    access: &dyn AccessCheck,
    params: Option<&[Value]>,
    lock: LockMode,
) -> SqlResult<QueryPlan> {
    let catalog = cx.catalog_to_plan();
    let virtuals = cx.database.virtual_tables();
    let plan = bind::prepare(query, cx.state, &catalog, virtuals, access, params, lock)?;
    if !plan.statement.tables.is_empty() || !plan.statement.views.is_empty() {
        cx.trx.floor().see_definitions();
    }
    Ok(plan)
}

/// Readies the session and the transaction for running a query.
pub(super) fn begin_query(cx: &mut StatementContext<'_>, plan: &QueryPlan) -> ExecResult<()> {
    let tables = &mut cx.state.programs.tables;
    tables.clear();
    tables.extend(plan.statement.tables.iter().map(|table| table.def.id));
    if !plan.statement.tables.is_empty() || !plan.statement.views.is_empty() {
        cx.enter();
        cx.trx.locks.lock_views(cx.trx.statement.waits(), &plan.statement.views)?;
    }
    let (most, asked) = (cx.state.settings.max_join_size, cx.state.settings.sql_select_limit);
    if most != u64::MAX && plan.examines(asked) > most as f64 {
        return Err(SqlError::too_big_select().into());
    }
    if plan.locks == LockMode::None {
        cx.trx.start_query(&plan.statement.tables)?;
    }
    Ok(())
}

pub(crate) fn run_query(
    cx: &mut StatementContext<'_>,
    plan: &QueryPlan,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    begin_query(cx, plan)?;
    if let Some(outfile) = &plan.outfile {
        return load::write_file(cx, plan, outfile, call);
    }
    warn(cx.state, &plan.statement.warnings);
    let rows = exec::execute(plan, cx.state, cx.trx, call.params, call.sink)?;
    if plan.into.is_empty() { Ok(Outcome::rows()) } else { Ok(Outcome { affected: rows, ..Outcome::ok() }) }
}

pub(super) fn write(
    cx: &mut StatementContext<'_>,
    statement: &Statement,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    let catalog = cx.catalog();
    let plan = plan_write(cx, statement, &catalog, call.access, Some(call.params))?;
    run_write(cx, &plan, call)
}

pub(super) fn plan_write(
    cx: &StatementContext<'_>,
    statement: &Statement,
    catalog: &Catalog,
    access: &dyn AccessCheck,
    params: Option<&[Value]>,
) -> SqlResult<WritePlan> {
    let virtuals = cx.database.virtual_tables();
    let (uses, read_lock) = (UsesCell::default(), statement_log::read_lock(cx, statement));
    let planner = Planner { session: cx.state, catalog, access, virtuals, params, uses: &uses, read_lock };
    let plan = WritePlan::build(&planner, statement)?;
    if cx.state.settings.server_read_only && !plan.only_temporary() {
        return Err(SqlError::option_prevents_statement("--read-only"));
    }
    Ok(plan)
}

pub(super) fn run_write(
    cx: &mut StatementContext<'_>,
    plan: &WritePlan,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    cx.enter();
    cx.trx.locks.lock_views(cx.trx.statement.waits(), &plan.uses.views)?;
    let nested = cx.state.programs.inside == Inside::Statement;
    note_tables(cx.state, plan, nested)?;
    let as_text = if nested { None } else { statement_log::choose_format(cx, plan)? };
    warn(cx.state, &plan.uses.warnings);
    let outcome = run_as_rows(cx, plan, call)?;
    if let Some(before) = as_text {
        statement_log::log_text(cx, &before, None, call)?;
    }
    Ok(outcome)
}

/// Runs a plan whose rows are logged, unless the transaction was told otherwise.
pub(super) fn run_as_rows(
    cx: &mut StatementContext<'_>,
    plan: &WritePlan,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    hold_back(cx, call.mode)?;
    let effect = plan.run(&mut Run { trx: cx.trx, state: cx.state, params: call.params })?;
    let returning = plan.returning();
    if let Some(returning) = returning {
        returning.send(effect.rows, call.sink)?;
    }
    Ok(Outcome {
        affected: effect.affected,
        last_insert_id: effect.last_insert_id,
        info: effect.info,
        result_set: returning.is_some(),
        ..Outcome::ok()
    })
}

/// Waits when the engine's background work lags behind its writers.
pub(super) fn hold_back(cx: &mut StatementContext<'_>, mode: Mode) -> ExecResult<()> {
    let stall = cx.database.port().engine().write_stall();
    if stall.is_zero() {
        return Ok(());
    }
    if mode == Mode::Inline {
        return Err(Interrupt::NeedBlocking);
    }
    std::thread::sleep(stall);
    Ok(())
}

/// Notes which tables the running statement uses. One of a function or trigger changes none that the statement around
/// it uses.
fn note_tables(state: &mut SessionState, plan: &WritePlan, nested: bool) -> SqlResult<()> {
    let programs = &mut state.programs;
    for table in plan.targets() {
        if nested && programs.used.contains(&table.def.id) {
            let mut error = SqlError::cant_update_used_table_in_sf_or_trg(&table.def.name);
            if !state.settings.mariadb {
                error.message.push('.');
            }
            return Err(error);
        }
    }
    let stored = plan.targets().find(|table| !table.temporary);
    if let (true, false, Some(created), Some(table)) =
        (nested, state.settings.mariadb, &state.held.creating, stored)
    {
        let name = &table.def.name;
        let message = format!("Can't update table '{name}' while '{created}' is being created.");
        return Err(SqlError::new(1746, b"HY000", message));
    }
    programs.tables.clear();
    programs.tables.extend(&plan.uses.tables);
    programs.tables.extend(plan.targets().map(|table| table.def.id));
    Ok(())
}

pub(super) fn warn(state: &mut SessionState, warnings: &[SqlError]) {
    warnings.iter().for_each(|warning| state.diagnostics.push(Level::Warning, warning.clone()));
}
