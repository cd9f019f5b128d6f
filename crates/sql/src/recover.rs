//! Replay: a logged transaction becomes engine writes through the catalog as of then (RECOVER-2).
//!
//! No SQL is executed. Row events are applied by clustered key: full images as they are, partial
//! ones merged with the stored row; rows of tables with a hidden key are named by the RowIds event
//! before theirs. What row events cannot say comes as raw writes in private events. One thread,
//! before the server listens; the engine holds everything before the transaction at hand. Of several engines one may
//! hold more: what is worked out for it then is read from newer rows, means nothing, and is dropped by the set.

use crate::catalog::{Catalog, Table, persist};
use crate::codec::Entry;
use crate::error::{SqlError, SqlResult};
use crate::store::whole_index;
use crate::xa::{Completion, Xid, completion, record};
use bytes::Bytes;
use omnibus_commit::{Replay, ReplayEvent};
use omnibus_engine::{CommitNo, Engine, Snapshot, WriteSet};
use omnibus_format::EventType;
use omnibus_format::events::{Query, Rows, RowsKind, XaPrepare};
use omnibus_format::private::{self, Private};
use omnibus_format::row::{Images, RowChange, RowImage};
use omnibus_value::Value;
use std::collections::{HashMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

/// Kinds of private events from here on belong to the commit path itself.
const COMMIT_PATH_KINDS: u8 = 200;

/// Turns transactions into writes.
pub struct Replayer {
    engine: Arc<dyn Engine>,
    /// The transaction at hand.
    no: CommitNo,
    catalog: Catalog,
    by_id: HashMap<u64, Arc<Table>>,
}

impl std::fmt::Debug for Replayer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replayer").field("tables", &self.by_id.len()).finish_non_exhaustive()
    }
}

/// One transaction being replayed.
struct Applied {
    writes: WriteSet,
    latest: Box<dyn Snapshot>,
    row_ids: VecDeque<u64>,
}

impl Replayer {
    /// Begins with the catalog that the engine holds.
    ///
    /// # Errors
    /// The engine failed, or its catalog is damaged.
    pub fn new(engine: Arc<dyn Engine>) -> SqlResult<Replayer> {
        let catalog = persist::load(&*engine.definitions())?;
        let mut replayer = Replayer { engine, no: CommitNo::MAX, catalog, by_id: HashMap::new() };
        replayer.index_tables();
        Ok(replayer)
    }

    fn index_tables(&mut self) {
        self.by_id = self.catalog.tables().map(|table| (table.def.id, table.clone())).collect();
    }

    /// The writes of one transaction.
    ///
    /// # Errors
    /// The events contradict what is stored.
    pub fn replay(&mut self, events: &[ReplayEvent]) -> SqlResult<WriteSet> {
        let mut applied = Applied {
            writes: WriteSet::default(),
            latest: self.engine.snapshot(CommitNo::MAX),
            row_ids: VecDeque::new(),
        };
        if self.all_writes(events, &mut applied)? {
            return Ok(applied.writes);
        }
        for event in events {
            if event.event_type == EventType::IGNORABLE {
                self.private(event, &mut applied)?;
            } else if RowsKind::of(event.event_type).is_some() {
                self.rows(event, &mut applied)?;
            } else if event.event_type == EventType::XA_PREPARE {
                applied.prepare(event)?;
            } else if event.event_type == EventType::QUERY {
                applied.complete(event)?;
            }
        }
        Ok(applied.writes)
    }

    /// Takes the writes of a transaction that has statements as text. Its other events are for those who execute them.
    fn all_writes(&mut self, events: &[ReplayEvent], applied: &mut Applied) -> SqlResult<bool> {
        let mut found = false;
        for event in events.iter().filter(|event| event.event_type == EventType::IGNORABLE) {
            if private::is_all_writes(&event.body) {
                self.private(event, applied)?;
                found = true;
            }
        }
        Ok(found)
    }

    fn private(&mut self, event: &ReplayEvent, applied: &mut Applied) -> SqlResult<()> {
        let private =
            Private::decode(&event.body).map_err(|error| contradiction(format!("private event: {error}")))?;
        match private {
            None | Some(Private::DropSpaces(_)) => Ok(()),
            Some(Private::Log(_)) => Ok(()),
            Some(Private::WriteSet(writes) | Private::AllWrites(writes)) => {
                self.raw_writes(writes.iter(), applied)
            }
            Some(Private::RowIds(ids)) => {
                applied.row_ids.extend(ids.iter());
                Ok(())
            }
            Some(Private::BuildIndex { table_id, index_id }) => self.build_index(table_id, index_id, applied),
            Some(Private::Unknown { kind, .. }) if kind >= COMMIT_PATH_KINDS => Ok(()),
            Some(Private::Unknown { kind, version }) => Err(contradiction(format!(
                "private event of kind {kind}, version {version}, which this version does not know"
            ))),
        }
    }

