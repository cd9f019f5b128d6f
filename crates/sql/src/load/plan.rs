//! LOAD DATA compiled and run: fields become values, values become rows.
//!
//! Rows go in as INSERT's do (`InsertPlan`). What is special: a line may have too few or too many
//! fields, NULL for a NOT NULL column is 1263, fields may go to user variables, and SET assigns from
//! them.

use super::input::LoadInput;
use super::reader::{Field, FieldReader};
use crate::bind::Clause;
use crate::catalog::{Column, ColumnDefault, Table, charset};
use crate::dml::cast::into_column;
use crate::dml::defaults::{implicit_default, now_for};
use crate::dml::{
    Assignment, Counts, Effect, InsertPlan, Names, Planner, Run, TargetTable, bind_assignments,
    generated_given,
};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::context::{Context, Row};
use crate::expr::types::string_column;
use crate::state::SessionState;
use crate::text_file::{Format, width};
use bytes::Bytes;
use omnibus_parser::ast::{LoadData, LoadTarget, OnDuplicate};
use omnibus_value::{ColumnKind, ColumnType, Value};

/// Where a field goes.
enum FieldTarget {
    Column(usize),
    Variable(String),
}

/// LOAD DATA, compiled.
pub(crate) struct LoadPlan {
    insert: InsertPlan,
    targets: Vec<FieldTarget>,
    format: Format,
    /// Of the file's text.
    charset: ColumnType,
    /// Bytes a column takes in a file of fixed widths.
    widths: Vec<usize>,
    skip: u64,
    assignments: Vec<Assignment>,
    ignore: bool,
    replace: bool,
}

/// Gives the variables that a LOAD DATA fills their type, before expressions that read them are bound.
///
/// # Errors
/// As [`SessionState::set_user_variable`].
pub(crate) fn announce_variables(tree: &LoadData, state: &mut SessionState) -> SqlResult<()> {
    let ty = string_column(16_383, file_collation(tree, state, None));
    for target in &tree.columns {
        if let LoadTarget::Variable(name) = target {
            state.set_user_variable(name.to_lowercase(), (Value::Bytes(Bytes::new()), ty.clone()))?;
        }
    }
    Ok(())
}

/// The collation of the file's text: as it is said, else `collation_database`, which is the default database's.
fn file_collation(tree: &LoadData, state: &SessionState, catalog: Option<&crate::catalog::Catalog>) -> u16 {
    let said = tree.charset.as_ref().and_then(|name| charset::default_collation(name));
    let database = || Some(catalog?.schema(state.database.as_deref()?).ok()?.collation);
    said.or(state.settings.collation_database).or_else(database).unwrap_or(state.settings.collation_server)
}

impl LoadPlan {
    /// Compiles. The account's right to read files is the caller's business.
    pub(crate) fn build(planner: &Planner<'_>, tree: &LoadData) -> SqlResult<LoadPlan> {
        let LoadData {
            // Without effect.
            priority: _,
            local,
            // Read where the file is opened.
            file: _,
            duplicates,
            table: name,
            partitions,
            charset: encoding,
            format,
            // Read with the file, and by `targets`.
            ignore_lines: _,
            columns: _,
            assignments,
        } = tree;
        if !partitions.is_empty() {
            return Err(SqlError::partition_clause());
        }
        let state = planner.session;
        if let Some(encoding) = encoding
            && charset::default_collation(encoding).is_none()
        {
            return Err(SqlError::unknown_character_set(encoding));
        }
        let escapes = crate::api::sql_mode::NO_BACKSLASH_ESCAPES;
        let format = Format::new(format, state.settings.sql_mode & escapes != 0)?;
        let replace = *duplicates == OnDuplicate::Replace;
        if planner.view(name).is_some() {
            return Err(SqlError::not_supported_yet("LOAD DATA into a view"));
        }
        let (table, granted) = planner.insert_target(name, replace)?;
        let targets = targets(&table, tree)?;
        let expressions = planner.row_expressions(&table)?;
        let (mut binder, slot) = planner.binder(&table, None);
        binder.set_clause(Clause::FieldList);
        let assignments = bind_assignments(&mut binder, &Names::of(&table, &table.def.name), assignments)?;
        let collation = file_collation(tree, state, Some(planner.catalog));
        let widths = if format.is_fixed() { widths(&table, &targets, &format)? } else { Vec::new() };
        let mut given: Vec<usize> = assignments.iter().map(|assignment| assignment.column).collect();
        given.extend(targets.iter().filter_map(|target| match target {
            FieldTarget::Column(at) => Some(*at),
            FieldTarget::Variable(_) => None,
        }));
        granted.check_all(given.iter().map(|at| &*table.columns()[*at].name))?;
        // The client's end of a connection cannot be asked to stop, so LOCAL goes on where it can.
        let ignore = *duplicates == OnDuplicate::Ignore || (*local && *duplicates == OnDuplicate::Error);
        let target = TargetTable::new(table, slot, &binder);
        Ok(LoadPlan {
            insert: InsertPlan::for_rows(target, given, replace, ignore, expressions),
            targets,
            format,
            charset: string_column(16_383, collation),
            widths,
            skip: tree.ignore_lines,
            assignments,
            ignore,
            replace,
        })
    }

