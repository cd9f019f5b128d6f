//! A transaction's ordered puts and deletes, not yet in any engine.
//!
//! It is also what the transaction's own reads are overlaid with, so it is ordered by key, holds
//! at most one live entry a key, and can be rolled back to a savepoint.
//!
//! Every write is appended to one list, which is its own undo log; an index over the list says which
//! write of each key is the live one. Most transactions write a handful of keys, so the index is a sorted
//! array of positions until it grows past [`SMALL`]: no allocation and no reference count a key.

use bytes::Bytes;
use std::collections::{BTreeMap, btree_map};
use std::ops::{Bound, RangeBounds};

/// What happens to one key: a new value, or a deletion.
pub type Write = Option<Bytes>;

/// Keys up to which the index is an array: moving its positions is cheaper than a tree's nodes.
const SMALL: usize = 128;

/// Ordered by key; the last write to a key wins.
#[derive(Debug)]
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

/// Positions in the log of the live writes, by key.
#[derive(Debug)]
enum Index {
    Small(Vec<u32>),
    Large(BTreeMap<Bytes, u32>),
}

/// A point to roll back to. Valid until an earlier one is rolled back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(usize);

impl Default for WriteSet {
    fn default() -> WriteSet {
        WriteSet { log: Vec::new(), index: Index::Small(Vec::new()), bytes: 0 }
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
        self.bytes += cost(&key, &write);
        let at = u32::try_from(self.log.len()).expect("a transaction of four billion writes fits no memory");
        let hides = match &mut self.index {
            Index::Small(order) => match place(order, &self.log, &key) {
                Ok(found) => Some(std::mem::replace(&mut order[found], at)),
                Err(gap) => {
                    order.insert(gap, at);
                    None
                }
            },
            Index::Large(tree) => tree.insert(key.clone(), at),
        };
        self.log.push(Entry { key, write, hides });
        self.grow();
    }

    /// Changes to a tree once an array would be slow.
    fn grow(&mut self) {
        if let Index::Small(order) = &self.index
            && order.len() > SMALL
        {
            let live = order.iter().map(|&at| (self.log[at as usize].key.clone(), at));
            self.index = Index::Large(live.collect());
        }
    }

    /// The pending write to `key`: `None` if untouched, `Some(None)` if deleted.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<&Write> {
        let at = match &self.index {
            Index::Small(order) => order[place(order, &self.log, key).ok()?],
            Index::Large(tree) => *tree.get(key)?,
        };
        Some(&self.log[at as usize].write)
    }

    /// Pending writes in a key range, in order.
    pub fn range<R: RangeBounds<[u8]>>(&self, range: R) -> Iter<'_> {
        let positions = match &self.index {
            Index::Small(order) => {
                let order = &order[first(order, &self.log, range.start_bound())..];
                Positions::Small(order[..end(order, &self.log, range.end_bound())].iter())
            }
            Index::Large(tree) => Positions::Large(tree.range::<[u8], R>(range)),
        };
        Iter { log: &self.log, positions }
    }

    /// All pending writes in key order.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        self.range((Bound::Unbounded, Bound::Unbounded))
    }

    /// All pending writes in key order, taken out.
    #[must_use]
    pub fn into_writes(self) -> IntoWrites {
        let positions = match self.index {
            Index::Small(order) => Owned::Small(order.into_iter()),
            Index::Large(tree) => Owned::Large(tree.into_iter()),
        };
        IntoWrites { log: self.log, positions }
    }

    /// Number of keys written.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.index {
            Index::Small(order) => order.len(),
            Index::Large(tree) => tree.len(),
        }
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
            let Some(Entry { key, write, hides }) = self.log.pop() else { break };
            self.bytes -= cost(&key, &write);
            match &mut self.index {
                Index::Small(order) => {
                    // Positions behind the one that was popped are gone already, so it can be searched for.
                    let popped = self.log.len() as u32;
                    let Some(found) = order.iter().position(|&at| at == popped) else { continue };
                    match hides {
                        Some(before) => order[found] = before,
                        None => {
                            order.remove(found);
                        }
                    }
                }
                Index::Large(tree) => {
                    match hides {
                        Some(before) => tree.insert(key, before),
                        None => tree.remove(&key),
                    };
                }
            }
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

/// Where the key is in the array, or would be.
fn place(order: &[u32], log: &[Entry], key: &[u8]) -> Result<usize, usize> {
    order.binary_search_by(|&at| log[at as usize].key[..].cmp(key))
}

fn first(order: &[u32], log: &[Entry], bound: Bound<&[u8]>) -> usize {
    match bound {
        Bound::Unbounded => 0,
        Bound::Included(key) => order.partition_point(|&at| log[at as usize].key[..] < *key),
        Bound::Excluded(key) => order.partition_point(|&at| log[at as usize].key[..] <= *key),
    }
}

fn end(order: &[u32], log: &[Entry], bound: Bound<&[u8]>) -> usize {
    match bound {
        Bound::Unbounded => order.len(),
        Bound::Included(key) => order.partition_point(|&at| log[at as usize].key[..] <= *key),
        Bound::Excluded(key) => order.partition_point(|&at| log[at as usize].key[..] < *key),
    }
}

/// Pending writes in key order.
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    log: &'a [Entry],
    positions: Positions<'a>,
}

#[derive(Clone, Debug)]
enum Positions<'a> {
    Small(std::slice::Iter<'a, u32>),
    Large(btree_map::Range<'a, Bytes, u32>),
}

impl<'a> Iter<'a> {
    fn at(&self, at: Option<u32>) -> Option<(&'a Bytes, &'a Write)> {
        let entry = &self.log[at? as usize];
        Some((&entry.key, &entry.write))
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a Bytes, &'a Write);

    fn next(&mut self) -> Option<Self::Item> {
        let at = match &mut self.positions {
            Positions::Small(order) => order.next().copied(),
            Positions::Large(range) => range.next().map(|(_, at)| *at),
        };
        self.at(at)
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let at = match &mut self.positions {
            Positions::Small(order) => order.next_back().copied(),
            Positions::Large(range) => range.next_back().map(|(_, at)| *at),
        };
        self.at(at)
    }
}

/// Pending writes in key order, taken out of their set.
#[derive(Debug)]
pub struct IntoWrites {
    log: Vec<Entry>,
    positions: Owned,
}

#[derive(Debug)]
enum Owned {
    Small(std::vec::IntoIter<u32>),
    Large(btree_map::IntoIter<Bytes, u32>),
}

impl Iterator for IntoWrites {
    type Item = (Bytes, Write);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let at = match &mut self.positions {
            Owned::Small(order) => order.next()?,
            Owned::Large(tree) => tree.next()?.1,
        };
        let entry = &mut self.log[at as usize];
        Some((std::mem::take(&mut entry.key), entry.write.take()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

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
        let name = |n: usize| Bytes::from(format!("{:05}", n * 7919 % 1000));
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
        assert!(matches!(short.index, Index::Large(_)));
        short.rollback_to(mark);
        let live: Vec<_> = short.iter().map(|(key, write)| (key.clone(), write.clone())).collect();
        assert_eq!(live, small.into_iter().collect::<Vec<_>>());
        short.rollback_to(Mark(0));
        assert!(short.is_empty() && short.memory() == 0);
    }
}
