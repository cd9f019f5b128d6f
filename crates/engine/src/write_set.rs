//! A transaction's ordered puts and deletes, not yet in any engine.
//!
//! It is also what the transaction's own reads are overlaid with, so it is ordered by key, holds
//! at most one live entry a key, and can be rolled back to a savepoint.
//!
//! Every write is appended to one list, which is its own undo log; an index over the list has the live write of each
//! key (`index`). The owner of the set may move its contents to a file (`spill`), repeatedly: sorted runs (`run`), with
//! all writes that may be undone to, above which the list begins anew (`spilled`). Reads across files may fail; those
//! of memory only may not.

mod index;
mod log;
mod merge;
mod reader;
mod run;
mod spilled;
#[cfg(test)]
mod tests;

use crate::EngineError;
use bytes::Bytes;
use index::Index;
use log::Log;
use merge::Merge;
use omnibus_ordered::Keys as _;
use run::RunWriter;
pub use spilled::MakeFile;
use spilled::Spilled;
use std::io;
use std::ops::{Bound, Range, RangeBounds};

/// The new value of a key, or `None` for its deletion.
pub type Write = Option<Bytes>;

/// Ordered by key; the last write to a key wins.
#[derive(Debug, Default)]
pub struct WriteSet {
    log: Log,
    index: Index,
    /// Older writes, if there are any in files.
    files: Option<Box<Files>>,
}

#[derive(Debug, Default)]
struct Files {
    /// The number of writes before those of the list.
    base: usize,
    spilled: Spilled,
}

/// A point to roll back to. Valid until an earlier one is rolled back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(usize);

/// The live write of a key, in memory.
#[derive(Clone, Copy, Debug)]
pub struct Held<'a> {
    log: &'a Log,
    at: u32,
}

impl<'a> Held<'a> {
    /// The key.
    #[must_use]
    pub fn key(&self) -> &'a [u8] {
        self.log.key(self.at)
    }

    /// The written value.
    #[must_use]
    pub fn write(&self) -> Write {
        self.log.write(self.at)
    }

    /// Returns whether the key is deleted.
    #[must_use]
    pub fn is_delete(&self) -> bool {
        self.log.is_delete(self.at)
    }
}

/// The live write of a key.
#[derive(Clone, Debug)]
pub enum Pending<'a> {
    /// In memory.
    Held(Held<'a>),
    /// Read from a file, or with such.
    Read(Box<(Bytes, Write)>),
}

impl Pending<'_> {
    /// The key.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        match self {
            Pending::Held(held) => held.key(),
            Pending::Read(read) => &read.0,
        }
    }

    /// The written value.
    #[must_use]
    pub fn write(&self) -> Write {
        match self {
            Pending::Held(held) => held.write(),
            Pending::Read(read) => read.1.clone(),
        }
    }

    /// Returns whether the key is deleted.
    #[must_use]
    pub fn is_delete(&self) -> bool {
        match self {
            Pending::Held(held) => held.is_delete(),
            Pending::Read(read) => read.1.is_none(),
        }
    }
}

impl WriteSet {
    /// Records a put.
    pub fn put(&mut self, key: Bytes, value: Bytes) {
        self.write(key, Some(value));
    }

    /// Records a deletion.
    pub fn delete(&mut self, key: Bytes) {
        self.write(key, None);
    }

    fn write(&mut self, key: Bytes, write: Write) {
        let at = u32::try_from(self.log.len()).expect("four billion writes fit no memory");
        let hides = self.index.insert(&mut self.log, &key, at);
        self.log.push(key, write, hides);
    }

    /// As `put`, for a key that is not expected to be read soon: reads before `settle` or `settle_all` are slow.
    pub fn put_loose(&mut self, key: Bytes, value: Bytes) {
        let at = u32::try_from(self.log.len()).expect("four billion writes fit no memory");
        let hides = self.index.insert_loose(&mut self.log, &key, at);
        self.log.push(key, Some(value), hides);
    }

    /// Prepares for reads of `key` and its neighbours.
    #[inline]
    pub fn settle(&mut self, key: &[u8]) {
        self.index.settle(&mut self.log, key);
    }

    /// Prepares for all reads.
    pub fn settle_all(&mut self) {
        self.index.settle_all(&mut self.log);
    }

