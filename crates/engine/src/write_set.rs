//! A transaction's ordered puts and deletes, not yet in any engine.
//!
//! It is also what the transaction's own reads are overlaid with, so it is ordered by key, holds
//! at most one live entry a key, and can be rolled back to a savepoint.
//!
//! Every write is appended to one list, which is its own undo log; an index over the list says which
//! write of each key is the live one (`index`).

mod index;

use bytes::Bytes;
use index::Index;
use std::ops::{Bound, RangeBounds};

/// What happens to one key: a new value, or a deletion.
pub type Write = Option<Bytes>;

/// Ordered by key; the last write to a key wins.
#[derive(Debug, Default)]
pub struct WriteSet {
    /// All writes, oldest first, also those that a later one hides.
    log: Vec<Entry>,
    index: Index,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    key: Bytes,
    write: Write,
    /// The write of the same key that this one hides, in `log`.
    hides: Option<u32>,
}

/// A point to roll back to. Valid until an earlier one is rolled back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(usize);

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
        self.bytes += cost(&key, &write);
        let at = u32::try_from(self.log.len()).expect("a transaction of four billion writes fits no memory");
        let hides = self.index.insert(&self.log, &key, at);
        self.log.push(Entry { key, write, hides });
    }

    /// The pending write to `key`: `None` if untouched, `Some(None)` if deleted.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<&Write> {
        let at = self.index.get(&self.log, key)?;
        Some(&self.log[at as usize].write)
    }

    /// Pending writes in a key range, in order.
    pub fn range<R: RangeBounds<[u8]>>(&self, range: R) -> Iter<'_> {
        Iter { log: &self.log, positions: self.index.range(&self.log, &range) }
    }

    /// All pending writes in key order.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        self.range((Bound::Unbounded, Bound::Unbounded))
    }

    /// All pending writes in key order, taken out.
    #[must_use]
    pub fn into_writes(self) -> IntoWrites {
        IntoWrites { log: self.log, positions: self.index.into_positions() }
    }

    /// Number of keys written.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Number of writes it holds, also those that later ones hide.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.log.len()
    }

    /// Whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Approximate memory use, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.bytes
    }

    /// The present point, to roll back to later.
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark(self.log.len())
    }

    /// Undoes every write since `mark`.
    pub fn rollback_to(&mut self, mark: Mark) {
        while self.log.len() > mark.0 {
            self.index.take_back(&self.log);
            let Some(Entry { key, write, .. }) = self.log.pop() else { break };
            self.bytes -= cost(&key, &write);
        }
    }

    /// Empties the set, keeping nothing to roll back to.
    pub fn clear(&mut self) {
        *self = WriteSet::default();
    }
}

fn cost(key: &Bytes, write: &Write) -> usize {
    key.len() + write.as_ref().map_or(0, Bytes::len) + 64
}

/// Pending writes in key order.
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    log: &'a [Entry],
    positions: index::Positions<'a>,
}

impl<'a> Iter<'a> {
    fn at(&self, at: Option<u32>) -> Option<(&'a Bytes, &'a Write)> {
        let entry = &self.log[at? as usize];
        Some((&entry.key, &entry.write))
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a Bytes, &'a Write);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let at = self.positions.next();
        self.at(at)
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let at = self.positions.next_back();
        self.at(at)
    }
}

/// Pending writes in key order, taken out of their set.
#[derive(Debug)]
pub struct IntoWrites {
    log: Vec<Entry>,
    positions: index::IntoPositions,
}

