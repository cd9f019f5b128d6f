//! A table: its definition, and everything the hot path would otherwise compute per row.
//!
//! `TableDef` is what DDL builds and what is persisted. [`Table`] wraps it with derived data and
//! with [`TableState`], the counters that survive an ALTER.

use super::usage::Usage;
use super::{Check, Column, ForeignKey, Histogram, Index, IndexKind, Statistics};
use crate::catalog::codec::{KeyCodec, RowCodec, RowVersions};
use crate::error::SqlResult;
use bytes::Bytes;
use omnibus_engine::CommitNo;
use omnibus_value::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The definition of CREATE TABLE, with the ids the catalog gave it.
#[derive(Clone, Debug)]
pub struct TableDef {
    /// Never reused; also the table id of TABLE_MAP events.
    pub id: u64,
    /// Schema name.
    pub db: Arc<str>,
    /// Table name.
    pub name: Arc<str>,
    /// In order.
    pub columns: Vec<Column>,
    /// The clustered index first (always there; see `hidden_key`), then UNIQUE ones, then others.
    pub indexes: Vec<Index>,
    /// In order.
    pub foreign_keys: Vec<ForeignKey>,
    /// In order.
    pub checks: Vec<Check>,
    /// No PRIMARY KEY and no UNIQUE key of NOT NULL columns: index 0 is clustered on a hidden
    /// 8-byte row id, has no parts and no name.
    pub hidden_key: bool,
    /// The default collation id.
    pub collation: u16,
    /// COMMENT.
    pub comment: Arc<str>,
    /// ENGINE, as stored.
    pub engine: Arc<str>,
    /// ROW_FORMAT and the like, remembered for SHOW CREATE TABLE only: "NAME=value" in order.
    pub options: Vec<Arc<str>>,
    /// Seconds since the epoch.
    pub created: u64,
    /// The forms of rows before the columns changed.
    pub versions: RowVersions,
}

impl TableDef {
    /// The same for a table without rows of an earlier form.
    #[must_use]
    pub fn of_new_rows(&self) -> TableDef {
        TableDef { versions: RowVersions::default(), ..self.clone() }
    }

    /// Whether it is a sequence.
    #[must_use]
    pub fn is_sequence(&self) -> bool {
        self.options.iter().any(|option| **option == *super::sequence::OPTION)
    }
}

/// Counters that outlive one definition of a table.
#[derive(Debug, Default)]
pub struct TableState {
    /// The next AUTO_INCREMENT value; 0 = not read from the table yet.
    pub(crate) auto_increment: AtomicU64,
    /// The AUTO_INCREMENT value that a committed counter row covers: lower ones may be deleted
    /// without writing a new one.
    pub(crate) auto_covered: AtomicU64,
    /// The next hidden row id; 0 = not read from the table yet.
    pub(crate) row_id: AtomicU64,
    /// Rows, as estimated for the planner and SHOW TABLE STATUS.
    pub(crate) rows_estimate: AtomicU64,
    /// Some foreign key names it, or has done so: changes of its rows ask the catalog.
    pub(crate) referenced: AtomicBool,
    /// Somebody is counting it in the background, or has failed to.
    pub(crate) counting: AtomicBool,
    /// Numbers that were taken out of it, if it is a sequence.
    pub(crate) sequence: super::sequence::SequenceState,
    /// The newest counts of its rows and values.
    pub(crate) statistics: parking_lot::RwLock<Option<Arc<Statistics>>>,
    /// Histograms by the names of their columns in lower case.
    pub(crate) histograms: parking_lot::RwLock<BTreeMap<String, Arc<Histogram>>>,
}

/// A table that statements can use.
#[derive(Debug)]
pub struct Table {
    /// The definition.
    pub def: TableDef,
    /// Position of the AUTO_INCREMENT column.
    pub auto_column: Option<usize>,
    /// Stored rows <-> values.
    pub rows: RowCodec,
    /// The table as row events describe it.
    pub binlog: Arc<omnibus_replication::generate::TableDef>,
    /// Keys of each index, as `def.indexes`.
    pub keys: Vec<KeyCodec>,
    /// Columns that the clustered key reads.
    pub key_columns: Vec<usize>,
    /// It is one session's, in that session's memory.
    pub temporary: bool,
    /// Whether expressions of the definition are evaluated when a row is written.
    pub has_expressions: bool,
    /// Whether any column has ON UPDATE CURRENT_TIMESTAMP.
    pub has_on_update: bool,
    /// Shared with earlier and later definitions of the same table.
    pub state: Arc<TableState>,
    /// The counts of reads and changes of its rows.
    pub usage: Usage,
    /// Rows of it that plans are made by. Not of other definitions: they may read them otherwise.
    pub(crate) sample: parking_lot::RwLock<Option<Arc<super::RowSample>>>,
    /// The table as it is here exists since this commit; older snapshots must not read it
    /// (error 1412). Zero after a restart.
    pub(crate) valid_from: AtomicU64,
    /// Dropped or replaced by a newer definition.
    pub(crate) stale: AtomicBool,
}