    /// Moves what is in memory to a file. Marks stay valid.
    ///
    /// # Errors
    /// The file could not be written. The set is as before.
    pub fn spill(&mut self, make: MakeFile<'_>) -> Result<(), EngineError> {
        self.settle_all();
        let len = self.log.len();
        if len == 0 {
            return Ok(());
        }
        let base = self.base();
        let run = self.write_run(base, make).map_err(EngineError::Spill)?;
        let files = self.files.get_or_insert_default();
        files.spilled.add(run, base as u64);
        files.base = base + len;
        (self.log, self.index) = Default::default();
        files.spilled.merge(make).map_err(EngineError::Spill)
    }

    /// All writes in memory, of each key the newest first.
    fn write_run(&self, base: usize, make: MakeFile<'_>) -> io::Result<run::Run> {
        let mut out = RunWriter::new(make()?, self.log.len());
        for live in self.in_memory(..) {
            let mut next = Some(live.at);
            while let Some(at) = next {
                out.push(live.key(), self.log.value(at), (base + at as usize) as u64)?;
                next = self.log.hides(at);
            }
        }
        out.finish()
    }

    fn base(&self) -> usize {
        self.files.as_ref().map_or(0, |files| files.base)
    }

    /// Returns whether a part of the set is in files.
    #[must_use]
    pub fn is_spilled(&self) -> bool {
        self.files.is_some()
    }

    /// The pending write to `key`: `None` if untouched, `Some(None)` if deleted.
    ///
    /// # Errors
    /// A file could not be read.
    pub fn get(&self, key: &[u8]) -> Result<Option<Write>, EngineError> {
        match (self.get_held(key), &self.files) {
            (None, Some(files)) => files.spilled.get(key).map_err(EngineError::Spill),
            (held, _) => Ok(held),
        }
    }

    /// As `get`, for the part in memory.
    #[must_use]
    pub fn get_held(&self, key: &[u8]) -> Option<Write> {
        Some(self.log.write(self.index.get(&self.log, key)?))
    }

    /// Returns whether `key` was written.
    ///
    /// # Errors
    /// As [`WriteSet::get`].
    pub fn has(&self, key: &[u8]) -> Result<bool, EngineError> {
        if self.index.get(&self.log, key).is_some() {
            return Ok(true);
        }
        Ok(self.files.is_some() && self.get(key)?.is_some())
    }

    /// Returns whether anything may be written in a key range. Reads no file, so it may return true for a range next to
    /// one in a file.
    pub fn may_have<R: RangeBounds<[u8]>>(&self, range: R) -> bool {
        let (from, to) = (range.start_bound(), range.end_bound());
        self.files.as_ref().is_some_and(|files| files.spilled.may_be_in(from, to))
            || self.in_memory(range).next().is_some()
    }

