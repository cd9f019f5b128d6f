//! Expressions of a table's definition about every row that is written: defaults, generated columns, checks.
//!
//! In this order a row is made: the values that are given; DEFAULT (..) for columns without one; generated columns, from left to
//! right; then the checks are asked. Each expression reads the row as it is then. Rows that a replica gets from its source, or
//! that recovery finds in the log, are whole already: they do not come here.

use super::Run;
use super::change::not_null;
use super::rows::cast_into;
use super::triggers::Triggers;
use crate::bind::scope::Scope;
use crate::bind::uses::{STORED_FUNCTION, UsesCell};
use crate::bind::{Binder, Clause};
use crate::catalog::{Catalog, Check, Column, ColumnDefault, HIDDEN, StoredExpr, Table};
use crate::error::{ExecResult, Interrupt, Level, SqlError, SqlResult};
use crate::expr::context::{Context, Row, Slot};
use crate::expr::functions::json_schema;
use crate::expr::node::{Expr, Kind};
use crate::state::SessionState;
use crate::storage::Storage;
use omnibus_parser::ast::{TriggerEvent, TriggerTime};
use omnibus_value::Value;
use std::sync::Arc;

/// The expressions of a definition, bound for one statement.
pub(crate) struct RowExpressions {
    table: Arc<Table>,
    defaults: Vec<Computed>,
    generated: Vec<Computed>,
    checks: Vec<(usize, Expr)>,
    /// Those that a statement fires.
    pub triggers: Option<Triggers>,
}

/// A column and the expression that gives its value.
struct Computed {
    column: usize,
    value: Expr,
    /// Whether it reads a generated column.
    reads_generated: bool,
}

/// The row that expressions are applied to: its values so far, its number for warnings, whether IGNORE was said.
pub(crate) struct NewRow<'a> {
    pub values: &'a mut Vec<Value>,
    pub number: u64,
    pub ignore: bool,
}

impl RowExpressions {
    /// Binds them; `None` for a table that has none.
    ///
    /// # Errors
    /// An expression does not bind: 1054 for a column that is not there.
    pub(crate) fn bind(
        table: &Arc<Table>,
        session: &SessionState,
        catalog: &Catalog,
        uses: Option<&UsesCell>,
    ) -> SqlResult<Option<RowExpressions>> {
        if !table.has_expressions {
            return Ok(None);
        }
        let mut binder = Binder::new(session, catalog);
        binder.notes.uses = uses;
        let scope = binder.add_table(table, None);
        binder.open(Scope::of(scope), Clause::FieldList);
        let mut expressions = RowExpressions::none(table);
        for (at, column) in table.columns().iter().enumerate() {
            if let ColumnDefault::Expression(expr) = &column.default {
                let computed = computed(table, at, bind(&mut binder, expr, Clause::DefaultValue)?);
                expressions.defaults.push(computed);
            }
            if let Some(generated) = &column.generated {
                let computed = computed(table, at, bind(&mut binder, &generated.expr, Clause::Generated)?);
                expressions.generated.push(computed);
            }
        }
        for (at, check) in table.def.checks.iter().enumerate() {
            expressions.checks.push((at, bind(&mut binder, &check.expr, Clause::Check)?));
        }
        Ok(Some(expressions))
    }

    fn none(table: &Arc<Table>) -> RowExpressions {
        RowExpressions {
            table: table.clone(),
            defaults: Vec::new(),
            generated: Vec::new(),
            checks: Vec::new(),
            triggers: None,
        }
    }

    /// As `bind`, with the triggers that a statement fires.
    ///
    /// # Errors
    /// As `bind`.
    pub(crate) fn of_statement(
        table: &Arc<Table>,
        session: &SessionState,
        catalog: &Catalog,
        uses: &UsesCell,
    ) -> SqlResult<Option<RowExpressions>> {
        let mut expressions = RowExpressions::bind(table, session, catalog, Some(uses))?;
        if let Some(triggers) = Triggers::of(catalog, table) {
            uses.borrow_mut().bits |= STORED_FUNCTION;
            expressions.get_or_insert_with(|| RowExpressions::none(table)).triggers = Some(triggers);
        }
        Ok(expressions)
    }

