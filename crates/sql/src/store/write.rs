//! Row changes: the clustered row, its index entries, unique checks, locks, and the event.
//!
//! Every key that appears is locked as an insert (so that range locks see it), every unique key
//! that disappears is locked too (so that nobody reuses its value before the commit). All checks
//! come before the first write: a refused row leaves nothing behind.

use super::foreign_keys;
use super::lock::LockSet;
use super::locking_scan::LockingRead;
use super::range::RowAt;
use super::statement::{Attempt, StatementScope};
use super::temp::Parts;
use super::trx::{ROW_TICKS, Trx};
use crate::catalog::Table;
use crate::catalog::codec::Entry;
use crate::error::{ExecResult, SqlError};
use crate::storage::WaitPolicy;
use bytes::Bytes;
use omnibus_locks::{RowMode, TableMode};
use omnibus_value::Value;
use smallvec::SmallVec;
use std::sync::Arc;

/// The row that is in the way of another.
#[derive(Clone, Debug)]
pub struct Duplicate {
    /// Position of the index that refuses.
    pub index: usize,
    /// The row that is there, locked exclusively.
    pub existing: RowAt,
}

/// The outcome of an insert.
#[derive(Debug)]
pub enum InsertOutcome {
    /// It is in.
    Inserted,
    /// A unique key refused it; nothing was written.
    Duplicate(Duplicate),
}

/// A row's image before and after an update.
#[derive(Clone, Copy, Debug)]
pub struct RowChange<'a> {
    /// Where the old row is.
    pub at: &'a RowAt,
    /// Its values.
    pub old: &'a [Value],
    /// The new values, of the columns' types.
    pub new: &'a [Value],
    /// The new row, encoded.
    pub new_row: &'a Bytes,
    /// Bit n % 64 is set if column n changes.
    pub changed: u64,
    /// The foreign key that it changes because of, if it follows a row of another table.
    pub following: Option<usize>,
}

impl Trx {
    /// Prepares for changing rows of a table.
    ///
    /// # Errors
    /// Table lock waits; 1792 in a READ ONLY transaction.
    pub fn start_write(&mut self, table: &Arc<Table>) -> ExecResult<()> {
        if table.temporary {
            return Ok(self.branch.check_active()?);
        }
        if self.transaction.characteristics.read_only {
            return Err(SqlError::cant_execute_in_read_only_transaction().into());
        }
        self.lock_table(table, TableMode::IntentExclusive)?;
        foreign_keys::start_relations(self, table)
    }

    /// Inserts a row. `values` are all columns, of the columns' types; `row` is their encoding.
    ///
    /// # Errors
    /// Lock waits, a full trx cache.
    pub fn insert_row(
        &mut self,
        table: &Arc<Table>,
        values: &[Value],
        row: Bytes,
    ) -> ExecResult<InsertOutcome> {
        if table.temporary {
            self.budget.spend(ROW_TICKS)?;
            let (memory, room) = (&self.transaction.memory, &self.statement.attempt.room);
            return self.temp.insert(
                table,
                values,
                row,
                Parts { counters: &mut self.counters, memory, room },
            );
        }
        count_change(self)?;
        let row_id = if table.def.hidden_key { Some(self.counters.next_row_id(table)?) } else { None };
        let key = match row_id {
            Some(id) => table.keys[0].hidden(id),
            None => table.keys[0].entry(values, &[]).key,
        };
        self.locks.rows.lock_new_key(&mut self.statement, &key)?;
        if row_id.is_none()
            && let Some(existing) = self.view.newest(&mut self.transaction.writes, &key)?
        {
            return Ok(InsertOutcome::Duplicate(Duplicate {
                index: 0,
                existing: RowAt { key, row: existing },
            }));
        }
        let mut entries = Vec::with_capacity(table.keys.len() - 1);
        for (index, codec) in table.keys.iter().enumerate().skip(1) {
            let entry = codec.entry(values, &key);
            self.locks.rows.lock_new_key(&mut self.statement, &entry.key)?;
            if entry.unique
                && let Some(existing) = self.locking().row_of_entry(table, index, &entry.key)?
            {
                return Ok(InsertOutcome::Duplicate(Duplicate { index, existing }));
            }
            entries.push(entry);
        }
        foreign_keys::check_parents(self, table, None, values, None)?;
        for entry in entries {
            // Nobody looks for it by its key before the transaction reads the index.
            match entry.unique {
                true => self.transaction.writes.put(entry.key, entry.value),
                false => self.transaction.writes.put_loose(entry.key, entry.value),
            }
        }
        self.counters.note_auto_value(table, values)?;
        self.transaction.count_row(&table.state, 1);
        let Attempt { foreign_keys, logging, .. } = &mut self.statement.attempt;
        self.log.events.unchecked(foreign_keys.follows());
        self.log.events.insert(logging, &mut self.log.cache, table, row_id, &row)?;
        self.transaction.writes.put(key, row);
        self.locks.rows.changed_row();
        table.usage.insert();
        Ok(InsertOutcome::Inserted)
    }

