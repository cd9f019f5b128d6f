//! A session's temporary tables: their definitions and rows, in its memory and nowhere else.
//!
//! Rows are a write set over nothing, kept beside the transaction's own: statements and savepoints undo
//! it by marks, a commit moves the base that ROLLBACK goes back to. No locks, no events, no snapshot:
//! nobody else sees these rows, no log has them and no crash leaves any. Definitions come and go at
//! once, whatever becomes of the transaction, as in MySQL.
//!
//! Spaces and ids are the session's own and never used again in it, so what a dropped table leaves
//! behind is garbage that nothing refers to; it goes when the transaction ends.

use super::overlay::read_batch;
use super::range::{KeyRange, RowAt};
use super::trx::Trx;
use super::write::{Duplicate, InsertOutcome, RowChange};
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
    tables: Vec<Arc<Table>>,
    /// Changes with every definition; plans are keyed by it. 0: there has never been one.
    generation: u64,
    next_table: u64,
    next_space: u32,
    /// Spaces whose rows are garbage.
    dropped: Vec<SpaceId>,
    /// The most bytes of rows.
    pub(super) limit: u64,
    /// What the rows take of the memory of the session that made them.
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
            limit: u64::MAX,
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
        // Nothing moves them to files.
        for (key, write) in old.into_writes().into_iter().flatten() {
            if let Some(value) = write
                && !gone(&key)
            {
                self.rows.put(key, value);
            }
        }
    }

    fn find(&self, db: &str, name: &str) -> Option<usize> {
        self.tables.iter().position(|table| *table.def.db == *db && *table.def.name == *name)
    }

    fn changed(&mut self) {
        self.generation = GENERATION.fetch_add(1, Ordering::Relaxed);
        *self.overlay.get_mut() = None;
    }
}

impl Trx {
    /// Whether the session has temporary tables.
    pub(crate) fn has_temporary_tables(&self) -> bool {
        !self.temp.tables.is_empty()
    }

    /// Plans made at another value may mean other tables.
    pub(crate) fn temporary_generation(&self) -> u64 {
        self.temp.generation
    }

    /// The catalog as this session sees it.
    pub(crate) fn with_temporary_tables(&self, base: Arc<Catalog>) -> Arc<Catalog> {
        if self.temp.tables.is_empty() {
            return base;
        }
        let mut overlay = self.temp.overlay.lock();
        if let Some((version, catalog)) = &*overlay
            && *version == base.version
        {
            return catalog.clone();
        }
        let mut catalog = Catalog::clone(&base);
        for table in &self.temp.tables {
            catalog.put_table(table.clone());
        }
        let catalog = Arc::new(catalog);
        *overlay = Some((base.version, catalog.clone()));
        catalog
    }

    /// A temporary table by name.
    pub(crate) fn temporary_table(&self, db: &str, name: &str) -> Option<Arc<Table>> {
        self.temp.find(db, name).map(|at| self.temp.tables[at].clone())
    }

    /// The next table id and space number, to be counted on by whoever builds a definition.
    pub(crate) fn temporary_ids(&mut self) -> (&mut u64, &mut u32) {
        (&mut self.temp.next_table, &mut self.temp.next_space)
    }

    /// Adds a table.
    pub(crate) fn put_temporary_table(&mut self, table: Arc<Table>) {
        self.temp.tables.push(table);
        self.temp.changed();
    }

    /// Removes a table and forgets its rows.
    pub(crate) fn drop_temporary_table(&mut self, db: &str, name: &str) -> Option<Arc<Table>> {
        let at = self.temp.find(db, name)?;
        let table = self.temp.tables.remove(at);
        self.temp.dropped.extend(table.def.indexes.iter().map(|index| index.space));
        self.temp.changed();
        Some(table)
    }

    /// Gives a table another name; its rows stay.
    pub(crate) fn rename_temporary_table(&mut self, old: &Table, def: TableDef) {
        if let Some(at) = self.temp.find(&old.def.db, &old.def.name) {
            let renamed = Table { temporary: true, ..Table::new(def, old.state.clone()) };
            self.temp.tables[at] = Arc::new(renamed);
            self.temp.changed();
        }
    }

    /// The session is over or begins anew.
    pub(crate) fn drop_temporary_tables(&mut self) {
        if self.temp.generation != 0 {
            let (next_table, next_space) = (self.temp.next_table, self.temp.next_space);
            self.temp = TempStore { next_table, next_space, ..TempStore::default() };
            self.temp.changed();
        }
    }

    /// Exchanges all of them for others, between transactions: for whoever runs several sessions' statements.
    pub(crate) fn swap_temporary_tables(&mut self, others: &mut TemporaryTables) {
        self.temp.settle();
        std::mem::swap(&mut self.temp, &mut others.0);
    }

    pub(super) fn temp_value(&self, key: &[u8]) -> Option<Bytes> {
        self.temp.rows.get_held(key).flatten()
    }

    pub(super) fn temp_unique(&self, table: &Table, index: usize, key: &Bytes) -> SqlResult<Option<RowAt>> {
        let Some(value) = self.temp_value(key) else { return Ok(None) };
        if index == 0 {
            return Ok(Some(RowAt { key: key.clone(), row: value }));
        }
        let key = table.clustered_of_entry(index, key, &value)?;
        Ok(self.temp_value(&key).map(|row| RowAt { key, row }))
    }

