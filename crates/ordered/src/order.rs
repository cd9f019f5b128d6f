//! The order: sorted leaves of bounded size, and the first bytes of each leaf's first key to find the leaf by.
//!
//! Two levels do: with leaves of a few hundred keys the upper one is small, and grows once in a hundred insertions. Keys that come
//! in order fill their leaves; others leave them three quarters full.

use crate::Keys;
use std::cmp::Ordering;
use std::ops::Bound;

/// Keys in a leaf, at most: what an insertion moves at the worst is 3 KiB.
const LEAF: usize = 256;
/// The number of existing keys per added key from which added keys are inserted one by one.
const FEW: usize = 16;
/// Bytes that all keys of an order begin with alike, and that tell nothing.
const COMMON: usize = 4;

/// Positions of keys that are alike in their first four bytes, in key order.
#[derive(Debug, Default)]
pub struct Order {
    /// The head of each leaf's first key.
    firsts: Vec<u64>,
    /// None is empty.
    leaves: Vec<Leaf>,
    len: usize,
}

#[derive(Debug, Default)]
struct Leaf {
    heads: Vec<u64>,
    at: Vec<u32>,
}

/// The place of a key in an order, or the place where it belongs. Valid until the order changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot {
    leaf: usize,
    item: usize,
}

/// Returns the eight bytes behind the common ones, padded with zeros, which decide nearly every comparison.
#[inline]
fn head(key: &[u8]) -> u64 {
    let rest = key.get(COMMON..).unwrap_or_default();
    match rest.first_chunk() {
        Some(first) => u64::from_be_bytes(*first),
        None => {
            let mut first = [0; 8];
            first[..rest.len()].copy_from_slice(rest);
            u64::from_be_bytes(first)
        }
    }
}

