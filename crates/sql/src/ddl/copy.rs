//! Rows under a new definition: filling a new index, and copying a table.
//!
//! An index is loaded into its space before anything refers to it; recovery builds it again from
//! the table (BuildIndex). A copied table goes through the statement's write set, which the log
//! holds whole: conversions are not repeated at recovery. Who else may use the table meanwhile is the caller's matter.

use super::defaults::reads_new_default;
use super::exec::Ddl;
use crate::api::{Work, sql_mode};
use crate::bind::scope::same;
use crate::catalog::codec::{Origin, RowVersions};
use crate::catalog::{Column, ColumnDefault, Table, TableDef, TableState};
use crate::dml::cast::into_column;
use crate::dml::defaults::{default_value, implicit_default, now_for, without_default};
use crate::dml::{NewRow, RowExpressions};
use crate::error::{ExecResult, Interrupt, SqlError, SqlResult};
use crate::expr::Context;
use crate::sort::{ExternalSort, KeyForm, Sorted};
use crate::state::SessionState;
use crate::storage::Storage;
use crate::store::{CommitPort, KeyRange, auto_value, by_ref, duplicate_error, whole_index};
use bytes::Bytes;
use omnibus_engine::Snapshot;
use omnibus_parser::print;
use omnibus_value::{ColumnKind, ColumnType, Value};
use std::sync::Arc;

/// Where a column's values come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnSource {
    /// This column of the old table.
    Old(usize),
    /// A new column.
    Added,
}

/// Whether stored rows are right for the new definition as they are.
pub(super) fn rows_stay(old: &TableDef, new: &TableDef, sources: &[ColumnSource]) -> bool {
    let in_place = |(at, source): (usize, &ColumnSource)| *source == ColumnSource::Old(at);
    old.columns.len() == new.columns.len()
        && sources.iter().enumerate().all(in_place)
        && columns_stay(old, new, sources)
}

/// Whether what is stored of each column is right for the new definition.
fn columns_stay(old: &TableDef, new: &TableDef, sources: &[ColumnSource]) -> bool {
    let mut known = vec![None; new.columns.len()];
    (0..new.columns.len()).all(|at| column_stays(old, new, sources, at, &mut known))
}

/// Whether what is stored of a column is right for the new definition: a generated one's if that of the columns that it names is, too. `known` has
/// the answers for others: a column may be named by many, and more than once.
fn column_stays(
    old: &TableDef,
    new: &TableDef,
    sources: &[ColumnSource],
    at: usize,
    known: &mut [Option<bool>],
) -> bool {
    if let Some(stays) = known[at] {
        return stays;
    }
    // One that names itself does not stay.
    known[at] = Some(false);
    let ColumnSource::Old(from) = sources[at] else { return false };
    let column = &new.columns[at];
    let mut base_stays = |name: &str| {
        let Some(base) = new.columns.iter().position(|base| same(&base.name, name)) else { return false };
        let named_so =
            matches!(sources[base], ColumnSource::Old(from) if same(&old.columns[from].name, name));
        named_so && column_stays(old, new, sources, base, known)
    };
    let named = column.generated.as_ref().map(|generated| print::column_names(&generated.expr.tree));
    let stays = values_stay(&old.columns[from], column)
        && !reads_new_default(old, new, column)
        && named.unwrap_or_default().iter().all(|name| base_stays(name));
    known[at] = Some(stays);
    stays
}

/// Whether what is stored of column `a` is right for column `b`.
fn values_stay(a: &Column, b: &Column) -> bool {
    let expression = |column: &Column| column.generated.as_ref().map(|generated| generated.expr.text.clone());
    (b.generated.is_none() || expression(a) == expression(b)) && (same_values(a, b) || longer_varchar(a, b))
}

