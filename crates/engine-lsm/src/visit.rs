//! A forward scan that hands each row to a closure: what range reads run on.
//!
//! `scan` must own what it reads, because its iterator outlives the call; a visit does not, so it
//! walks the memtables in place and copies no keys. Of the sources (memtables, runs of tables) the one with
//! the smallest key is read until another has a smaller one, so that rows that are in one source only, nearly
//! all, cost one comparison. Of equal keys the highest number wins (SNAP-1).

use crate::block::Row;
use crate::large;
use crate::list::head;
use crate::memtable::Cursor;
use crate::tables::{RunRows, Version};
use bytes::Bytes;
use omnibus_engine::{EngineError, Lent};
use std::cmp::Ordering;
use std::ops::{Bound, Range};

/// The first version that the snapshot may see of each key of one run, up to the end of the range.
struct TableCursor<'g> {
    rows: RunRows<'g>,
    to: Bound<&'g [u8]>,
    /// The beginning of the end: what begins with less is within.
    to_head: [u64; 2],
    now: Held,
}

/// A row of a run.
enum Held {
    /// In a block: the block, where in it its key is, and where its value.
    InBlock(Bytes, Range<usize>, Option<Range<usize>>),
    Own(Bytes, Option<Bytes>),
}

impl Held {
    #[inline]
    fn key(&self) -> Lent<'_> {
        match self {
            Held::InBlock(block, key, _) => Lent::Part(block, key.start, key.end),
            Held::Own(key, _) => Lent::Shared(key),
        }
    }

    /// Goes on to a row of a block, most often the same one.
    #[inline]
    fn set(&mut self, block: &Bytes, row: Row) -> Result<(), EngineError> {
        if let Some(value) = &row.value
            && large::is_packed(&block[value.clone()])
        {
            let value = large::unpack(block.slice(value.clone()))?;
            *self = Held::Own(block.slice(row.key), Some(value));
            return Ok(());
        }
        match self {
            Held::InBlock(same, key, value) if same.as_ptr() == block.as_ptr() => {
                (*key, *value) = (row.key, row.value);
            }
            _ => *self = Held::InBlock(block.clone(), row.key, row.value),
        }
        Ok(())
    }
}

impl TableCursor<'_> {
    /// Moves to the next key of which a snapshot at `at` may see something, and says how it begins and its number; `None` at the end.
    /// `before` is how the present key begins.
    #[inline]
    fn advance(&mut self, before: [u64; 2], at: u64) -> Result<Option<([u64; 2], u64)>, EngineError> {
        while let Some(version) = self.rows.next()? {
            let nothing = Bytes::new();
            let block = self.rows.data().unwrap_or(&nothing);
            let (key, number) = match &version {
                Version::InBlock(row) => (&block[row.key.clone()], row.number),
                Version::Own(entry) => (&entry.key.user_key[..], entry.key.seqno),
            };
            let begins = head(key);
            if !self.is_within(key, begins) {
                return Ok(None);
            }
            let again = begins == before && *key == *self.now.key();
            if again || number > at {
                continue;
            }
            match version {
                Version::InBlock(row) => self.now.set(block, row)?,
                Version::Own(entry) => {
                    let deleted = entry.key.is_tombstone();
                    let value = (!deleted).then(|| large::unpack(entry.value.into())).transpose()?;
                    self.now = Held::Own(Bytes::from(entry.key.user_key), value);
                }
            }
            return Ok(Some((begins, number)));
        }
        Ok(None)
    }

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
pub(crate) struct RowCursor<'g> {
    head: [u64; 2],
    number: u64,
    kind: Kind<'g>,
}

impl<'g> RowCursor<'g> {
    /// `None` if the memtable has nothing in the range.
    pub(crate) fn of_memory(mut cursor: Cursor<'g>) -> Result<Option<RowCursor<'g>>, EngineError> {
        Ok(cursor.advance()?.then(|| RowCursor {
            head: cursor.head(),
            number: cursor.number(),
            kind: Kind::Memory(cursor),
        }))
    }

    /// `None` if the run has nothing in the range.
    pub(crate) fn of_table(
        rows: RunRows<'g>,
        to: Bound<&'g [u8]>,
        at: u64,
    ) -> Result<Option<RowCursor<'g>>, EngineError> {
        let to_head = match to {
            Bound::Included(to) | Bound::Excluded(to) => head(to),
            Bound::Unbounded => [u64::MAX; 2],
        };
        let table = TableCursor { rows, to, to_head, now: Held::Own(Bytes::new(), None) };
        let mut source = RowCursor { head: [0; 2], number: 0, kind: Kind::Table(table) };
        // No key is empty: each begins with its space.
        Ok(source.advance(at)?.then_some(source))
    }

    /// The key, if needed in `short`.
    fn key<'b>(&'b self, short: &'b mut [u8; 16]) -> Lent<'b> {
        match &self.kind {
            Kind::Memory(cursor) => cursor.key_in(short),
            Kind::Table(table) => table.now.key(),
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
            Kind::Table(table) => match table.advance(self.head, at)? {
                Some((head, number)) => {
                    (self.head, self.number) = (head, number);
                    Ok(true)
                }
                None => Ok(false),
            },
        }
    }

    /// Passes the present row on, unless it is a deletion. Called once per row. Returns false if no further row is wanted.
    fn emit(&mut self, each: &mut dyn FnMut(Lent<'_>, Lent<'_>) -> bool) -> bool {
        match &mut self.kind {
            Kind::Memory(cursor) => cursor.emit(each),
            Kind::Table(table) => match &table.now {
                Held::InBlock(block, key, Some(value)) => {
                    each(Lent::Part(block, key.start, key.end), Lent::Part(block, value.start, value.end))
                }
                Held::Own(key, Some(value)) => each(Lent::Shared(key), Lent::Shared(value)),
                Held::InBlock(_, _, None) | Held::Own(_, None) => true,
            },
        }
    }

    #[inline]
    fn cmp_key(&self, other: &RowCursor<'_>) -> Ordering {
        let (mut own, mut their) = ([0; 16], [0; 16]);
        self.head.cmp(&other.head).then_with(|| self.key(&mut own)[..].cmp(&other.key(&mut their)[..]))
    }
}

/// Merges the sources until `each` says no (then false) or all is read.
pub(crate) fn merge(
    mut sources: Vec<RowCursor<'_>>,
    at: u64,
    each: &mut dyn FnMut(Lent<'_>, Lent<'_>) -> bool,
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
fn smallest(sources: &[RowCursor<'_>]) -> Smallest {
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