    /// Deletes a row that was read under an exclusive lock.
    ///
    /// # Errors
    /// Lock waits, a full trx cache.
    pub fn delete_row(&mut self, table: &Arc<Table>, at: &RowAt, values: &[Value]) -> ExecResult<()> {
        if table.temporary {
            self.budget.spend(ROW_TICKS)?;
            return self.temp.delete(table, at, values);
        }
        count_change(self)?;
        let mut gone = Vec::with_capacity(table.keys.len() - 1);
        for codec in table.keys.iter().skip(1) {
            let entry = codec.entry(values, &at.key);
            self.locks.rows.lock_old_entry(&mut self.statement, &entry)?;
            gone.push(entry.key);
        }
        foreign_keys::follow(self, table, at, values, None)?;
        for key in gone {
            self.transaction.writes.delete(key);
        }
        self.counters.cover_auto_value(table, values, &mut self.transaction)?;
        self.transaction.count_row(&table.state, -1);
        let Attempt { foreign_keys, logging, .. } = &mut self.statement.attempt;
        self.log.events.unchecked(foreign_keys.follows());
        self.log.events.delete(logging, &mut self.log.cache, table, hidden_id(table, &at.key), &at.row)?;
        self.transaction.writes.delete(at.key.clone());
        self.locks.rows.changed_row();
        table.usage.delete();
        Ok(())
    }

    /// Changes a row that was read under an exclusive lock. `Some` if a unique key refuses; then
    /// nothing was written.
    ///
    /// # Errors
    /// Lock waits, a full trx cache.
    pub fn update_row(
        &mut self,
        table: &Arc<Table>,
        change: &RowChange<'_>,
    ) -> ExecResult<Option<Duplicate>> {
        if table.temporary {
            self.budget.spend(ROW_TICKS)?;
            let (memory, room) = (&self.transaction.memory, &self.statement.attempt.room);
            return self.temp.update(table, change, Parts { counters: &mut self.counters, memory, room });
        }
        count_change(self)?;
        let (old_key, mut key) = (&change.at.key, change.at.key.clone());
        if table.keys[0].reads(change.changed) {
            key = table.keys[0].entry(change.new, &[]).key;
        }
        let moved = key != *old_key;
        if moved {
            self.locks.rows.lock_new_key(&mut self.statement, &key)?;
            if let Some(existing) = self.view.newest(&mut self.transaction.writes, &key)? {
                return Ok(Some(Duplicate { index: 0, existing: RowAt { key, row: existing } }));
            }
        }
        let entries = match self.locking().changed_entries(table, change, &key)? {
            Ok(entries) => entries,
            Err(duplicate) => return Ok(Some(duplicate)),
        };
        // A row that moves is checked as one that is new.
        let before = (!moved).then_some(change.old);
        foreign_keys::check_parents(self, table, before, change.new, change.following)?;
        foreign_keys::follow(self, table, change.at, change.old, Some(change.new))?;
        for (old, new) in entries {
            if old != new.key {
                self.transaction.writes.delete(old);
            }
            match new.unique {
                true => self.transaction.writes.put(new.key, new.value),
                false => self.transaction.writes.put_loose(new.key, new.value),
            }
        }
        if table.auto_column.is_some_and(|column| change.changed & (1 << (column % 64)) != 0) {
            self.counters.cover_auto_value(table, change.old, &mut self.transaction)?;
            self.counters.note_auto_value(table, change.new)?;
        }
        let Attempt { foreign_keys, logging, .. } = &mut self.statement.attempt;
        self.log.events.unchecked(foreign_keys.follows());
        self.log.events.update(
            logging,
            &mut self.log.cache,
            table,
            hidden_id(table, old_key),
            &change.at.row,
            change.new_row,
        )?;
        if moved {
            self.transaction.writes.delete(old_key.clone());
        }
        self.transaction.writes.put(key, change.new_row.clone());
        self.locks.rows.changed_row();
        table.usage.update();
        Ok(None)
    }
}