/// Whether rows can be written anew one by one, with the same result whenever that is: their values stay, but that NULL may be refused, and
/// what new columns get is known beforehand.
pub(super) fn rows_follow(old: &TableDef, new: &TableDef, sources: &[ColumnSource]) -> bool {
    let follows = |(column, source): (&Column, &ColumnSource)| match source {
        ColumnSource::Old(at) => {
            let from = Column { nullable: false, ..old.columns[*at].clone() };
            values_stay(&from, column) && !reads_new_default(old, new, column)
        }
        ColumnSource::Added => {
            !column.auto_increment && !matches!(column.default, ColumnDefault::Expression(_))
        }
    };
    // New row ids would be others in each round.
    (old.hidden_key || !new.hidden_key) && new.columns.iter().zip(sources).all(follows)
}

/// The versions of the rows when columns come, go and move, and all rows get the same in those that come. `None` if the rows
/// must be copied.
pub(super) fn versions_after(
    ddl: &Ddl<'_>,
    table: &Arc<Table>,
    new: &TableDef,
    sources: &[ColumnSource],
) -> ExecResult<Option<RowVersions>> {
    let mut known = vec![None; new.columns.len()];
    let stays = |(at, source): (usize, &ColumnSource)| match source {
        ColumnSource::Old(_) => column_stays(&table.def, new, sources, at, &mut known),
        ColumnSource::Added => !new.columns[at].auto_increment && !new.columns[at].is_computed(),
    };
    if !sources.iter().enumerate().all(stays) {
        return Ok(None);
    }
    let mut filled = false;
    let latest = ddl.trx.shared.port.latest();
    Rows::at(&*latest, table).each_until(|_, _| {
        filled = true;
        Ok(false)
    })?;
    if filled {
        refuse_zero_dates(new, sources, ddl.state)?;
    }
    let added = added_values(ddl, new, sources)?.into_iter();
    let origins: Vec<Origin> = sources
        .iter()
        .zip(added)
        .map(|(source, value)| match source {
            ColumnSource::Old(at) => Origin::Stored(*at),
            ColumnSource::Added => Origin::Value(value),
        })
        .collect();
    Ok(table.def.versions.after(&table.def.columns, &origins))
}

/// Whether every value of column `a` is the same value of column `b`.
fn same_values(a: &Column, b: &Column) -> bool {
    let (from, to) = (&a.ty, &b.ty);
    let labels = to.labels.len() >= from.labels.len() && to.labels[..from.labels.len()] == from.labels[..];
    let one_size = from.labels.len().max(1).div_ceil(256) == to.labels.len().max(1).div_ceil(256);
    let width_means_nothing = matches!(
        from.kind,
        ColumnKind::TinyInt
            | ColumnKind::SmallInt
            | ColumnKind::MediumInt
            | ColumnKind::Int
            | ColumnKind::BigInt
    );
    from.kind == to.kind
        && from.unsigned == to.unsigned
        && from.decimals == to.decimals
        && from.collation == to.collation
        && (from.length == to.length || width_means_nothing)
        && (from.labels == to.labels || (labels && from.kind == ColumnKind::Enum && one_size))
        // NOT NULL must be checked row by row.
        && (b.nullable || !a.nullable)
        && a.auto_increment >= b.auto_increment
}

fn longer_varchar(a: &Column, b: &Column) -> bool {
    let max = crate::catalog::charset::max_len(a.ty.collation);
    let long = |column: &Column| column.ty.length * max > 255;
    matches!(a.ty.kind, ColumnKind::VarChar | ColumnKind::VarBinary)
        && a.ty.kind == b.ty.kind
        && a.ty.collation == b.ty.collation
        && a.ty.length <= b.ty.length
        && long(a) == long(b)
        && (b.nullable || !a.nullable)
}

/// Whether index entries over column `a` are right over column `b`.
pub(super) fn same_key_encoding(a: &Column, b: &Column) -> bool {
    same_values(a, b) || longer_varchar(a, b) || (a.nullable && !b.nullable && same_values(b, a))
}

/// Rows of a table as a snapshot has them.
pub(super) struct Rows<'s> {
    pub(super) snapshot: &'s dyn Snapshot,
    range: KeyRange,
}

