//! UPDATE of one table.

use super::access::{Finder, by_computed_columns, hinted_indexes};
use super::change::{RowUpdate, Written, on_update_columns};
use super::chosen::Batch;
use super::plan::{
    Assignment, Planner, TargetTable, bind_assignments, bind_limit, bind_order, refuse_common_table,
};
use super::rows::chosen_rows;
use super::view::{Meant, Opened};
use super::{Effect, NewRow, RowExpressions, Run, ViewCheck};
use crate::api::{Info, Priv};
use crate::bind::Clause;
use crate::bind::operators::with_zero_dates;
use crate::bind::query::with_clause;
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::exec::TableChange;
use crate::expr::context::Row;
use crate::expr::node::Expr;
use crate::store::RowAt;
use omnibus_parser::ast::{TableFactor, TableRef, Update};
use omnibus_value::Value;
use smallvec::SmallVec;

/// UPDATE, compiled.
pub(crate) struct UpdatePlan {
    pub target: TargetTable,
    finder: Finder,
    assignments: Vec<Assignment>,
    /// Columns assigned, then columns that change with any change.
    assigned: Vec<usize>,
    on_update: Vec<usize>,
    limit: Option<Expr>,
    expressions: Option<RowExpressions>,
    check: Option<ViewCheck>,
    ignore: bool,
}

/// New values of a row, computed before anything is written.
struct Computed {
    at: RowAt,
    old: Vec<Value>,
    new: Vec<Value>,
    number: u64,
}

impl UpdatePlan {
    /// For EXPLAIN.
    pub(crate) fn change(&self) -> TableChange<'_> {
        let values = self.assignments.iter().filter_map(|assignment| assignment.value.as_ref());
        self.finder.change("UPDATE", &self.target, values.collect())
    }

    /// Compiles the one-table form; `None` if it means a view of several.
    pub(crate) fn build(planner: &Planner<'_>, tree: &Update) -> SqlResult<Option<UpdatePlan>> {
        // Each clause by its name: one that nobody reads does not compile.
        let Update { with, hints, low_priority: _, ignore, tables, assignments, filter, order_by, limit } =
            tree;
        let [TableRef::Table(factor)] = tables.as_slice() else {
            return Err(SqlError::not_supported_yet("multi-table UPDATE"));
        };
        let TableFactor { name, alias, partitions, hints: index_hints } = &**factor;
        if !partitions.is_empty() {
            return Err(SqlError::partition_clause());
        }
        refuse_common_table(with.as_deref(), name, alias.as_deref(), "UPDATE")?;
        let opened = match planner.open(name, alias.as_deref(), &[Priv::Update], "UPDATE")? {
            Meant::Table(opened) => *opened,
            Meant::Join(_) => return Ok(None),
        };
        let Opened { mut binder, slot, names, mut conditions } = opened;
        with_clause(&mut binder, with.as_deref(), 0)?;
        let assignments = bind_assignments(&mut binder, &names, assignments)?;
        binder.set_clause(Clause::Where);
        let filter = filter.as_ref().map(|filter| binder.expr(filter)).transpose()?;
        let filter = filter.map(|filter| with_zero_dates(&mut binder, filter)).transpose()?;
        let order = bind_order(&mut binder, order_by)?;
        let limit = bind_limit(&mut binder, limit.as_ref())?;
        let hints = hinted_indexes(&mut binder, &names, index_hints, hints);
        let target = TargetTable::new(names.table.clone(), slot, &binder);
        let check = ViewCheck::of(&names, &target, &binder);
        conditions.extend(filter);
        let conditions = by_computed_columns(planner, &target, conditions)?;
        let finder = Finder::new(&target, conditions, order, *ignore, planner.known(), &hints)?;
        let assigned: Vec<usize> = assignments.iter().map(|assignment| assignment.column).collect();
        let on_update = on_update_columns(&target.table, &assigned);
        let expressions = planner.row_expressions(&target.table)?;
        Ok(Some(UpdatePlan {
            check,
            target,
            finder,
            assignments,
            assigned,
            on_update,
            limit,
            expressions,
            ignore: *ignore,
        }))
    }

    /// Runs it.
    pub(crate) fn run(&self, run: &mut Run<'_>) -> ExecResult<Effect> {
        if run.state.settings.sql_safe_updates && self.limit.is_none() && self.finder.reads_all() {
            return Err(SqlError::update_without_key().into());
        }
        let mut rows = chosen_rows(&self.target, run, &self.finder, self.limit.as_ref())?;
        let matched = rows.count();
        let mut changed = 0;
        let mut number = 0;
        // Values are computed before their batch is written: evaluation borrows the transaction.
        loop {
            let batch = rows.next_batch(256)?;
            if batch.is_empty() {
                break;
            }
            for computed in self.compute(run, batch, &mut number)? {
                let Computed { at, old, mut new, number } = computed;
                let written = self.row_update(&at, &old, number).write(run, &mut new)?;
                changed += u64::from(written == Written::Changed);
            }
        }
        let warnings = run.state.diagnostics.count();
        let affected = if run.state.settings.found_rows { matched } else { changed };
        let info = Info::Updated { matched, changed, warnings: warnings.into() };
        Ok(Effect {
            affected,
            last_insert_id: run.state.results.last_insert_id_set.unwrap_or(0),
            info,
            rows: None,
        })
    }

    fn row_update<'a>(&'a self, at: &'a RowAt, old: &'a [Value], number: u64) -> RowUpdate<'a> {
        RowUpdate {
            table: &self.target.table,
            at,
            old,
            assigned: &self.assigned,
            on_update: &self.on_update,
            expressions: self.expressions.as_ref(),
            check: self.check.as_ref().map(|check| (check, &[][..])),
            number,
            ignore: self.ignore,
        }
    }

    fn compute(
        &self,
        run: &mut Run<'_>,
        rows: Batch,
        number: &mut u64,
    ) -> ExecResult<SmallVec<[Computed; 1]>> {
        let table = &self.target.table;
        let slot = usize::from(self.target.slot);
        let mut exec = self.target.exec(run, Row::Unset);
        exec.strict = exec.session.settings.strict() && !self.ignore;
        let mut out = SmallVec::with_capacity(rows.len());
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
                let mut row = NewRow { values: &mut new, number: *number, ignore: self.ignore };
                assignment.evaluate(table, self.expressions.as_ref(), &mut row, &mut exec)?;
            }
            out.push(Computed { at, old, new, number: *number });
        }
        Ok(out)
    }
}
