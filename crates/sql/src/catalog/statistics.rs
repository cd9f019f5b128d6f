//! What ANALYZE TABLE found, as rows of space 4: key is the table's id, value a version, the number of rows, and for
//! each index its space and how many different values one, two, … of its leading parts have.
//!
//! Written by a commit of its own that no log reader sees; read once at start. A table that is gone leaves its row
//! behind, a few bytes that mean nothing: ids are never used again.

use super::{Catalog, Statistics};
use crate::error::{SqlError, SqlResult};
use crate::store::{CommitPort, write_set_event};
use bytes::Bytes;
use omnibus_commit::CommitRequest;
use omnibus_engine::{SpaceId, WriteSet};
use omnibus_format::cursor::{Reader, put_lenenc};
use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const SPACE: SpaceId = SpaceId(4);
const VERSION: u8 = 1;

fn key(table: u64) -> Bytes {
    [&SPACE.prefix()[..], &table.to_be_bytes()].concat().into()
}

fn encode(statistics: &Statistics) -> Bytes {
    let mut out = vec![VERSION];
    put_lenenc(&mut out, statistics.rows);
    for (space, counts) in &statistics.distinct {
        put_lenenc(&mut out, u64::from(*space));
        put_lenenc(&mut out, counts.len() as u64);
        counts.iter().for_each(|count| put_lenenc(&mut out, *count));
    }
    out.into()
}

fn decode(value: &[u8]) -> Option<Statistics> {
    let mut r = Reader::new(value);
    if r.u8("version").ok()? != VERSION {
        return None;
    }
    let mut statistics = Statistics { rows: r.lenenc("rows").ok()?, ..Statistics::default() };
    while !r.is_empty() {
        let space = u32::try_from(r.lenenc("space").ok()?).ok()?;
        let parts = r.lenenc_len("parts").ok()?;
        let counts = (0..parts.min(r.remaining())).map(|_| r.lenenc("count").ok());
        statistics.distinct.insert(space, counts.collect::<Option<_>>()?);
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
    let now = crate::session::wall_clock_us();
    let ticket = port.commit(CommitRequest::new(cache, writes, false, now));
    ticket.wait().map(|_| ()).map_err(SqlError::error_during_commit)
}

/// Gives the tables of a catalog what is kept of them. Rows that cannot be read are left out: they are estimates.
///
/// # Errors
/// The engine failed.
pub fn load(port: &dyn CommitPort, catalog: &Catalog) -> SqlResult<()> {
    let (from, to) = (SPACE.prefix(), SpaceId(SPACE.0 + 1).prefix());
    let latest = port.latest();
    let mut kept = HashMap::new();
    for pair in latest.scan(Bound::Included(&from), Bound::Excluded(&to), false) {
        let (key, value) = pair?;
        let id = key.get(4..12).and_then(|id| id.try_into().ok()).map(u64::from_be_bytes);
        if let (Some(id), Some(statistics)) = (id, decode(&value)) {
            kept.insert(id, statistics);
        }
    }
    for table in catalog.tables() {
        if let Some(statistics) = kept.remove(&table.def.id) {
            table.state.rows_estimate.store(statistics.rows.max(1), Ordering::Relaxed);
            *table.state.statistics.write() = Some(Arc::new(statistics));
        }
    }
    Ok(())
}
