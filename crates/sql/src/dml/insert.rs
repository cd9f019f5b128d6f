//! INSERT and REPLACE.

use super::defaults::{default_value, implicit_default, null_value};
use super::plan::{Assignment, Planner, TargetTable, bind_assignments, insert_columns};
use super::rows::{cast_into, changed_columns, same_value};
use super::update::touch_on_update;
use super::{Effect, Run};
use crate::api::{Priv, sql_mode};
use crate::catalog::Table;
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::bind::{Binder, Clause};
use crate::expr::exec::{Exec, Row, Slot};
use crate::expr::node::Expr;
use crate::expr::scope::VALUES_ALIAS;
use crate::select::run::Flow;
use crate::select::{self, QueryPlan, Storage};
use crate::session::NewInsertId;
use crate::store::{Duplicate, InsertOutcome, RowChange, auto_value, duplicate_error};
use omnibus_parser::ast::{self, Insert, InsertSource};
use omnibus_value::Value;
use std::sync::Arc;

/// Longer lists of rows are not even begun on an async worker.
const INLINE_ROWS: usize = 1024;

/// Where rows come from.
enum Source {
    /// One expression a target column; `None` is DEFAULT.
    Values(Vec<Vec<Option<Expr>>>),
    /// A query with as many columns.
    Query(Box<QueryPlan>),
}

/// INSERT or REPLACE, compiled.
pub(crate) struct InsertPlan {
    pub target: TargetTable,
    columns: Vec<usize>,
    /// Columns not named, which get their defaults.
    rest: Vec<usize>,
    source: Source,
    /// Whether an expression reads the row being made.
    reads_row: bool,
    on_duplicate: Vec<Assignment>,
    assigned: Vec<usize>,
    on_update: Vec<usize>,
    /// The slot of VALUES(column).
    values_slot: u16,
    replace: bool,
    ignore: bool,
}

/// Counts for the reply.
#[derive(Default)]
pub(crate) struct Counts {
    pub records: u64,
    pub inserted: u64,
    pub duplicates: u64,
    affected: u64,
    first_generated: u64,
    last_value: u64,
    /// AUTO_INCREMENT values taken and not used yet.
    reserved: u64,
    reserved_once: bool,
    next_reserved: u64,
}

impl InsertPlan {
    /// Compiles.
    pub(crate) fn build(planner: &Planner<'_>, tree: &Insert) -> SqlResult<InsertPlan> {
        if !tree.returning.is_empty() {
            return Err(SqlError::not_supported_yet("RETURNING"));
        }
        if !tree.partitions.is_empty() {
            return Err(SqlError::not_supported_yet("PARTITION in INSERT"));
        }
        let table = planner.insert_target(&tree.table, tree.replace)?;
        if !tree.on_duplicate.is_empty() {
            planner.table(&tree.table, Priv::Update)?;
        }
        let (mut binder, slot) = planner.binder(&table, None);
        let all = tree.columns.is_empty();
        let columns = insert_columns(&table, &tree.columns, all)?;
        let source = bind_source(&mut binder, tree, &columns, all)?;
        let values_slot = add_values_row(&mut binder, &table, tree)?;
        let on_duplicate = bind_assignments(&mut binder, &table, &table.def.name, &tree.on_duplicate)?;
        let assigned: Vec<usize> = on_duplicate.iter().map(|assignment| assignment.column).collect();
        let defs = table.columns().iter().enumerate();
        let on_update = defs
            .filter(|(at, column)| column.on_update_now && !assigned.contains(at))
            .map(|(at, _)| at)
            .collect();
        let rest = (0..table.columns().len()).filter(|at| !columns.contains(at)).collect();
        let reads_row = match &source {
            Source::Values(rows) => rows.iter().flatten().flatten().any(|expr| expr.slots() != 0),
            Source::Query(_) => false,
        };
        Ok(InsertPlan {
            target: TargetTable::new(table, slot, &binder),
            columns,
            rest,
            source,
            reads_row,
            on_duplicate,
            assigned,
            on_update,
            values_slot,
            replace: tree.replace,
            ignore: tree.ignore,
        })
    }

    /// For rows that the caller makes and hands to `add`, with values for `columns`.
    pub(crate) fn for_rows(
        target: TargetTable,
        columns: Vec<usize>,
        replace: bool,
        ignore: bool,
    ) -> InsertPlan {
        InsertPlan {
            rest: (0..target.table.columns().len()).filter(|at| !columns.contains(at)).collect(),
            columns,
            source: Source::Values(Vec::new()),
            reads_row: false,
            on_duplicate: Vec::new(),
            assigned: Vec::new(),
            on_update: Vec::new(),
            values_slot: 0,
            replace,
            ignore,
            target,
        }
    }