    pub(super) fn temp_scan(
        &mut self,
        table: &Table,
        index: usize,
        range: &mut KeyRange,
        want: usize,
        rows: &mut Vec<RowAt>,
    ) -> ExecResult<bool> {
        self.check_kill()?;
        let mut entries = Vec::with_capacity(want.min(1024));
        let done = read_batch(&Nothing, &self.temp.rows, range, want.max(1), &mut entries)?;
        if let Some((key, _)) = entries.last() {
            range.resume_after(key.clone());
        }
        for (key, value) in entries {
            if index == 0 {
                rows.push(RowAt { key, row: value });
                continue;
            }
            let key = table.clustered_of_entry(index, &key, &value)?;
            if let Some(row) = self.temp_value(&key) {
                rows.push(RowAt { key, row });
            }
        }
        Ok(done)
    }

    /// All rows of a table.
    pub(crate) fn temp_rows(&mut self, table: &Table) -> ExecResult<Vec<RowAt>> {
        let mut range = super::auto::whole_index(table, 0);
        let mut rows = Vec::new();
        while !self.temp_scan(table, 0, &mut range, 4096, &mut rows)? {}
        Ok(rows)
    }

    fn temp_room(&mut self, table: &Table) -> SqlResult<()> {
        let bytes = self.temp.rows.memory();
        let account = self.temp.account.get_or_insert_with(|| self.memory.account());
        if bytes as u64 <= self.temp.limit && account.resize(bytes, self.memory.limits).is_ok() {
            return Ok(());
        }
        Err(SqlError::new(1114, b"HY000", format!("The table '{}' is full", table.def.name)))
    }

    pub(super) fn temp_insert(
        &mut self,
        table: &Arc<Table>,
        values: &[omnibus_value::Value],
        row: Bytes,
    ) -> ExecResult<InsertOutcome> {
        self.tick_row()?;
        self.temp_room(table)?;
        let key = match table.def.hidden_key {
            true => table.keys[0].hidden(self.next_row_id(table)?),
            false => table.keys[0].entry(values, &[]).key,
        };
        if let Some(existing) = self.temp_unique(table, 0, &key)? {
            return Ok(InsertOutcome::Duplicate(Duplicate { index: 0, existing }));
        }
        let mut entries = Vec::with_capacity(table.keys.len() - 1);
        for (index, codec) in table.keys.iter().enumerate().skip(1) {
            let entry = codec.entry(values, &key);
            if entry.unique
                && let Some(existing) = self.temp_unique(table, index, &entry.key)?
            {
                return Ok(InsertOutcome::Duplicate(Duplicate { index, existing }));
            }
            entries.push(entry);
        }
        for entry in entries {
            self.temp.rows.put(entry.key, entry.value);
        }
        self.note_auto_value(table, values)?;
        table.state.rows_estimate.fetch_add(1, Ordering::Relaxed);
        self.temp.rows.put(key, row);
        Ok(InsertOutcome::Inserted)
    }

    pub(super) fn temp_delete(
        &mut self,
        table: &Table,
        at: &RowAt,
        values: &[omnibus_value::Value],
    ) -> ExecResult<()> {
        self.tick_row()?;
        for codec in table.keys.iter().skip(1) {
            self.temp.rows.delete(codec.entry(values, &at.key).key);
        }
        let rows = &table.state.rows_estimate;
        let _ = rows.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |rows| Some(rows.saturating_sub(1)));
        self.temp.rows.delete(at.key.clone());
        Ok(())
    }

    pub(super) fn temp_update(
        &mut self,
        table: &Arc<Table>,
        change: &RowChange<'_>,
    ) -> ExecResult<Option<Duplicate>> {
        self.tick_row()?;
        self.temp_room(table)?;
        let old_key = &change.at.key;
        let mut key = old_key.clone();
        if table.keys[0].reads(change.changed) {
            key = table.keys[0].entry(change.new, &[]).key;
        }
        let moved = key != *old_key;
        if moved && let Some(existing) = self.temp_unique(table, 0, &key)? {
            return Ok(Some(Duplicate { index: 0, existing }));
        }
        let mut entries: Vec<(Bytes, Entry)> = Vec::new();
        for (index, codec) in table.keys.iter().enumerate().skip(1) {
            let old = codec.entry(change.old, old_key);
            let new = codec.entry(change.new, &key);
            if old.key != new.key
                && new.unique
                && let Some(existing) = self.temp_unique(table, index, &new.key)?
            {
                return Ok(Some(Duplicate { index, existing }));
            }
            entries.push((old.key, new));
        }
        for (old, new) in entries {
            if old != new.key {
                self.temp.rows.delete(old);
            }
            self.temp.rows.put(new.key, new.value);
        }
        self.note_auto_value(table, change.new)?;
        if moved {
            self.temp.rows.delete(old_key.clone());
        }
        self.temp.rows.put(key, change.new_row.clone());
        Ok(None)
    }
}

/// What the rows lie over.
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