    /// The table that rows go into.
    pub(crate) fn target(&self) -> &Table {
        &self.insert.target.table
    }

    /// Whether the table is a temporary one.
    pub(crate) fn only_temporary(&self) -> bool {
        self.insert.target.table.temporary
    }

    /// Runs it.
    pub(crate) fn run(&self, run: &mut Run<'_>, input: &LoadInput) -> ExecResult<Effect> {
        run.trx.start_write(&self.insert.target.table)?;
        let template = self.insert.template(run, false)?;
        if self.format.has_non_ascii() {
            let message = "Non-ASCII separator arguments are not fully supported";
            run.state.diagnostics.warn(SqlError::new(1638, b"HY000", message));
        }
        let longest = usize::try_from(run.state.settings.max_allowed_packet).unwrap_or(usize::MAX);
        let mut reader = FieldReader::new(input.reader(), self.format.clone(), longest);
        let mut counts = Counts::default();
        let mut skip = if self.format.line_end.is_empty() { 0 } else { self.skip };
        while skip > 0 && reader.next_line()? {
            skip -= 1;
            if skip.is_multiple_of(4096) {
                run.trx.budget.look(0)?;
            }
        }
        let mut row = 1;
        while !reader.at_end() {
            let mut values = template.clone();
            let found = match self.widths.is_empty() {
                true => self.separated(run, &mut reader, &mut values, row)?,
                false => self.fixed(run, &mut reader, &mut values, row)?,
            };
            if !found {
                break;
            }
            let defaults = |at| self.assignments.iter().any(|a| a.column == at && a.value.is_none());
            self.assign(run, &mut values, row)?;
            self.insert.fill_defaults(run, defaults, &mut values, row)?;
            self.insert.add(run, values, &[], &mut counts, 1)?;
            let more = reader.next_line()?;
            if reader.cut {
                self.complain(run, too_many(row))?;
            }
            if !more {
                break;
            }
            row += 1;
        }
        Ok(self.effect(run, &counts))
    }

    fn effect(&self, run: &mut Run<'_>, counts: &Counts) -> Effect {
        let mut effect = self.insert.effect(run, counts);
        // LAST_INSERT_ID() knows it; the reply has never told.
        effect.last_insert_id = 0;
        let deleted = if self.replace { counts.duplicates } else { 0 };
        let skipped = counts.records - counts.inserted;
        let warnings = run.state.diagnostics.count();
        effect.info = format!(
            "Records: {}  Deleted: {deleted}  Skipped: {skipped}  Warnings: {warnings}",
            counts.records
        )
        .into();
        effect
    }

    /// A warning, which is an error in strict mode unless errors are to be passed over.
    fn complain(&self, run: &mut Run<'_>, condition: SqlError) -> SqlResult<()> {
        if run.state.settings.strict() && !self.ignore {
            return Err(condition);
        }
        run.state.diagnostics.warn(condition);
        Ok(())
    }

    fn separated(
        &self,
        run: &mut Run<'_>,
        reader: &mut FieldReader,
        values: &mut [Value],
        row: u64,
    ) -> ExecResult<bool> {
        for (at, target) in self.targets.iter().enumerate() {
            let field = reader.field()?;
            if field == Field::None {
                if at == 0 {
                    return Ok(false);
                }
                self.missing(run, &self.targets[at..], values, row)?;
                return Ok(true);
            }
            match target {
                FieldTarget::Variable(name) => {
                    let value = if field == Field::Null { Value::Null } else { text_value(reader.text()) };
                    run.state.set_user_variable(name.clone(), (value, self.charset.clone()))?;
                }
                FieldTarget::Column(at) if field == Field::Null => values[*at] = self.null(run, *at, row)?,
                FieldTarget::Column(at) => values[*at] = self.store(run, *at, reader.text(), row)?,
            }
        }
        Ok(true)
    }

    fn fixed(
        &self,
        run: &mut Run<'_>,
        reader: &mut FieldReader,
        values: &mut [Value],
        row: u64,
    ) -> ExecResult<bool> {
        if !reader.fixed_line(self.widths.iter().sum())? {
            return Ok(false);
        }
        let mut text = reader.text();
        for (target, width) in self.targets.iter().zip(&self.widths) {
            let FieldTarget::Column(at) = target else { continue };
            if text.is_empty() {
                values[*at] = self.absent(run, *at, true);
                self.complain(run, SqlError::warn_too_few_records(row))?;
                continue;
            }
            let (field, rest) = text.split_at((*width).min(text.len()));
            text = rest;
            values[*at] = self.store(run, *at, field, row)?;
        }
        Ok(true)
    }

    fn column(&self, at: usize) -> &Column {
        &self.insert.target.table.def.columns[at]
    }