impl<'s> Rows<'s> {
    pub(super) fn at(snapshot: &'s dyn Snapshot, table: &Table) -> Rows<'s> {
        Rows { snapshot, range: whole_index(table, 0) }
    }

    pub(super) fn each(&self, mut f: impl FnMut(Bytes, Bytes) -> ExecResult<()>) -> ExecResult<()> {
        self.each_until(|key, row| f(key, row).map(|()| true))
    }

    /// While `f` says so.
    fn each_until(&self, mut f: impl FnMut(Bytes, Bytes) -> ExecResult<bool>) -> ExecResult<()> {
        for pair in self.snapshot.scan(by_ref(&self.range.from), by_ref(&self.range.to), false) {
            let (key, row) = pair.map_err(SqlError::from)?;
            if !f(key, row)? {
                break;
            }
        }
        Ok(())
    }
}

/// Memory in which the entries of a new index are sorted.
const SORT_BYTES: u64 = 16 << 20;

/// The work of a build beside reading or loading each row.
pub(super) type Beside<'b> = dyn FnMut(&mut Context<'_>) -> ExecResult<()> + 'b;

/// Fills the space of index `at` of the new definition from the table's newest rows.
pub(super) fn build_index(
    ddl: &mut Ddl<'_>,
    table: &Arc<Table>,
    def: &TableDef,
    at: usize,
) -> ExecResult<()> {
    let new = Table::new(def.clone(), table.state.clone());
    let port = ddl.trx.shared.port.clone();
    let latest = port.latest();
    let Ddl { trx, state, .. } = ddl;
    let mut exec = Context::new(state, *trx, &[]);
    fill_index(&*port, &Rows::at(&*latest, table), &new, at, &mut exec, &mut |_| Ok(()))
}

/// Fills the space of index `at` of a new definition: sorted first, so that the engine writes its files one after another and each
/// once, and equal keys of a unique index meet.
pub(super) fn fill_index(
    port: &dyn CommitPort,
    rows: &Rows<'_>,
    new: &Table,
    at: usize,
    exec: &mut Context<'_>,
    beside: &mut Beside<'_>,
) -> ExecResult<()> {
    let progress = exec.session.budget.progress.clone();
    progress.begin(Work::Read, new.rows_estimate());
    let sorted = sorted_entries(rows, new, at, exec, beside)?;
    progress.begin(Work::Insert, new.rows_estimate());
    let prefix = new.def.indexes[at].space.prefix();
    let mut entries = Entries { sorted, prefix, last: Bytes::new(), ended: Ok(()) };
    // Any published number will do: nothing reads this space below the statement's own number.
    let loaded = port.engine().load(port.published(), &mut std::iter::from_fn(|| entries.next(exec, beside)));
    match entries.ended {
        Ok(()) => Ok(loaded.map_err(SqlError::from)?),
        Err(Ended::Failed(interrupt)) => Err(interrupt),
        Err(Ended::Duplicate(key, value)) => {
            let clustered = new.clustered_of_entry(at, &key, &value)?;
            let row = rows.snapshot.get(&clustered).map_err(SqlError::from)?.unwrap_or_default();
            Err(duplicate_error(new, at, &new.decode(&row)?).into())
        }
    }
}

/// The entries of an index: key without its space; whether it is the only one, then the value.
fn sorted_entries(
    rows: &Rows<'_>,
    new: &Table,
    at: usize,
    exec: &mut Context<'_>,
    beside: &mut Beside<'_>,
) -> ExecResult<Sorted> {
    let mut sort = ExternalSort::with_budget(KeyForm::new(Vec::new()), SORT_BYTES, exec);
    let mut values = vec![Value::Null; new.columns().len()];
    let mut record = Vec::new();
    rows.each(|key, row| {
        exec.tick()?;
        exec.session.budget.progress.add(1);
        beside(exec)?;
        for part in &new.def.indexes[at].parts {
            values[part.column] = new.decode_column(&row, part.column)?;
        }
        let entry = new.keys[at].entry(&values, &key);
        record.clear();
        record.push(u8::from(entry.unique));
        record.extend_from_slice(&entry.value);
        sort.add(&entry.key[SPACE_BYTES..], &record, exec)
    })?;
    sort.finish(exec)
}

/// Bytes of a key that say in which space it is.
const SPACE_BYTES: usize = 4;

