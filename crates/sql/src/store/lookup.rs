//! Rows by way of a secondary index, for consistent reads of a transaction that has written nothing: most of what joins read.
//!
//! As [`Trx::scan`], but that nobody asks for the rows' keys: these stand one behind the other in one buffer, and entries are looked at
//! where they lie. Ten thousand rows of a join are ten thousand searches, and as many small pieces of memory less.

use super::overlay::Room;
use super::range::{KeyRange, by_ref};
use super::read::dangling;
use super::trx::Trx;
use crate::catalog::Table;
use crate::error::{ExecResult, SqlResult};
use bytes::Bytes;

/// Keys in the clustered index, one behind the other, and where each ends.
#[derive(Default)]
struct Keys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Keys {
    /// Adds the key that an entry leads to.
    fn add(&mut self, table: &Table, index: usize, key: &[u8], value: &[u8]) -> SqlResult<()> {
        let space = table.def.indexes[0].space.prefix();
        table.keys[index].append_clustered_of_entry(space, key, value, &mut self.bytes)?;
        self.ends.push(self.bytes.len());
        Ok(())
    }

    fn get(&self, at: usize) -> &[u8] {
        let begin = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.bytes[begin..self.ends[at]]
    }

    /// Their numbers in the order of keys: each search then finds most of its way in the processor's caches. What nearly every comparison
    /// ends with is beside the number.
    fn in_order(&self) -> impl Iterator<Item = usize> + use<> {
        let count = self.ends.len();
        let mut order: Vec<(u128, usize)> = (0..count).map(|at| (beginning(self.get(at)), at)).collect();
        order.sort_unstable_by(|(a, x), (b, y)| a.cmp(b).then_with(|| self.get(*x).cmp(self.get(*y))));
        order.into_iter().map(|(_, at)| at)
    }
}

/// The first 16 bytes behind the index's space, which is the same for all.
fn beginning(key: &[u8]) -> u128 {
    let key = key.get(4..).unwrap_or_default();
    if let Some(bytes) = key.first_chunk() {
        return u128::from_be_bytes(*bytes);
    }
    let mut bytes = [0; 16];
    bytes[..key.len()].copy_from_slice(key);
    u128::from_be_bytes(bytes)
}

/// Appends up to `want` rows of a range of a secondary index to `rows` and moves the range behind them. Whether the range is
/// exhausted; `None` if it is another kind of read, or the rows are too large to be read together, and then nothing is done.
///
/// # Errors
/// Damage, KILL.
pub(super) fn rows(
    trx: &mut Trx,
    table: &Table,
    index: usize,
    range: &mut KeyRange,
    want: usize,
    rows: &mut Vec<Bytes>,
) -> ExecResult<Option<bool>> {
    if !trx.transaction.writes.is_empty() || range.reverse || range.is_empty() {
        return Ok(None);
    }
    trx.budget.kill().check()?;
    let (mut keys, mut last, want) = (Keys::default(), None, want.max(1));
    let done = match trx.view.near(&mut trx.statement.attempt.near, range, want)? {
        Some(pairs) => {
            pairs.iter().try_for_each(|(key, value)| keys.add(table, index, key, value))?;
            true
        }
        None => {
            let (mut room, mut read) = (Room::new(want), Ok(()));
            let (from, to) = (by_ref(&range.from), by_ref(&range.to));
            let done = trx.view.reader()?.visit(from, to, &mut |key, value| {
                read = keys.add(table, index, &key, &value);
                let more = room.takes(value.len());
                if !more {
                    last = Some(key.to_bytes());
                }
                more && read.is_ok()
            })?;
            read?;
            done
        }
    };
    let (begin, mut room) = (rows.len(), Room::of_rows());
    rows.resize(begin + keys.ends.len(), Bytes::new());
    for at in keys.in_order() {
        trx.budget.tick()?;
        let row = trx.view.reader()?.get(keys.get(at))?.ok_or_else(|| dangling(table, index))?;
        if !room.takes(row.len()) {
            rows.truncate(begin);
            return Ok(None);
        }
        rows[begin + at] = row;
    }
    if let Some(last) = last {
        range.resume_after(last);
    }
    Ok(Some(done))
}
