//! The new version of a row that UPDATE or ON DUPLICATE KEY UPDATE writes: what is assigned, what changes along, and
//! whether anything differs.

use super::defaults::{default_value, implicit_default, now_for, null_value};
use super::plan::Assignment;
use super::rows::{cast_into, of_table, same_value};
use super::{NewRow, RowExpressions, Run, ViewCheck};
use crate::catalog::{Column, ColumnDefault, Table};
use crate::error::{ExecResult, Interrupt, SqlError, SqlResult};
use crate::expr::context::Context;
use crate::state::SessionState;
use crate::storage::Storage;
use crate::store::{RowAt, RowChange, duplicate_error};
use omnibus_parser::ast::{TriggerEvent, TriggerTime};
use omnibus_value::Value;
use std::sync::Arc;

impl Assignment {
    /// Puts the value into the row.
    pub(crate) fn evaluate(
        &self,
        table: &Table,
        expressions: Option<&RowExpressions>,
        row: &mut NewRow<'_>,
        exec: &mut Context<'_>,
    ) -> ExecResult<()> {
        let column = &table.def.columns[self.column];
        let value = match &self.value {
            None => return assign_default(table, self.column, expressions, row, exec.session, exec.storage),
            Some(expr) => {
                let value = expr.eval(exec)?;
                cast_into(value, expr, column, row.number, row.ignore, exec.session)
                    .map_err(|error| of_table(error, &table.def.name, exec.session))?
            }
        };
        let later = expressions.is_some_and(|one| one.fires(TriggerTime::Before, TriggerEvent::Update));
        row.values[self.column] =
            if later { value } else { not_null(value, column, row.ignore, exec.session)? };
        Ok(())
    }
}

/// `column = DEFAULT`: nothing is to be done about a generated column, which is computed later.
pub(crate) fn assign_default(
    table: &Table,
    at: usize,
    expressions: Option<&RowExpressions>,
    row: &mut NewRow<'_>,
    state: &mut SessionState,
    storage: &mut dyn Storage,
) -> ExecResult<()> {
    let column = &table.def.columns[at];
    match expressions {
        Some(_) if column.generated.is_some() => Ok(()),
        Some(expressions) if matches!(column.default, ColumnDefault::Expression(_)) => {
            expressions.fill_defaults(|column| column == at, row, state, storage)
        }
        // MySQL's number that asks for no other one, unlike in INSERT.
        _ if column.auto_increment && !state.settings.mariadb => {
            row.values[at] = implicit_default(&column.ty);
            Ok(())
        }
        _ => {
            let value = match default_value(column, state) {
                Err(error) if row.ignore || !state.settings.strict() => {
                    state.diagnostics.warn(error);
                    implicit_default(&column.ty)
                }
                other => other?,
            };
            row.values[at] = not_null(value, column, row.ignore, state)?;
            Ok(())
        }
    }
}

/// NULL becomes something else in a column that has none, or an error.
pub(crate) fn not_null(
    value: Value,
    column: &Column,
    ignore: bool,
    state: &mut SessionState,
) -> SqlResult<Value> {
    if !matches!(value, Value::Null) || column.nullable {
        return Ok(value);
    }
    null_value(column, ignore || !state.settings.strict(), state)
}

/// Columns that change with any change, unless they are assigned.
pub(crate) fn on_update_columns(table: &Table, assigned: &[usize]) -> Vec<usize> {
    let columns = table.columns().iter().enumerate();
    columns.filter(|(at, column)| column.on_update_now && !assigned.contains(at)).map(|(at, _)| at).collect()
}

/// The outcome of a row's change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// It has what was assigned already.
    Same,
    /// Another row is in the way, which IGNORE made a warning.
    Refused,
    /// It has changed.
    Changed,
}

/// A row that is to change, and how.
pub(crate) struct RowUpdate<'a> {
    pub table: &'a Arc<Table>,
    pub at: &'a RowAt,
    pub old: &'a [Value],
    pub assigned: &'a [usize],
    pub on_update: &'a [usize],
    pub expressions: Option<&'a RowExpressions>,
    /// WITH CHECK OPTION, and the values of other tables that it reads.
    pub check: Option<(&'a ViewCheck, &'a [Value])>,
    /// For warnings.
    pub number: u64,
    pub ignore: bool,
}