    fn raw_writes<'k>(
        &mut self,
        writes: impl Iterator<Item = (&'k [u8], Option<&'k [u8]>)>,
        applied: &mut Applied,
    ) -> SqlResult<()> {
        let mut definitions = false;
        for (key, value) in writes {
            let write = value.map(Bytes::copy_from_slice);
            if persist::is_definition(key) {
                definitions = true;
                persist::apply(&mut self.catalog, key, &write)?;
            }
            match write {
                Some(value) => applied.writes.put(Bytes::copy_from_slice(key), value),
                None => applied.writes.delete(Bytes::copy_from_slice(key)),
            }
        }
        if definitions {
            self.index_tables();
        }
        Ok(())
    }

    fn table(&self, id: u64) -> SqlResult<Arc<Table>> {
        self.by_id.get(&id).cloned().ok_or_else(|| contradiction(format!("rows of unknown table {id}")))
    }

    /// Whether the table's engine has this transaction already.
    fn is_there(&self, table: &Table) -> bool {
        self.no <= self.engine.applied_to(&table.def.indexes[0].space.prefix())
    }

    fn build_index(&self, table_id: u64, space: u64, applied: &mut Applied) -> SqlResult<()> {
        let table = self.table(table_id)?;
        if self.is_there(&table) {
            return Ok(());
        }
        let at = table.def.indexes.iter().position(|index| u64::from(index.space.0) == space);
        let at = at.ok_or_else(|| contradiction(format!("index {space} to build is not in its table")))?;
        let range = whole_index(&table, 0);
        let (Bound::Included(from), Bound::Excluded(to)) = (&range.from, &range.to) else { return Ok(()) };
        for pair in applied.latest.scan(Bound::Included(from), Bound::Excluded(to), false) {
            let (key, row) = pair?;
            let entry = table.keys[at].entry(&table.decode(&row)?, &key);
            applied.writes.put(entry.key, entry.value);
        }
        Ok(())
    }

    fn rows(&self, event: &ReplayEvent, applied: &mut Applied) -> SqlResult<()> {
        let bad = |error: omnibus_format::DecodeError| contradiction(format!("rows event: {error}"));
        let rows = Rows::decode(event.event_type, &event.body).map_err(bad)?;
        let table = self.table(rows.table_id)?;
        for change in Images::new(rows, table.rows.shape()).map_err(bad)? {
            let change = change.map_err(bad)?;
            let id = match table.def.hidden_key {
                true => {
                    Some(applied.row_ids.pop_front().ok_or_else(|| contradiction("rows without row ids"))?)
                }
                false => None,
            };
            match applied.row(&table, &change, &event.body, id) {
                // It may have lost the row since.
                Err(_) if self.is_there(&table) => {}
                done => done?,
            }
        }
        Ok(())
    }

    /// The catalog after what was replayed so far.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }
}

impl Replay for Replayer {
    fn transaction(&mut self, no: CommitNo, events: &[ReplayEvent]) -> Result<WriteSet, String> {
        self.no = no;
        self.replay(events).map_err(|error| error.message)
    }
}

fn contradiction(what: impl std::fmt::Display) -> SqlError {
    SqlError::internal(format!("the log contradicts the stored data: {what}"))
}

/// A run of bytes of an event's body as a shared slice.
fn share(body: &Bytes, bytes: &[u8]) -> Bytes {
    // Row images lie within the body; copying keeps the engine from holding whole events alive.
    let _ = body;
    Bytes::copy_from_slice(bytes)
}

/// The row after a change: the image itself if full, else laid over the row before.
fn merged(table: &Table, image: &RowImage<'_>, body: &Bytes, old: Option<&Bytes>) -> SqlResult<Bytes> {
    if image.is_full(table.rows.shape()) {
        return Ok(share(body, image.bytes));
    }
    let old = old.ok_or_else(|| contradiction("partial image of a new row"))?;
    let mut values = table.decode(old)?;
    for (at, value) in decode_image(table, image)?.into_iter().enumerate() {
        if let Some(value) = value {
            values[at] = value;
        }
    }
    table.rows.encode(&values)
}