/// Sorted entries on their way into an engine, which may hold locks while it asks for them: nothing here asks the engine.
struct Entries {
    sorted: Sorted,
    prefix: [u8; SPACE_BYTES],
    last: Bytes,
    /// Why there are no more.
    ended: Result<(), Ended>,
}

enum Ended {
    Failed(Interrupt),
    /// A second entry of a unique index with this key, and its value.
    Duplicate(Bytes, Bytes),
}

impl Entries {
    fn next(&mut self, exec: &mut Context<'_>, beside: &mut Beside<'_>) -> Option<(Bytes, Bytes)> {
        self.try_next(exec, beside).unwrap_or_else(|ended| {
            self.ended = Err(ended);
            None
        })
    }

    fn try_next(
        &mut self,
        exec: &mut Context<'_>,
        beside: &mut Beside<'_>,
    ) -> Result<Option<(Bytes, Bytes)>, Ended> {
        exec.session.budget.progress.add(1);
        exec.tick().and_then(|()| beside(exec)).map_err(Ended::Failed)?;
        let next = self.sorted.next_record().map_err(|error| Ended::Failed(error.into()))?;
        let Some((rest, record)) = next else { return Ok(None) };
        let key = Bytes::from([&self.prefix[..], &rest].concat());
        let (unique, value) = (record.first() == Some(&1), record.slice(1.min(record.len())..));
        if unique && key == self.last {
            return Err(Ended::Duplicate(key, value));
        }
        self.last = key.clone();
        Ok(Some((key, value)))
    }
}

/// Puts all rows, converted, under the new definition's spaces. Returns how many.
pub(super) fn copy_rows(
    ddl: &mut Ddl<'_>,
    table: &Arc<Table>,
    def: &TableDef,
    sources: &[ColumnSource],
) -> ExecResult<u64> {
    let new = Arc::new(Table::new(def.clone(), Arc::new(TableState::default())));
    let latest = ddl.trx.shared.port.latest();
    let rows = Rows::at(&*latest, table);
    let added = added_values(ddl, def, sources)?;
    let (mut count, mut next_id) = (0_u64, 1_u64);
    let mut numbers = Numbers::of(table, def, sources);
    let expressions = RowExpressions::bind(&new, ddl.state, &ddl.trx.catalog(), None)?;
    let Ddl { trx, state, .. } = ddl;
    state.budget.progress.begin(Work::Copy, table.rows_estimate());
    rows.each(|_, row| {
        count += 1;
        state.budget.progress.add(1);
        if count.is_multiple_of(1024) {
            trx.budget.look(0)?;
        }
        let old = table.decode(&row)?;
        if count == 1 {
            refuse_zero_dates(def, sources, state)?;
        }
        let mut values = new_values(table, def, sources, &added, &old, count, state)?;
        numbers.give(&mut values, def, state);
        apply_expressions(expressions.as_ref(), sources, &mut values, count, state, *trx)?;
        let row = new.rows.encode(&values)?;
        let key = if def.hidden_key {
            next_id += 1;
            new.keys[0].hidden(next_id - 1)
        } else {
            new.keys[0].entry(&values, &[]).key
        };
        let writes = &mut trx.transaction.writes;
        if writes.has(&key)? {
            return Err(duplicate_error(&new, 0, &values).into());
        }
        for (at, codec) in new.keys.iter().enumerate().skip(1) {
            let entry = codec.entry(&values, &key);
            if entry.unique && writes.has(&entry.key)? {
                return Err(duplicate_error(&new, at, &values).into());
            }
            writes.put(entry.key, entry.value);
        }
        writes.put(key, row);
        Ok(trx.transaction.relieve(&trx.statement)?)
    })?;
    if def.hidden_key {
        table.state.row_id.fetch_max(next_id, std::sync::atomic::Ordering::AcqRel);
    }
    renumber(table, def);
    Ok(count)
}

/// AUTO_INCREMENT is read again from contents that were written anew.
pub(super) fn renumber(table: &Table, def: &TableDef) {
    if def.columns.iter().any(|column| column.auto_increment) {
        table.state.auto_increment.store(0, std::sync::atomic::Ordering::Release);
    }
}