    /// For the rows of a query that is planned already.
    pub(crate) fn for_query(
        table: &Arc<Table>,
        names: &[ast::Ident],
        query: QueryPlan,
        duplicates: ast::OnDuplicate,
    ) -> SqlResult<InsertPlan> {
        let columns = insert_columns(table, names, false)?;
        let target = TargetTable {
            table: table.clone(),
            slot: 0,
            slots: query.slots.max(1),
            subqueries: query.subqueries,
        };
        let replace = duplicates == ast::OnDuplicate::Replace;
        let ignore = duplicates == ast::OnDuplicate::Ignore;
        let plan = InsertPlan::for_rows(target, columns, replace, ignore);
        Ok(InsertPlan { source: Source::Query(Box::new(query)), ..plan })
    }

    /// NULL becomes something else in a column that has none, or an error.
    pub(crate) fn not_null(&self, run: &mut Run<'_>, at: usize, value: Value) -> SqlResult<Value> {
        let column = &self.target.table.def.columns[at];
        if !matches!(value, Value::Null) || column.nullable || column.auto_increment {
            return Ok(value);
        }
        null_value(column, self.lenient(run), run.state)
    }

    fn lenient(&self, run: &Run<'_>) -> bool {
        self.ignore || !run.state.settings.strict()
    }

    /// Runs it.
    pub(crate) fn run(&self, run: &mut Run<'_>) -> ExecResult<Effect> {
        run.trx.start_write(&self.target.table)?;
        let template = self.template(run)?;
        let mut counts = Counts::default();
        match &self.source {
            Source::Values(rows) => {
                if rows.len() > INLINE_ROWS {
                    run.trx.need_blocking()?;
                }
                for (at, row) in rows.iter().enumerate() {
                    let values = self.values(run, &template, row, at as u64 + 1, rows.len() > 1)?;
                    self.add(run, values, &mut counts, (rows.len() - at) as u64)?;
                }
            }
            Source::Query(query) => {
                let found = self.collect(run, query)?;
                let left = found.len() as u64;
                for (at, row) in found.into_iter().enumerate() {
                    let values = self.query_values(run, &template, query, row, at as u64 + 1)?;
                    self.add(run, values, &mut counts, left - at as u64)?;
                }
            }
        }
        Ok(self.effect(run, &counts))
    }

    pub(crate) fn effect(&self, run: &mut Run<'_>, counts: &Counts) -> Effect {
        if counts.first_generated != 0 {
            run.state.last_insert_id = counts.first_generated;
            run.state.new_insert_id = NewInsertId::Fresh;
        }
        let last_insert_id = match run.state.last_insert_id_set {
            Some(id) => id,
            None if counts.first_generated != 0 => counts.first_generated,
            None => counts.last_value,
        };
        let single = matches!(&self.source, Source::Values(rows) if rows.len() == 1);
        let info = if single {
            String::new()
        } else {
            let warnings = run.state.diagnostics.count();
            format!("Records: {}  Duplicates: {}  Warnings: {warnings}", counts.records, counts.duplicates)
        };
        Effect { affected: counts.affected, last_insert_id, info }
    }

    /// A row of defaults. Columns that are named get theirs only if a row says DEFAULT.
    pub(crate) fn template(&self, run: &mut Run<'_>) -> SqlResult<Vec<Value>> {
        let table = &self.target.table;
        let mut template = vec![Value::Null; table.columns().len()];
        for &at in &self.rest {
            template[at] = self.default_for(run, at)?;
        }
        Ok(template)
    }

