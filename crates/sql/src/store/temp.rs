//! A session's temporary tables: their definitions and rows, in its memory and nowhere else.
//!
//! Rows are a write set over nothing, kept beside the transaction's own: statements and savepoints undo
//! it by marks, a commit moves the base that ROLLBACK goes back to. No locks, no events, no snapshot:
//! nobody else sees these rows, no log has them and no crash leaves any. Definitions come and go at
//! once, whatever becomes of the transaction, as in MySQL.
//!
//! Spaces and ids are the session's own and never used again in it, so what a dropped table leaves
//! behind is garbage that nothing refers to; it goes when the transaction ends.

use super::auto::whole_index;
use super::counters::Counters;
use super::memory::{Room, TrxMemory};
use super::overlay::read_batch;
use super::range::{KeyRange, RowAt};
use super::write::{Duplicate, InsertOutcome, RowChange};
use crate::api::KillFlag;
use crate::catalog::codec::Entry;
use crate::catalog::{Catalog, Table, TableDef};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::memory::Account;
use bytes::Bytes;
use omnibus_engine::{CommitNo, EngineError, Mark, Snapshot, SnapshotIter, SpaceId, WriteSet};
use parking_lot::Mutex;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Hidden writes that a commit does not bother to clear away.
const LITTER: usize = 4096;
/// First table id and first space number: far from every stored table's.
const FIRST_ID: u64 = 1 << 48;
const FIRST_SPACE: u32 = 1 << 27;

/// The next generation of any session, so that two sets that are exchanged never have the same.
static GENERATION: AtomicU64 = AtomicU64::new(1);

/// A set of temporary tables that belongs to no session just now.
#[derive(Default)]
pub struct TemporaryTables(TempStore);

impl TemporaryTables {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.tables.is_empty()
    }
}

/// See the module's remarks.
pub(crate) struct TempStore {
    rows: WriteSet,
    /// Where ROLLBACK goes back to.
    base: Option<Mark>,
    /// Each with what its definition takes.
    tables: Vec<(Arc<Table>, Account)>,
    /// Changes with every definition; plans are keyed by it. 0: there has never been one.
    generation: u64,
    next_table: u64,
    next_space: u32,
    /// Spaces whose rows are garbage.
    dropped: Vec<SpaceId>,
    /// The rows' part of the memory of the session that made them.
    account: Option<Account>,
    /// The catalog with these tables in it, and the version it was made from.
    overlay: Mutex<Option<(u64, Arc<Catalog>)>>,
}

impl Default for TempStore {
    fn default() -> Self {
        TempStore {
            rows: WriteSet::default(),
            base: None,
            tables: Vec::new(),
            generation: 0,
            next_table: FIRST_ID,
            next_space: FIRST_SPACE,
            dropped: Vec::new(),
            account: None,
            overlay: Mutex::new(None),
        }
    }
}

impl TempStore {
    /// The point to undo a statement to.
    pub(super) fn mark(&self) -> Mark {
        self.rows.mark()
    }

    /// Undoes a statement, never more than the transaction.
    pub(super) fn undo(&mut self, mark: Mark) {
        self.rows.rollback_to(self.base.map_or(mark, |base| base.max(mark)));
    }

    /// ROLLBACK.
    pub(super) fn rollback(&mut self) {
        let base = self.base.unwrap_or_else(|| WriteSet::default().mark());
        self.rows.rollback_to(base);
    }

    /// The transaction is over, and what is here now stays.
    pub(super) fn settle(&mut self) {
        if self.generation == 0 {
            return;
        }
        if !self.dropped.is_empty() || self.rows.entries() > 2 * self.rows.len() + LITTER {
            self.clear_away();
            let bytes = self.rows.memory();
            if let Some(account) = &mut self.account {
                account.shrink((account.used() as usize).saturating_sub(bytes));
            }
        }
        self.base = Some(self.rows.mark());
    }

    fn clear_away(&mut self) {
        let old = std::mem::take(&mut self.rows);
        let dropped = std::mem::take(&mut self.dropped);
        let gone = |key: &[u8]| dropped.iter().any(|space| key.starts_with(&space.prefix()));
        let old = old.into_writes().expect("nothing moves the rows of temporary tables to files");
        for (key, write) in old {
            if let Some(value) = write
                && !gone(&key)
            {
                self.rows.put(key, value);
            }
        }
    }

    fn find(&self, db: &str, name: &str) -> Option<usize> {
        self.tables.iter().position(|(table, _)| *table.def.db == *db && *table.def.name == *name)
    }