impl Table {
    /// Derives everything from the definition.
    #[must_use]
    pub fn new(def: TableDef, state: Arc<TableState>) -> Table {
        let rows = RowCodec::new(&def.columns, &def.versions);
        let keys = (0..def.indexes.len()).map(|at| KeyCodec::new(&def, at)).collect();
        let key_columns = def.indexes[0].parts.iter().map(|part| part.column).collect();
        Table {
            auto_column: def.columns.iter().position(|column| column.auto_increment),
            temporary: false,
            has_expressions: def.checks.iter().any(|check| check.enforced)
                || def.columns.iter().any(Column::is_computed),
            has_on_update: def.columns.iter().any(|column| column.on_update_now),
            binlog: Arc::new(binlog_def(&def)),
            rows,
            keys,
            key_columns,
            usage: Usage::new(def.indexes.len()),
            state,
            sample: parking_lot::RwLock::default(),
            valid_from: AtomicU64::new(0),
            stale: AtomicBool::new(false),
            def,
        }
    }

    /// A temporary table: its counters begin here, whatever an engine has.
    #[must_use]
    pub fn temporary(def: TableDef, auto_increment: u64) -> Table {
        let state = TableState {
            auto_increment: AtomicU64::new(auto_increment.max(1)),
            auto_covered: AtomicU64::new(u64::MAX),
            row_id: AtomicU64::new(1),
            ..TableState::default()
        };
        Table { temporary: true, ..Table::new(def, Arc::new(state)) }
    }

