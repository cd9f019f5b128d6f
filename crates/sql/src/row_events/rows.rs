//! Row events into tables: inserts, updates and deletions as their images say, through the same writes as statements
//! make, so that indexes, counters, locks and our own events follow.
//!
//! Columns are taken by position and converted (`mapping`), rows are found by `lookup`. ON UPDATE CURRENT_TIMESTAMP has
//! no part in it: images say everything. On a thread that may block.

use super::convert::Conversions;
use super::lookup::{BATCH, Lookup, by_clustered_key, by_key};
use super::mapping::{Mapping, damaged};
use crate::catalog::Table;
use crate::dml::NewRow;
use crate::error::{ExecResult, Interrupt, SqlError, SqlResult};
use crate::state::SessionState;
use crate::storage::{LockMode, WaitPolicy};
use crate::store::{
    Duplicate, InsertOutcome, RowAt, RowChange, Trx, duplicate_error, put_sequence, whole_index,
};
use bytes::Bytes;
use omnibus_format::events::RowsKind;
use omnibus_format::row::{JsonDiffError, JsonDiffs, RowChange as Change, RowImage};
use omnibus_replication::model::RowsView;
use omnibus_value::Value;
use omnibus_value::json::Json;
use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;

/// How often a table is looked up anew because its definition changed.
const REPLANS: usize = 20;

/// Rules for where source and replica disagree.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RowRules {
    /// `replica_exec_mode=IDEMPOTENT`: rows that are gone or there already are no errors.
    pub idempotent: bool,
    /// `replica_type_conversions`.
    pub conversions: Conversions,
}

/// Applies row events of one session.
#[derive(Default)]
pub(crate) struct RowApplier {
    mappings: HashMap<Vec<u8>, Mapping>,
    name: Vec<u8>,
}

/// Mappings kept at most: a source with more tables begins anew now and then.
const KEPT: usize = 4096;

impl RowApplier {
    /// Applies the rows of one event in the session's transaction.
    ///
    /// # Errors
    /// 1146, 1677, 1032, 1062, lock waits; what was done stays to be rolled back.
    pub(crate) fn apply(
        &mut self,
        state: &mut SessionState,
        trx: &mut Trx,
        view: &dyn RowsView,
        rules: &RowRules,
    ) -> ExecResult<()> {
        for _ in 0..REPLANS {
            let mapping = self.mapping(trx, view, rules)?;
            trx.statement.check_foreign_keys(view.foreign_key_checks());
            match trx.start_write(&mapping.table) {
                Err(Interrupt::Error(error)) if error.code == 1615 => continue,
                started => started?,
            }
            return Event { state, trx, mapping, rules, view }.apply();
        }
        Err(crate::store::need_replan().into())
    }

    fn mapping(&mut self, trx: &Trx, view: &dyn RowsView, rules: &RowRules) -> SqlResult<&mut Mapping> {
        let theirs = view.table();
        self.name.clear();
        self.name.extend_from_slice(theirs.database());
        self.name.push(0);
        self.name.extend_from_slice(theirs.name());
        // A table that this transaction makes may have taken the place of another.
        let holds = trx.transaction.open_catalog().is_none()
            && self.mappings.get(&self.name).is_some_and(|mapping| mapping.holds(theirs, rules));
        if !holds {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let (db, name) = (text(theirs.database()), text(theirs.name()));
            let table = trx.stored_catalog().table(&db, &name)?.clone();
            if self.mappings.len() >= KEPT {
                self.mappings.clear();
            }
            self.mappings.insert(self.name.clone(), Mapping::new(table, theirs, rules)?);
        }
        self.mappings.get_mut(&self.name).ok_or_else(SqlError::unknown_error)
    }
}

/// One event being applied.
struct Event<'a> {
    state: &'a mut SessionState,
    trx: &'a mut Trx,
    mapping: &'a mut Mapping,
    rules: &'a RowRules,
    view: &'a dyn RowsView,
}

/// A change whose row is still to be found, kept past its image.
struct Wanted {
    image: Vec<Option<Value>>,
    after: Option<After>,
}

/// A row as it is to be.
struct After {
    /// Values; those that are missing stay.
    values: Vec<Option<Value>>,
    /// Documents that change in places.
    diffs: Vec<(usize, Bytes)>,
}