    /// Pending writes in a key range that are in memory, in order.
    pub fn in_memory<R: RangeBounds<[u8]>>(&self, range: R) -> InMemory<'_> {
        InMemory { log: &self.log, positions: self.index.range(&self.log, &range) }
    }

    /// Pending writes in a key range, ascending, or descending if `reverse`. An error ends them.
    pub fn range<R: RangeBounds<[u8]>>(&self, range: R, reverse: bool) -> Iter<'_> {
        let Some(files) = &self.files else {
            return Iter { reverse, source: Iteration::Memory(self.in_memory(range)) };
        };
        let own = |held: Held<'_>| (Bytes::copy_from_slice(held.key()), held.write());
        let (from, to) = (range.start_bound(), range.end_bound());
        let held = self.in_memory((from, to));
        let newer: Box<dyn Iterator<Item = (Bytes, Write)> + Send> =
            if reverse { Box::new(held.rev().map(own)) } else { Box::new(held.map(own)) };
        Iter { reverse, source: Iteration::Files(Box::new(files.spilled.range(newer, from, to, reverse))) }
    }

    /// All pending writes in key order.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        self.range(.., false)
    }

    /// Returns whether a key may be deleted. Reads no file.
    #[must_use]
    pub fn may_delete(&self) -> bool {
        self.files.as_ref().is_some_and(|files| files.spilled.deletes())
            || self.in_memory(..).any(|held| held.is_delete())
    }

    /// Its writes within ranges of keys, to be read only. What is in files is shared.
    #[must_use]
    pub fn part(&self, ranges: Vec<Range<Bytes>>) -> WriteSet {
        let mut part = WriteSet::default();
        for held in self.in_memory(..) {
            if ranges.iter().any(|range| *held.key() >= range.start[..] && *held.key() < range.end[..]) {
                part.write(Bytes::copy_from_slice(held.key()), held.write());
            }
        }
        let files = self.files.as_ref();
        part.files =
            files.map(|files| Box::new(Files { base: files.base, spilled: files.spilled.within(ranges) }));
        part
    }

    /// Declares that no write follows: values that are read from now on share the set's memory.
    pub fn seal(&mut self) {
        self.settle_all();
        self.log.seal();
    }

    /// All pending writes in key order, taken out.
    ///
    /// # Errors
    /// The set itself, if a part of it is in files.
    pub fn into_writes(mut self) -> Result<IntoWrites, WriteSet> {
        if self.is_spilled() {
            return Err(self);
        }
        self.seal();
        Ok(IntoWrites { log: self.log, positions: self.index.into_positions() })
    }

    /// All pending writes in key order, taken out, wherever they are. An error ends them.
    #[must_use]
    pub fn into_sorted(mut self) -> IntoSorted {
        let files = self.files.take();
        self.seal();
        let held = IntoWrites { log: self.log, positions: self.index.into_positions() };
        match files {
            None => IntoSorted(Taken::Memory(held)),
            Some(files) => {
                let (newer, all) = (Box::new(held), Bound::Unbounded);
                IntoSorted(Taken::Files(Box::new(files.spilled.range(newer, all, all, false))))
            }
        }
    }

    /// Number of keys written, but for those that are not settled. What is in files counts each time it was written.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.len() + self.files.as_ref().map_or(0, |files| files.spilled.records())
    }

    /// Number of writes it holds, also those that later ones hide.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.base() + self.log.len()
    }

    /// Returns whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.log.len() == 0 && self.files.as_ref().is_none_or(|files| files.spilled.is_empty())
    }

    /// Approximate memory use, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.held() + self.files.as_ref().map_or(0, |files| files.spilled.memory())
    }

    /// The part of it that `spill` gives back.
    #[must_use]
    #[inline]
    pub fn held(&self) -> usize {
        self.log.memory()
    }

    /// The present point, to roll back to later.
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark(self.entries())
    }

    /// Undoes every write since `mark`.
    pub fn rollback_to(&mut self, mark: Mark) {
        let base = self.base();
        if let Some(files) = &mut self.files
            && mark.0 < base
        {
            (self.log, self.index) = Default::default();
            files.spilled.undo_from(mark.0 as u64);
            files.base = mark.0;
            if files.spilled.is_empty() {
                self.files = None;
            }
            return;
        }
        for last in (mark.0 - base..self.log.len()).rev() {
            self.index.take_back(&self.log, last as u32);
            self.log.pop();
        }
    }

    /// Empties the set, keeping nothing to roll back to.
    pub fn clear(&mut self) {
        *self = WriteSet::default();
    }
}

/// Pending writes in memory, in key order.
#[derive(Clone, Debug)]
pub struct InMemory<'a> {
    log: &'a Log,
    positions: index::Positions<'a>,
}

impl<'a> Iterator for InMemory<'a> {
    type Item = Held<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        Some(Held { log: self.log, at: self.positions.next()? })
    }
}

impl DoubleEndedIterator for InMemory<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        Some(Held { log: self.log, at: self.positions.next_back()? })
    }
}

/// Pending writes in key order.
#[derive(Debug)]
pub struct Iter<'a> {
    reverse: bool,
    source: Iteration<'a>,
}

#[derive(Debug)]
enum Iteration<'a> {
    Memory(InMemory<'a>),
    Files(Box<Merge<'a>>),
}

impl<'a> Iterator for Iter<'a> {
    type Item = Result<Pending<'a>, EngineError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.source {
            Iteration::Memory(held) => {
                let next = if self.reverse { held.next_back() } else { held.next() };
                Some(Ok(Pending::Held(next?)))
            }
            Iteration::Files(merge) => {
                let read = merge.next()?.map_err(EngineError::Spill);
                Some(read.map(|read| Pending::Read(Box::new(read))))
            }
        }
    }
}

/// Pending writes in key order, taken out of their set.
#[derive(Debug)]
pub struct IntoWrites {
    log: Log,
    positions: index::IntoPositions,
}

impl Iterator for IntoWrites {
    type Item = (Bytes, Write);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        Some(self.log.take(self.positions.next()?))
    }
}

/// As [`IntoWrites`], from memory and files.
#[derive(Debug)]
pub struct IntoSorted(Taken);

#[derive(Debug)]
enum Taken {
    Memory(IntoWrites),
    Files(Box<Merge<'static>>),
}

impl Iterator for IntoSorted {
    type Item = io::Result<(Bytes, Write)>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Taken::Memory(writes) => writes.next().map(Ok),
            Taken::Files(merge) => merge.next(),
        }
    }
}
