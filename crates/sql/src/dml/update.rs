//! UPDATE of one table.

use super::access::Finder;
use super::defaults::{default_value, now_for, null_value};
use super::plan::{Assignment, Planner, TargetTable, bind_assignments, bind_limit, bind_order};
use super::rows::{cast_into, changed_columns, limit_value, sort_rows};
use super::{Effect, Run};
use crate::api::Priv;
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::bind::Clause;
use crate::expr::exec::{Exec, Row};
use crate::expr::node::Expr;
use crate::session::SessionState;
use crate::store::{RowAt, RowChange, duplicate_error};
use omnibus_parser::ast::{TableRef, Update};
use omnibus_value::Value;

/// UPDATE, compiled.
pub(crate) struct UpdatePlan {
    pub target: TargetTable,
    finder: Finder,
    assignments: Vec<Assignment>,
    /// Columns assigned, then columns that change with any change.
    assigned: Vec<usize>,
    on_update: Vec<usize>,
    order: Vec<(Expr, bool)>,
    limit: Option<Expr>,
    ignore: bool,
}

/// New values of a row, computed before anything is written.
struct Computed {
    at: RowAt,
    old: Vec<Value>,
    new: Vec<Value>,
}

impl UpdatePlan {
    /// Compiles the one-table form.
    pub(crate) fn build(planner: &Planner<'_>, tree: &Update) -> SqlResult<UpdatePlan> {
        let [TableRef::Table(factor)] = tree.tables.as_slice() else {
            return Err(SqlError::not_supported_yet("multi-table UPDATE"));
        };
        if tree.with.is_some() {
            return Err(SqlError::not_supported_yet("WITH in UPDATE"));
        }
        let table = planner.table(&factor.name, Priv::Update)?;
        let alias = factor.alias.as_ref().unwrap_or(&factor.name.name).to_string();
        let (mut binder, slot) = planner.binder(&table, Some(&alias));
        let assignments = bind_assignments(&mut binder, &table, &alias, &tree.assignments)?;
        binder.set_clause(Clause::Where);
        let filter = tree.filter.as_ref().map(|filter| binder.expr(filter)).transpose()?;
        let order = bind_order(&mut binder, &tree.order_by)?;
        let limit = bind_limit(&mut binder, tree.limit.as_ref())?;
        let target = TargetTable::new(table, slot, &binder);
        let values = assignments.iter().filter_map(|assignment| assignment.value.as_ref());
        let sorted = order.iter().map(|(expr, _)| expr);
        planner.reads(&factor.name, &target, filter.iter().chain(values).chain(sorted))?;
        let finder = Finder::new(&target, filter, tree.ignore);
        let assigned: Vec<usize> = assignments.iter().map(|assignment| assignment.column).collect();
        let columns = target.table.columns().iter().enumerate();
        let on_update = columns
            .filter(|(at, column)| column.on_update_now && !assigned.contains(at))
            .map(|(at, _)| at)
            .collect();
        Ok(UpdatePlan { target, finder, assignments, assigned, on_update, order, limit, ignore: tree.ignore })
    }

    /// Runs it.
    pub(crate) fn run(&self, run: &mut Run<'_>) -> ExecResult<Effect> {
        let limit = limit_value(self.limit.as_ref(), run)?;
        let early = if self.order.is_empty() { limit } else { u64::MAX };
        let mut rows = self.target.matching(run, &self.finder, early)?;
        if !self.order.is_empty() {
            sort_rows(&self.target, run, &self.finder, &self.order, &mut rows)?;
            rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        }
        let matched = rows.len() as u64;
        let mut changed = 0;
        let mut number = 0;
        // Values are computed before their batch is written: evaluation borrows the transaction.
        let mut rows = rows.into_iter().peekable();
        while rows.peek().is_some() {
            let batch = self.compute(run, rows.by_ref().take(256), &mut number)?;
            for computed in batch {
                changed += u64::from(self.write(run, computed)?);
            }
        }
        let warnings = run.state.diagnostics.count();
        let affected = if run.state.settings.found_rows { matched } else { changed };
        let info = format!("Rows matched: {matched}  Changed: {changed}  Warnings: {warnings}");
        Ok(Effect { affected, last_insert_id: 0, info })
    }

    fn compute(
        &self,
        run: &mut Run<'_>,
        rows: impl Iterator<Item = RowAt>,
        number: &mut u64,
    ) -> ExecResult<Vec<Computed>> {
        let table = &self.target.table;
        let slot = usize::from(self.target.slot);
        let mut exec = self.target.exec(run, Row::Unset);
        exec.strict = exec.session.settings.strict() && !self.ignore;
        let mut out = Vec::with_capacity(rows.size_hint().1.unwrap_or(0).min(256));
        for at in rows {
            *number += 1;
            let old = table.decode(&at.row)?;
            let mut new = old.clone();
            exec.frame[slot].row = Row::Image(at.row.clone());
            for (nth, assignment) in self.assignments.iter().enumerate() {
                if nth > 0 {
                    // Later assignments see the values of earlier ones.
                    exec.frame[slot].row = Row::Values(new.as_slice().into());
                }
                new[assignment.column] = self.value(assignment, *number, &mut exec)?;
            }
            out.push(Computed { at, old, new });
        }
        Ok(out)
    }

    fn value(&self, assignment: &Assignment, number: u64, exec: &mut Exec<'_>) -> ExecResult<Value> {
        let column = &self.target.table.def.columns[assignment.column];
        let value = match &assignment.value {
            None => default_value(column, exec.session)?,
            Some(expr) => {
                let value = expr.eval(exec)?;
                cast_into(value, expr, column, number, self.ignore, exec.session)?
            }
        };
        if matches!(value, Value::Null) && !column.nullable {
            let lenient = self.ignore || !exec.session.settings.strict();
            return Ok(null_value(column, lenient, exec.session)?);
        }
        Ok(value)
    }

    /// Writes one row; whether it changed.
    fn write(&self, run: &mut Run<'_>, computed: Computed) -> ExecResult<bool> {
        let Computed { at, old, mut new } = computed;
        let table = &self.target.table;
        let mut changed = changed_columns(table, &old, &new, &self.assigned);
        if changed == 0 {
            return Ok(false);
        }
        changed |= touch_on_update(&self.on_update, table.columns(), &mut new, run.state);
        let new_row = table.rows.encode(&new)?;
        let change = RowChange { at: &at, old: &old, new: &new, new_row: &new_row, changed };
        let Some(duplicate) = run.trx.update_row(table, &change)? else { return Ok(true) };
        let error = duplicate_error(table, duplicate.index, &new);
        if !self.ignore {
            return Err(error.into());
        }
        run.state.diagnostics.warn(error);
        Ok(false)
    }
}

/// Sets ON UPDATE CURRENT_TIMESTAMP columns of a row that changes; returns their bits.
pub(crate) fn touch_on_update(
    columns: &[usize],
    defs: &[crate::catalog::Column],
    values: &mut [Value],
    state: &SessionState,
) -> u64 {
    columns.iter().fold(0, |bits, &column| {
        values[column] = now_for(&defs[column], state);
        bits | 1 << (column % 64)
    })
}
