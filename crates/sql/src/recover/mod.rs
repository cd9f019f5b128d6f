//! Replay: a logged transaction becomes engine writes through the catalog as of then (RECOVER-2).
//!
//! No SQL is executed. Row events are applied by clustered key: full images as they are, partial
//! ones merged with the stored row; rows of tables with a hidden key are named by the RowIds event
//! before theirs. What row events cannot say comes as raw writes in private events. One thread,
//! before the server listens; the engine holds everything before the transaction at hand. Of several engines one may
//! hold more: what is worked out for it then is read from newer rows, means nothing, and is dropped by the set.
//!
//! A transaction of any size takes bounded memory: its events come in parts, and its writes become sorted runs in files
//! (`sink`), which an engine takes over merged and at once. XA branches are no exception.

mod sink;

use crate::catalog::codec::Entry;
use crate::catalog::{Catalog, Table, persist};
use crate::ddl::{load_catalog, parse_definition};
use crate::error::{SqlError, SqlResult};
use crate::store::{by_ref, whole_index};
use crate::xa::{Completion, Xid, completion, record};
use bytes::Bytes;
use omnibus_commit::{Replay, ReplayEvent, Replayed};
use omnibus_engine::{CommitNo, Engine, Snapshot};
use omnibus_format::EventType;
use omnibus_format::events::{Query, Rows, RowsKind, XaPrepare};
use omnibus_format::private::{self, Private};
use omnibus_format::row::{Images, RowChange, RowImage};
use omnibus_temporary::TempFolder;
use omnibus_value::Value;
use sink::Sink;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Kinds of private events from here on belong to the commit path itself.
const COMMIT_PATH_KINDS: u8 = 200;

/// Writes of a transaction in memory, as write sets count them; they take twice as much.
const IN_MEMORY: usize = 32 << 20;

/// Turns transactions into writes.
pub struct Replayer {
    engine: Arc<dyn Engine>,
    /// For files of large transactions' writes.
    folder: TempFolder,
    in_memory: usize,
    /// The transaction at hand.
    no: CommitNo,
    catalog: Catalog,
    by_id: HashMap<u64, Arc<Table>>,
    /// The parts of it that were given so far.
    open: Option<Applied>,
}

impl std::fmt::Debug for Replayer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replayer").field("tables", &self.by_id.len()).finish_non_exhaustive()
    }
}

/// One transaction being replayed.
struct Applied {
    writes: Sink,
    latest: Box<dyn Snapshot>,
    row_ids: VecDeque<u64>,
    /// It has statements as text: only the events that say all writes count.
    as_text: bool,
    /// The catalog before it, if it defines something.
    before: Option<Catalog>,
}

impl Replayer {
    /// Begins with the catalog that the engine holds. Files of large transactions' writes are made in `folder`.
    ///
    /// # Errors
    /// The engine failed, or its catalog is damaged.
    pub fn new(engine: Arc<dyn Engine>, folder: &TempFolder) -> SqlResult<Replayer> {
        let catalog = load_catalog(&*engine.definitions())?;
        let mut replayer = Replayer {
            engine,
            folder: folder.clone(),
            in_memory: IN_MEMORY,
            no: CommitNo::MAX,
            catalog,
            by_id: HashMap::new(),
            open: None,
        };
        replayer.index_tables();
        Ok(replayer)
    }

    /// Has writes of a transaction beyond so many bytes go to files.
    pub fn keep_in_memory(&mut self, bytes: usize) {
        self.in_memory = bytes;
    }

    fn index_tables(&mut self) {
        self.by_id = self.catalog.tables().map(|table| (table.def.id, table.clone())).collect();
    }

    /// Takes more events of transaction `no`; of another one than before, which is forgotten.
    ///
    /// # Errors
    /// The events contradict what is stored.
    fn take(&mut self, no: CommitNo, events: &[ReplayEvent]) -> SqlResult<()> {
        if self.no != no {
            self.forget();
        }
        self.no = no;
        let mut applied = self.open.take().unwrap_or_else(|| Applied {
            writes: Sink::new(&self.folder, self.in_memory),
            latest: self.engine.snapshot(CommitNo::MAX),
            row_ids: VecDeque::new(),
            as_text: false,
            before: None,
        });
        let done = events.iter().try_for_each(|event| self.event(event, &mut applied));
        self.open = Some(applied);
        done
    }

    /// The writes of the transaction whose events were taken.
    fn finish(&mut self) -> SqlResult<Replayed> {
        let Some(applied) = self.open.take() else { return Ok(Replayed::Writes(Default::default())) };
        match applied.writes.into_set() {
            Ok(set) => Ok(Replayed::Writes(set)),
            Err(spilled) => Ok(Replayed::Sorted(Box::new(spilled.into_sorted()))),
        }
    }

    fn event(&mut self, event: &ReplayEvent, applied: &mut Applied) -> SqlResult<()> {
        let is_private = event.event_type == EventType::IGNORABLE;
        if is_private && private::is_all_writes(&event.body) && !std::mem::replace(&mut applied.as_text, true)
        {
            // Its other events are for those who execute them.
            applied.writes.clear();
            self.restore(applied.before.take());
        }
        if applied.as_text && !(is_private && private::is_all_writes(&event.body)) {
            return Ok(());
        }
        if is_private {
            self.private(event, applied)
        } else if RowsKind::of(event.event_type).is_some() {
            self.rows(event, applied)
        } else if event.event_type == EventType::XA_PREPARE {
            applied.prepare(event)
        } else if event.event_type == EventType::QUERY {
            applied.complete(event)
        } else {
            Ok(())
        }
    }

