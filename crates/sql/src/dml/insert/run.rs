//! INSERT and REPLACE, run: each row is made, gets its AUTO_INCREMENT value and goes in.

use super::auto_increment::is_auto_key;
use super::before;
use super::documents;
use super::plan::InsertPlan;
use super::source::RowSource;
use crate::api::{Info, VariableScope};
use crate::dml::change::passed_over;
use crate::dml::defaults::{self, default_value, has_no_default, null_value};
use crate::dml::returning::Returned;
use crate::dml::rows::{cast_into, of_table};
use crate::dml::{Effect, NewRow, Run, cast, generated_given};
use crate::error::{ExecResult, SqlResult};
use crate::exec;
use crate::expr::context::{Context, Row};
use crate::expr::eval;
use crate::expr::node::{Expr, Kind};
use crate::plan::QueryPlan;
use crate::rows::Flow;
use crate::rows::collected::{Rows, RowsBuilder};
use crate::state::NewInsertId;
use crate::storage::Storage;
use crate::store::{InsertOutcome, auto_value, duplicate_error};
use omnibus_parser::ast::{TriggerEvent, TriggerTime};
use omnibus_value::Value;
use std::rc::Rc;

/// Longer lists of rows are not even begun on an async worker.
const INLINE_ROWS: usize = 1024;

/// Counts for the reply.
#[derive(Default)]
pub(crate) struct Counts {
    pub records: u64,
    pub inserted: u64,
    pub duplicates: u64,
    pub(super) affected: u64,
    pub(super) first_generated: u64,
    pub(super) last_value: u64,
    /// AUTO_INCREMENT values taken and not used yet.
    pub(super) reserved: u64,
    pub(super) reserved_once: bool,
    pub(super) next_reserved: u64,
    pub(super) returned: Returned,
}

impl InsertPlan {
    /// NULL becomes something else in a column that has none, or an error.
    pub(crate) fn not_null(&self, run: &mut Run<'_>, at: usize, value: Value) -> SqlResult<Value> {
        let column = &self.target.table.def.columns[at];
        if !matches!(value, Value::Null) || column.nullable || column.auto_increment || self.null_may_go() {
            return Ok(value);
        }
        null_value(column, self.lenient(run), run.state)
    }

    /// Whether a trigger may still put something in the place of NULL.
    pub(crate) fn null_may_go(&self) -> bool {
        let expressions = self.expressions.as_ref();
        expressions.is_some_and(|one| one.fires(TriggerTime::Before, TriggerEvent::Insert))
    }

    fn has_triggers(&self) -> bool {
        self.expressions.as_ref().is_some_and(|expressions| expressions.triggers.is_some())
    }

    pub(super) fn lenient(&self, run: &Run<'_>) -> bool {
        self.ignore || !run.state.settings.strict()
    }

    /// Runs it.
    pub(crate) fn run(&self, run: &mut Run<'_>) -> ExecResult<Effect> {
        run.trx.start_write(&self.target.table)?;
        self.refuse_generated(run)?;
        let template = self.template(run, self.null_may_go())?;
        let mut counts = Counts::default();
        match &self.source {
            RowSource::Values(rows) => {
                if rows.len() > INLINE_ROWS {
                    run.trx.need_blocking()?;
                }
                for (at, row) in rows.iter().enumerate() {
                    let values = self.values(run, &template, row, at as u64 + 1, rows.len() > 1)?;
                    self.add(run, values, &[], &mut counts, (rows.len() - at) as u64)?;
                }
            }
            RowSource::Query(query) => {
                let found = Rc::new(self.collect(run, query)?);
                let mut reader = found.read();
                let mut left = found.len();
                while let Some(row) = reader.next_row()? {
                    let (row, beside) = row.split_at(query.columns.len());
                    let number = found.len() - left + 1;
                    let values = self.query_values(run, &template, query, row, number)?;
                    self.add(run, values, beside, &mut counts, left)?;
                    left -= 1;
                }
            }
        }
        let effect = self.effect(run, &counts);
        Ok(Effect { rows: counts.returned.finish()?, ..effect })
    }

    /// A value for a generated column is an error; where sql_mode is not strict it is passed over, as MariaDB does: its dumps have
    /// such values.
    fn refuse_generated(&self, run: &mut Run<'_>) -> SqlResult<()> {
        let Some(at) = self.generated else { return Ok(()) };
        let error = generated_given(&self.target.table, at);
        if run.state.settings.strict() {
            return Err(error);
        }
        run.state.diagnostics.warn(error);
        Ok(())
    }

    pub(crate) fn effect(&self, run: &mut Run<'_>, counts: &Counts) -> Effect {
        if counts.first_generated != 0 && self.tells_number {
            run.state.results.last_insert_id = counts.first_generated;
            run.state.results.new_insert_id = NewInsertId::Fresh;
        }
        let last_insert_id = match run.state.results.last_insert_id_set {
            _ if counts.first_generated != 0 && self.tells_number => counts.first_generated,
            Some(id) => id,
            None => counts.last_value,
        };
        let single = matches!(&self.source, RowSource::Values(rows) if rows.len() == 1);
        let warnings = run.state.diagnostics.count();
        let info = if single && (warnings == 0 || !tells_warnings(run)) {
            Info::None
        } else {
            Info::Inserted {
                records: counts.records,
                duplicates: counts.duplicates,
                warnings: warnings.into(),
            }
        };
        Effect { affected: counts.affected, last_insert_id, info, rows: None }
    }