    fn changed(&mut self) {
        self.generation = GENERATION.fetch_add(1, Ordering::Relaxed);
        *self.overlay.get_mut() = None;
    }

    /// Whether the session has temporary tables.
    pub(crate) fn has_tables(&self) -> bool {
        !self.tables.is_empty()
    }

    /// Plans made at another value may mean other tables.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// The catalog as this session sees it.
    pub(crate) fn over(&self, base: Arc<Catalog>) -> Arc<Catalog> {
        if self.tables.is_empty() {
            return base;
        }
        let mut overlay = self.overlay.lock();
        if let Some((version, catalog)) = &*overlay
            && *version == base.version
        {
            return catalog.clone();
        }
        let mut catalog = Catalog { under: Some(base.clone()), ..Catalog::clone(&base) };
        for (table, _) in &self.tables {
            catalog.put_table(table.clone());
        }
        let catalog = Arc::new(catalog);
        *overlay = Some((base.version, catalog.clone()));
        catalog
    }

    /// A temporary table by name.
    pub(crate) fn table(&self, db: &str, name: &str) -> Option<Arc<Table>> {
        self.find(db, name).map(|at| self.tables[at].0.clone())
    }

    /// The next table id and space number, to be counted on by whoever builds a definition.
    pub(crate) fn ids(&mut self) -> (&mut u64, &mut u32) {
        (&mut self.next_table, &mut self.next_space)
    }

    /// Adds a table, whose definition is counted.
    pub(crate) fn put_table(&mut self, table: Arc<Table>, account: Account) {
        self.tables.push((table, account));
        self.changed();
    }

    /// Removes a table and forgets its rows.
    pub(crate) fn drop_table(&mut self, db: &str, name: &str) -> Option<Arc<Table>> {
        let at = self.find(db, name)?;
        let (table, _) = self.tables.remove(at);
        self.dropped.extend(table.def.indexes.iter().map(|index| index.space));
        self.changed();
        Some(table)
    }

    /// Gives a table another name; its rows stay.
    pub(crate) fn rename_table(&mut self, old: &Table, def: TableDef) {
        if let Some(at) = self.find(&old.def.db, &old.def.name) {
            let renamed = Table { temporary: true, ..Table::new(def, old.state.clone()) };
            self.tables[at].0 = Arc::new(renamed);
            self.changed();
        }
    }

    /// The session is over or begins anew.
    pub(crate) fn drop_tables(&mut self) {
        if self.generation != 0 {
            let (next_table, next_space) = (self.next_table, self.next_space);
            *self = TempStore { next_table, next_space, ..TempStore::default() };
            self.changed();
        }
    }

    /// Exchanges all of them for others, between transactions: for whoever runs several sessions' statements.
    pub(crate) fn swap(&mut self, others: &mut TemporaryTables) {
        self.settle();
        std::mem::swap(self, &mut others.0);
    }

    pub(super) fn value(&self, key: &[u8]) -> Option<Bytes> {
        self.rows.get_held(key).flatten()
    }

    pub(super) fn unique(&self, table: &Table, index: usize, key: &Bytes) -> SqlResult<Option<RowAt>> {
        let Some(value) = self.value(key) else { return Ok(None) };
        if index == 0 {
            return Ok(Some(RowAt { key: key.clone(), row: value }));
        }
        let key = table.clustered_of_entry(index, key, &value)?;
        Ok(self.value(&key).map(|row| RowAt { key, row }))
    }

    pub(super) fn scan(
        &mut self,
        table: &Table,
        index: usize,
        range: &mut KeyRange,
        want: usize,
        rows: &mut Vec<RowAt>,
    ) -> ExecResult<bool> {
        let mut entries = Vec::with_capacity(want.min(1024));
        let done = read_batch(&Nothing, &self.rows, range, want.max(1), &mut entries)?;
        if let Some((key, _)) = entries.last() {
            range.resume_after(key.clone());
        }
        for (key, value) in entries {
            if index == 0 {
                rows.push(RowAt { key, row: value });
                continue;
            }
            let key = table.clustered_of_entry(index, &key, &value)?;
            if let Some(row) = self.value(&key) {
                rows.push(RowAt { key, row });
            }
        }
        Ok(done)
    }

    /// All rows of a table.
    pub(crate) fn all_rows(&mut self, table: &Table, kill: &KillFlag) -> ExecResult<Vec<RowAt>> {
        let mut range = whole_index(table, 0);
        let mut rows = Vec::new();
        loop {
            kill.check()?;
            if self.scan(table, 0, &mut range, 4096, &mut rows)? {
                return Ok(rows);
            }
        }
    }