impl Event<'_> {
    fn apply(&mut self) -> ExecResult<()> {
        let lookup = match self.view.kind() {
            RowsKind::Write => None,
            _ => Some(self.mapping.lookup(self.view.columns_before())),
        };
        let mut wanted = Vec::new();
        let mut result = Ok(());
        let view = self.view;
        let decoded = view.each(&mut |change| {
            result = self.change(&change, lookup, &mut wanted);
            if result.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        result?;
        decoded.map_err(damaged)?;
        if wanted.is_empty() { Ok(()) } else { self.scan(wanted) }
    }

    fn change(
        &mut self,
        change: &Change<'_>,
        lookup: Option<Lookup>,
        wanted: &mut Vec<Wanted>,
    ) -> ExecResult<()> {
        let (Some(lookup), Some(before)) = (lookup, &change.before) else {
            return change.after.as_ref().map_or(Ok(()), |image| self.insert(image));
        };
        let table = self.mapping.table.clone();
        if lookup == Lookup::Scan {
            let after = change.after.as_ref().map(|image| self.after(image)).transpose()?;
            wanted.push(Wanted { image: self.mapping.values(before)?, after });
            return Ok(());
        }
        let found = match (lookup, self.mapping.row(before)) {
            // The image's bytes are the row's: only the key's columns are decoded.
            (Lookup::Clustered, Some(row)) => by_clustered_key(self.trx, &table, table.clustered_key(&row)?)?,
            _ => by_key(self.trx, &table, lookup, &self.mapping.values(before)?)?,
        };
        let Some(at) = found else { return self.missing() };
        let Some(image) = &change.after else { return self.delete(&at) };
        match self.mapping.row(image) {
            Some(row) => {
                let new = table.decode(&row).map_err(damaged)?;
                self.update(&at, new, Some(row))
            }
            None => {
                let after = self.after(image)?;
                self.update_partly(&at, after)
            }
        }
    }

    fn missing(&self) -> ExecResult<()> {
        if self.rules.idempotent {
            return Ok(());
        }
        Err(SqlError::key_not_found(&self.mapping.table.def.name).into())
    }

    fn insert(&mut self, image: &RowImage<'_>) -> ExecResult<()> {
        let table = self.mapping.table.clone();
        let (values, row) = if let Some(row) = self.mapping.row(image) {
            (table.decode(&row).map_err(damaged)?, row)
        } else {
            let (mut values, missing) = self.mapping.new_row(image, self.state, self.trx)?;
            self.supply(&missing, &mut values)?;
            let row = table.rows.encode(&values)?;
            (values, row)
        };
        if table.def.is_sequence() {
            return put_sequence(self.trx, &table, row);
        }
        // Each refusal takes one row out of the way; there cannot be more than one for each index.
        for _ in 0..=table.keys.len() {
            match self.trx.insert_row(&table, &values, row.clone())? {
                InsertOutcome::Inserted => return Ok(()),
                InsertOutcome::Duplicate(found) => self.make_way(&table, &found, &values)?,
            }
        }
        Err(SqlError::unknown_error().into())
    }

    /// A row is where another is to be: it goes, or it is an error.
    fn make_way(&mut self, table: &Arc<Table>, found: &Duplicate, values: &[Value]) -> ExecResult<()> {
        if !self.rules.idempotent && !self.view.may_replace() {
            return Err(duplicate_error(table, found.index, values).into());
        }
        self.delete(&found.existing)
    }

    fn delete(&mut self, at: &RowAt) -> ExecResult<()> {
        let table = self.mapping.table.clone();
        let old = table.decode(&at.row)?;
        self.trx.delete_row(&table, at, &old)
    }

    fn after(&self, image: &RowImage<'_>) -> SqlResult<After> {
        let diffs = image.json_diffs(self.view.table().shape()).map_err(damaged)?.into_iter();
        let diffs = diffs.map(|(column, diffs)| (column, Bytes::copy_from_slice(diffs.0))).collect();
        Ok(After { values: self.mapping.values(image)?, diffs })
    }

    /// The new row has the values that the image has, and for the rest those of the old one.
    fn update_partly(&mut self, at: &RowAt, after: After) -> ExecResult<()> {
        let table = self.mapping.table.clone();
        let old = table.decode(&at.row)?;
        let missing = after
            .values
            .iter()
            .enumerate()
            .filter(|(at, value)| value.is_none() && table.def.columns[*at].generated.is_some());
        let missing: Vec<usize> = missing.map(|(at, _)| at).collect();
        let values = after.values.into_iter().zip(old);
        let mut new: Vec<Value> = values.map(|(new, old)| new.unwrap_or(old)).collect();
        for (column, diffs) in after.diffs {
            if let Some(document) = new.get_mut(column) {
                *document =
                    changed(document, JsonDiffs(&diffs)).map_err(|error| refused(&table, column, &error))?;
            }
        }
        self.supply(&missing, &mut new)?;
        self.update(at, new, None)
    }

    fn update(&mut self, at: &RowAt, new: Vec<Value>, row: Option<Bytes>) -> ExecResult<()> {
        let table = self.mapping.table.clone();
        let old = table.decode(&at.row)?;
        let new_row = match row {
            Some(row) => row,
            None => table.rows.encode(&new)?,
        };
        let changed = old
            .iter()
            .zip(&new)
            .enumerate()
            .filter(|(_, (old, new))| old != new)
            .fold(0u64, |bits, (column, _)| bits | 1 << (column % 64));
        for _ in 0..=table.keys.len() {
            let change = RowChange { at, old: &old, new: &new, new_row: &new_row, changed, following: None };
            match self.trx.update_row(&table, &change)? {
                None => return Ok(()),
                Some(found) => self.make_way(&table, &found, &new)?,
            }
        }
        Err(SqlError::unknown_error().into())
    }

    /// Computes those of the missing columns that the table's definition has an expression for.
    fn supply(&mut self, missing: &[usize], values: &mut Vec<Value>) -> ExecResult<()> {
        if missing.is_empty() {
            return Ok(());
        }
        let catalog = self.trx.catalog();
        let Some(expressions) = self.mapping.expressions(self.state, &catalog)? else { return Ok(()) };
        let mut row = NewRow { values, number: 1, ignore: false };
        expressions.supply(|at| missing.contains(&at), &mut row, self.state, self.trx)
    }

    /// Reads the table once and changes every row that is wanted.
    fn scan(&mut self, wanted: Vec<Wanted>) -> ExecResult<()> {
        let table = self.mapping.table.clone();
        let mut left = wanted.len();
        let mut index: HashMap<Bytes, VecDeque<Wanted>> = HashMap::with_capacity(left);
        // Every change of an event knows the same columns.
        let known: Vec<bool> = wanted[0].image.iter().map(Option::is_some).collect();
        for change in wanted {
            let key = hash_key(&table, change.image.iter().map(|value| value.clone().unwrap_or_default()))?;
            index.entry(key).or_default().push_back(change);
        }
        let whole = known.iter().all(|known| *known);
        let mut range = whole_index(&table, 0);
        self.trx.begin_scan(&table, &range, LockMode::Exclusive)?;
        loop {
            let mut found = Vec::new();
            let (lock, wait) = (LockMode::Exclusive, WaitPolicy::Wait);
            let done = self.trx.scan(&table, 0, &mut range, lock, wait, BATCH, &mut found)?;
            for at in found {
                let key = if whole {
                    at.row.clone()
                } else {
                    let values = table.decode(&at.row)?.into_iter().zip(&known);
                    hash_key(&table, values.map(|(value, known)| if *known { value } else { Value::Null }))?
                };
                let Some(change) = index.get_mut(&key).and_then(VecDeque::pop_front) else { continue };
                match change.after {
                    None => self.delete(&at)?,
                    Some(after) => self.update_partly(&at, after)?,
                }
                left -= 1;
                if left == 0 {
                    return Ok(());
                }
            }
            if done {
                return self.missing();
            }
        }
    }
}

/// A document with changes; one that we keep as text, too.
fn changed(document: &Value, diffs: JsonDiffs<'_>) -> Result<Value, JsonDiffError> {
    let elsewhere = || JsonDiffError::Elsewhere("$".into());
    match document {
        Value::Json(binary) => Ok(Value::Json(diffs.apply(binary)?)),
        Value::Bytes(text) => {
            let mut json = Json::parse(text).map_err(|_| elsewhere())?;
            diffs.apply_to(&mut json)?;
            let mut text = Vec::new();
            json.write_text(&mut text);
            Ok(Value::Bytes(text.into()))
        }
        _ => Err(elsewhere()),
    }
}

/// Changes of a document that are damaged (3649), or not for the one that is there (3648).
fn refused(table: &Table, column: usize, error: &JsonDiffError) -> SqlError {
    let column = table.def.columns.get(column).map_or("", |column| &column.name);
    let place = format!("Table: {}, column: {column}", table.def.name);
    match error {
        JsonDiffError::Damaged(_) => {
            SqlError::new(3649, b"HY000", format!("Corrupted JSON diff for {place}."))
        }
        JsonDiffError::Elsewhere(_) => {
            SqlError::new(3648, b"HY000", format!("Could not apply JSON diff. {place} ({error})."))
        }
    }
}

/// The key that tells rows apart: their encoding, with NULL for what is not known.
fn hash_key(table: &Table, values: impl Iterator<Item = Value>) -> SqlResult<Bytes> {
    let values: Vec<Value> = values.collect();
    debug_assert_eq!(values.len(), table.def.columns.len());
    table.rows.encode(&values)
}
