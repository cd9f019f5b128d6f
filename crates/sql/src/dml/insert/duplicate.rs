//! What INSERT does about a row in its way: REPLACE, ON DUPLICATE KEY UPDATE, IGNORE, or an error.

use super::plan::InsertPlan;
use super::run::Counts;
use super::source;
use crate::dml::Run;
use crate::dml::defaults::{default_value, null_value};
use crate::dml::rows::{cast_into, changed_columns};
use crate::dml::update::touch_on_update;
use crate::error::ExecResult;
use crate::expr::exec::{Row, Slot};
use crate::store::{Duplicate, RowChange, auto_value, duplicate_error};
use omnibus_value::Value;

impl InsertPlan {
    /// A row is in the way. Returns whether to try the insert again.
    pub(super) fn resolve(
        &self,
        run: &mut Run<'_>,
        values: &[Value],
        beside: &[Value],
        duplicate: &Duplicate,
        counts: &mut Counts,
    ) -> ExecResult<bool> {
        let table = &self.target.table;
        counts.duplicates += 1;
        if self.replace {
            let old = table.decode(&duplicate.existing.row)?;
            run.trx.delete_row(table, &duplicate.existing, &old)?;
            counts.affected += 1;
            return Ok(true);
        }
        if !self.on_duplicate.is_empty() {
            self.update_existing(run, values, beside, duplicate, counts)?;
            return Ok(false);
        }
        let error = duplicate_error(table, duplicate.index, values);
        if !self.ignore {
            return Err(error.into());
        }
        run.state.diagnostics.warn(error);
        Ok(false)
    }

    fn update_existing(
        &self,
        run: &mut Run<'_>,
        values: &[Value],
        beside: &[Value],
        duplicate: &Duplicate,
        counts: &mut Counts,
    ) -> ExecResult<()> {
        let table = &self.target.table;
        let old = table.decode(&duplicate.existing.row)?;
        let mut new = old.clone();
        let mut exec = self.target.exec(run, Row::Image(duplicate.existing.row.clone()));
        exec.frame[usize::from(self.values_slot)] =
            Slot { table: Some(table.clone()), row: Row::Values(values.into()) };
        source::place(&self.beside, beside, &mut exec.frame);
        exec.strict = exec.session.settings.strict() && !self.ignore;
        for (nth, assignment) in self.on_duplicate.iter().enumerate() {
            if nth > 0 {
                exec.frame[usize::from(self.target.slot)].row = Row::Values(new.as_slice().into());
            }
            let column = &table.def.columns[assignment.column];
            let mut value = match &assignment.value {
                None => default_value(column, exec.session)?,
                Some(expr) => {
                    let value = expr.eval(&mut exec)?;
                    cast_into(value, expr, column, counts.records, self.ignore, exec.session)?
                }
            };
            if matches!(value, Value::Null) && !column.nullable {
                let lenient = self.ignore || !exec.session.settings.strict();
                value = null_value(column, lenient, exec.session)?;
            }
            new[assignment.column] = value;
        }
        self.write_update(run, &old, new, duplicate, counts)
    }

    fn write_update(
        &self,
        run: &mut Run<'_>,
        old: &[Value],
        mut new: Vec<Value>,
        duplicate: &Duplicate,
        counts: &mut Counts,
    ) -> ExecResult<()> {
        let table = &self.target.table;
        if let Some(at) = table.auto_column {
            counts.last_value = auto_value(&old[at]);
        }
        let mut changed = changed_columns(table, old, &new, &self.assigned);
        if changed == 0 {
            counts.affected += u64::from(run.state.settings.found_rows);
            return Ok(());
        }
        changed |= touch_on_update(&self.on_update, table.columns(), &mut new, run.state);
        let new_row = table.rows.encode(&new)?;
        let change = RowChange { at: &duplicate.existing, old, new: &new, new_row: &new_row, changed };
        if let Some(again) = run.trx.update_row(table, &change)? {
            let error = duplicate_error(table, again.index, &new);
            if !self.ignore {
                return Err(error.into());
            }
            run.state.diagnostics.warn(error);
            return Ok(());
        }
        counts.affected += 2;
        Ok(())
    }
}