    /// Undoes what an unfinished transaction did to the catalog.
    fn restore(&mut self, before: Option<Catalog>) {
        if let Some(before) = before {
            self.catalog = before;
            self.index_tables();
        }
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
                applied.before.get_or_insert_with(|| self.catalog.clone());
                persist::apply(&mut self.catalog, key, &write, parse_definition)?;
            }
            applied.writes.write(Bytes::copy_from_slice(key), write)?;
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
        // An index that was built beside writers when the server stopped has some of its entries.
        let range = whole_index(&table, at);
        for pair in applied.latest.scan(by_ref(&range.from), by_ref(&range.to), false) {
            applied.writes.write(pair?.0, None)?;
        }
        let range = whole_index(&table, 0);
        for pair in applied.latest.scan(by_ref(&range.from), by_ref(&range.to), false) {
            let (key, row) = pair?;
            let entry = table.keys[at].entry(&table.decode(&row)?, &key);
            applied.writes.write(entry.key, Some(entry.value))?;
        }
        Ok(())
    }

    fn rows(&self, event: &ReplayEvent, applied: &mut Applied) -> SqlResult<()> {
        let bad = |error: omnibus_format::DecodeError| contradiction(format!("rows event: {error}"));
        let rows = Rows::decode(event.event_type, &event.body).map_err(bad)?;
        let table = self.table(rows.table_id)?;
        let hidden = table.rows.has_hidden();
        for change in Images::new(rows, table.rows.image_shape()).map_err(bad)? {
            let change = change.map_err(bad)?;
            let id = match table.def.hidden_key {
                true => {
                    Some(applied.row_ids.pop_front().ok_or_else(|| contradiction("rows without row ids"))?)
                }
                false => None,
            };
            if hidden {
                // All writes of the transaction follow.
                continue;
            }
            match applied.row(&table, &change, &event.body, id) {
                // A later change in the log may have deleted the row.
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
    fn transaction(&mut self, no: CommitNo, events: &[ReplayEvent]) -> Result<Replayed, String> {
        self.take(no, events).and_then(|()| self.finish()).map_err(|error| error.message)
    }

    fn part(&mut self, no: CommitNo, events: &[ReplayEvent]) -> Result<(), String> {
        self.take(no, events).map_err(|error| error.message)
    }

    fn forget(&mut self) {
        let before = self.open.take().and_then(|applied| applied.before);
        self.restore(before);
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
        return Ok(table.rows.of_image(share(body, image.bytes)));
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
            let record = record::Prepared::new(&xid);
            let mut rows = self.writes.empty();
            rows.write(record.head(), Some(record::head_value()))?;
            let own = self.writes.empty();
            for write in std::mem::replace(&mut self.writes, own).into_sorted() {
                let (key, write) = write.map_err(contradiction)?;
                let (key, write) = record.row(&key, &write);
                rows.write(key, write)?;
            }
            self.writes = rows;
        }
        Ok(())
    }

    /// A QUERY event: the second phase of XA takes place; other statements have private events.
    fn complete(&mut self, event: &ReplayEvent) -> SqlResult<()> {
        let bad = |error: omnibus_format::DecodeError| contradiction(format!("QUERY event: {error}"));
        match completion(Query::decode(&event.body).map_err(bad)?.sql) {
            // Beside what a private event before them said (a replica's position).
            Some(Completion::Commit(xid)) => {
                record::commit(&*self.latest, &xid, |key, write| self.writes.write(key, write))
            }
            Some(Completion::Rollback(xid)) => {
                record::rollback(&*self.latest, &xid, |key, write| self.writes.write(key, write))
            }
            None => Ok(()),
        }
    }

    fn get(&self, key: &[u8]) -> SqlResult<Option<Bytes>> {
        match self.writes.get(key)? {
            Some(write) => Ok(write),
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
            None if full => {
                let row = table.rows.of_image(share(body, image.bytes));
                table.keys[0].entry(&table.decode(&row)?, &[]).key
            }
            None => {
                let values = decode_image(table, image)?.into_iter().map(Option::unwrap_or_default);
                table.keys[0].entry(&values.collect::<Vec<_>>(), &[]).key
            }
        };
        if full {
            return Ok((key, table.rows.of_image(share(body, image.bytes))));
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
                self.writes.write(codec.entry(&values, &key).key, None)?;
            }
            self.writes.write(key, None)?;
        }
        let Some(row) = new else { return Ok(()) };
        let values = table.decode(&row)?;
        let key = match id {
            Some(id) => table.keys[0].hidden(id),
            None => table.keys[0].entry(&values, &[]).key,
        };
        for codec in table.keys.iter().skip(1) {
            let Entry { key, value, .. } = codec.entry(&values, &key);
            self.writes.write(key, Some(value))?;
        }
        self.writes.write(key, Some(row))
    }
}