    /// Fires the triggers for a row.
    ///
    /// # Errors
    /// The error of a trigger; `NeedBlocking` where it may not block.
    pub(crate) fn fire(
        &self,
        when: (TriggerTime, TriggerEvent),
        old: Option<&[Value]>,
        new: Option<&mut Vec<Value>>,
        run: &mut Run<'_>,
    ) -> ExecResult<()> {
        match &self.triggers {
            Some(triggers) => triggers.fire(when, &self.table, old, new, run),
            None => Ok(()),
        }
    }

    /// Whether values are looked at again before they are written, so that NULL may be given.
    pub(crate) fn fires(&self, time: TriggerTime, event: TriggerEvent) -> bool {
        self.triggers.as_ref().is_some_and(|triggers| triggers.has(time, event))
    }

    /// Each of the expressions, with what it belongs to.
    pub(crate) fn each(
        &self,
        mut visit: impl FnMut(ExpressionOf<'_>, &Expr) -> SqlResult<()>,
    ) -> SqlResult<()> {
        self.defaults.iter().try_for_each(|one| visit(ExpressionOf::Default(one.column), &one.value))?;
        self.generated.iter().try_for_each(|one| visit(ExpressionOf::Generated(one.column), &one.value))?;
        self.checks
            .iter()
            .try_for_each(|(at, check)| visit(ExpressionOf::Check(&self.table.def.checks[*at]), check))
    }

    /// Gives those of `columns` their values whose default is an expression. The row has its other values.
    ///
    /// # Errors
    /// Those of the expressions, and 1048.
    pub(crate) fn fill_defaults(
        &self,
        columns: impl Fn(usize) -> bool,
        row: &mut NewRow<'_>,
        state: &mut SessionState,
        storage: &mut dyn Storage,
    ) -> ExecResult<()> {
        for one in self.defaults.iter().filter(|one| columns(one.column)) {
            if one.reads_generated {
                self.compute(
                    self.generated.iter().filter(|g| g.column < one.column),
                    row,
                    false,
                    state,
                    storage,
                )?;
            }
            self.compute(std::iter::once(one), row, false, state, storage)?;
        }
        Ok(())
    }

    /// Computes the generated columns for BEFORE triggers, of the values that are given; what triggers change is computed of anew.
    ///
    /// # Errors
    /// The values of the expressions.
    pub(crate) fn foresee(
        &self,
        row: &mut NewRow<'_>,
        state: &mut SessionState,
        storage: &mut dyn Storage,
    ) -> ExecResult<()> {
        self.compute(self.generated.iter(), row, true, state, storage)
    }

    /// Computes the generated columns and asks the checks; false if IGNORE made a warning of one that refuses the row.
    ///
    /// # Errors
    /// Those of the expressions, 1048, and 3819.
    pub(crate) fn finish(
        &self,
        row: &mut NewRow<'_>,
        state: &mut SessionState,
        storage: &mut dyn Storage,
    ) -> ExecResult<bool> {
        self.compute(self.generated.iter(), row, false, state, storage)?;
        self.check(row, state, storage)
    }

    /// Gives the columns that nobody has given their values: a row of a source that has no such columns.
    ///
    /// # Errors
    /// Those of the expressions, and 1048.
    pub(crate) fn supply(
        &self,
        missing: impl Fn(usize) -> bool,
        row: &mut NewRow<'_>,
        state: &mut SessionState,
        storage: &mut dyn Storage,
    ) -> ExecResult<()> {
        self.fill_defaults(&missing, row, state, storage)?;
        self.compute(self.generated.iter().filter(|one| missing(one.column)), row, false, state, storage)
    }

    /// The generated columns.
    pub(crate) fn generated_columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.generated.iter().map(|one| one.column)
    }