    /// Its columns, in order.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.def.columns
    }

    /// Its indexes; the first is clustered.
    #[must_use]
    pub fn indexes(&self) -> &[Index] {
        &self.def.indexes
    }

    /// The PRIMARY KEY, if one was declared.
    #[must_use]
    pub fn primary(&self) -> Option<&Index> {
        self.def.indexes.first().filter(|index| index.kind == IndexKind::Primary)
    }

    /// The position of a column, by name.
    #[must_use]
    pub fn column_index(&self, name: &str) -> Option<usize> {
        self.def.columns.iter().position(|column| same_name(&column.name, name) && !column.is_hidden())
    }

    /// The position of an index, by name.
    #[must_use]
    pub fn index_named(&self, name: &str) -> Option<usize> {
        self.def.indexes.iter().position(|index| !index.name.is_empty() && same_name(&index.name, name))
    }

    /// All values of a stored row.
    ///
    /// # Errors
    /// The stored bytes are damaged.
    pub fn decode(&self, row: &Bytes) -> SqlResult<Vec<Value>> {
        self.rows.decode(row)
    }

    /// As `decode`, into a reused vector.
    ///
    /// # Errors
    /// The stored bytes are damaged.
    pub fn decode_into(&self, row: &Bytes, values: &mut Vec<Value>) -> SqlResult<()> {
        self.rows.decode_into(row, values)
    }

    /// One value of a stored row.
    ///
    /// # Errors
    /// The stored bytes are damaged.
    pub fn decode_column(&self, row: &Bytes, column: usize) -> SqlResult<Value> {
        self.rows.decode_column(row, column)
    }

    /// A column of text of a stored row where it lies; `None` if it must be decoded, `Some(None)` if it is NULL.
    ///
    /// # Errors
    /// The stored bytes are damaged.
    pub fn text_of<'r>(&self, row: &'r [u8], column: usize) -> SqlResult<Option<Option<&'r [u8]>>> {
        self.rows.text(row, column)
    }

    /// A key prefix in index `index`: its space, then the given leading values, which must already
    /// be of the columns' own types (`omnibus_value` casts). For the clustered index with all parts
    /// given, this is the row's key.
    #[must_use]
    pub fn key_prefix(&self, index: usize, values: &[Value]) -> Bytes {
        self.keys[index].prefix(values)
    }

    /// The range of a whole index: its space, and the first key behind it.
    #[must_use]
    pub fn whole_index(&self, index: usize) -> (Bytes, Bytes) {
        let space = self.def.indexes[index].space;
        let key = |space: u32| Bytes::copy_from_slice(&space.to_be_bytes());
        (key(space.0), key(space.0 + 1))
    }

    /// Rows, roughly, for choosing plans.
    #[must_use]
    pub fn rows_estimate(&self) -> u64 {
        self.state.rows_estimate.load(Ordering::Relaxed)
    }

    /// How many different values the leading `parts` of an index have, if that has been counted.
    #[must_use]
    pub fn cardinality(&self, index: usize, parts: usize) -> Option<u64> {
        let statistics = self.state.statistics.read();
        let space = self.def.indexes.get(index)?.space.0;
        statistics.as_ref()?.indexes.get(&space)?.distinct.get(parts.checked_sub(1)?).copied()
    }

    /// Whether the entries of an index have the values of all these columns.
    #[must_use]
    pub fn covers(&self, index: usize, columns: &[u16]) -> bool {
        !self.def.indexes[index].clustered
            && columns.iter().all(|column| {
                let column = usize::from(*column);
                self.keys[index].decodes(column) || self.keys[0].decodes(column)
            })
    }

    /// The row that an entry of index `index` stands for, as far as the entry has it; NULL elsewhere.
    ///
    /// # Errors
    /// The entry is damaged.
    pub fn row_of_entry(&self, index: usize, key: &[u8], value: &[u8]) -> SqlResult<std::rc::Rc<[Value]>> {
        let mut values = vec![Value::Null; self.def.columns.len()];
        self.keys[index].values_of_entry(&self.keys[0], key, value, &mut values)?;
        Ok(values.into())
    }

    /// Its statistics, once counted.
    #[must_use]
    pub fn statistics(&self) -> Option<Arc<Statistics>> {
        self.state.statistics.read().clone()
    }

    /// The histogram of a column's values.
    #[must_use]
    pub fn histogram(&self, column: usize) -> Option<Arc<Histogram>> {
        let histograms = self.state.histograms.read();
        if histograms.is_empty() {
            return None;
        }
        histograms.get(&self.def.columns.get(column)?.name.to_lowercase()).cloned()
    }

    /// Whether a foreign key may name this table.
    #[must_use]
    pub fn may_be_referenced(&self) -> bool {
        self.state.referenced.load(Ordering::Acquire)
    }

    /// Whether this definition is no longer the current one.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.stale.load(Ordering::Acquire)
    }

    /// The commit that made this definition; zero if before the last start.
    #[must_use]
    pub fn valid_from(&self) -> CommitNo {
        CommitNo(self.valid_from.load(Ordering::Acquire))
    }

    /// "db.table", as some messages want it.
    #[must_use]
    pub fn qualified(&self) -> String {
        format!("{}.{}", self.def.db, self.def.name)
    }

    /// The clustered key that an entry of index `index` leads to.
    ///
    /// # Errors
    /// The entry is damaged.
    pub fn clustered_of_entry(&self, index: usize, key: &[u8], value: &[u8]) -> SqlResult<Bytes> {
        self.keys[index].clustered_of_entry(self.def.indexes[0].space.prefix(), key, value)
    }

    /// The key of the row in the clustered index, made from its stored bytes. Not for tables with
    /// a hidden key.
    ///
    /// # Errors
    /// The stored bytes are damaged.
    pub fn clustered_key(&self, row: &Bytes) -> SqlResult<Bytes> {
        self.keys[0].clustered(&self.rows, row)
    }
}

fn binlog_def(def: &TableDef) -> omnibus_replication::generate::TableDef {
    let mut builder =
        omnibus_replication::generate::TableDef::builder(def.id, def.db.as_bytes(), def.name.as_bytes());
    for column in def.columns.iter().filter(|column| !column.is_hidden()) {
        builder = builder.column_with(column.name.as_bytes(), &column.ty, column.nullable, !column.invisible);
    }
    let parts = def.indexes[0].parts.iter().map(|part| (part.column, part.prefix.unwrap_or(0)));
    builder.primary_key(parts).build()
}

/// The place of the first name that one before it is the same as, by `same_name`. Clients write lists of many thousands.
#[must_use]
pub fn first_double<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<usize> {
    first_again(names.into_iter().map(|name| {
        let folded = name.bytes().any(|byte| byte.is_ascii_uppercase() || byte >= 0x80);
        if folded { Cow::Owned(name.to_lowercase()) } else { Cow::Borrowed(name) }
    }))
}

/// The place of the first item that one before it is equal to.
#[must_use]
pub fn first_again<T: Hash + Eq>(items: impl IntoIterator<Item = T>) -> Option<usize> {
    let mut seen = HashSet::new();
    items.into_iter().position(|item| !seen.insert(item))
}

/// Column and index names are compared without case.
#[must_use]
pub fn same_name(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.eq_ignore_ascii_case(b) || (!a.is_ascii() && a.to_lowercase() == b.to_lowercase())
}