    /// A row of defaults. Columns that are named get theirs only if a row says DEFAULT. `later`: a column that has none is NULL, and triggers
    /// give it a value or `before::fire` complains.
    pub(crate) fn template(&self, run: &mut Run<'_>, later: bool) -> SqlResult<Vec<Value>> {
        let table = &self.target.table;
        let mut template = vec![Value::Null; table.columns().len()];
        for &at in &self.rest {
            if !(later && has_no_default(&self.target.table.def.columns[at])) {
                template[at] = self.default_for(run, at)?;
            }
        }
        Ok(template)
    }

    /// The value that DEFAULT gives a column here.
    pub(crate) fn default_for(&self, run: &mut Run<'_>, at: usize) -> SqlResult<Value> {
        let column = &self.target.table.def.columns[at];
        match default_value(column, run.state) {
            Err(error) if error.code == 1364 => before::without_default(self, run, at),
            other => other,
        }
    }

    fn values(
        &self,
        run: &mut Run<'_>,
        template: &[Value],
        row: &[Option<Expr>],
        number: u64,
        multiple: bool,
    ) -> ExecResult<Vec<Value>> {
        let mut values = template.to_vec();
        if self.reads_row {
            // A column that has no value yet is read as its default.
            for &at in &self.columns {
                let column = &self.target.table.def.columns[at];
                values[at] =
                    default_value(column, run.state).unwrap_or_else(|_| defaults::without_default(column));
            }
        }
        let lenient = self.ignore || (multiple && !run.state.settings.strict());
        let later = before::is_bare(row) && self.null_may_go();
        for (&at, expr) in self.columns.iter().zip(row) {
            let column = &self.target.table.def.columns[at];
            if later && has_no_default(&self.target.table.def.columns[at]) {
                values[at] = Value::Null;
                continue;
            }
            let Some(expr) = expr.as_ref().filter(|_| column.generated.is_none()) else {
                // What a statement says of all its rows is said once.
                let said = number > 1 && before::is_bare(row) && has_no_default(column) && self.lenient(run);
                values[at] =
                    if said { defaults::without_default(column) } else { self.default_for(run, at)? };
                continue;
            };
            let value = match &expr.kind {
                Kind::Const(value) => value.clone(),
                Kind::Param(at) => run.params.get(*at).cloned().unwrap_or_default(),
                _ => self.evaluate(run, expr, &values)?,
            };
            values[at] = cast_into(value, expr, column, number, self.ignore, run.state)
                .map_err(|error| of_table(error, &self.target.table.def.name, run.state))?;
            let refused = matches!(values[at], Value::Null) && !column.nullable && !column.auto_increment;
            if refused && !self.null_may_go() {
                values[at] = null_value(column, lenient, run.state)?;
            }
        }
        let said =
            |at: usize| self.columns.iter().zip(row).any(|(&column, value)| column == at && value.is_none());
        self.fill_defaults(run, said, &mut values, number)?;
        Ok(values)
    }

    fn evaluate(&self, run: &mut Run<'_>, expr: &Expr, so_far: &[Value]) -> ExecResult<Value> {
        let strict = run.state.settings.strict() && !self.ignore;
        let mut exec = Context::new(run.state, run.trx, run.params);
        exec.strict = strict;
        if self.reads_row || self.target.subqueries > 0 {
            exec.reserve(self.target.slots, self.target.subqueries);
            exec.frame = self.target.frame(Row::Values(so_far.into()));
        }
        expr.eval(&mut exec)
    }

    /// All rows of the query, before the first is inserted: it may read the same table.
    fn collect(&self, run: &mut Run<'_>, query: &QueryPlan) -> ExecResult<Rows> {
        let mut exec = Context::new(run.state, run.trx, run.params);
        exec.reserve(self.target.slots, self.target.subqueries);
        exec.strict = exec.session.settings.strict_search() && !self.ignore;
        let mut rows = RowsBuilder::new(&exec);
        exec::run(query, &mut exec, &mut |cx, row| {
            rows.push(row.iter().cloned().map(eval::own).collect(), cx)?;
            Ok(Flow::Continue)
        })?;
        Ok(rows.finish()?)
    }