/// How rows are written anew one by one, if `rows_follow`.
pub(super) struct Copying<'a> {
    table: &'a Table,
    new: Arc<Table>,
    sources: &'a [ColumnSource],
    added: Vec<Value>,
    expressions: Option<RowExpressions>,
}

impl<'a> Copying<'a> {
    pub(super) fn new(
        ddl: &Ddl<'_>,
        table: &'a Table,
        new: &Arc<Table>,
        sources: &'a [ColumnSource],
    ) -> SqlResult<Copying<'a>> {
        let added = added_values(ddl, &new.def, sources)?;
        let expressions = RowExpressions::bind(new, ddl.state, &ddl.trx.catalog(), None)?;
        Ok(Copying { table, new: new.clone(), sources, added, expressions })
    }

    /// A stored row's values in the new table, and what is stored of them there.
    pub(super) fn row(
        &self,
        row: &Bytes,
        state: &mut SessionState,
        storage: &mut dyn Storage,
    ) -> ExecResult<(Vec<Value>, Bytes)> {
        let Copying { table, new, sources, added, expressions } = self;
        refuse_zero_dates(&new.def, sources, state)?;
        let old = table.decode(row)?;
        let mut values = new_values(table, &new.def, sources, added, &old, 1, state)?;
        apply_expressions(expressions.as_ref(), sources, &mut values, 1, state, storage)?;
        let row = new.rows.encode(&values)?;
        Ok((values, row))
    }
}

/// Applies the new definition's expressions to a copied row: defaults of added columns, generated columns, checks.
pub(super) fn apply_expressions(
    expressions: Option<&RowExpressions>,
    sources: &[ColumnSource],
    values: &mut Vec<Value>,
    number: u64,
    state: &mut SessionState,
    storage: &mut dyn Storage,
) -> ExecResult<()> {
    let Some(expressions) = expressions else { return Ok(()) };
    let mut row = NewRow { values, number, ignore: false };
    expressions.fill_defaults(|at| sources[at] == ColumnSource::Added, &mut row, state, storage)?;
    expressions.finish(&mut row, state, storage).map(drop)
}

/// Asks the checks of a definition of all rows, which stay as they are. Returns how many.
pub(super) fn check_rows(ddl: &mut Ddl<'_>, table: &Arc<Table>, def: &TableDef) -> ExecResult<u64> {
    let new = Arc::new(Table::new(def.clone(), Arc::new(TableState::default())));
    let expressions = RowExpressions::bind(&new, ddl.state, &ddl.trx.catalog(), None)?;
    let Some(expressions) = expressions else { return Ok(0) };
    let latest = ddl.trx.shared.port.latest();
    let rows = Rows::at(&*latest, table);
    let Ddl { trx, state, .. } = ddl;
    let mut number = 0_u64;
    rows.each(|_, row| {
        number += 1;
        if number.is_multiple_of(1024) {
            trx.budget.look(0)?;
        }
        let mut row = NewRow { values: &mut new.decode(&row)?, number, ignore: false };
        expressions.finish(&mut row, state, *trx).map(drop)
    })?;
    Ok(number)
}

/// The values of row number `count` under the new definition.
pub(super) fn new_values(
    table: &Table,
    def: &TableDef,
    sources: &[ColumnSource],
    added: &[Value],
    old: &[Value],
    count: u64,
    state: &mut SessionState,
) -> SqlResult<Vec<Value>> {
    let value = |(at, source): (usize, &ColumnSource)| {
        let column = &def.columns[at];
        match source {
            ColumnSource::Added if column.auto_increment => Ok(number(column, count)),
            ColumnSource::Added => Ok(added[at].clone()),
            ColumnSource::Old(from) => {
                convert(old[*from].clone(), &table.def.columns[*from], column, count, state)
            }
        }
    };
    sources.iter().enumerate().map(value).collect()
}

/// The numbers of a column that becomes AUTO_INCREMENT: zeros get the next ones, as if the rows were inserted.
struct Numbers {
    column: Option<usize>,
    next: u64,
}