impl Order {
    /// The number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes that it takes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.leaves.len() * (LEAF * 12 + size_of::<Leaf>() + 8)
    }

    /// Returns the place of `key`.
    ///
    /// # Errors
    /// The key is absent; the error is the place where it belongs.
    pub fn find(&self, keys: &impl Keys, key: &[u8]) -> Result<Slot, Slot> {
        let head = head(key);
        let compare = |leaf: &Leaf, item: usize| {
            leaf.heads[item].cmp(&head).then_with(|| keys.key(leaf.at[item]).cmp(key))
        };
        let Some(last) = self.leaves.last() else { return Err(Slot::default()) };
        // Keys often come in order.
        let end = last.at.len();
        if compare(last, end - 1).is_lt() {
            return Err(Slot { leaf: self.leaves.len() - 1, item: end });
        }
        let from = self.firsts.partition_point(|&first| first < head);
        let same = self.firsts[from..].partition_point(|&first| first == head);
        let same = self.leaves[from..from + same].partition_point(|leaf| compare(leaf, 0).is_le());
        let leaf = (from + same).saturating_sub(1);
        let found = &self.leaves[leaf];
        let low = found.heads.partition_point(|&other| other < head);
        let alike = found.heads[low..].partition_point(|&other| other == head);
        let alike = &found.at[low..low + alike];
        match alike.binary_search_by(|&at| keys.key(at).cmp(key)) {
            Ok(item) => Ok(Slot { leaf, item: low + item }),
            Err(item) => Err(Slot { leaf, item: low + item }),
        }
    }

    /// The position in a slot.
    #[must_use]
    pub fn at(&self, slot: Slot) -> u32 {
        self.leaves[slot.leaf].at[slot.item]
    }

    /// Puts another position of the same key into a slot, and gives the one that was there.
    pub fn replace(&mut self, slot: Slot, at: u32) -> u32 {
        std::mem::replace(&mut self.leaves[slot.leaf].at[slot.item], at)
    }

    /// Inserts a key where `find` said that it belongs.
    pub fn insert(&mut self, slot: Slot, key: &[u8], at: u32) {
        let head = head(key);
        self.len += 1;
        let Slot { mut leaf, mut item } = slot;
        if self.leaves.is_empty() {
            self.add_leaf(0, Leaf::new());
        }
        if self.leaves[leaf].at.len() == LEAF {
            // Behind all: keys that come in order leave full leaves behind.
            let split = if leaf + 1 == self.leaves.len() && item == LEAF { LEAF } else { LEAF / 2 };
            let right = self.leaves[leaf].split(split);
            self.add_leaf(leaf + 1, right);
            if item > split || item == LEAF {
                (leaf, item) = (leaf + 1, item - split);
            }
        }
        self.leaves[leaf].heads.insert(item, head);
        self.leaves[leaf].at.insert(item, at);
        if item == 0 {
            self.firsts[leaf] = head;
        }
    }

    fn add_leaf(&mut self, at: usize, leaf: Leaf) {
        self.firsts.insert(at, leaf.heads.first().copied().unwrap_or_default());
        self.leaves.insert(at, leaf);
    }

    /// Inserts a key that is behind all others. False: it is not.
    pub fn append(&mut self, keys: &impl Keys, key: &[u8], at: u32) -> bool {
        let slot = match self.leaves.last() {
            None => Slot::default(),
            Some(last) => {
                let end = last.at.len();
                let order = last.heads[end - 1].cmp(&head(key));
                if !order.then_with(|| keys.key(last.at[end - 1]).cmp(key)).is_lt() {
                    return false;
                }
                Slot { leaf: self.leaves.len() - 1, item: end }
            }
        };
        self.insert(slot, key, at);
        true
    }

    /// Inserts positions whose keys are in any order: sorting them together costs a fraction of a search each. Of equal
    /// keys the position that was inserted last stays; `hides` is called with it and the earlier one.
    pub fn merge(&mut self, keys: &impl Keys, added: &[u32], mut hides: impl FnMut(u32, u32)) {
        let mut added: Vec<(u64, u32)> = added.iter().map(|&at| (head(keys.key(at)), at)).collect();
        added.sort_unstable_by(|(head, at), (other, than)| {
            head.cmp(other).then_with(|| keys.key(*at).cmp(keys.key(*than))).then(at.cmp(than))
        });
        if added.len() * FEW < self.len {
            for (_, at) in added {
                let key = keys.key(at);
                match self.find(keys, key) {
                    Ok(slot) => hides(at, self.replace(slot, at)),
                    Err(slot) => self.insert(slot, key, at),
                }
            }
            return;
        }
        let old = std::mem::take(self);
        let old = old.leaves.into_iter().flat_map(|leaf| leaf.heads.into_iter().zip(leaf.at));
        let (mut old, mut new) = (old.peekable(), added.into_iter().peekable());
        loop {
            let first = match (old.peek(), new.peek()) {
                (None, None) => return,
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (Some((head, at)), Some((other, than))) => {
                    head.cmp(other).then_with(|| keys.key(*at).cmp(keys.key(*than))).is_le()
                }
            };
            let Some((head, at)) = (if first { old.next() } else { new.next() }) else { return };
            self.push(keys, head, at, &mut hides);
        }
    }

    /// Inserts a key behind all others, or in the last one's place.
    fn push(&mut self, keys: &impl Keys, head: u64, at: u32, hides: &mut impl FnMut(u32, u32)) {
        if let Some(last) = self.leaves.last_mut()
            && last.heads.last() == Some(&head)
            && let Some(older) = last.at.last_mut()
            && keys.key(*older) == keys.key(at)
        {
            hides(at, std::mem::replace(older, at));
            return;
        }
        if self.leaves.last().is_none_or(|last| last.at.len() == LEAF) {
            self.firsts.push(head);
            self.leaves.push(Leaf::new());
        }
        // Just seen to.
        if let Some(last) = self.leaves.last_mut() {
            last.heads.push(head);
            last.at.push(at);
            self.len += 1;
        }
    }

    /// Takes a key out.
    pub fn remove(&mut self, slot: Slot) {
        self.len -= 1;
        let leaf = &mut self.leaves[slot.leaf];
        leaf.heads.remove(slot.item);
        leaf.at.remove(slot.item);
        match leaf.heads.first() {
            Some(first) => self.firsts[slot.leaf] = *first,
            None => {
                self.leaves.remove(slot.leaf);
                self.firsts.remove(slot.leaf);
            }
        }
    }

    /// Positions of the keys within bounds.
    #[must_use]
    pub fn range(&self, keys: &impl Keys, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Positions<'_> {
        let place = |key, behind| match self.find(keys, key) {
            Ok(slot) if behind => Slot { item: slot.item + 1, ..slot },
            Ok(slot) | Err(slot) => slot,
        };
        let from = match from {
            Bound::Unbounded => Slot::default(),
            Bound::Included(key) => place(key, false),
            Bound::Excluded(key) => place(key, true),
        };
        let to = match to {
            Bound::Unbounded => Slot { leaf: self.leaves.len(), item: 0 },
            Bound::Included(key) => place(key, true),
            Bound::Excluded(key) => place(key, false),
        };
        Positions { order: self, from, to }
    }

    /// All positions.
    #[must_use]
    pub fn all(&self) -> Positions<'_> {
        Positions { order: self, from: Slot::default(), to: Slot { leaf: self.leaves.len(), item: 0 } }
    }

    /// Returns all positions, consuming the order.
    pub fn into_positions(self) -> impl Iterator<Item = u32> + std::fmt::Debug {
        self.leaves.into_iter().flat_map(|leaf| leaf.at)
    }
}