fn decode_image(table: &Table, image: &RowImage<'_>) -> SqlResult<Vec<Option<Value>>> {
    image.decode(table.rows.shape()).map_err(|error| contradiction(format!("row image: {error}")))
}

impl Applied {
    /// The first phase of XA is over: what the rows before did is kept as a record.
    fn prepare(&mut self, event: &ReplayEvent) -> SqlResult<()> {
        let bad = |error: omnibus_format::DecodeError| contradiction(format!("XA_PREPARE event: {error}"));
        let prepare = XaPrepare::decode(&event.body).map_err(bad)?;
        if !prepare.one_phase {
            let part = Bytes::copy_from_slice;
            let xid =
                Xid { format_id: prepare.format_id, gtrid: part(prepare.gtrid), bqual: part(prepare.bqual) };
            self.writes = record::of_writes(&xid, &self.writes);
        }
        Ok(())
    }

    /// A QUERY event: the second phase of XA takes place; other statements have private events.
    fn complete(&mut self, event: &ReplayEvent) -> SqlResult<()> {
        let bad = |error: omnibus_format::DecodeError| contradiction(format!("QUERY event: {error}"));
        match completion(Query::decode(&event.body).map_err(bad)?.sql) {
            Some(Completion::Commit(xid)) => self.finish(record::commit(&*self.latest, &xid)?),
            Some(Completion::Rollback(xid)) => self.finish(record::rollback(&*self.latest, &xid)?),
            None => {}
        }
        Ok(())
    }

    /// A branch's writes, beside what a private event before them said (a replica's position).
    fn finish(&mut self, branch: WriteSet) {
        for (key, write) in branch.iter() {
            match write {
                Some(value) => self.writes.put(key.clone(), value.clone()),
                None => self.writes.delete(key.clone()),
            }
        }
    }

    fn get(&self, key: &[u8]) -> SqlResult<Option<Bytes>> {
        match self.writes.get(key) {
            Some(write) => Ok(write.clone()),
            None => Ok(self.latest.get(key)?),
        }
    }

    /// The stored row that a before image means, and its key.
    fn stored(
        &self,
        table: &Table,
        image: &RowImage<'_>,
        body: &Bytes,
        id: Option<u64>,
    ) -> SqlResult<(Bytes, Bytes)> {
        let full = image.is_full(table.rows.shape());
        let key = match id {
            Some(id) => table.keys[0].hidden(id),
            None if full => table.keys[0].entry(&table.decode(&share(body, image.bytes))?, &[]).key,
            None => {
                let values = decode_image(table, image)?.into_iter().map(Option::unwrap_or_default);
                table.keys[0].entry(&values.collect::<Vec<_>>(), &[]).key
            }
        };
        if full {
            return Ok((key, share(body, image.bytes)));
        }
        let row = self.get(&key)?.ok_or_else(|| contradiction("a changed row is not there"))?;
        Ok((key, row))
    }

    /// One row's change, from its images.
    fn row(&mut self, table: &Table, change: &RowChange<'_>, body: &Bytes, id: Option<u64>) -> SqlResult<()> {
        let old = change.before.as_ref().map(|image| self.stored(table, image, body, id)).transpose()?;
        let new = change.after.as_ref();
        let new =
            new.map(|image| merged(table, image, body, old.as_ref().map(|(_, row)| row))).transpose()?;
        self.change(table, old, new, id)
    }

    fn change(
        &mut self,
        table: &Table,
        old: Option<(Bytes, Bytes)>,
        new: Option<Bytes>,
        id: Option<u64>,
    ) -> SqlResult<()> {
        if let Some((key, row)) = old {
            let values = table.decode(&row)?;
            for codec in table.keys.iter().skip(1) {
                self.writes.delete(codec.entry(&values, &key).key);
            }
            self.writes.delete(key);
        }
        let Some(row) = new else { return Ok(()) };
        let values = table.decode(&row)?;
        let key = match id {
            Some(id) => table.keys[0].hidden(id),
            None => table.keys[0].entry(&values, &[]).key,
        };
        for codec in table.keys.iter().skip(1) {
            let Entry { key, value, .. } = codec.entry(&values, &key);
            self.writes.put(key, value);
        }
        self.writes.put(key, row);
        Ok(())
    }
}