    fn room(&mut self, table: &Table, parts: &Parts<'_>) -> SqlResult<()> {
        let bytes = self.rows.memory();
        let account = self.account.get_or_insert_with(|| parts.memory.account());
        if bytes as u64 <= parts.room.temporary && account.resize(bytes, parts.room.limits).is_ok() {
            return Ok(());
        }
        Err(SqlError::new(1114, b"HY000", format!("The table '{}' is full", table.def.name)))
    }

    pub(super) fn insert(
        &mut self,
        table: &Arc<Table>,
        values: &[omnibus_value::Value],
        row: Bytes,
        parts: Parts<'_>,
    ) -> ExecResult<InsertOutcome> {
        self.room(table, &parts)?;
        let key = match table.def.hidden_key {
            true => table.keys[0].hidden(parts.counters.next_row_id(table)?),
            false => table.keys[0].entry(values, &[]).key,
        };
        if let Some(existing) = self.unique(table, 0, &key)? {
            return Ok(InsertOutcome::Duplicate(Duplicate { index: 0, existing }));
        }
        let mut entries = Vec::with_capacity(table.keys.len() - 1);
        for (index, codec) in table.keys.iter().enumerate().skip(1) {
            let entry = codec.entry(values, &key);
            if entry.unique
                && let Some(existing) = self.unique(table, index, &entry.key)?
            {
                return Ok(InsertOutcome::Duplicate(Duplicate { index, existing }));
            }
            entries.push(entry);
        }
        for entry in entries {
            self.rows.put(entry.key, entry.value);
        }
        parts.counters.note_auto_value(table, values)?;
        table.state.rows_estimate.fetch_add(1, Ordering::Relaxed);
        self.rows.put(key, row);
        Ok(InsertOutcome::Inserted)
    }

    pub(super) fn delete(
        &mut self,
        table: &Table,
        at: &RowAt,
        values: &[omnibus_value::Value],
    ) -> ExecResult<()> {
        for codec in table.keys.iter().skip(1) {
            self.rows.delete(codec.entry(values, &at.key).key);
        }
        let rows = &table.state.rows_estimate;
        let _ = rows.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |rows| Some(rows.saturating_sub(1)));
        self.rows.delete(at.key.clone());
        Ok(())
    }

    pub(super) fn update(
        &mut self,
        table: &Arc<Table>,
        change: &RowChange<'_>,
        parts: Parts<'_>,
    ) -> ExecResult<Option<Duplicate>> {
        self.room(table, &parts)?;
        let old_key = &change.at.key;
        let mut key = old_key.clone();
        if table.keys[0].reads(change.changed) {
            key = table.keys[0].entry(change.new, &[]).key;
        }
        let moved = key != *old_key;
        if moved && let Some(existing) = self.unique(table, 0, &key)? {
            return Ok(Some(Duplicate { index: 0, existing }));
        }
        let mut entries: Vec<(Bytes, Entry)> = Vec::new();
        for (index, codec) in table.keys.iter().enumerate().skip(1) {
            let old = codec.entry(change.old, old_key);
            let new = codec.entry(change.new, &key);
            if old.key != new.key
                && new.unique
                && let Some(existing) = self.unique(table, index, &new.key)?
            {
                return Ok(Some(Duplicate { index, existing }));
            }
            entries.push((old.key, new));
        }
        for (old, new) in entries {
            if old != new.key {
                self.rows.delete(old);
            }
            self.rows.put(new.key, new.value);
        }
        parts.counters.note_auto_value(table, change.new)?;
        if moved {
            self.rows.delete(old_key.clone());
        }
        self.rows.put(key, change.new_row.clone());
        Ok(None)
    }
}

/// The parts of a transaction that a change of a temporary table needs.
pub(super) struct Parts<'a> {
    pub counters: &'a mut Counters,
    pub memory: &'a TrxMemory,
    pub room: &'a Room,
}

/// An empty snapshot, which the rows lie over.
struct Nothing;

impl Snapshot for Nothing {
    fn get(&self, _: &[u8]) -> Result<Option<Bytes>, EngineError> {
        Ok(None)
    }
    fn get_version(&self, _: &[u8]) -> Result<Option<(CommitNo, Bytes)>, EngineError> {
        Ok(None)
    }
    fn scan<'a>(&'a self, _: Bound<&[u8]>, _: Bound<&[u8]>, _: bool) -> SnapshotIter<'a> {
        Box::new(std::iter::empty())
    }
}
