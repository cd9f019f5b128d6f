//! DELETE from one table.

use super::access::{Finder, by_computed_columns, hinted_indexes};
use super::change::passed_over;
use super::plan::{Planner, TargetTable, bind_limit, bind_order, refuse_common_table};
use super::returning::{Returned, Returning};
use super::rows::chosen_rows;
use super::view::{Meant, Opened, not_deleted};
use super::{Effect, RowExpressions, Run};
use crate::api::Priv;
use crate::bind::Clause;
use crate::bind::operators::with_zero_dates;
use crate::bind::query::with_clause;
use crate::catalog::Table;
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::exec::TableChange;
use crate::expr::node::Expr;
use crate::store::{RowAt, chosen_row};
use omnibus_parser::ast::{Delete, TableFactor, TableRef, TriggerEvent, TriggerTime};
use omnibus_value::Value;
use std::sync::Arc;

/// DELETE, compiled.
pub(crate) struct DeletePlan {
    pub target: TargetTable,
    finder: Finder,
    limit: Option<Expr>,
    ignore: bool,
    expressions: Option<RowExpressions>,
    pub(super) returning: Option<Returning>,
}

impl DeletePlan {
    /// For EXPLAIN.
    pub(crate) fn change(&self) -> TableChange<'_> {
        self.finder.change("DELETE", &self.target, Vec::new())
    }

    /// Compiles the one-table form.
    pub(crate) fn build(planner: &Planner<'_>, tree: &Delete) -> SqlResult<DeletePlan> {
        // Each clause by its name: one that nobody reads does not compile.
        let Delete {
            with,
            hints,
            low_priority: _,
            quick: _,
            ignore,
            targets,
            from,
            filter,
            order_by,
            limit,
            returning,
        } = tree;
        let ([], [TableRef::Table(factor)]) = (targets.as_slice(), from.as_slice()) else {
            return Err(SqlError::not_supported_yet("multi-table DELETE"));
        };
        let TableFactor { name, alias, partitions, hints: index_hints } = &**factor;
        if !partitions.is_empty() {
            return Err(SqlError::partition_clause());
        }
        refuse_common_table(with.as_deref(), name, alias.as_deref(), "DELETE")?;
        let opened = match planner.open(name, alias.as_deref(), &[Priv::Delete], "DELETE")? {
            Meant::Table(opened) => *opened,
            Meant::Join(join) => {
                return Err(not_deleted(&join, alias.as_deref().map_or(&*name.name, |alias| alias)));
            }
        };
        let Opened { mut binder, slot, names, mut conditions } = opened;
        with_clause(&mut binder, with.as_deref(), 0)?;
        binder.set_clause(Clause::Where);
        let filter = filter.as_ref().map(|filter| binder.expr(filter)).transpose()?;
        let filter = filter.map(|filter| with_zero_dates(&mut binder, filter)).transpose()?;
        let order = bind_order(&mut binder, order_by)?;
        let limit = bind_limit(&mut binder, limit.as_ref())?;
        let returning = Returning::bind(&mut binder, returning)?;
        let hints = hinted_indexes(&mut binder, &names, index_hints, hints);
        let target = TargetTable::new(names.table, slot, &binder);
        conditions.extend(filter);
        let conditions = by_computed_columns(planner, &target, conditions)?;
        let finder = Finder::new(&target, conditions, order, *ignore, planner.known(), &hints)?;
        // Nothing of a row that goes is computed: these are for the triggers.
        let expressions = planner.row_expressions(&target.table)?.filter(|one| one.triggers.is_some());
        Ok(DeletePlan { target, finder, limit, ignore: *ignore, expressions, returning })
    }

    /// Runs it.
    pub(crate) fn run(&self, run: &mut Run<'_>) -> ExecResult<Effect> {
        if run.state.settings.sql_safe_updates && self.limit.is_none() && self.finder.reads_all() {
            return Err(SqlError::update_without_key().into());
        }
        let mut rows = chosen_rows(&self.target, run, &self.finder, self.limit.as_ref())?;
        let table = &self.target.table;
        let mut values = Vec::with_capacity(table.def.columns.len());
        let (mut affected, mut returned) = (0, Returned::default());
        while let Some(row) = rows.next()? {
            let Some(row) = chosen_row(run.trx, row)? else { continue };
            table.decode_into(&row.row, &mut values)?;
            let deleted = delete_row(table, &row, &values, self.expressions.as_ref(), self.ignore, run)?;
            affected += u64::from(deleted);
            if let Some(returning) = self.returning.as_ref().filter(|_| deleted) {
                returning.take(&self.target, run, &values, &mut returned)?;
            }
        }
        Ok(Effect { affected, rows: returned.finish()?, ..Effect::default() })
    }
}

/// Deletes a row, with its triggers; false if IGNORE made a warning of what refuses that.
pub(super) fn delete_row(
    table: &Arc<Table>,
    at: &RowAt,
    values: &[Value],
    expressions: Option<&RowExpressions>,
    ignore: bool,
    run: &mut Run<'_>,
) -> ExecResult<bool> {
    let fire = |time, run: &mut Run<'_>| match expressions {
        Some(one) => one.fire((time, TriggerEvent::Delete), Some(values), None, run),
        None => Ok(()),
    };
    fire(TriggerTime::Before, run)?;
    let deleted = run.trx.delete_row(table, at, values);
    if passed_over(deleted, ignore, run.state)?.is_none() {
        return Ok(false);
    }
    fire(TriggerTime::After, run)?;
    Ok(true)
}