/// Counts a row that is changed next.
#[inline]
fn count_change(trx: &mut Trx) -> ExecResult<()> {
    trx.transaction.memory.logged(trx.log.held());
    trx.transaction.touch(&trx.statement, &trx.locks.rows)
}

/// Keys of index entries that an update takes away, each with the entry that takes its place.
type ChangedEntries = SmallVec<[(Bytes, Entry); 2]>;

impl LockingRead<'_> {
    /// The keys of the index entries that an update takes away, each with the entry that takes its place, all locked; or the row that a
    /// unique key refuses it for. `key` is the clustered key after it.
    fn changed_entries(
        &mut self,
        table: &Table,
        change: &RowChange<'_>,
        key: &Bytes,
    ) -> ExecResult<Result<ChangedEntries, Duplicate>> {
        let old_key = &change.at.key;
        let moved = key != old_key;
        // Own reads of the snapshot find the row by its entries in the write set: all of them, where the snapshot has others.
        let ahead = self.view.is_behind(&self.transaction.writes, change.at)?;
        let mut entries = ChangedEntries::new();
        for (index, codec) in table.keys.iter().enumerate().skip(1) {
            if !moved && !ahead && !codec.reads(change.changed) {
                continue;
            }
            let old = codec.entry(change.old, old_key);
            let new = codec.entry(change.new, key);
            if old.key == new.key && !moved {
                if ahead {
                    entries.push((old.key, new));
                }
                continue;
            }
            self.locks.lock_old_entry(self.statement, &old)?;
            if old.key != new.key {
                self.locks.lock_new_key(self.statement, &new.key)?;
                if new.unique
                    && let Some(existing) = self.row_of_entry(table, index, &new.key)?
                {
                    return Ok(Err(Duplicate { index, existing }));
                }
            }
            entries.push((old.key, new));
        }
        Ok(Ok(entries))
    }
}

impl LockSet {
    /// Locks an entry that goes, if its key is unique.
    fn lock_old_entry(&self, statement: &mut StatementScope, entry: &Entry) -> ExecResult<()> {
        if entry.unique {
            self.lock_key(statement, &entry.key, RowMode::Exclusive, WaitPolicy::Wait)?;
        }
        Ok(())
    }
}

/// The hidden row id in a clustered key, for tables that have one.
fn hidden_id(table: &Table, key: &[u8]) -> Option<u64> {
    if !table.def.hidden_key {
        return None;
    }
    key.get(4..12).and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes)
}

/// Error 1062 for a row that a key refuses.
///
/// # Errors
/// Never; damage in the row shows as an empty entry.
#[must_use]
pub fn duplicate_error(table: &Table, index: usize, values: &[Value]) -> SqlError {
    let parts = &table.def.indexes[index].parts;
    let entry = parts
        .iter()
        .map(|part| {
            let column = &table.def.columns[part.column];
            crate::catalog::codec::text(&values[part.column], &column.ty)
        })
        .collect::<Vec<_>>()
        .join("-");
    let entry: String = entry.chars().take(64).collect();
    SqlError::dup_entry(entry, format!("{}.{}", table.def.name, table.def.indexes[index].name))
}