    fn store(&self, run: &mut Run<'_>, at: usize, text: &[u8], row: u64) -> SqlResult<Value> {
        if self.column(at).generated.is_some() {
            // A file that SELECT * has written has a field for it: it is passed over, and computed.
            return Ok(Value::Null);
        }
        into_column(text_value(text), &self.charset, self.column(at), row, self.ignore, run.state)
    }

    /// NULL in the file.
    fn null(&self, run: &mut Run<'_>, at: usize, row: u64) -> SqlResult<Value> {
        let column = self.column(at);
        let kept = column.nullable || column.auto_increment || column.generated.is_some();
        if kept || self.insert.null_may_go() {
            return Ok(Value::Null);
        }
        if column.ty.kind == ColumnKind::Timestamp {
            return Ok(now_for(column, run.state));
        }
        self.complain(run, SqlError::warn_null_to_notnull(&column.name, row))?;
        Ok(implicit_default(&column.ty))
    }

    /// The line ended before these.
    fn missing(
        &self,
        run: &mut Run<'_>,
        targets: &[FieldTarget],
        values: &mut [Value],
        row: u64,
    ) -> SqlResult<()> {
        for target in targets {
            match target {
                FieldTarget::Variable(name) => {
                    run.state.set_user_variable(name.clone(), (Value::Null, self.charset.clone()))?;
                }
                FieldTarget::Column(at) => {
                    values[*at] = self.absent(run, *at, false);
                    self.complain(run, SqlError::warn_too_few_records(row))?;
                }
            }
        }
        Ok(())
    }

    /// The value of a column that the line has no field for: not its default, but zero or nothing; NULL
    /// only where that is the default, and not in a file of fixed widths, which has no NULL.
    fn absent(&self, run: &Run<'_>, at: usize, fixed: bool) -> Value {
        let column = self.column(at);
        let null = !fixed && matches!(column.default, ColumnDefault::Value(Value::Null));
        if null || column.auto_increment {
            return Value::Null;
        }
        match column.ty.kind {
            ColumnKind::Timestamp if !column.nullable => now_for(column, run.state),
            ColumnKind::Enum => Value::Enum(0),
            _ => implicit_default(&column.ty),
        }
    }

    fn assign(&self, run: &mut Run<'_>, values: &mut [Value], row: u64) -> ExecResult<()> {
        for assignment in &self.assignments {
            let at = assignment.column;
            let value = match &assignment.value {
                None => self.insert.default_for(run, at)?,
                Some(expr) => {
                    let target = &self.insert.target;
                    let strict = run.state.settings.strict() && !self.ignore;
                    let mut exec = Context::new(run.state, run.trx, run.params);
                    exec.strict = strict;
                    exec.reserve(target.slots, target.subqueries);
                    exec.frame = target.frame(Row::Values((&*values).into()));
                    let value = expr.eval(&mut exec)?;
                    into_column(value, &expr.ty.column, self.column(at), row, self.ignore, run.state)?
                }
            };
            values[at] = self.insert.not_null(run, at, value)?;
        }
        Ok(())
    }
}

fn text_value(text: &[u8]) -> Value {
    Value::Bytes(Bytes::copy_from_slice(text))
}

fn too_many(row: u64) -> SqlError {
    let message = format!("Row {row} was truncated; it contained more data than there were input columns");
    SqlError::new(1262, b"01000", message)
}

/// The columns and variables of the list, or all visible columns.
fn targets(table: &Table, tree: &LoadData) -> SqlResult<Vec<FieldTarget>> {
    if tree.columns.is_empty() {
        let visible = table.columns().iter().enumerate().filter(|(_, column)| !column.invisible);
        return Ok(visible.map(|(at, _)| FieldTarget::Column(at)).collect());
    }
    let target = |target: &LoadTarget| match target {
        LoadTarget::Variable(name) => Ok(FieldTarget::Variable(name.to_lowercase())),
        LoadTarget::Column(name) => {
            let at = table.column_index(name).ok_or_else(|| SqlError::bad_field(name, "field list"))?;
            match table.columns()[at].generated {
                Some(_) => Err(generated_given(table, at)),
                None => Ok(FieldTarget::Column(at)),
            }
        }
    };
    tree.columns.iter().map(target).collect()
}

/// How many bytes each column takes in a file of fixed widths.
fn widths(table: &Table, targets: &[FieldTarget], format: &Format) -> SqlResult<Vec<usize>> {
    let mut widths = Vec::with_capacity(targets.len());
    for target in targets {
        let FieldTarget::Column(at) = target else {
            return Err(SqlError::new(
                1409,
                b"HY000",
                "Can't load value from file with fixed size rows to variable",
            ));
        };
        let column = &table.def.columns[*at];
        if column.is_blob() && format.line_end.is_empty() {
            return Err(SqlError::new(
                1084,
                b"42000",
                "You can't use fixed rowlength with BLOBs; please use 'fields terminated by'",
            ));
        }
        widths.push(width(&column.ty));
    }
    Ok(widths)
}
