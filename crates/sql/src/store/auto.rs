//! Counters of a table: AUTO_INCREMENT values and hidden row ids.
//!
//! Both live in memory and are read from the table when first needed. A hidden id may be used again
//! after its row is gone. An AUTO_INCREMENT value may not, even when the greatest one was deleted
//! before a restart: the first transaction that deletes an uncovered value also writes a counter
//! row, and later deletions below that counter write nothing.

use super::counters::{Counters, Covers};
use super::range::KeyRange;
use super::statement::StatementScope;
use super::transaction::Transaction;
use crate::catalog::{Table, persist};
use crate::error::{SqlError, SqlResult};
use bytes::Bytes;
use omnibus_engine::WriteSet;
use omnibus_value::{ColumnKind, Value};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The greatest value an AUTO_INCREMENT column can hold.
pub(crate) fn auto_max(table: &Table) -> u64 {
    use ColumnKind as K;
    let Some(column) = table.auto_column else { return 0 };
    let ty = &table.def.columns[column].ty;
    let bits = match ty.kind {
        K::TinyInt => 8,
        K::SmallInt => 16,
        K::MediumInt => 24,
        K::Int => 32,
        K::Float => return 1 << 24,
        K::Double => return 1 << 53,
        _ => 64,
    };
    let bits = if ty.unsigned { bits } else { bits - 1 };
    if bits == 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// A positive integer out of an AUTO_INCREMENT column; others do not count.
pub(crate) fn auto_value(value: &Value) -> u64 {
    match value {
        Value::Int(value) => u64::try_from(*value).unwrap_or(0),
        Value::UInt(value) => *value,
        Value::Float(value) if *value > 0.0 => *value as u64,
        Value::Double(value) if *value > 0.0 => *value as u64,
        _ => 0,
    }
}

impl Counters {
    /// The next AUTO_INCREMENT value of a table, without taking it.
    ///
    /// # Errors
    /// The table could not be read.
    pub fn auto_increment(&mut self, table: &Arc<Table>) -> SqlResult<u64> {
        let counter = &table.state.auto_increment;
        let next = counter.load(Ordering::Acquire);
        if next != 0 {
            return Ok(next);
        }
        let stored = self.greatest_auto_value(table)?.saturating_add(1);
        let covered = self.covered_auto_value(table)?;
        table.state.auto_covered.fetch_max(covered, Ordering::AcqRel);
        // Whoever was faster has the same value, or a later one.
        counter.fetch_max(stored.max(covered).max(1), Ordering::AcqRel);
        Ok(counter.load(Ordering::Acquire))
    }

    /// Takes `count` values for a statement, with the session's increment and offset; returns the first.
    ///
    /// # Errors
    /// 1467 when there is none left.
    pub fn take_auto_values(
        &mut self,
        statement: &mut StatementScope,
        table: &Arc<Table>,
        count: u64,
        increment: u64,
        offset: u64,
    ) -> SqlResult<u64> {
        // A statement that is run again would leave gaps if it took new ones.
        let again = statement.auto.take_again(|(id, many, _)| *id == table.def.id && *many == count);
        if let Some((_, _, first)) = again {
            return Ok(first);
        }
        let first = self.new_auto_values(table, count, increment, offset)?;
        statement.auto.push((table.def.id, count, first));
        Ok(first)
    }

    pub(super) fn new_auto_values(
        &mut self,
        table: &Arc<Table>,
        count: u64,
        increment: u64,
        offset: u64,
    ) -> SqlResult<u64> {
        self.auto_increment(table)?;
        let max = auto_max(table);
        let counter = &table.state.auto_increment;
        let mut next = counter.load(Ordering::Acquire);
        loop {
            let first = align(next, increment, offset).ok_or_else(SqlError::autoinc_read_failed)?;
            if first > max {
                // The last value comes again and is refused as a duplicate, as in MySQL. While there are others, the session's
                // increment and offset have led past it.
                return match next > max {
                    _ if max == u64::MAX => Err(SqlError::autoinc_read_failed()),
                    true => Ok(max),
                    false => Ok(first),
                };
            }
            let span = count.max(1).saturating_mul(increment.max(1));
            let after = first.saturating_add(span).saturating_sub(increment.max(1)).saturating_add(1);
            match counter.compare_exchange_weak(next, after, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) if first == u64::MAX => return Err(SqlError::autoinc_read_failed()),
                Ok(_) => return Ok(first),
                Err(now) => next = now,
            }
        }
    }

    /// An inserted or updated row holds a value: later ones must be greater.
    pub(super) fn note_auto_value(&mut self, table: &Arc<Table>, values: &[Value]) -> SqlResult<()> {
        let Some(column) = table.auto_column else { return Ok(()) };
        let value = auto_value(&values[column]);
        if value == 0 {
            return Ok(());
        }
        let counter = &table.state.auto_increment;
        if counter.load(Ordering::Acquire) > value {
            return Ok(());
        }
        self.auto_increment(table)?;
        counter.fetch_max(value.saturating_add(1), Ordering::AcqRel);
        Ok(())
    }

    /// A row with this value goes away: make sure that the counter does not.
    pub(super) fn cover_auto_value(
        &mut self,
        table: &Arc<Table>,
        values: &[Value],
        transaction: &mut Transaction,
    ) -> SqlResult<()> {
        let Some(column) = table.auto_column else { return Ok(()) };
        let value = auto_value(&values[column]);
        if value == 0 || value < table.state.auto_covered.load(Ordering::Acquire) {
            return Ok(());
        }
        let covers = |covers: &&Covers| Arc::ptr_eq(&covers.state, &table.state) && value < covers.value;
        for covers in transaction.covers.iter().filter(covers) {
            // A rolled back statement takes its counter row along.
            if let Some(key) = &covers.keys[0]
                && transaction.writes.has(key)?
            {
                return Ok(());
            }
        }
        let next = self.auto_increment(table)?;
        transaction.write_auto_counter(table, next);
        Ok(())
    }

    /// The least value that ALTER TABLE may lower the counter to.
    pub(crate) fn least_auto_increment(&mut self, table: &Arc<Table>) -> SqlResult<u64> {
        Ok(self.greatest_auto_value(table)?.saturating_add(1))
    }

    /// The counter row that ALTER TABLE writes takes the place of every other.
    pub(crate) fn replace_auto_counter(&self, table: &Table, next: u64, writes: &mut WriteSet) {
        let range = persist::counter_range(table.def.id);
        let latest = self.shared.port.latest();
        let old: Vec<Bytes> = latest
            .scan(Bound::Included(&range.0), Bound::Excluded(&range.1), false)
            .filter_map(|pair| pair.ok().map(|(key, _)| key))
            .collect();
        for key in old {
            writes.delete(key);
        }
        writes.put(persist::counter_key(table.def.id, next), Bytes::new());
    }

    /// The greatest value in the column, from the index that starts with it.
    pub(super) fn greatest_auto_value(&mut self, table: &Arc<Table>) -> SqlResult<u64> {
        let Some(column) = table.auto_column else { return Ok(0) };
        let first_is_auto =
            |index: &crate::catalog::Index| index.parts.first().is_some_and(|part| part.column == column);
        let Some(index) = table.def.indexes.iter().position(first_is_auto) else { return Ok(0) };
        let descending = table.def.indexes[index].parts[0].descending;
        let Some((key, value)) = self.edge_pair(table, index, !descending)? else { return Ok(0) };
        if index == 0 {
            return Ok(auto_value(&table.decode_column(&value, column)?));
        }
        let clustered = table.clustered_of_entry(index, &key, &value)?;
        match self.shared.port.latest().get(&clustered)? {
            Some(row) => Ok(auto_value(&table.decode_column(&row, column)?)),
            None => Ok(0),
        }
    }

    /// The first or last committed pair of an index.
    pub(super) fn edge_pair(
        &self,
        table: &Table,
        index: usize,
        last: bool,
    ) -> SqlResult<Option<(Bytes, Bytes)>> {
        let (from, to) = table.whole_index(index);
        let latest = self.shared.port.latest();
        let pair = latest.scan(Bound::Included(&from), Bound::Excluded(&to), last).next().transpose()?;
        Ok(pair)
    }

    pub(super) fn covered_auto_value(&self, table: &Table) -> SqlResult<u64> {
        let range = persist::counter_range(table.def.id);
        let latest = self.shared.port.latest();
        let last =
            latest.scan(Bound::Included(&range.0), Bound::Excluded(&range.1), true).next().transpose()?;
        Ok(last.map_or(0, |(key, _)| persist::counter_value(&key)))
    }

    /// A new hidden row id.
    pub(super) fn next_row_id(&mut self, table: &Arc<Table>) -> SqlResult<u64> {
        let counter = &table.state.row_id;
        if counter.load(Ordering::Acquire) == 0 {
            let greatest = match self.edge_pair(table, 0, true)? {
                Some((key, _)) => {
                    key.get(4..12).and_then(|id| id.try_into().ok()).map_or(0, u64::from_be_bytes)
                }
                None => 0,
            };
            let _ = counter.compare_exchange(0, greatest + 1, Ordering::AcqRel, Ordering::Acquire);
        }
        Ok(counter.fetch_add(1, Ordering::AcqRel))
    }
}

