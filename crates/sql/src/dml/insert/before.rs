//! BEFORE INSERT triggers: they see NULL where nothing was given, and only what they leave must have values.

use super::plan::InsertPlan;
use super::source::RowSource;
use crate::dml::defaults::{self, has_no_default, implicit_default, null_value};
use crate::dml::{NewRow, Run};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::node::Expr;
use crate::store::auto_value;
use omnibus_parser::ast::{TriggerEvent, TriggerTime};
use omnibus_value::{ColumnKind, Value};

/// Returns the value of a column that has no default and was given nothing.
pub(super) fn without_default(plan: &InsertPlan, run: &mut Run<'_>, at: usize) -> SqlResult<Value> {
    let column = &plan.target.table.def.columns[at];
    // The first label is one.
    if column.ty.kind == ColumnKind::Enum {
        return Ok(defaults::without_default(column));
    }
    let error = match &plan.view {
        Some(view) => SqlError::no_default_for_view_field(view),
        None => SqlError::no_default_for_field(&column.name),
    };
    if !plan.lenient(run) {
        return Err(error);
    }
    run.state.diagnostics.warn(error);
    Ok(defaults::without_default(column))
}

/// Fires the BEFORE triggers for a row. What they leave NULL is looked at only then.
pub(super) fn fire(
    plan: &InsertPlan,
    run: &mut Run<'_>,
    values: &mut Vec<Value>,
    number: u64,
) -> ExecResult<()> {
    let Some(expressions) = plan.expressions.as_ref().filter(|_| plan.null_may_go()) else {
        return Ok(());
    };
    let table = &plan.target.table;
    // A number that is still to come is 0 for them.
    let coming = table.auto_column.filter(|at| matches!(values[*at], Value::Null));
    if let Some(at) = coming {
        values[at] = implicit_default(&table.columns()[at].ty);
    }
    let mut row = NewRow { values, number, ignore: plan.ignore };
    expressions.foresee(&mut row, run.state, run.trx)?;
    expressions.fire((TriggerTime::Before, TriggerEvent::Insert), None, Some(values), run)?;
    if let Some(at) = coming.filter(|at| auto_value(&values[*at]) == 0) {
        values[at] = Value::Null;
    }
    let one = matches!(&plan.source, RowSource::Values(rows) if rows.len() == 1);
    let bare = matches!(&plan.source, RowSource::Values(rows) if rows.iter().any(|row| is_bare(row)));
    let lenient = plan.ignore || (!one && !run.state.settings.strict());
    for (at, column) in table.columns().iter().enumerate() {
        let may_be = column.nullable || column.auto_increment || column.generated.is_some();
        if may_be || !matches!(values[at], Value::Null) {
            continue;
        }
        values[at] = match (bare || plan.rest.contains(&at)) && has_no_default(column) {
            // What a statement says of all its rows is said once.
            true if number > 1 && plan.lenient(run) => defaults::without_default(column),
            true => without_default(plan, run, at)?,
            false => null_value(column, lenient, run.state)?,
        };
    }
    Ok(())
}

/// Whether a row is nothing but defaults: `VALUES ()`.
pub(super) fn is_bare(row: &[Option<Expr>]) -> bool {
    row.iter().all(Option::is_none)
}
