//! Pending writes in order, from memory and from runs: of each key the newest.

use super::Write;
use super::reader::Reader;
use super::run::Value;
use bytes::Bytes;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::io::Result;
use std::ops::Range;

/// The next write of a source.
struct Front {
    key: Bytes,
    value: Value,
    /// Newest first.
    source: usize,
    reverse: bool,
}

impl Ord for Front {
    fn cmp(&self, other: &Front) -> Ordering {
        // A heap gives the greatest.
        let order = other.key.cmp(&self.key);
        let order = if self.reverse { order.reverse() } else { order };
        order.then_with(|| other.source.cmp(&self.source))
    }
}

impl PartialOrd for Front {
    fn partial_cmp(&self, other: &Front) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Front {
    fn eq(&self, other: &Front) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Front {}

/// See the module. An error ends it.
pub(super) struct Merge<'a> {
    newer: Box<dyn Iterator<Item = (Bytes, Write)> + Send + 'a>,
    /// Newest first.
    readers: Vec<Reader>,
    window: Option<Vec<Range<Bytes>>>,
    reverse: bool,
    fronts: BinaryHeap<Front>,
    /// Sources whose fronts were taken.
    begun: bool,
    last: Option<Bytes>,
}

impl std::fmt::Debug for Merge<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Merge").field("runs", &self.readers.len()).finish_non_exhaustive()
    }
}

impl<'a> Merge<'a> {
    pub(super) fn new(
        newer: Box<dyn Iterator<Item = (Bytes, Write)> + Send + 'a>,
        readers: Vec<Reader>,
        window: Option<Vec<Range<Bytes>>>,
        reverse: bool,
    ) -> Merge<'a> {
        let fronts = BinaryHeap::with_capacity(readers.len() + 1);
        Merge { newer, readers, window, reverse, fronts, begun: false, last: None }
    }

    fn fill(&mut self, source: usize) -> Result<()> {
        let next = match source.checked_sub(1) {
            None => self.newer.next().map(|(key, write)| (key, Value::Here(write))),
            Some(reader) => self.readers[reader].next_live()?.map(|version| (version.key, version.value)),
        };
        let reverse = self.reverse;
        self.fronts.extend(next.map(|(key, value)| Front { key, value, source, reverse }));
        Ok(())
    }

    fn advance(&mut self) -> Result<Option<(Bytes, Write)>> {
        if !std::mem::replace(&mut self.begun, true) {
            (0..=self.readers.len()).try_for_each(|source| self.fill(source))?;
        }
        while let Some(Front { key, value, source, .. }) = self.fronts.pop() {
            self.fill(source)?;
            if self.last.as_ref() == Some(&key) {
                continue;
            }
            self.last = Some(key.clone());
            // What is newer has been looked through already.
            let within = |range: &Range<Bytes>| range.contains(&key);
            let Some(reader) = source.checked_sub(1) else {
                let Value::Here(write) = value else { continue };
                return Ok(Some((key, write)));
            };
            if self.window.as_ref().is_none_or(|window| window.iter().any(within)) {
                return Ok(Some((key, self.readers[reader].load(value)?)));
            }
        }
        Ok(None)
    }
}

impl Iterator for Merge<'_> {
    type Item = Result<(Bytes, Write)>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.advance();
        if next.is_err() {
            self.fronts.clear();
            self.readers.clear();
            self.newer = Box::new(std::iter::empty());
        }
        next.transpose()
    }
}