    fn query_values(
        &self,
        run: &mut Run<'_>,
        template: &[Value],
        query: &QueryPlan,
        row: &[Value],
        number: u64,
    ) -> ExecResult<Vec<Value>> {
        let mut values = template.to_vec();
        let types = query.types.iter().zip(query.columns.iter());
        let given = self.columns.iter().zip(row.iter().cloned()).zip(types);
        for (place, ((&at, value), (source, of))) in given.enumerate() {
            let column = &self.target.table.def.columns[at];
            if column.generated.is_some() {
                continue;
            }
            let (value, source) = documents::as_stored(value, &source.column, column, of, run.state);
            let stored = cast::into_column(value, &source, column, number, self.ignore, run.state);
            let value = stored.map_err(|error| match run.state.settings.mariadb {
                true => error,
                false => documents::refused(error, column, query, place),
            })?;
            values[at] = self.not_null(run, at, value)?;
        }
        self.fill_defaults(run, |_| false, &mut values, number)?;
        Ok(values)
    }

    /// Computes the defaults that are expressions: of columns that nobody names, and where a row said DEFAULT.
    pub(crate) fn fill_defaults(
        &self,
        run: &mut Run<'_>,
        said: impl Fn(usize) -> bool,
        values: &mut Vec<Value>,
        number: u64,
    ) -> ExecResult<()> {
        let Some(expressions) = &self.expressions else { return Ok(()) };
        let mut row = NewRow { values, number, ignore: self.ignore };
        expressions.fill_defaults(|at| self.rest.contains(&at) || said(at), &mut row, run.state, run.trx)
    }

    /// RETURNING of a row.
    pub(super) fn give_back(
        &self,
        run: &mut Run<'_>,
        values: &[Value],
        counts: &mut Counts,
    ) -> ExecResult<()> {
        match &self.returning {
            Some(returning) => returning.take(&self.target, run, values, &mut counts.returned),
            None => Ok(()),
        }
    }

    /// Inserts a row, or does what is to be done about one in its way: `beside` is what a SELECT yields for that. `left`
    /// rows may still come.
    pub(crate) fn add(
        &self,
        run: &mut Run<'_>,
        mut values: Vec<Value>,
        beside: &[Value],
        counts: &mut Counts,
        left: u64,
    ) -> ExecResult<()> {
        counts.records += 1;
        before::fire(self, run, &mut values, counts.records)?;
        let generated = self.generate(run, &mut values, counts, left)?;
        if !add_numbered(self, run, values, beside, counts, generated)? && generated {
            counts.take_back(run.state.settings.auto_increment_increment.max(1));
        }
        Ok(())
    }
}

/// The rest of `add`; whether there is a new row. `generated`: its AUTO_INCREMENT value was made.
fn add_numbered(
    plan: &InsertPlan,
    run: &mut Run<'_>,
    mut values: Vec<Value>,
    beside: &[Value],
    counts: &mut Counts,
    generated: bool,
) -> ExecResult<bool> {
    let table = &plan.target.table;
    if let Some(expressions) = &plan.expressions {
        let mut row = NewRow { values: &mut values, number: counts.records, ignore: plan.ignore };
        if !expressions.finish(&mut row, run.state, run.trx)? {
            return Ok(false);
        }
    }
    if let Some(check) = &plan.check
        && !check.accepts(run, table, &values, &[], plan.ignore)?
    {
        return Ok(false);
    }
    let row = table.rows.encode(&values)?;
    loop {
        let inserted = run.trx.insert_row(table, &values, row.clone());
        let Some(outcome) = passed_over(inserted, plan.ignore, run.state)? else { return Ok(false) };
        match outcome {
            InsertOutcome::Inserted => break,
            // REPLACE by what is there already changes nothing, and is logged where texts are: another server may have another row.
            // Of a parent it would delete there what refers to it.
            InsertOutcome::Duplicate(duplicate)
                if plan.replace
                    && table.rows.image(&duplicate.existing.row)? == table.rows.image(&row)?
                    && !plan.has_triggers() =>
            {
                if !table.may_be_referenced() {
                    run.trx.log.wrote_equal_row(&mut run.trx.statement);
                }
                break;
            }
            // All numbers are used: REPLACE would take the last row again and again.
            InsertOutcome::Duplicate(duplicate)
                if plan.replace && generated && is_auto_key(table, duplicate.index) =>
            {
                return Err(duplicate_error(table, duplicate.index, &values).into());
            }
            InsertOutcome::Duplicate(duplicate) => {
                if !plan.resolve(run, &values, beside, &duplicate, counts)? {
                    return Ok(false);
                }
            }
        }
    }
    if let Some(expressions) = &plan.expressions {
        let when = (TriggerTime::After, TriggerEvent::Insert);
        expressions.fire(when, None, Some(&mut values), run)?;
    }
    plan.give_back(run, &values, counts)?;
    counts.inserted += 1;
    counts.affected += 1;
    if let Some(at) = table.auto_column {
        counts.last_value = auto_value(&values[at]);
        if generated && counts.first_generated == 0 {
            counts.first_generated = counts.last_value;
        }
    }
    Ok(true)
}

/// `sql_warnings`: a row by itself is told of as several are.
fn tells_warnings(run: &Run<'_>) -> bool {
    let on = run.state.connection.host.variable(VariableScope::Session, "sql_warnings");
    !matches!(on, Ok((Value::Int(0) | Value::UInt(0), _)) | Err(_))
}