impl Transaction {
    /// Persists the counter of a table with its commit.
    fn write_auto_counter(&mut self, table: &Arc<Table>, next: u64) {
        let before = table.state.auto_covered.load(Ordering::Acquire);
        let old = (before != 0 && before < next).then(|| persist::counter_key(table.def.id, before));
        if let Some(old) = &old {
            self.writes.delete(old.clone());
        }
        let key = persist::counter_key(table.def.id, next);
        self.writes.put(key.clone(), Bytes::new());
        self.covers.push(Covers { state: table.state.clone(), value: next, keys: [Some(key), old] });
    }
}

/// The first value of the series `offset + n * increment` that is at least `next`.
fn align(next: u64, increment: u64, offset: u64) -> Option<u64> {
    let increment = increment.max(1);
    if increment == 1 {
        return Some(next);
    }
    // MySQL ignores an offset that is greater than the increment.
    let offset = if offset > increment { 0 } else { offset };
    if next <= offset {
        return Some(offset);
    }
    let steps = (next - offset).div_ceil(increment);
    offset.checked_add(steps.checked_mul(increment)?)
}

/// The range of a whole index, for scans that start anywhere.
pub(crate) fn whole_index(table: &Table, index: usize) -> KeyRange {
    let (from, to) = table.whole_index(index);
    KeyRange { from: Bound::Included(from), to: Bound::Excluded(to), reverse: false }
}
