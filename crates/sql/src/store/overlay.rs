//! A transaction's own pending writes, laid over what an engine's snapshot has (SNAP-2).

use super::range::{KeyRange, by_ref};
use crate::catalog::Table;
use crate::error::SqlResult;
use bytes::Bytes;
use omnibus_engine::{EngineError, Pending, Snapshot, WriteSet, WriteSetIter};
use std::cmp::Ordering;
use std::ops::Bound;

/// Bytes of a batch beyond which it has no further pair.
const MOST_BYTES: usize = 1 << 20;

/// The room of a batch: for so many pairs, and of large ones for fewer. The first always fits.
pub(super) struct Room {
    pairs: usize,
    bytes: usize,
}

impl Room {
    pub(super) fn new(pairs: usize) -> Room {
        Room { pairs, bytes: MOST_BYTES }
    }

    /// Of rows that are looked up: what does not fit was looked up in vain, so that has to be rare.
    pub(super) fn of_rows() -> Room {
        Room { pairs: usize::MAX, bytes: 4 * MOST_BYTES }
    }

    /// A pair of so many bytes is in. Whether there is room for another.
    #[inline]
    pub(super) fn takes(&mut self, bytes: usize) -> bool {
        self.pairs = self.pairs.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
        !self.is_full()
    }

    pub(super) fn is_full(&self) -> bool {
        self.pairs == 0 || self.bytes == 0
    }
}

/// Merges the engine's pairs with the pending writes, up to `want`, fewer if they are large: a pending write hides the engine's pair of
/// its key. Returns whether that was all.
pub(super) fn read_batch(
    snapshot: &dyn Snapshot,
    writes: &WriteSet,
    range: &KeyRange,
    want: usize,
    out: &mut Vec<(Bytes, Bytes)>,
) -> Result<bool, EngineError> {
    if range.is_empty() {
        return Ok(true);
    }
    if !range.reverse && !may_have_written(writes, range) {
        let mut room = Room::new(want);
        return snapshot.visit(by_ref(&range.from), by_ref(&range.to), &mut |key, value| {
            let more = room.takes(value.len());
            out.push((key.to_bytes(), value.to_bytes()));
            more
        });
    }
    merge(snapshot, writes, range, want, &mut |_, _, written| Ok::<_, EngineError>(!written), out)
}

/// As `read_batch` for the entries of a secondary index, where the snapshot is older than what this transaction has
/// written: a row that it wrote hides every other version of that row, under whatever keys, and no other row.
pub(super) fn read_entries(
    snapshot: &dyn Snapshot,
    writes: &WriteSet,
    table: &Table,
    index: usize,
    range: &KeyRange,
    want: usize,
    out: &mut Vec<(Bytes, Bytes)>,
) -> SqlResult<bool> {
    if range.is_empty() {
        return Ok(true);
    }
    let mut keep =
        |key: &Bytes, value: &Bytes, written| is_current(writes, table, index, key, value, written);
    merge(snapshot, writes, range, want, &mut keep, out)
}

/// Whether an entry of the snapshot stands for a row as this transaction sees it: one that it has not written, or one
/// whose entry it left as it was. `written`: it wrote an entry of the same key.
pub(super) fn is_current(
    writes: &WriteSet,
    table: &Table,
    index: usize,
    key: &Bytes,
    value: &Bytes,
    written: bool,
) -> SqlResult<bool> {
    let clustered = table.clustered_of_entry(index, key, value)?;
    match writes.get(&clustered)? {
        None => Ok(true),
        Some(None) => Ok(false),
        Some(Some(row)) => {
            Ok(!written && table.keys[index].entry(&table.decode(&row)?, &clustered).key == *key)
        }
    }
}

/// `keep` says of each of the engine's pairs, and whether its key was written here, if it is to be seen.
fn merge<E: From<EngineError>>(
    snapshot: &dyn Snapshot,
    writes: &WriteSet,
    range: &KeyRange,
    want: usize,
    keep: &mut dyn FnMut(&Bytes, &Bytes, bool) -> Result<bool, E>,
    out: &mut Vec<(Bytes, Bytes)>,
) -> Result<bool, E> {
    let mut own = OwnWrites::new(writes, range)?;
    let mut stored = snapshot.scan(by_ref(&range.from), by_ref(&range.to), range.reverse);
    let mut next = stored.next().transpose()?;
    let mut room = Room::new(want);
    loop {
        if room.is_full() {
            return Ok(false);
        }
        let order = match (&next, own.peek()) {
            (None, None) => return Ok(true),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((key, _)), Some(own)) if range.reverse => own.key().cmp(key),
            (Some((key, _)), Some(own)) => key[..].cmp(own.key()),
        };
        if order.is_le()
            && let Some((key, value)) = std::mem::replace(&mut next, stored.next().transpose()?)
            && keep(&key, &value, order.is_eq())?
        {
            room.takes(value.len());
            out.push((key, value));
        }
        if order.is_ge()
            && let Some(own) = own.take()?
            && let Some(value) = own.write()
        {
            room.takes(value.len());
            out.push((Bytes::copy_from_slice(own.key()), value));
        }
    }
}

/// Pending writes of a range, in its direction.
struct OwnWrites<'a> {
    next: Option<Pending<'a>>,
    rest: WriteSetIter<'a>,
}

impl<'a> OwnWrites<'a> {
    fn new(writes: &'a WriteSet, range: &'a KeyRange) -> Result<OwnWrites<'a>, EngineError> {
        let mut rest = writes.range(bounds(range), range.reverse);
        Ok(OwnWrites { next: rest.next().transpose()?, rest })
    }

    fn peek(&self) -> Option<&Pending<'a>> {
        self.next.as_ref()
    }

    fn take(&mut self) -> Result<Option<Pending<'a>>, EngineError> {
        Ok(std::mem::replace(&mut self.next, self.rest.next().transpose()?))
    }
}

/// Whether there may be pending writes of a range. Of a large transaction this looks no further than the range's space.
pub(super) fn may_have_written(writes: &WriteSet, range: &KeyRange) -> bool {
    !writes.is_empty() && writes.may_have(bounds(range))
}

fn bounds(range: &KeyRange) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (by_ref(&range.from), by_ref(&range.to))
}
