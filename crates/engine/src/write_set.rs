//! A transaction's ordered puts and deletes, not yet in any engine.
//!
//! It is also what the transaction's own reads are overlaid with, so it is ordered by key, holds
//! at most one live entry a key, and can be rolled back to a savepoint.
//!
//! Every write is appended to one list, which is its own undo log; an index over the list says which
//! write of each key is the live one (`index`).

mod index;
mod log;

use bytes::Bytes;
use index::Index;
use log::Log;
use omnibus_ordered::Keys as _;
use std::ops::{Bound, RangeBounds};

/// What happens to one key: a new value, or a deletion.
pub type Write = Option<Bytes>;

/// Ordered by key; the last write to a key wins.
#[derive(Debug, Default)]
pub struct WriteSet {
    log: Log,
    index: Index,
}

/// A point to roll back to. Valid until an earlier one is rolled back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(usize);

/// The live write of a key.
#[derive(Clone, Copy, Debug)]
pub struct Pending<'a> {
    log: &'a Log,
    at: u32,
}

impl<'a> Pending<'a> {
    /// The key.
    #[must_use]
    pub fn key(&self) -> &'a [u8] {
        self.log.key(self.at)
    }

    /// What is written to it.
    #[must_use]
    pub fn write(&self) -> Write {
        self.log.write(self.at)
    }

    /// Whether the key is deleted.
    #[must_use]
    pub fn is_delete(&self) -> bool {
        self.log.is_delete(self.at)
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
        let at = u32::try_from(self.log.len()).expect("a transaction of four billion writes fits no memory");
        let hides = self.index.insert(&mut self.log, &key, at);
        self.log.push(key, write, hides);
    }

    /// As `put`, of a key that nobody is going to look for soon: reads that `settle` or `settle_all` does not precede are slow.
    pub fn put_loose(&mut self, key: Bytes, value: Bytes) {
        let at = u32::try_from(self.log.len()).expect("a transaction of four billion writes fits no memory");
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

    /// The pending write to `key`: `None` if untouched, `Some(None)` if deleted.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<Write> {
        Some(self.log.write(self.index.get(&self.log, key)?))
    }

    /// Whether `key` was written.
    #[must_use]
    pub fn has(&self, key: &[u8]) -> bool {
        self.index.get(&self.log, key).is_some()
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

    /// Says that nothing is written any more: values that are read from now on share the set's memory.
    pub fn seal(&mut self) {
        self.settle_all();
        self.log.seal();
    }

    /// All pending writes in key order, taken out.
    #[must_use]
    pub fn into_writes(mut self) -> IntoWrites {
        self.seal();
        IntoWrites { log: self.log, positions: self.index.into_positions() }
    }

    /// Number of keys written, but for those that are not settled.
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
        self.log.len() == 0
    }

    /// Approximate memory use, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.log.memory()
    }

    /// The present point, to roll back to later.
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark(self.log.len())
    }

    /// Undoes every write since `mark`.
    pub fn rollback_to(&mut self, mark: Mark) {
        for last in (mark.0..self.log.len()).rev() {
            self.index.take_back(&self.log, last as u32);
            self.log.pop();
        }
    }

    /// Empties the set, keeping nothing to roll back to.
    pub fn clear(&mut self) {
        *self = WriteSet::default();
    }
}

/// Pending writes in key order.
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    log: &'a Log,
    positions: index::Positions<'a>,
}

impl<'a> Iterator for Iter<'a> {
    type Item = Pending<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        Some(Pending { log: self.log, at: self.positions.next()? })
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        Some(Pending { log: self.log, at: self.positions.next_back()? })
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::BTreeMap;

    fn key(name: &'static str) -> Bytes {
        Bytes::from_static(name.as_bytes())
    }

    fn own(pending: Pending<'_>) -> (Bytes, Write) {
        assert_eq!(pending.is_delete(), pending.write().is_none());
        (Bytes::copy_from_slice(pending.key()), pending.write())
    }

    fn shared((key, write): (&Bytes, &Write)) -> (Bytes, Write) {
        (key.clone(), write.clone())
    }

