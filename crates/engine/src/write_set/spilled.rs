//! The part of a write set in files: runs in the order in which they were written, each of which may be undone from
//! some write on.
//!
//! Sixteen runs are merged into one of the next level, so that a search reads few runs however many there were.

use super::merge::Merge;
use super::reader::Reader;
use super::run::{Run, RunWriter, Version, hash};
use super::{Write, index::prefix};
use bytes::Bytes;
use omnibus_temporary::TempFile;
use std::collections::BinaryHeap;
use std::io::Result;
use std::ops::{Bound, Range};
use std::sync::Arc;

/// Runs of one level that become one of the next.
const FAN: usize = if cfg!(test) { 3 } else { 16 };

/// Makes a file without a name.
pub type MakeFile<'a> = &'a dyn Fn() -> Result<TempFile>;

#[derive(Clone, Debug)]
struct Piece {
    run: Arc<Run>,
    /// The number of its first write.
    first: u64,
    /// Writes from this number on are undone.
    until: u64,
    level: u32,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Spilled {
    /// Oldest first.
    pieces: Vec<Piece>,
    /// The key ranges that are visible, if only a part is.
    window: Option<Vec<Range<Bytes>>>,
}

impl Spilled {
    /// The same writes within ranges of keys.
    pub(super) fn within(&self, ranges: Vec<Range<Bytes>>) -> Spilled {
        Spilled { pieces: self.pieces.clone(), window: Some(ranges) }
    }

    /// Adds a run whose first write has this number.
    pub(super) fn add(&mut self, run: Run, first: u64) {
        self.pieces.push(Piece { run: Arc::new(run), first, until: u64::MAX, level: 0 });
    }

    /// Makes fewer runs of many. After an error all is as before.
    pub(super) fn merge(&mut self, make: MakeFile<'_>) -> Result<()> {
        while let Some(level) = self.pieces.last().map(|last| last.level)
            && let alike = self.pieces.iter().rev().take_while(|piece| piece.level == level).count()
            && alike >= FAN
        {
            let from = self.pieces.len() - alike;
            let merged = merged(&self.pieces[from..], make)?;
            let first = self.pieces[from].first;
            self.pieces.truncate(from);
            self.pieces.push(Piece { run: Arc::new(merged), first, until: u64::MAX, level: level + 1 });
        }
        Ok(())
    }

    /// Undoes all writes from this number on.
    pub(super) fn undo_from(&mut self, number: u64) {
        self.pieces.retain(|piece| piece.first < number);
        if let Some(last) = self.pieces.last_mut() {
            last.until = last.until.min(number);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub(super) fn records(&self) -> usize {
        self.pieces.iter().map(|piece| piece.run.records()).sum()
    }

    pub(super) fn memory(&self) -> usize {
        self.pieces.iter().map(|piece| piece.run.memory()).sum()
    }

    /// Returns whether there may be a deletion.
    pub(super) fn deletes(&self) -> bool {
        self.pieces.iter().any(|piece| piece.run.deletes())
    }

    /// Returns whether there may be keys whose spaces are those of the bounds or between them.
    pub(super) fn may_be_in(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> bool {
        let space = |bound, none| match bound {
            Bound::Included(key) | Bound::Excluded(key) => prefix(key),
            Bound::Unbounded => none,
        };
        let (from, to) = (space(from, 0), space(to, u32::MAX));
        self.pieces.iter().any(|piece| piece.run.has_spaces(from, to))
    }

    fn is_within(&self, key: &[u8]) -> bool {
        let Some(window) = &self.window else { return true };
        window.iter().any(|range| *key >= range.start[..] && *key < range.end[..])
    }

    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Write>> {
        if !self.is_within(key) {
            return Ok(None);
        }
        let hash = hash(key);
        for piece in self.pieces.iter().rev() {
            if let Some(write) = piece.run.get(key, hash, piece.until)? {
                return Ok(Some(write));
            }
        }
        Ok(None)
    }

    /// Merges a range with what is `newer` and in the same order.
    pub(super) fn range<'a>(
        &self,
        newer: Box<dyn Iterator<Item = (Bytes, Write)> + Send + 'a>,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        reverse: bool,
    ) -> Merge<'a> {
        let reader = |piece: &Piece| Reader::of_range(&piece.run, piece.until, from, to, reverse);
        let readers = self.pieces.iter().rev().map(reader).collect();
        Merge::new(newer, readers, self.window.clone(), reverse)
    }
}

/// All writes of several runs, also hidden ones: they may be undone to.
fn merged(pieces: &[Piece], make: MakeFile<'_>) -> Result<Run> {
    let mut out = RunWriter::new(make()?, pieces.iter().map(|piece| piece.run.records()).sum());
    let mut readers: Vec<Reader> =
        pieces.iter().map(|piece| Reader::of_all(&piece.run, piece.until)).collect();
    let mut next = BinaryHeap::new();
    for (at, reader) in readers.iter_mut().enumerate() {
        next.extend(reader.next_version()?.map(|version| Oldest { version, at }));
    }
    while let Some(Oldest { version, at }) = next.pop() {
        let write = readers[at].load(version.value)?;
        out.push(&version.key, write.as_deref(), version.number)?;
        next.extend(readers[at].next_version()?.map(|version| Oldest { version, at }));
    }
    out.finish()
}

/// Ordered by key, then newest first; the heap returns the greatest.
struct Oldest {
    version: Version,
    at: usize,
}

impl Ord for Oldest {
    fn cmp(&self, other: &Oldest) -> std::cmp::Ordering {
        let (own, others) = (&self.version, &other.version);
        others.key.cmp(&own.key).then_with(|| own.number.cmp(&others.number))
    }
}

impl PartialOrd for Oldest {
    fn partial_cmp(&self, other: &Oldest) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Oldest {
    fn eq(&self, other: &Oldest) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Oldest {}