impl Numbers {
    fn of(table: &Table, def: &TableDef, sources: &[ColumnSource]) -> Numbers {
        let becomes = |at: usize| match &sources[at] {
            ColumnSource::Old(from) => {
                def.columns[at].auto_increment && !table.def.columns[*from].auto_increment
            }
            ColumnSource::Added => false,
        };
        Numbers { column: (0..sources.len()).find(|at| becomes(*at)), next: 1 }
    }

    fn give(&mut self, values: &mut [Value], def: &TableDef, state: &SessionState) {
        let Some(at) = self.column else { return };
        let kept = state.settings.sql_mode & sql_mode::NO_AUTO_VALUE_ON_ZERO != 0;
        let wanted = match &values[at] {
            Value::Null => true,
            zero => !kept && *zero == number(&def.columns[at], 0),
        };
        if wanted {
            values[at] = number(&def.columns[at], self.next);
        }
        self.next = self.next.max(auto_value(&values[at]).saturating_add(1));
    }
}

/// Rows that are there have no date to get in a new column that must have one.
fn refuse_zero_dates(def: &TableDef, sources: &[ColumnSource], state: &SessionState) -> SqlResult<()> {
    let strict = state.settings.strict() && state.settings.date_mode().no_zero_date;
    for (column, source) in def.columns.iter().zip(sources) {
        let (kind, zero) = match column.ty.kind {
            ColumnKind::Date => ("date", "0000-00-00"),
            ColumnKind::DateTime => ("datetime", "0000-00-00 00:00:00"),
            _ => continue,
        };
        if strict
            && *source == ColumnSource::Added
            && !column.nullable
            && column.generated.is_none()
            && matches!(column.default, ColumnDefault::None)
        {
            return Err(SqlError::incorrect_value(kind, zero, &column.name, 1));
        }
    }
    Ok(())
}

fn number(column: &Column, count: u64) -> Value {
    match column.ty.kind {
        ColumnKind::Float => Value::Float(count as f32),
        ColumnKind::Double => Value::Double(count as f64),
        _ if column.ty.unsigned => Value::UInt(count),
        _ => Value::Int(count as i64),
    }
}

/// The values that existing rows get in added columns.
pub(super) fn added_values(ddl: &Ddl<'_>, def: &TableDef, sources: &[ColumnSource]) -> SqlResult<Vec<Value>> {
    let value = |(at, source): (usize, &ColumnSource)| {
        let column = &def.columns[at];
        match (source, &column.default) {
            (ColumnSource::Old(_), _) => Ok(Value::Null),
            (_, ColumnDefault::None) => Ok(without_default(column)),
            _ => default_value(column, ddl.state),
        }
    };
    sources.iter().enumerate().map(value).collect()
}

fn convert(value: Value, from: &Column, to: &Column, row: u64, state: &mut SessionState) -> SqlResult<Value> {
    if matches!(value, Value::Null) {
        if to.nullable {
            return Ok(Value::Null);
        }
        // `Numbers` has one for it.
        if to.auto_increment {
            return Ok(Value::Null);
        }
        if state.settings.strict() {
            return Err(SqlError::new(1138, b"22004", "Invalid use of NULL value"));
        }
        if to.ty.kind == ColumnKind::Timestamp {
            return Ok(now_for(to, state));
        }
        state.diagnostics.warn(SqlError::warn_data_truncated(&to.name, row));
        return Ok(implicit_default(&to.ty));
    }
    let value = match value {
        // Stored as UTC, assigned as the session sees it.
        Value::DateTime(at) if from.ty.kind == ColumnKind::Timestamp => {
            Value::DateTime(at.utc_to_local(state.zone()).unwrap_or(at))
        }
        // Its text may be a document, where the value itself is none.
        value if to.ty.kind == ColumnKind::Json && from.ty.kind != ColumnKind::Json => {
            let text = Value::Bytes(value.to_bytes(&from.ty));
            let ty = ColumnType::string(ColumnKind::LongText, 0, crate::expr::json::COLLATION);
            return into_column(text, &ty, to, row, false, state);
        }
        value => value,
    };
    into_column(value, &from.ty, to, row, false, state)
}