    #[test]
    fn the_last_write_wins_and_keys_come_in_order() {
        let mut set = WriteSet::default();
        set.put(key("b"), key("1"));
        set.put(key("a"), key("2"));
        set.delete(key("b"));
        assert_eq!(set.get(b"b"), Some(None));
        assert_eq!(set.get(b"c"), None);
        let keys: Vec<_> = set.iter().map(own).collect();
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
        assert_eq!((set.get(b"a"), set.get(b"b")), (Some(Some(key("two"))), Some(None)));
        set.rollback_to(outer);
        assert_eq!((set.get(b"a"), set.get(b"b"), set.len()), (Some(Some(key("one"))), None, 1));
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
        let live: Vec<_> = set.iter().map(own).collect();
        assert_eq!(live, model.clone().into_iter().collect::<Vec<_>>());
        let (low, high) = (name(3), name(3 + 500));
        let (low, high) = if low < high { (low, high) } else { (high, low) };
        let range = || (Bound::Excluded(&low[..]), Bound::Included(&high[..]));
        let (mine, theirs): (Vec<_>, Vec<_>) = (
            set.range(range()).rev().map(own).collect(),
            model.range::<[u8], _>(range()).rev().map(shared).collect(),
        );
        assert_eq!(mine, theirs);
        let mut short = WriteSet::default();
        let small = fill(&mut short, 90);
        let (mine, theirs): (Vec<_>, Vec<_>) =
            (short.range(range()).map(own).collect(), small.range::<[u8], _>(range()).map(shared).collect());
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
        assert!(short.index.has_spaces());
        short.rollback_to(mark);
        let live: Vec<_> = short.iter().map(own).collect();
        assert_eq!(live, small.into_iter().collect::<Vec<_>>());
        short.rollback_to(Mark(0));
        assert!(short.is_empty() && short.memory() == 0);
    }

    #[test]
    fn loose_writes_are_as_others_once_they_are_settled() {
        let (mut loose, mut set) = (WriteSet::default(), WriteSet::default());
        let name = |space: u32, n: u32| Bytes::from([space.to_be_bytes(), n.to_be_bytes()].concat());
        let mut marks = Vec::new();
        for n in 0..3000u32 {
            let (row, entry) = (name(7, n), name(8, n * 7919 % 2000));
            let value = Bytes::from(n.to_string());
            for set in [&mut loose, &mut set] {
                set.put(row.clone(), value.clone());
                match n % 7 {
                    0 => set.delete(entry.clone()),
                    _ if n % 500 == 3 => set.put(entry.clone(), value.clone()),
                    _ => set.put_loose(entry.clone(), value.clone()),
                }
            }
            assert_eq!(loose.get(&entry), set.get(&entry));
            if n % 300 == 299 {
                assert_eq!(
                    loose.iter().map(own).collect::<Vec<_>>(),
                    set.iter().map(own).collect::<Vec<_>>()
                );
            }
            match n % 400 {
                100 => marks.push((loose.mark(), loose.memory())),
                200 => set.settle_all(),
                300 => loose.settle(&entry),
                _ => {}
            }
        }
        while let Some((mark, memory)) = marks.pop() {
            loose.settle_all();
            set.settle_all();
            assert_eq!(loose.len(), set.len());
            assert_eq!(loose.iter().map(own).collect::<Vec<_>>(), set.iter().map(own).collect::<Vec<_>>());
            loose.rollback_to(mark);
            set.rollback_to(mark);
            assert_eq!(loose.memory(), memory);
        }
        assert_eq!(loose.into_writes().collect::<Vec<_>>(), set.into_writes().collect::<Vec<_>>());
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
            assert_eq!(set.get(&name(9, 700)), model.get(&name(9, 700)).cloned());
            set.rollback_to(mark);
            model = before;
            assert_eq!(set.memory(), memory);
        }
        let found: Vec<_> = set.into_writes().collect();
        assert_eq!(found, model.into_iter().collect::<Vec<_>>());
    }
}