impl RowUpdate<'_> {
    /// Looks for NULL where none may be, which triggers were free to change. What was `assigned` so is IGNORE's to replace; false if it made
    /// a warning of one that a trigger set.
    fn may_be_null(&self, run: &mut Run<'_>, new: &mut [Value], assigned: &[bool]) -> SqlResult<bool> {
        for ((value, column), assigned) in new.iter_mut().zip(self.table.columns()).zip(assigned) {
            let kept = column.nullable || column.generated.is_some();
            if kept || !matches!(value, Value::Null) {
                continue;
            }
            if self.ignore && !assigned {
                run.state.diagnostics.warn(SqlError::bad_null(&column.name));
                return Ok(false);
            }
            *value = not_null(Value::Null, column, self.ignore, run.state)?;
        }
        Ok(true)
    }

    /// Writes `new`, which has the assigned values; it is what was written then.
    pub(crate) fn write(&self, run: &mut Run<'_>, new: &mut Vec<Value>) -> ExecResult<Written> {
        let table = self.table;
        let fire = |time, new: &mut Vec<Value>, run: &mut Run<'_>| match self.expressions {
            Some(one) => one.fire((time, TriggerEvent::Update), Some(self.old), Some(new), run),
            None => Ok(()),
        };
        let mut changed = changed_columns(self.old, new, self.assigned.iter().copied());
        if let Some(expressions) = self.expressions.filter(|one| one.triggers.is_some()) {
            if expressions.fires(TriggerTime::Before, TriggerEvent::Update) {
                let mut row = NewRow { values: new, number: self.number, ignore: self.ignore };
                expressions.foresee(&mut row, run.state, run.trx)?;
                let assigned: Vec<bool> = new.iter().map(|value| matches!(value, Value::Null)).collect();
                fire(TriggerTime::Before, new, run)?;
                if !self.may_be_null(run, new, &assigned)? {
                    return Ok(Written::Refused);
                }
            }
            let given = (0..new.len()).filter(|at| table.columns()[*at].generated.is_none());
            changed = changed_columns(self.old, new, given);
        }
        if changed == 0 {
            fire(TriggerTime::After, new, run)?;
            return Ok(Written::Same);
        }
        changed |= touch_on_update(self.on_update, table.columns(), new, run.state);
        if let Some(expressions) = self.expressions {
            let mut row = NewRow { values: new, number: self.number, ignore: self.ignore };
            if !expressions.finish(&mut row, run.state, run.trx)? {
                return Ok(Written::Refused);
            }
            changed |= changed_columns(self.old, new, expressions.generated_columns());
        }
        if let Some((check, beside)) = self.check
            && !check.accepts(run, table, new, beside, self.ignore)?
        {
            return Ok(Written::Refused);
        }
        let new_row = table.rows.encode(new)?;
        let change =
            RowChange { at: self.at, old: self.old, new, new_row: &new_row, changed, following: None };
        let written = run.trx.update_row(table, &change);
        let Some(written) = passed_over(written, self.ignore, run.state)? else {
            return Ok(Written::Refused);
        };
        let Some(duplicate) = written else {
            fire(TriggerTime::After, new, run)?;
            return Ok(Written::Changed);
        };
        let error = duplicate_error(table, duplicate.index, new);
        if !self.ignore {
            return Err(error.into());
        }
        run.state.diagnostics.warn(error);
        Ok(Written::Refused)
    }
}

/// IGNORE makes a warning of a foreign key that refuses a row; `None` then.
pub(crate) fn passed_over<T>(
    done: ExecResult<T>,
    ignore: bool,
    state: &mut SessionState,
) -> ExecResult<Option<T>> {
    match done {
        Err(Interrupt::Error(error)) if ignore && matches!(error.code, 1451 | 1452) => {
            state.diagnostics.warn(error);
            Ok(None)
        }
        done => done.map(Some),
    }
}

/// Sets ON UPDATE CURRENT_TIMESTAMP columns of a row that changes; returns their bits.
fn touch_on_update(columns: &[usize], defs: &[Column], values: &mut [Value], state: &SessionState) -> u64 {
    columns.iter().fold(0, |bits, &column| {
        values[column] = now_for(&defs[column], state);
        bits | 1 << (column % 64)
    })
}

/// Bit n % 64 for each column whose value differs.
fn changed_columns(old: &[Value], new: &[Value], assigned: impl Iterator<Item = usize>) -> u64 {
    assigned
        .filter(|&column| !same_value(&old[column], &new[column]))
        .fold(0, |bits, column| bits | 1 << (column % 64))
}
