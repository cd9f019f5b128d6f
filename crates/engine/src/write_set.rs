//! A transaction's ordered puts and deletes, not yet in any engine.
//!
//! It is also what the transaction's own reads are overlaid with, so it is ordered by key, holds
//! at most one entry a key, and can be rolled back to a savepoint.

use bytes::Bytes;
use std::collections::BTreeMap;

/// What happens to one key: a new value, or a deletion.
pub type Write = Option<Bytes>;

/// Ordered by key; the last write to a key wins.
#[derive(Debug, Default)]
pub struct WriteSet {
    map: BTreeMap<Bytes, Write>,
    /// What each write replaced, newest last, while a savepoint or statement could roll it back.
    undo: Vec<(Bytes, Option<Write>)>,
    bytes: usize,
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
        self.bytes += key.len() + write.as_ref().map_or(0, Bytes::len) + 64;
        let old = self.map.insert(key.clone(), write);
        self.undo.push((key, old));
    }

    /// The pending write to `key`: `None` if untouched, `Some(None)` if deleted.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<&Write> {
        self.map.get(key)
    }

    /// Pending writes in a key range, in order.
    pub fn range<R: std::ops::RangeBounds<[u8]>>(
        &self,
        range: R,
    ) -> impl DoubleEndedIterator<Item = (&Bytes, &Write)> {
        self.map.range::<[u8], R>(range)
    }

    /// All pending writes in key order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Bytes, &Write)> {
        self.map.iter()
    }

    /// Number of keys written.
    #[must_use]
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Approximate memory use, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.bytes
    }

    /// The present point, to roll back to later.
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark(self.undo.len())
    }

    /// Undoes every write since `mark`.
    pub fn rollback_to(&mut self, mark: Mark) {
        while self.undo.len() > mark.0 {
            let Some((key, old)) = self.undo.pop() else { break };
            let len = key.len();
            let undone = match old {
                Some(write) => self.map.insert(key, write),
                None => self.map.remove(&key),
            };
            // The same as `write` added for it.
            self.bytes -= len + undone.flatten().map_or(0, |value| value.len()) + 64;
        }
    }

    /// Empties the set, keeping nothing to roll back to.
    pub fn clear(&mut self) {
        *self = WriteSet::default();
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
}