    fn compute<'r>(
        &'r self,
        expressions: impl Iterator<Item = &'r Computed>,
        row: &mut NewRow<'_>,
        may_be_null: bool,
        state: &mut SessionState,
        storage: &mut dyn Storage,
    ) -> ExecResult<()> {
        let mut stale = true;
        let mut image = Row::Unset;
        for one in expressions {
            if stale || one.reads_generated {
                image = Row::Values(row.values.as_slice().into());
                stale = false;
            }
            let column = &self.table.def.columns[one.column];
            let value = self.evaluate(image.clone(), row.ignore, state, storage, |cx| one.value.eval(cx))?;
            let stored = cast_into(value, &one.value, column, row.number, row.ignore, state)
                .map_err(|error| of_index(error, column, row.number))?;
            row.values[one.column] =
                if may_be_null { stored } else { not_null(stored, column, row.ignore, state)? };
        }
        Ok(())
    }

    fn check(
        &self,
        row: &mut NewRow<'_>,
        state: &mut SessionState,
        storage: &mut dyn Storage,
    ) -> ExecResult<bool> {
        if !state.settings.check_constraint_checks {
            return Ok(true);
        }
        let mut image = None;
        for (at, condition) in &self.checks {
            let check = &self.table.def.checks[*at];
            if !check.enforced {
                continue;
            }
            let image = image.get_or_insert_with(|| Row::Values(row.values.as_slice().into()));
            let met = self.evaluate(image.clone(), row.ignore, state, storage, |cx| condition.eval_bool(cx));
            match met {
                // Data that the condition cannot take do not meet it.
                Err(Interrupt::Error(error)) if error.state.starts_with(b"22") && !state.settings.mariadb => {
                    state.diagnostics.push(Level::Error, error);
                }
                Ok(Some(false)) if !state.settings.mariadb => {
                    let told = self.evaluate(image.clone(), row.ignore, state, storage, |cx| {
                        json_schema::failure_of(condition, cx)
                    })?;
                    told.into_iter().for_each(|failure| state.diagnostics.push(Level::Error, failure));
                }
                Ok(Some(false)) => {}
                Ok(_) => continue,
                Err(error) => return Err(error),
            }
            let error = SqlError::check_constraint_violated(&check.name);
            if !row.ignore {
                return Err(error.into());
            }
            state.diagnostics.warn(error);
            return Ok(false);
        }
        Ok(true)
    }

    fn evaluate<T>(
        &self,
        image: Row,
        ignore: bool,
        state: &mut SessionState,
        storage: &mut dyn Storage,
        evaluate: impl FnOnce(&mut Context<'_>) -> ExecResult<T>,
    ) -> ExecResult<T> {
        let strict = state.settings.strict() && !ignore;
        let mut exec = Context::new(state, storage, &[]);
        exec.strict = strict;
        exec.frame.push(Slot { table: Some(self.table.clone()), row: image });
        evaluate(&mut exec)
    }
}

/// An error of a hidden column, which is its index's.
fn of_index(error: SqlError, column: &Column, row: u64) -> SqlError {
    let Some((index, _)) =
        column.name.strip_prefix(HIDDEN).and_then(|name| name.rsplit_once('!')?.0.rsplit_once('!'))
    else {
        return error;
    };
    let (code, state, message) = match error.code {
        1264 => {
            (3752, b"22003", format!("Value is out of range for functional index '{index}' at row {row}"))
        }
        1265 => (3751, b"01000", format!("Data truncated for functional index '{index}' at row {row}")),
        1406 => (3907, b"22001", format!("Data too long for functional index '{index}' at row {row}")),
        _ => return error,
    };
    SqlError::new(code, state, message)
}

fn bind(binder: &mut Binder<'_>, expr: &StoredExpr, clause: Clause) -> SqlResult<Expr> {
    binder.set_clause(clause);
    binder.expr(&expr.tree)
}

fn computed(table: &Table, column: usize, value: Expr) -> Computed {
    let mut reads_generated = false;
    value.walk(&mut |e| {
        if let Kind::Column { column, .. } = &e.kind {
            reads_generated |= table.columns()[usize::from(*column)].generated.is_some();
        }
    });
    Computed { column, value, reads_generated }
}

/// The owner of an expression.
#[derive(Clone, Copy)]
pub(crate) enum ExpressionOf<'a> {
    /// The default of this column.
    Default(usize),
    /// This generated column.
    Generated(usize),
    /// A check.
    Check(&'a Check),
}
