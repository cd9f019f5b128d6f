//! Statistics of tables, counted and kept. ANALYZE TABLE keeps them as rows of space 4: key is the table's id, value a version,
//! the number of rows, and for each index its space, how many different values one, two, … of its leading parts have, and
//! samples of its keys. A key that a column's name follows has the column's histogram, as MySQL's document in binary form.
//!
//! Written by a commit of its own that no log reader sees; read once at start. A table that is gone leaves its row
//! behind, which means nothing: ids are never used again.

use super::auto::whole_index;
use super::port::CommitPort;
use super::private_events::write_set_event;
use super::range::by_ref;
use crate::catalog::statistics::Counter;
use crate::catalog::{Catalog, Histogram, IndexStatistics, Statistics, Table};
use crate::error::{SqlError, SqlResult};
use bytes::Bytes;
use omnibus_commit::CommitRequest;
use omnibus_engine::{Snapshot, SpaceId, WriteSet};
use omnibus_format::cursor::{Reader, put_lenenc, put_lenenc_bytes};
use omnibus_value::json::Json;
use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;

const SPACE: SpaceId = SpaceId(4);
/// With samples. Version 1 had none.
const VERSION: u8 = 2;

/// Counts a whole table. `go_on` is asked now and then.
///
/// # Errors
/// Damage; what `go_on` says.
pub fn count(
    snapshot: &dyn Snapshot,
    table: &Table,
    go_on: &mut dyn FnMut() -> SqlResult<()>,
) -> SqlResult<Statistics> {
    /// Entries between two questions.
    const PAUSE: u64 = 4096;
    let mut found = Statistics::default();
    for index in 0..table.indexes().len() {
        let mut counter = Counter::new(table, index);
        let range = whole_index(table, index);
        let mut result = Ok(());
        snapshot.visit(by_ref(&range.from), by_ref(&range.to), &mut |key, _| {
            counter.add(&key);
            if counter.entries().is_multiple_of(PAUSE) {
                result = go_on();
            }
            result.is_ok()
        })?;
        result?;
        if index == 0 {
            found.rows = counter.entries();
        }
        found.indexes.insert(table.def.indexes[index].space.0, counter.finish());
    }
    Ok(found)
}

fn key(table: u64) -> Bytes {
    [&SPACE.prefix()[..], &table.to_be_bytes()].concat().into()
}

/// The key of a column's histogram.
pub fn histogram_key(table: u64, column: &str) -> Bytes {
    [&SPACE.prefix()[..], &table.to_be_bytes(), column.to_lowercase().as_bytes()].concat().into()
}

fn encode(statistics: &Statistics) -> Bytes {
    let mut out = vec![VERSION];
    put_lenenc(&mut out, statistics.rows);
    for (space, index) in &statistics.indexes {
        put_lenenc(&mut out, u64::from(*space));
        put_lenenc(&mut out, index.distinct.len() as u64);
        index.distinct.iter().for_each(|count| put_lenenc(&mut out, *count));
        put_lenenc(&mut out, index.samples.len() as u64);
        index.samples.iter().for_each(|sample| put_lenenc_bytes(&mut out, sample));
    }
    out.into()
}

fn decode(value: &[u8]) -> Option<Statistics> {
    let mut r = Reader::new(value);
    let version = r.u8("version").ok()?;
    if version == 0 || version > VERSION {
        return None;
    }
    let mut statistics = Statistics { rows: r.lenenc("rows").ok()?, ..Statistics::default() };
    while !r.is_empty() {
        let space = u32::try_from(r.lenenc("space").ok()?).ok()?;
        let parts = r.lenenc_len("parts").ok()?;
        let counts = (0..parts.min(r.remaining())).map(|_| r.lenenc("count").ok());
        let mut index = IndexStatistics { distinct: counts.collect::<Option<_>>()?, samples: Vec::new() };
        if version >= 2 {
            let samples = r.lenenc_len("samples").ok()?;
            for _ in 0..samples.min(r.remaining()) {
                index.samples.push(Bytes::copy_from_slice(r.lenenc_bytes("sample").ok()?));
            }
        }
        statistics.indexes.insert(space, index);
    }
    Some(statistics)
}

/// Keeps what was found for a table, durable when it returns. Blocks.
///
/// # Errors
/// The commit failed.
pub fn store(port: &dyn CommitPort, table: u64, statistics: &Statistics) -> SqlResult<()> {
    let mut writes = WriteSet::default();
    writes.put(key(table), encode(statistics));
    let mut cache = port.new_cache();
    write_set_event(&mut cache, &writes)?;
    let now = omnibus_commit::now_us();
    let ticket = port.commit(CommitRequest::new(cache, writes, false, now).inline());
    ticket.wait().map(|_| ()).map_err(SqlError::of_commit)
}

/// Gives the tables of a catalog what is kept of them. Rows that cannot be read are left out: they are estimates.
///
/// # Errors
/// The engine failed.
pub fn load(port: &dyn CommitPort, catalog: &Catalog) -> SqlResult<()> {
    let (from, to) = (SPACE.prefix(), SpaceId(SPACE.0 + 1).prefix());
    let latest = port.latest();
    let (mut kept, mut histograms) = (HashMap::new(), HashMap::<u64, Vec<(String, Bytes)>>::new());
    for pair in latest.scan(Bound::Included(&from), Bound::Excluded(&to), false) {
        let (key, value) = pair?;
        let id = key.get(4..12).and_then(|id| id.try_into().ok()).map(u64::from_be_bytes);
        if let (Some(id), Some(column @ [_, ..])) = (id, key.get(12..)) {
            let column = String::from_utf8_lossy(column).into_owned();
            histograms.entry(id).or_default().push((column, value));
            continue;
        }
        if let (Some(id), Some(statistics)) = (id, decode(&value)) {
            kept.insert(id, statistics);
        }
    }
    for table in catalog.tables() {
        if let Some(statistics) = kept.remove(&table.def.id) {
            table.state.set_statistics(statistics);
        }
        for (name, document) in histograms.remove(&table.def.id).unwrap_or_default() {
            let column = table.column_index(&name).map(|at| &table.columns()[at]);
            let document = Json::decode(&document).ok();
            let read =
                column.zip(document).and_then(|(column, document)| Histogram::of_document(document, column));
            if let Some(histogram) = read {
                table.state.histograms.write().insert(name, Arc::new(histogram));
            }
        }
    }
    Ok(())
}