impl Iterator for IntoWrites {
    type Item = (Bytes, Write);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let entry = &mut self.log[self.positions.next()? as usize];
        Some((std::mem::take(&mut entry.key), entry.write.take()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::BTreeMap;

    fn key(name: &'static str) -> Bytes {
        Bytes::from_static(name.as_bytes())
    }

    #[test]
    fn the_last_write_wins_and_keys_come_in_order() {
        let mut set = WriteSet::default();
        set.put(key("b"), key("1"));
        set.put(key("a"), key("2"));
        set.delete(key("b"));
        assert_eq!(set.get(b"b"), Some(&None));
        assert_eq!(set.get(b"c"), None);
        let keys: Vec<_> = set.iter().map(|(key, write)| (key.clone(), write.clone())).collect();
        assert_eq!(keys, [(key("a"), Some(key("2"))), (key("b"), None)]);
    }

    #[test]
    fn rolling_back_restores_writes_and_memory() {
        let mut set = WriteSet::default();
        set.put(key("a"), key("one"));
        let (outer, memory) = (set.mark(), set.memory());
        set.put(key("a"), key("two"));
        set.delete(key("b"));
        let inner = set.mark();
        set.put(key("b"), key("back"));
        set.delete(key("a"));
        set.rollback_to(inner);
        assert_eq!((set.get(b"a"), set.get(b"b")), (Some(&Some(key("two"))), Some(&None)));
        set.rollback_to(outer);
        assert_eq!((set.get(b"a"), set.get(b"b"), set.len()), (Some(&Some(key("one"))), None, 1));
        assert_eq!(set.memory(), memory);
    }

    #[test]
    fn a_large_set_behaves_as_a_small_one() {
        // Past the size at which the index becomes a tree, and back, against a map.
        let mut set = WriteSet::default();
        let name = |n: usize| Bytes::from(format!("rows{:05}", n * 7919 % 1000));
        let fill = |set: &mut WriteSet, to: usize| {
            let mut model = BTreeMap::new();
            for n in 0..to {
                let (key, value) = (name(n), Bytes::from(n.to_string()));
                model.insert(key.clone(), Some(value.clone()));
                set.put(key, value);
                if n % 3 == 0 {
                    model.insert(name(n / 2), None);
                    set.delete(name(n / 2));
                }
            }
            model
        };
        let model = fill(&mut set, 700);
        let live: Vec<_> = set.iter().map(|(key, write)| (key.clone(), write.clone())).collect();
        assert_eq!(live, model.clone().into_iter().collect::<Vec<_>>());
        let (low, high) = (name(3), name(3 + 500));
        let (low, high) = if low < high { (low, high) } else { (high, low) };
        let range = || (Bound::Excluded(&low[..]), Bound::Included(&high[..]));
        let (mine, theirs): (Vec<_>, Vec<_>) =
            (set.range(range()).rev().collect(), model.range::<[u8], _>(range()).rev().collect());
        assert_eq!(mine, theirs);
        let mut short = WriteSet::default();
        let small = fill(&mut short, 90);
        let (mine, theirs): (Vec<_>, Vec<_>) =
            (short.range(range()).collect(), small.range::<[u8], _>(range()).collect());
        assert_eq!(mine, theirs);
        let owned = |to| {
            let mut set = WriteSet::default();
            let model = fill(&mut set, to);
            (set.into_writes().collect::<Vec<_>>(), model.into_iter().collect::<Vec<_>>())
        };
        let ((mine, theirs), (more, many)) = (owned(90), owned(700));
        assert_eq!((mine, more), (theirs, many));
        let mark = short.mark();
        fill(&mut short, 700);
        assert!(short.index.has_tree());
        short.rollback_to(mark);
        let live: Vec<_> = short.iter().map(|(key, write)| (key.clone(), write.clone())).collect();
        assert_eq!(live, small.into_iter().collect::<Vec<_>>());
        short.rollback_to(Mark(0));
        assert!(short.is_empty() && short.memory() == 0);
    }

    /// Rows come in the order of their keys, entries of an index in none, in turns; then rows change, and all of it is undone.
    #[test]
    fn spaces_that_are_written_in_turns_are_one_order() {
        let mut set = WriteSet::default();
        let mut model = BTreeMap::new();
        let name = |space: u32, n: u32| Bytes::from([space.to_be_bytes(), n.to_be_bytes()].concat());
        let mut marks = Vec::new();
        for n in 0..1500u32 {
            let keys = [name(7, n), name(9, n * 7919 % 1500), name(8, n / 3), name(7, n * 31 % (n + 1))];
            for (at, key) in keys.into_iter().enumerate() {
                if n % 100 == 50 && at == 0 {
                    marks.push((set.mark(), set.memory(), model.clone()));
                }
                let write = (n % 5 > 0).then(|| Bytes::from((n * 4 + at as u32).to_be_bytes().to_vec()));
                set.write(key.clone(), write.clone());
                model.insert(key, write);
            }
        }
        while let Some((mark, memory, before)) = marks.pop() {
            let pairs = |model: &BTreeMap<Bytes, Write>, from: &Bytes, to: &Bytes| -> Vec<_> {
                model.range::<Bytes, _>(from..to).map(|(key, write)| (key.clone(), write.clone())).collect()
            };
            assert_eq!(set.len(), model.len());
            for (from, to) in
                [(name(0, 0), name(99, 0)), (name(7, 40), name(8, 200)), (name(8, 3), name(8, 9))]
            {
                let bounds = || (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
                let wanted = pairs(&model, &from, &to);
                let own = |(key, write): (&Bytes, &Write)| (key.clone(), write.clone());
                assert_eq!(set.range(bounds()).map(own).collect::<Vec<_>>(), wanted);
                let reverse = set.range(bounds()).rev().map(own).collect::<Vec<_>>();
                assert_eq!(reverse, wanted.iter().rev().cloned().collect::<Vec<_>>());
                let (mut both, mut met) = (set.range(bounds()), Vec::new());
                while let Some(front) = both.next() {
                    met.push(own(front));
                    met.extend(both.next_back().map(own));
                }
                met.sort();
                assert_eq!(met, wanted, "from both ends");
            }
            assert_eq!(set.get(&name(9, 700)), model.get(&name(9, 700)));
            set.rollback_to(mark);
            model = before;
            assert_eq!(set.memory(), memory);
        }
        let found: Vec<_> = set.into_writes().collect();
        assert_eq!(found, model.into_iter().collect::<Vec<_>>());
    }
}
