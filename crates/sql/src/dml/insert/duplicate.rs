//! INSERT with a row in its way: REPLACE, ON DUPLICATE KEY UPDATE, IGNORE, or an error.

use super::plan::InsertPlan;
use super::run::Counts;
use super::source;
use crate::dml::change::{RowUpdate, Written};
use crate::dml::{NewRow, Run};
use crate::error::ExecResult;
use crate::expr::context::{Row, Slot};
use crate::store::{Duplicate, auto_value, duplicate_error};
use omnibus_parser::ast::{TriggerEvent, TriggerTime};
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
        if self.replace {
            counts.duplicates += 1;
            let old = table.decode(&duplicate.existing.row)?;
            let fire = |time, run: &mut Run<'_>| match &self.expressions {
                Some(one) => one.fire((time, TriggerEvent::Delete), Some(&old), None, run),
                None => Ok(()),
            };
            fire(TriggerTime::Before, run)?;
            run.trx.delete_row(table, &duplicate.existing, &old)?;
            fire(TriggerTime::After, run)?;
            counts.affected += 1;
            return Ok(true);
        }
        if !self.on_duplicate.is_empty() {
            self.update_existing(run, values, beside, duplicate, counts)?;
            return Ok(false);
        }
        counts.duplicates += 1;
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
            let mut row = NewRow { values: &mut new, number: counts.records, ignore: self.ignore };
            assignment.evaluate(table, self.expressions.as_ref(), &mut row, &mut exec)?;
        }
        let before = counts.last_value;
        if let Some(at) = table.auto_column {
            counts.last_value = auto_value(&old[at]);
        }
        let update = RowUpdate {
            table,
            at: &duplicate.existing,
            old: &old,
            assigned: &self.assigned,
            on_update: &self.on_update,
            expressions: self.expressions.as_ref(),
            check: self.check.as_ref().map(|check| (check, &[][..])),
            number: counts.records,
            ignore: self.ignore,
        };
        let written = update.write(run, &mut new)?;
        // MySQL tells no number of a row that stays as it is.
        if written == Written::Same && !run.state.settings.mariadb {
            counts.last_value = before;
        }
        if written != Written::Refused {
            self.give_back(run, &new, counts)?;
        }
        let found = u64::from(run.state.settings.found_rows);
        let (affected, duplicates) = match written {
            Written::Same => (found, found),
            Written::Refused => (0, 0),
            Written::Changed => (2, 1),
        };
        counts.affected += affected;
        counts.duplicates += duplicates;
        Ok(())
    }
}
