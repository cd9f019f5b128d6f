//! A prepared branch as rows of space 2 of each engine that it writes to.
//!
//! | key (after the space) | value |
//! |---|---|
//! | `H` xid | format version; in the default engine only |
//! | `W` xid key | 1, then the value to be put at `key`; or 0: `key` is to be deleted |
//!
//! `xid` is the key form of [`Xid`]. A write's row is in the engine of its key (the top two bits of a key say which),
//! so that an engine that is behind the others after a crash has what it needs to catch up by itself. Both the statements and replay make and read records here and nowhere else, so
//! that they agree (RECOVER-2). Pure functions of write sets and snapshots; any thread.

use super::Xid;
use crate::catalog::persist;
use crate::error::{SqlError, SqlResult};
use bytes::Bytes;
use omnibus_engine::{Snapshot, SpaceId, Write, WriteSet};
use std::ops::Bound;

/// Where records are.
const XA_SPACE: SpaceId = SpaceId(2);
const VERSION: u8 = 1;
const HEAD: u8 = b'H';
const WRITE: u8 = b'W';
/// The first byte's bits that say which engine a key is in, and their values.
const SLOT_MASK: u8 = 0xc0;
const SLOTS: [u8; 4] = [0x00, 0x40, 0x80, 0xc0];

fn prefix(kind: u8, slot: u8, xid: &Xid) -> Vec<u8> {
    let mut key = Vec::with_capacity(160);
    key.extend_from_slice(&XA_SPACE.prefix());
    key[0] |= slot;
    key.push(kind);
    xid.encode(&mut key);
    key
}

fn damaged(what: &str) -> SqlError {
    tracing::error!(what, "a prepared XA transaction is damaged");
    SqlError::internal(format!("a prepared XA transaction is damaged: {what}"))
}

/// The writes of a branch in the form of its record.
pub(crate) struct Prepared {
    head: Vec<u8>,
    prefixes: [Vec<u8>; 4],
}

/// The value at a record's head.
pub(crate) fn head_value() -> Bytes {
    Bytes::from_static(&[VERSION])
}

impl Prepared {
    pub(crate) fn new(xid: &Xid) -> Prepared {
        Prepared { head: prefix(HEAD, 0, xid), prefixes: SLOTS.map(|slot| prefix(WRITE, slot, xid)) }
    }

    /// The key of the record's head.
    pub(crate) fn head(&self) -> Bytes {
        Bytes::copy_from_slice(&self.head)
    }

    /// A write of the branch's own as a row of the record; what takes effect at once as it is.
    pub(crate) fn row(&self, key: &[u8], write: &Write) -> (Bytes, Write) {
        if persist::is_counter(key) || persist::is_position(key) {
            return (Bytes::copy_from_slice(key), write.clone());
        }
        let value = match write {
            Some(value) => [&[1], &value[..]].concat(),
            None => vec![0],
        };
        let slot = key.first().map_or(0, |byte| usize::from((byte & SLOT_MASK) >> 6));
        ([&self.prefixes[slot][..], key].concat().into(), Some(value.into()))
    }
}

/// The writes of the prepare: the branch's own as a record, and what takes effect at once. `relieve` sees to their memory.
///
/// # Errors
/// The writes could not be read; those of `relieve`.
pub(crate) fn of_writes(
    xid: &Xid,
    writes: &WriteSet,
    relieve: &mut dyn FnMut(&mut WriteSet) -> SqlResult<()>,
) -> SqlResult<WriteSet> {
    let (mut record, prepared) = (WriteSet::default(), Prepared::new(xid));
    record.put(prepared.head(), head_value());
    for pending in writes.iter() {
        let pending = pending?;
        match prepared.row(pending.key(), &pending.write()) {
            (key, Some(value)) => record.put(key, value),
            (key, None) => record.delete(key),
        }
        relieve(&mut record)?;
    }
    Ok(record)
}

/// Whether there is a record of a branch.
///
/// # Errors
/// The engine failed.
pub(crate) fn exists(snapshot: &dyn Snapshot, xid: &Xid) -> SqlResult<bool> {
    Ok(snapshot.get(&prefix(HEAD, 0, xid))?.is_some())
}

/// Whether a prepared branch changes anything.
///
/// # Errors
/// The engine failed.
pub(crate) fn has_writes(snapshot: &dyn Snapshot, xid: &Xid) -> SqlResult<bool> {
    for slot in SLOTS {
        let prefix = prefix(WRITE, slot, xid);
        if snapshot.scan(Bound::Included(&prefix), Bound::Excluded(&end_of(&prefix)), false).next().is_some()
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Behind every key of a record that begins so: keys of tables begin with their space, and the last space is never used.
fn end_of(prefix: &[u8]) -> Vec<u8> {
    [prefix, &[0xff; 4]].concat()
}

/// Calls `each` with every write of a prepared branch, by key, and the key of its row in the record. Without a record
/// there are none: replay may meet an engine that has the end of the branch already.
///
/// # Errors
/// The engine failed, damage, or those of `each`.
pub(crate) fn visit(
    snapshot: &dyn Snapshot,
    xid: &Xid,
    mut each: impl FnMut(Bytes, Write, Bytes) -> SqlResult<()>,
) -> SqlResult<()> {
    for slot in SLOTS {
        let prefix = prefix(WRITE, slot, xid);
        for pair in snapshot.scan(Bound::Included(&prefix), Bound::Excluded(&end_of(&prefix)), false) {
            let (row, value) = pair?;
            let write = match value.first() {
                Some(1) => Some(value.slice(1..)),
                Some(0) => None,
                _ => return Err(damaged("write")),
            };
            each(row.slice(prefix.len()..), write, row)?;
        }
    }
    Ok(())
}

/// Gives the writes of XA COMMIT to `write`: the branch's, and the end of its record.
///
/// # Errors
/// As `visit`.
pub(crate) fn commit(
    snapshot: &dyn Snapshot,
    xid: &Xid,
    mut write: impl FnMut(Bytes, Write) -> SqlResult<()>,
) -> SqlResult<()> {
    visit(snapshot, xid, |key, value, row| {
        write(key, value)?;
        write(row, None)
    })?;
    write(prefix(HEAD, 0, xid).into(), None)
}

/// Gives the writes of XA ROLLBACK to `write`: the end of the record.
///
/// # Errors
/// As `visit`.
pub(crate) fn rollback(
    snapshot: &dyn Snapshot,
    xid: &Xid,
    mut write: impl FnMut(Bytes, Write) -> SqlResult<()>,
) -> SqlResult<()> {
    visit(snapshot, xid, |_, _, row| write(row, None))?;
    write(prefix(HEAD, 0, xid).into(), None)
}

/// Every prepared branch.
///
/// # Errors
/// The engine failed, or damage.
pub(crate) fn list(snapshot: &dyn Snapshot) -> SqlResult<Vec<Xid>> {
    let from = [&XA_SPACE.prefix()[..], &[HEAD]].concat();
    let to = [&XA_SPACE.prefix()[..], &[HEAD + 1]].concat();
    let mut found = Vec::new();
    for pair in snapshot.scan(Bound::Included(&from), Bound::Excluded(&to), false) {
        let (key, value) = pair?;
        let xid = Xid::decode(&key[from.len()..]).filter(|(_, rest)| rest.is_empty());
        match (xid, &value[..]) {
            (Some((xid, _)), [VERSION]) => found.push(xid),
            (Some(_), _) => return Err(damaged("head of an unknown version")),
            (None, _) => return Err(damaged("name")),
        }
    }
    Ok(found)
}
