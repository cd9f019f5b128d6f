//! A forward scan that hands each row to a closure: what range reads run on.
//!
//! `scan` must own what it reads, because its iterator outlives the call; a visit does not, so it
//! walks the memtables in place and copies no keys. Of the sources (memtables, runs of tables) the one with
//! the smallest key is read until another has a smaller one, so that rows that are in one source only, nearly
//! all, cost one comparison. Of equal keys the highest number wins (SNAP-1).

use crate::large;
use crate::list::head;
use crate::memtable::Cursor;
use crate::tables::TableIter;
use bytes::Bytes;
use omnibus_engine::{EngineError, KeyRef};
use std::cmp::Ordering;
use std::ops::Bound;

/// The first version that the snapshot may see of each key of one run, up to the end of the range.
struct TableCursor<'g> {
    iter: TableIter,
    to: Bound<&'g [u8]>,
    /// The beginning of the end: what begins with less is within.
    to_head: [u64; 2],
    key: Bytes,
    value: Option<Bytes>,
}

impl TableCursor<'_> {
    /// Returns whether a key with this prefix is within the range.
    #[inline]
    fn is_within(&self, key: &[u8], begins: [u64; 2]) -> bool {
        begins < self.to_head
            || match self.to {
                Bound::Included(to) => key <= to,
                Bound::Excluded(to) => key < to,
                Bound::Unbounded => true,
            }
    }
}

enum Kind<'g> {
    Memory(Cursor<'g>),
    Table(TableCursor<'g>),
}

/// A source, and the row that it stands at.
pub(crate) struct Source<'g> {
    head: [u64; 2],
    number: u64,
    kind: Kind<'g>,
}

impl<'g> Source<'g> {
    /// `None` if the memtable has nothing in the range.
    pub(crate) fn of_memory(mut cursor: Cursor<'g>) -> Result<Option<Source<'g>>, EngineError> {
        Ok(cursor.advance()?.then(|| Source {
            head: cursor.head(),
            number: cursor.number(),
            kind: Kind::Memory(cursor),
        }))
    }

    /// `None` if the run has nothing in the range.
    pub(crate) fn of_table(
        iter: TableIter,
        to: Bound<&'g [u8]>,
        at: u64,
    ) -> Result<Option<Source<'g>>, EngineError> {
        let to_head = match to {
            Bound::Included(to) | Bound::Excluded(to) => head(to),
            Bound::Unbounded => [u64::MAX; 2],
        };
        let table = TableCursor { iter, to, to_head, key: Bytes::new(), value: None };
        let mut source = Source { head: [0; 2], number: 0, kind: Kind::Table(table) };
        // No key is empty: each begins with its space.
        Ok(source.advance(at)?.then_some(source))
    }

    /// The key, if needed in `short`.
    fn key<'b>(&'b self, short: &'b mut [u8; 16]) -> KeyRef<'b> {
        match &self.kind {
            Kind::Memory(cursor) => cursor.key_in(short),
            Kind::Table(table) => KeyRef::Shared(&table.key),
        }
    }

    /// Moves to the next key of which the snapshot may see something; false at the end.
    fn advance(&mut self, at: u64) -> Result<bool, EngineError> {
        match &mut self.kind {
            Kind::Memory(cursor) => {
                let more = cursor.advance()?;
                if more {
                    (self.head, self.number) = (cursor.head(), cursor.number());
                }
                Ok(more)
            }
            Kind::Table(table) => {
                while let Some(entry) = table.iter.next() {
                    let entry = entry?;
                    let begins = head(&entry.key.user_key);
                    if !table.is_within(&entry.key.user_key, begins) {
                        return Ok(false);
                    }
                    let again = begins == self.head && *entry.key.user_key == *table.key;
                    if again || entry.key.seqno > at {
                        continue;
                    }
                    (self.number, self.head) = (entry.key.seqno, begins);
                    table.value = match entry.key.is_tombstone() {
                        true => None,
                        false => Some(large::unpack(entry.value.into())?),
                    };
                    table.key = Bytes::from(entry.key.user_key);
                    return Ok(true);
                }
                Ok(false)
            }
        }
    }

    /// Passes the present row on, unless it is a deletion. Called once per row. Returns false if no further row is wanted.
    fn emit(&mut self, each: &mut dyn FnMut(KeyRef<'_>, Bytes) -> bool) -> bool {
        match &mut self.kind {
            Kind::Memory(cursor) => cursor.emit(each),
            Kind::Table(table) => match table.value.take() {
                Some(value) => each(KeyRef::Shared(&table.key), value),
                None => true,
            },
        }
    }

    #[inline]
    fn cmp_key(&self, other: &Source<'_>) -> Ordering {
        let (mut own, mut their) = ([0; 16], [0; 16]);
        self.head.cmp(&other.head).then_with(|| self.key(&mut own)[..].cmp(&other.key(&mut their)[..]))
    }
}

/// Merges the sources until `each` says no (then false) or all is read.
pub(crate) fn merge(
    mut sources: Vec<Source<'_>>,
    at: u64,
    each: &mut dyn FnMut(KeyRef<'_>, Bytes) -> bool,
) -> Result<bool, EngineError> {
    while sources.len() > 1 {
        let (best, second) = match smallest(&sources) {
            Smallest::Superseded(older) => {
                if !sources[older].advance(at)? {
                    sources.swap_remove(older);
                }
                continue;
            }
            Smallest::Of(best, second) => (best, second),
        };
        loop {
            if !sources[best].emit(each) {
                return Ok(false);
            }
            if !sources[best].advance(at)? {
                sources.swap_remove(best);
                break;
            }
            if sources[best].cmp_key(&sources[second]).is_ge() {
                break;
            }
        }
    }
    let Some(mut last) = sources.pop() else { return Ok(true) };
    loop {
        if !last.emit(each) {
            return Ok(false);
        }
        if !last.advance(at)? {
            return Ok(true);
        }
    }
}

enum Smallest {
    /// This one's row is an older version of another one's.
    Superseded(usize),
    /// The smallest key, and the smallest of the others.
    Of(usize, usize),
}

/// Returns the smallest of at least two sources.
fn smallest(sources: &[Source<'_>]) -> Smallest {
    let (mut best, mut second) = (0, None);
    for i in 1..sources.len() {
        match sources[i].cmp_key(&sources[best]) {
            Ordering::Equal if sources[i].number > sources[best].number => return Smallest::Superseded(best),
            Ordering::Equal => return Smallest::Superseded(i),
            Ordering::Less => {
                second = Some(best);
                best = i;
            }
            Ordering::Greater => {
                if second.is_none_or(|second: usize| sources[i].cmp_key(&sources[second]).is_lt()) {
                    second = Some(i);
                }
            }
        }
    }
    Smallest::Of(best, second.unwrap_or(best))
}
