//! Runs a [`QueryPlan`], any number of times: from its tables to rows in a sink.
//!
//! [`crate::plan`] made it. Storage is behind the [`Storage`] trait. [`execute`] is what sessions call; `operator` has what it runs, a file for
//! each kind of operator. UPDATE and DELETE read with [`RowReader`] too.

mod batch;
mod explain;
mod fetched;
mod operator;
pub mod reader;
mod whole_numbers;

pub(crate) use explain::{Form, Subject, TableChange, explain};
pub use operator::query::run;
pub use reader::RowReader;

use crate::api::RowSink;
use crate::error::{ExecResult, Interrupt, SqlError};
use crate::expr::profile::Profile;
use crate::expr::{Context, assign, eval};
use crate::logical::Limit;
use crate::plan::QueryPlan;
use crate::rows::Flow;
use crate::state::SessionState;
use crate::storage::Storage;
use omnibus_parser::ast::AssignTarget;
use omnibus_value::Value;
use operator::query::run_outermost;

/// Runs a compiled query into a sink; the number of rows. The plan must be of the present catalog.
///
/// # Errors
/// Whatever evaluation or storage meets; an interrupt is passed on.
pub fn execute(
    plan: &QueryPlan,
    session: &mut SessionState,
    storage: &mut dyn Storage,
    params: &[Value],
    sink: &mut dyn RowSink,
) -> ExecResult<u64> {
    let mut cx = Context::new(session, storage, params);
    cx.reserve(plan.statement.slots, plan.statement.subqueries);
    cx.query.keeps_results = true;
    let mut rows = 0;
    if !plan.into.is_empty() {
        // Those of programs have types, and are assigned to.
        let typed = plan.into.iter().any(|target| matches!(target, AssignTarget::Local(_)));
        cx.query.strict_outputs = typed && cx.session.settings.strict();
        return into_variables(plan, &mut cx);
    }
    sink.columns(&plan.columns)?;
    count_tables(plan, &mut cx);
    let most = if has_limit(plan) { u64::MAX } else { cx.session.settings.sql_select_limit };
    if most == 0 {
        cx.session.results.found_rows = 0;
        return Ok(0);
    }
    if let Some(limit) = &plan.late_limit {
        return counting(plan, limit, most, &mut cx, sink);
    }
    run_outermost(plan, &mut cx, &mut |_, row| {
        sink.row(row)?;
        rows += 1;
        Ok(if rows == most { Flow::Stop } else { Flow::Continue })
    })?;
    cx.session.results.found_rows = rows + cx.skipped;
    Ok(rows)
}

/// Runs a compiled query for what its parts do. Its rows go nowhere.
///
/// # Errors
/// As [`execute`].
pub(crate) fn profiled(
    plan: &QueryPlan,
    session: &mut SessionState,
    storage: &mut dyn Storage,
    params: &[Value],
) -> ExecResult<Profile> {
    let mut cx = Context::new(session, storage, params);
    cx.reserve(plan.statement.slots, plan.statement.subqueries);
    cx.query.keeps_results = true;
    cx.profile = Some(Box::default());
    count_tables(plan, &mut cx);
    run(plan, &mut cx, &mut |_, _| Ok(Flow::Continue))?;
    Ok(cx.profile.map(|profile| *profile).unwrap_or_default())
}

/// SQL_CALC_FOUND_ROWS: all rows are found, those within LIMIT are sent, `most` at most.
fn counting(
    plan: &QueryPlan,
    limit: &Limit,
    most: u64,
    cx: &mut Context<'_>,
    sink: &mut dyn RowSink,
) -> ExecResult<u64> {
    let limit = operator::limit::Bounds::of(limit, cx)?;
    let most = limit.count.min(most);
    let (mut found, mut sent) = (0, 0);
    run(plan, cx, &mut |_, row| {
        found += 1;
        if found > limit.offset && sent < most {
            sent += 1;
            sink.row(row)?;
        }
        Ok(Flow::Continue)
    })?;
    cx.session.results.found_rows = found;
    Ok(sent)
}

/// Has storage count the tables of which nothing is known yet, so that the next plan knows it.
/// Not for point reads, which would pay for it and gain nothing.
fn count_tables(plan: &QueryPlan, cx: &mut Context<'_>) {
    let only = plan.root.project().and_then(|project| project.input.only_table());
    let point = only.is_some_and(|(_, path)| path.is_point());
    if !point {
        for table in &plan.statement.tables {
            cx.storage.estimate_rows(table);
        }
    }
}

fn has_limit(plan: &QueryPlan) -> bool {
    plan.late_limit.as_ref().or_else(|| plan.root.limit()).is_some_and(|limit| limit.count.is_some())
}

/// SELECT ... INTO @a, @b: one row at most; none leaves the variables as they are, with a warning.
fn into_variables(plan: &QueryPlan, cx: &mut Context<'_>) -> ExecResult<u64> {
    let mut found: Option<Vec<Value>> = None;
    run(plan, cx, &mut |_, row| {
        if found.is_some() {
            return Err(Interrupt::Error(SqlError::too_many_rows()));
        }
        found = Some(row.iter().cloned().map(eval::own).collect());
        Ok(Flow::Continue)
    })?;
    let Some(row) = found else {
        cx.warn(SqlError::new(1329, b"02000", "No data - zero rows fetched, selected, or processed"));
        return Ok(0);
    };
    for ((target, value), ty) in plan.into.iter().zip(row).zip(&plan.types) {
        assign::to_target(cx.session, target, value, &ty.column)?;
    }
    Ok(1)
}
