//! SELECT: from a query's syntax tree to rows in a sink.
//!
//! `bind` makes a [`QueryPlan`]: names and types here, access paths and join order in [`crate::plan`]. `run` executes it any
//! number of times. Storage is behind the [`Storage`] trait. [`prepare`] and [`execute`] are what
//! sessions call; UPDATE and DELETE read with [`RowReader`] too.

pub mod bind;
mod bind_compound;
mod explain;
pub(crate) mod from;
mod full_group;
mod group;
mod group_stream;
pub mod key;
mod numbers;
mod order;
pub mod plan;
pub mod reader;
pub mod run;
mod set_operation;
pub mod subquery;
pub mod virtual_table;

#[cfg(test)]
mod tests;

pub use explain::explain;
pub(crate) use explain::{Change, explain_change, explain_changing};
pub use numbers::Numbers;
pub use plan::QueryPlan;
pub use reader::RowReader;
pub use virtual_table::{NoVirtualTables, VirtualTable, VirtualTables};

use crate::api::{AccessCheck, RowSink};
use crate::catalog::Catalog;
use crate::error::{ExecResult, Interrupt, SqlError, SqlResult};
use crate::expr::bind::Binder;
use crate::expr::{Exec, eval};
use crate::state::SessionState;
use crate::storage::{LockMode, Storage};
use omnibus_parser::ast::{Query, QueryBody};
use omnibus_value::Value;
use run::Flow;

/// Compiles a query. `params` are the values of `?`, if they are known: types of result columns
/// that depend on them are exact then. `access` is asked for each table read. `lock` is what plain reads lock (SERIALIZABLE).
///
/// # Errors
/// Whatever is wrong with the query.
pub fn prepare(
    query: &Query,
    session: &SessionState,
    catalog: &Catalog,
    virtuals: &dyn VirtualTables,
    access: &dyn AccessCheck,
    params: Option<&[Value]>,
    lock: LockMode,
) -> SqlResult<QueryPlan> {
    let mut binder = Binder::new(session, catalog);
    binder.virtuals = virtuals;
    binder.access = access;
    binder.params = params;
    binder.default_lock = lock;
    let mut plan = bind::query(&mut binder, query)?;
    if counts_all(&query.body) && plan.into.is_empty() && plan.outfile.is_none() {
        plan.late_limit = match &mut plan.body {
            plan::Body::Block(block) => Some(std::mem::take(&mut block.limit)),
            plan::Body::Compound(compound) => Some(std::mem::take(&mut compound.limit)),
            _ => None,
        };
    }
    Ok(plan)
}

/// SQL_CALC_FOUND_ROWS, which the first SELECT of a query has.
fn counts_all(body: &QueryBody) -> bool {
    match body {
        QueryBody::Select(select) => select.options.calc_found_rows,
        QueryBody::SetOperation { left, .. } => counts_all(left),
        QueryBody::Nested(query) => counts_all(&query.body),
        QueryBody::Table(_) | QueryBody::Values(_) => false,
    }
}

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
    let mut cx = Exec::new(session, storage, params);
    cx.reserve(plan.slots, plan.subqueries);
    let mut rows = 0;
    if !plan.into.is_empty() {
        return into_variables(plan, &mut cx);
    }
    sink.columns(&plan.columns)?;
    count_tables(plan, &mut cx);
    let most = if has_limit(plan) { u64::MAX } else { cx.session.settings.sql_select_limit };
    if most == 0 {
        cx.session.found_rows = 0;
        return Ok(0);
    }
    if let Some(limit) = &plan.late_limit {
        return counting(plan, limit, &mut cx, sink);
    }
    run::run_outermost(plan, &mut cx, &mut |_, row| {
        sink.row(row)?;
        rows += 1;
        Ok(if rows == most { Flow::Stop } else { Flow::Continue })
    })?;
    cx.session.found_rows = rows + cx.skipped;
    Ok(rows)
}

/// SQL_CALC_FOUND_ROWS: all rows are found, those within LIMIT are sent.
fn counting(
    plan: &QueryPlan,
    limit: &plan::Limit,
    cx: &mut Exec<'_>,
    sink: &mut dyn RowSink,
) -> ExecResult<u64> {
    let window = run::window(limit, cx)?;
    let (mut found, mut sent) = (0, 0);
    run::run(plan, cx, &mut |_, row| {
        found += 1;
        if found > window.offset && sent < window.count {
            sent += 1;
            sink.row(row)?;
        }
        Ok(Flow::Continue)
    })?;
    cx.session.found_rows = found;
    Ok(sent)
}

/// Has storage count the tables of which nothing is known yet, so that the next plan knows it.
/// Not for point reads, which would pay for it and gain nothing.
fn count_tables(plan: &QueryPlan, cx: &mut Exec<'_>) {
    let point = match &plan.body {
        plan::Body::Block(block) => match &block.nodes[..] {
            [plan::Node::Scan(scan)] => match &scan.source {
                plan::NodeSource::Table { path, .. } => path.is_point(),
                _ => false,
            },
            _ => false,
        },
        _ => false,
    };
    if !point {
        for table in &plan.tables {
            cx.storage.estimate_rows(table);
        }
    }
}

fn has_limit(plan: &QueryPlan) -> bool {
    match &plan.body {
        plan::Body::Block(block) => block.limit.count.is_some(),
        plan::Body::Compound(compound) => compound.limit.count.is_some(),
        _ => false,
    }
}

/// SELECT ... INTO @a, @b: one row at most; none leaves the variables as they are, with a warning.
fn into_variables(plan: &QueryPlan, cx: &mut Exec<'_>) -> ExecResult<u64> {
    let mut found: Option<Vec<Value>> = None;
    run::run(plan, cx, &mut |_, row| {
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
    for ((name, value), ty) in plan.into.iter().zip(row).zip(&plan.types) {
        let kept = eval::for_variable(value, &ty.column, cx.session.settings.collation_connection);
        cx.session.set_user_variable(name.to_string(), kept)?;
    }
    Ok(1)
}