impl Leaf {
    fn new() -> Leaf {
        Leaf { heads: Vec::with_capacity(LEAF), at: Vec::with_capacity(LEAF) }
    }

    /// Splits the leaf at `item` and returns the second part.
    fn split(&mut self, item: usize) -> Leaf {
        let mut right = Leaf::new();
        right.heads.extend(self.heads.drain(item..));
        right.at.extend(self.at.drain(item..));
        right
    }
}

/// Positions in key order, from either end.
#[derive(Clone, Copy, Debug)]
pub struct Positions<'a> {
    order: &'a Order,
    from: Slot,
    to: Slot,
}

impl Iterator for Positions<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        loop {
            if self.from.cmp(&self.to) != Ordering::Less {
                return None;
            }
            if let Some(&at) = self.order.leaves.get(self.from.leaf)?.at.get(self.from.item) {
                self.from.item += 1;
                return Some(at);
            }
            self.from = Slot { leaf: self.from.leaf + 1, item: 0 };
        }
    }
}

impl DoubleEndedIterator for Positions<'_> {
    fn next_back(&mut self) -> Option<u32> {
        loop {
            if self.from.cmp(&self.to) != Ordering::Less {
                return None;
            }
            if self.to.item > 0 {
                self.to.item -= 1;
                return Some(self.order.leaves[self.to.leaf].at[self.to.item]);
            }
            let leaf = self.to.leaf.checked_sub(1)?;
            self.to = Slot { leaf, item: self.order.leaves[leaf].at.len() };
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng as _, SeedableRng as _};
    use std::collections::BTreeMap;

    struct List(Vec<Vec<u8>>);

    impl Keys for List {
        fn key(&self, at: u32) -> &[u8] {
            &self.0[at as usize]
        }
    }

    /// Keys of three kinds: in order, in none, and long ones that differ late; against a map.
    fn check(seed: u64, make: impl Fn(u32, &mut StdRng) -> Vec<u8>) {
        let mut random = StdRng::seed_from_u64(seed);
        let (mut list, mut order, mut model) = (List(Vec::new()), Order::default(), BTreeMap::new());
        for n in 0..3000u32 {
            let key = [&b"same"[..], &make(n, &mut random)].concat();
            list.0.push(key.clone());
            let before = model.insert(key.clone(), n);
            match order.find(&list, &key) {
                Ok(slot) => assert_eq!(Some(order.replace(slot, n)), before),
                Err(slot) => {
                    assert_eq!(before, None);
                    order.insert(slot, &key, n);
                }
            }
            if n % 5 == 4 {
                let gone = list.0[random.random_range(0..n) as usize].clone();
                let found = order.find(&list, &gone);
                assert_eq!(found.is_ok(), model.remove(&gone).is_some());
                if let Ok(slot) = found {
                    order.remove(slot);
                }
            }
        }
        assert_eq!(order.len(), model.len());
        for _ in 0..20 {
            let mut bound = || list.0[random.random_range(0..list.0.len())].clone();
            let (from, to) = (bound(), bound());
            let (from, to) = (from.clone().min(to.clone()), from.max(to));
            for bounds in [
                (Bound::Included(&from[..]), Bound::Excluded(&to[..])),
                (Bound::Excluded(&from[..]), Bound::Included(&to[..])),
                (Bound::Unbounded, Bound::Included(&to[..])),
                (Bound::Included(&from[..]), Bound::Unbounded),
            ] {
                if from == to {
                    continue;
                }
                let wanted: Vec<u32> = model.range::<[u8], _>(bounds).map(|(_, at)| *at).collect();
                let range = order.range(&list, bounds.0, bounds.1);
                assert_eq!(range.collect::<Vec<_>>(), wanted, "seed {seed}");
                assert_eq!(range.rev().collect::<Vec<_>>(), wanted.iter().rev().copied().collect::<Vec<_>>());
                let (mut both, mut met) = (range, Vec::new());
                while let Some(front) = both.next() {
                    met.push(front);
                    met.extend(both.next_back());
                }
                met.sort_by_key(|&at| list.key(at));
                assert_eq!(met, wanted, "from both ends");
            }
        }
        let all: Vec<u32> = model.values().copied().collect();
        assert_eq!(order.all().collect::<Vec<_>>(), all);
        assert_eq!(order.into_positions().collect::<Vec<_>>(), all);
    }

    #[test]
    fn an_order_is_a_map_s() {
        for seed in 0..2 {
            check(seed, |n, _| n.to_be_bytes().to_vec());
            check(seed, |_, random| random.random::<u64>().to_be_bytes().to_vec());
            check(seed, |_, random| random.random_range(0..2000u16).to_string().into_bytes());
            check(seed, |_, random| {
                [&b"alike in eight bytes"[..], &random.random::<u16>().to_le_bytes()].concat()
            });
        }
    }

    #[test]
    fn what_is_merged_is_as_if_it_had_been_inserted() {
        let mut random = StdRng::seed_from_u64(3);
        for sizes in [[0, 1], [1, 0], [1, 400], [900, 900], [3000, 100], [2000, 2000]] {
            let key =
                |random: &mut StdRng| [&b"same"[..], &random.random_range(0..1500u32).to_le_bytes()].concat();
            let list = List((0..sizes[0] + sizes[1]).map(|_| key(&mut random)).collect());
            let (mut order, mut model, mut hidden) = (Order::default(), BTreeMap::new(), Vec::new());
            let mut expected = Vec::new();
            for at in 0..(sizes[0] + sizes[1]) as u32 {
                if let Some(older) = model.insert(list.key(at), at) {
                    expected.push((at, older));
                }
            }
            let all: Vec<u32> = (0..(sizes[0] + sizes[1]) as u32).collect();
            order.merge(&list, &all[..sizes[0]], |newer, older| hidden.push((newer, older)));
            order.merge(&list, &all[sizes[0]..], |newer, older| hidden.push((newer, older)));
            hidden.sort_unstable();
            assert_eq!(hidden, expected);
            assert_eq!(order.all().collect::<Vec<_>>(), model.values().copied().collect::<Vec<_>>());
            assert_eq!(order.len(), model.len());
            assert!(
                model.iter().all(|(key, at)| order.find(&list, key).map(|slot| order.at(slot)) == Ok(*at))
            );
        }
    }

    #[test]
    fn keys_in_order_fill_their_leaves() {
        let list = List((0..10_000u32).map(|n| [&b"same"[..], &n.to_be_bytes()].concat()).collect());
        let mut order = Order::default();
        for at in 0..10_000 {
            assert!(order.append(&list, list.key(at), at));
        }
        assert!(!order.append(&list, list.key(4711), 4711));
        assert_eq!(order.leaves.len(), 10_000usize.div_ceil(LEAF));
    }
}