    /// What DEFAULT gives a column here.
    pub(crate) fn default_for(&self, run: &mut Run<'_>, at: usize) -> SqlResult<Value> {
        let column = &self.target.table.def.columns[at];
        match default_value(column, run.state) {
            Err(error) if error.code == 1364 && self.lenient(run) => {
                run.state.diagnostics.warn(error);
                Ok(implicit_default(&column.ty))
            }
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
        let lenient = self.ignore || (multiple && !run.state.settings.strict());
        for (&at, expr) in self.columns.iter().zip(row) {
            let column = &self.target.table.def.columns[at];
            let Some(expr) = expr else {
                values[at] = self.default_for(run, at)?;
                continue;
            };
            let value = match expr.as_const() {
                Some(value) => value.clone(),
                None => self.evaluate(run, expr, &values)?,
            };
            values[at] = cast_into(value, expr, column, number, self.ignore, run.state)?;
            if matches!(values[at], Value::Null) && !column.nullable && !column.auto_increment {
                values[at] = null_value(column, lenient, run.state)?;
            }
        }
        Ok(values)
    }

    fn evaluate(&self, run: &mut Run<'_>, expr: &Expr, so_far: &[Value]) -> ExecResult<Value> {
        let strict = run.state.settings.strict() && !self.ignore;
        let mut exec = Exec::new(run.state, run.trx, run.params);
        exec.strict = strict;
        if self.reads_row || self.target.subqueries > 0 {
            exec.reserve(self.target.slots, self.target.subqueries);
            exec.frame = self.target.frame(Row::Values(so_far.into()));
        }
        expr.eval(&mut exec)
    }

    /// All rows of the query, before the first is inserted: it may read the same table.
    fn collect(&self, run: &mut Run<'_>, query: &QueryPlan) -> ExecResult<Vec<Vec<Value>>> {
        let mut exec = Exec::new(run.state, run.trx, run.params);
        exec.reserve(self.target.slots, self.target.subqueries);
        exec.strict = exec.session.settings.strict() && !self.ignore;
        let mut rows = Vec::new();
        select::run::run(query, &mut exec, &mut |_, row| {
            rows.push(row.to_vec());
            Ok(Flow::Continue)
        })?;
        Ok(rows)
    }

    fn query_values(
        &self,
        run: &mut Run<'_>,
        template: &[Value],
        query: &QueryPlan,
        row: Vec<Value>,
        number: u64,
    ) -> ExecResult<Vec<Value>> {
        let mut values = template.to_vec();
        let types = query.types.iter();
        for ((&at, value), source) in self.columns.iter().zip(row).zip(types) {
            let column = &self.target.table.def.columns[at];
            values[at] =
                super::cast::into_column(value, &source.column, column, number, self.ignore, run.state)?;
            let value = std::mem::take(&mut values[at]);
            values[at] = self.not_null(run, at, value)?;
        }
        Ok(values)
    }

    /// Gives the AUTO_INCREMENT column its value if it needs one. `left` rows may still come.
    fn generate(
        &self,
        run: &mut Run<'_>,
        values: &mut [Value],
        counts: &mut Counts,
        left: u64,
    ) -> SqlResult<bool> {
        let table = &self.target.table;
        let Some(at) = table.auto_column else { return Ok(false) };
        let zero_counts = run.state.settings.sql_mode & sql_mode::NO_AUTO_VALUE_ON_ZERO != 0;
        let wanted = match &values[at] {
            Value::Null => true,
            value => !zero_counts && is_zero(value),
        };
        let increment = run.state.settings.auto_increment_increment.max(1);
        let forced = run.state.settings.insert_id;
        if !wanted {
            // The next value follows a greater one that was given: whoever runs the statement again knows the first
            // value only.
            let given = auto_value(&values[at]);
            if counts.reserved > 0 && given >= counts.next_reserved {
                match forced {
                    Some(_) => counts.next_reserved = given.saturating_add(increment),
                    None => counts.reserved = 0,
                }
            }
            return Ok(false);
        }
        let offset = run.state.settings.auto_increment_offset;
        if counts.reserved == 0 {
            counts.next_reserved = match forced.filter(|_| !counts.reserved_once) {
                Some(id) => id,
                None => run.trx.take_auto_values(table, left, increment, offset)?,
            };
            counts.reserved_once = true;
            counts.reserved = left;
        }
        let id = counts.next_reserved;
        counts.reserved -= 1;
        counts.next_reserved = id.saturating_add(increment);
        let ty = &table.def.columns[at].ty;
        if id > greatest(ty) {
            return Err(SqlError::autoinc_read_failed());
        }
        values[at] = match ty.kind {
            omnibus_value::ColumnKind::Float => Value::Float(id as f32),
            omnibus_value::ColumnKind::Double => Value::Double(id as f64),
            _ if ty.unsigned => Value::UInt(id),
            _ => Value::Int(id as i64),
        };
        Ok(true)
    }

    /// Inserts a row, or does what is to be done about one in its way. `left` rows may still come.
    pub(crate) fn add(
        &self,
        run: &mut Run<'_>,
        mut values: Vec<Value>,
        counts: &mut Counts,
        left: u64,
    ) -> ExecResult<()> {
        let table = &self.target.table;
        counts.records += 1;
        let generated = self.generate(run, &mut values, counts, left)?;
        let row = table.rows.encode(&values)?;
        loop {
            match run.trx.insert_row(table, &values, row.clone())? {
                InsertOutcome::Inserted => break,
                // REPLACE by what is there already changes nothing.
                InsertOutcome::Duplicate(duplicate) if self.replace && duplicate.existing.row == row => {
                    break;
                }
                // All numbers are used: REPLACE would take the last row again and again.
                InsertOutcome::Duplicate(duplicate)
                    if self.replace && generated && is_auto_key(table, duplicate.index) =>
                {
                    return Err(duplicate_error(table, duplicate.index, &values).into());
                }
                InsertOutcome::Duplicate(duplicate) => {
                    if !self.resolve(run, &values, &duplicate, counts)? {
                        return Ok(());
                    }
                }
            }
        }
        counts.inserted += 1;
        counts.affected += 1;
        if let Some(at) = table.auto_column {
            counts.last_value = auto_value(&values[at]);
            if generated && counts.first_generated == 0 {
                counts.first_generated = counts.last_value;
            }
        }
        Ok(())
    }

    /// A row is in the way. Returns whether to try the insert again.
    fn resolve(
        &self,
        run: &mut Run<'_>,
        values: &[Value],
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
            self.update_existing(run, values, duplicate, counts)?;
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
        duplicate: &Duplicate,
        counts: &mut Counts,
    ) -> ExecResult<()> {
        let table = &self.target.table;
        let old = table.decode(&duplicate.existing.row)?;
        let mut new = old.clone();
        let mut exec = self.target.exec(run, Row::Image(duplicate.existing.row.clone()));
        exec.frame[usize::from(self.values_slot)] =
            Slot { table: Some(table.clone()), row: Row::Values(values.into()) };
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

fn is_zero(value: &Value) -> bool {
    [Value::Int(0), Value::UInt(0), Value::Float(0.0), Value::Double(0.0)]
        .iter()
        .any(|zero| same_value(zero, value))
}

fn bind_source(binder: &mut Binder<'_>, tree: &Insert, columns: &[usize], all: bool) -> SqlResult<Source> {
    let rows = match &tree.source {
        InsertSource::Values(rows) => rows,
        InsertSource::Query(query) => {
            let plan = select::bind::query(binder, query)?;
            if plan.columns.len() != columns.len() {
                return Err(SqlError::wrong_value_count_on_row(1));
            }
            return Ok(Source::Query(Box::new(plan)));
        }
    };
    let mut out = Vec::with_capacity(rows.len());
    for (at, row) in rows.iter().enumerate() {
        // `VALUES ()` is a row of defaults, and no column may be named then.
        if row.is_empty() && all {
            out.push(columns.iter().map(|_| None).collect());
            continue;
        }
        if row.len() != columns.len() {
            return Err(SqlError::wrong_value_count_on_row(at + 1));
        }
        let bind = |expr: &ast::Expr| match expr {
            ast::Expr::Default => Ok(None),
            expr => binder.expr(expr).map(Some),
        };
        out.push(row.iter().map(bind).collect::<SqlResult<Vec<_>>>()?);
    }
    Ok(Source::Values(out))
}

/// Makes the new row's columns known to ON DUPLICATE KEY UPDATE, as VALUES(column) and by an alias.
fn add_values_row(binder: &mut Binder<'_>, table: &Arc<Table>, tree: &Insert) -> SqlResult<u16> {
    if tree.on_duplicate.is_empty() {
        return Ok(0);
    }
    let values = binder.add_table(table, Some(VALUES_ALIAS));
    let slot = values.slot;
    let mut added = vec![values.clone()];
    if let Some(alias) = &tree.row_alias {
        if !alias.columns.is_empty() {
            return Err(SqlError::not_supported_yet("column aliases of an inserted row"));
        }
        let mut named = values;
        named.alias = Arc::from(alias.name.as_str());
        added.push(named);
    }
    if let Some(block) = binder.blocks.last_mut() {
        block.scope.tables.extend(added);
    }
    binder.set_clause(Clause::FieldList);
    Ok(slot)
}

/// Whether an index begins with the AUTO_INCREMENT column.
fn is_auto_key(table: &Table, index: usize) -> bool {
    let first = table.def.indexes[index].parts.first();
    first.is_some_and(|part| table.auto_column == Some(part.column))
}

/// The greatest number that an AUTO_INCREMENT column holds.
fn greatest(ty: &omnibus_value::ColumnType) -> u64 {
    use omnibus_value::ColumnKind as K;
    let bits = match ty.kind {
        K::TinyInt => 8,
        K::SmallInt => 16,
        K::MediumInt => 24,
        K::Int => 32,
        K::BigInt => 64,
        _ => return u64::MAX,
    };
    u64::MAX >> (64 - bits + u32::from(!ty.unsigned))
}
