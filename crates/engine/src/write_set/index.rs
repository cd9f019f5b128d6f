//! Which write of each key is the live one: positions in a write set's list, in key order.
//!
//! Keys begin with the number of their space, and rows of a bulk load come in the order of their keys, while entries of the
//! table's other indexes come in between and in no order. So each space has an index of its own, once there are more than a few
//! keys. It is a sorted array of positions for as long as keys come in order, or are few: no allocation and no reference count
//! a key. Else it becomes a tree.

use super::Entry;
use bytes::Bytes;
use std::collections::{BTreeMap, btree_map};
use std::ops::{Bound, RangeBounds};

/// Keys up to which an array takes a key in its middle: moving its positions is cheaper than a tree's nodes.
const SMALL: usize = 128;

/// See the module.
#[derive(Debug)]
pub(super) enum Index {
    /// Of all spaces.
    Few(Vec<u32>),
    /// By the beginnings of their keys. None is empty.
    Spaces(Vec<(u32, Space)>),
}

impl Default for Index {
    fn default() -> Index {
        Index::Few(Vec::new())
    }
}

#[derive(Debug)]
pub(super) enum Space {
    Array(Vec<u32>),
    Tree(BTreeMap<Bytes, u32>),
}

/// What a key begins with, padded with zeros: sorts as the keys do.
fn prefix(key: &[u8]) -> u32 {
    match key.first_chunk() {
        Some(first) => u32::from_be_bytes(*first),
        None => {
            key.iter().zip([24, 16, 8]).fold(0, |prefix, (byte, shift)| prefix | u32::from(*byte) << shift)
        }
    }
}

fn find(spaces: &[(u32, Space)], key: &[u8]) -> Result<usize, usize> {
    let wanted = prefix(key);
    spaces.binary_search_by_key(&wanted, |(prefix, _)| *prefix)
}

impl Index {
    /// The write at `at`, which the list does not have yet, is the live one of its key. The one that it hides.
    pub(super) fn insert(&mut self, log: &[Entry], key: &Bytes, at: u32) -> Option<u32> {
        match self {
            Index::Few(order) => match place(order, log, key) {
                Ok(found) => return Some(std::mem::replace(&mut order[found], at)),
                Err(gap) if order.len() < SMALL => order.insert(gap, at),
                Err(_) => {
                    let mut spaces: Vec<(u32, Space)> = Vec::new();
                    for &at in &*order {
                        let prefix = prefix(&log[at as usize].key);
                        match spaces.last_mut() {
                            Some((last, Space::Array(order))) if *last == prefix => order.push(at),
                            _ => spaces.push((prefix, Space::Array(vec![at]))),
                        }
                    }
                    *self = Index::Spaces(spaces);
                    return self.insert(log, key, at);
                }
            },
            Index::Spaces(spaces) => match find(spaces, key) {
                Ok(found) => return spaces[found].1.insert(log, key, at),
                Err(gap) => spaces.insert(gap, (prefix(key), Space::Array(vec![at]))),
            },
        }
        None
    }

    pub(super) fn get(&self, log: &[Entry], key: &[u8]) -> Option<u32> {
        let array = |order: &[u32]| Some(order[place(order, log, key).ok()?]);
        match self {
            Index::Few(order) => array(order),
            Index::Spaces(spaces) => match &spaces[find(spaces, key).ok()?].1 {
                Space::Array(order) => array(order),
                Space::Tree(tree) => tree.get(key).copied(),
            },
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Index::Few(order) => order.len(),
            Index::Spaces(spaces) => spaces.iter().map(|(_, space)| space.len()).sum(),
        }
    }

    /// The list's last write is going to be undone.
    pub(super) fn take_back(&mut self, log: &[Entry]) {
        let Some(Entry { key, hides, .. }) = log.last() else { return };
        match self {
            Index::Few(order) => take_back(order, log, key, *hides),
            Index::Spaces(spaces) => {
                let Ok(found) = find(spaces, key) else { return };
                match (&mut spaces[found].1, hides) {
                    (Space::Array(order), hides) => take_back(order, log, key, *hides),
                    (Space::Tree(tree), Some(before)) => {
                        tree.insert(key.clone(), *before);
                    }
                    (Space::Tree(tree), None) => {
                        tree.remove(key);
                    }
                }
                if spaces[found].1.len() == 0 {
                    spaces.remove(found);
                }
            }
        }
    }

    pub(super) fn range<'a>(&'a self, log: &[Entry], range: &impl RangeBounds<[u8]>) -> Positions<'a> {
        let (start, end) = (range.start_bound(), range.end_bound());
        let spaces = match self {
            Index::Few(order) => {
                let front = Some(Part::Array(within(order, log, start, end).iter()));
                return Positions { front, middle: &[], back: None };
            }
            Index::Spaces(spaces) => spaces,
        };
        let from = match start {
            Bound::Unbounded => 0,
            Bound::Included(key) | Bound::Excluded(key) => {
                let wanted = prefix(key);
                spaces.partition_point(|(prefix, _)| *prefix < wanted)
            }
        };
        let to = match end {
            Bound::Unbounded => spaces.len(),
            Bound::Included(key) | Bound::Excluded(key) => {
                let wanted = prefix(key);
                spaces.partition_point(|(prefix, _)| *prefix <= wanted)
            }
        };
        let part = |space: &'a (u32, Space)| Some(space.1.range(log, start, end));
        match spaces.get(from..to).unwrap_or_default() {
            [] => Positions { front: None, middle: &[], back: None },
            [one] => Positions { front: part(one), middle: &[], back: None },
            [first, middle @ .., last] => Positions { front: part(first), middle, back: part(last) },
        }
    }

    pub(super) fn into_positions(self) -> IntoPositions {
        match self {
            Index::Few(order) => {
                IntoPositions { now: Some(Owned::Array(order.into_iter())), spaces: Vec::new().into_iter() }
            }
            Index::Spaces(spaces) => IntoPositions { now: None, spaces: spaces.into_iter() },
        }
    }

    #[cfg(test)]
    pub(super) fn has_tree(&self) -> bool {
        match self {
            Index::Few(_) => false,
            Index::Spaces(spaces) => spaces.iter().any(|(_, space)| matches!(space, Space::Tree(_))),
        }
    }
}

/// Of an array: the list's last write, of `key`, is undone.
fn take_back(order: &mut Vec<u32>, log: &[Entry], key: &[u8], hides: Option<u32>) {
    match (place(order, log, key), hides) {
        (Ok(at), Some(before)) => order[at] = before,
        (Ok(at), None) => {
            order.remove(at);
        }
        (Err(_), _) => {}
    }
}

/// The part of an array within bounds.
fn within<'a>(order: &'a [u32], log: &[Entry], start: Bound<&[u8]>, end: Bound<&[u8]>) -> &'a [u32] {
    let order = &order[first(order, log, start)..];
    &order[..behind(order, log, end)]
}

impl Space {
    fn len(&self) -> usize {
        match self {
            Space::Array(order) => order.len(),
            Space::Tree(tree) => tree.len(),
        }
    }

    fn insert(&mut self, log: &[Entry], key: &Bytes, at: u32) -> Option<u32> {
        let order = match self {
            Space::Tree(tree) => return tree.insert(key.clone(), at),
            Space::Array(order) => order,
        };
        match place(order, log, key) {
            Ok(found) => return Some(std::mem::replace(&mut order[found], at)),
            Err(gap) if gap == order.len() || order.len() < SMALL => order.insert(gap, at),
            Err(_) => {
                let live = order.iter().map(|&at| (log[at as usize].key.clone(), at));
                let mut tree: BTreeMap<_, _> = live.collect();
                tree.insert(key.clone(), at);
                *self = Space::Tree(tree);
            }
        }
        None
    }

    fn range(&self, log: &[Entry], start: Bound<&[u8]>, end: Bound<&[u8]>) -> Part<'_> {
        match self {
            Space::Array(order) => Part::Array(within(order, log, start, end).iter()),
            Space::Tree(tree) => Part::Tree(tree.range::<[u8], _>((start, end))),
        }
    }

    fn all(&self) -> Part<'_> {
        match self {
            Space::Array(order) => Part::Array(order.iter()),
            Space::Tree(tree) => Part::Tree(tree.range::<[u8], _>((Bound::Unbounded, Bound::Unbounded))),
        }
    }
}

/// Where the key is in the array, or would be. Behind the last one it is found at once.
fn place(order: &[u32], log: &[Entry], key: &[u8]) -> Result<usize, usize> {
    match order.last() {
        Some(&last) if log[last as usize].key[..] >= *key => {
            order.binary_search_by(|&at| log[at as usize].key[..].cmp(key))
        }
        _ => Err(order.len()),
    }
}

fn first(order: &[u32], log: &[Entry], bound: Bound<&[u8]>) -> usize {
    match bound {
        Bound::Unbounded => 0,
        Bound::Included(key) => order.partition_point(|&at| log[at as usize].key[..] < *key),
        Bound::Excluded(key) => order.partition_point(|&at| log[at as usize].key[..] <= *key),
    }
}

fn behind(order: &[u32], log: &[Entry], bound: Bound<&[u8]>) -> usize {
    match bound {
        Bound::Unbounded => order.len(),
        Bound::Included(key) => order.partition_point(|&at| log[at as usize].key[..] <= *key),
        Bound::Excluded(key) => order.partition_point(|&at| log[at as usize].key[..] < *key),
    }
}

/// Positions of one space, in key order.
#[derive(Clone, Debug)]
enum Part<'a> {
    Array(std::slice::Iter<'a, u32>),
    Tree(btree_map::Range<'a, Bytes, u32>),
}

impl Iterator for Part<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        match self {
            Part::Array(order) => order.next().copied(),
            Part::Tree(range) => range.next().map(|(_, at)| *at),
        }
    }
}

impl DoubleEndedIterator for Part<'_> {
    fn next_back(&mut self) -> Option<u32> {
        match self {
            Part::Array(order) => order.next_back().copied(),
            Part::Tree(range) => range.next_back().map(|(_, at)| *at),
        }
    }
}

/// Positions in key order.
#[derive(Clone, Debug)]
pub(super) struct Positions<'a> {
    front: Option<Part<'a>>,
    /// Spaces that neither end has come to.
    middle: &'a [(u32, Space)],
    back: Option<Part<'a>>,
}

impl Iterator for Positions<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        loop {
            if let Some(at) = self.front.as_mut().and_then(Iterator::next) {
                return Some(at);
            }
            let Some(((_, space), rest)) = self.middle.split_first() else {
                return self.back.as_mut()?.next();
            };
            (self.front, self.middle) = (Some(space.all()), rest);
        }
    }
}

impl DoubleEndedIterator for Positions<'_> {
    fn next_back(&mut self) -> Option<u32> {
        loop {
            if let Some(at) = self.back.as_mut().and_then(DoubleEndedIterator::next_back) {
                return Some(at);
            }
            let Some(((_, space), rest)) = self.middle.split_last() else {
                return self.front.as_mut()?.next_back();
            };
            (self.back, self.middle) = (Some(space.all()), rest);
        }
    }
}

/// Positions in key order, taken out of their index.
#[derive(Debug)]
pub(super) struct IntoPositions {
    spaces: std::vec::IntoIter<(u32, Space)>,
    now: Option<Owned>,
}

#[derive(Debug)]
enum Owned {
    Array(std::vec::IntoIter<u32>),
    Tree(btree_map::IntoValues<Bytes, u32>),
}

impl Iterator for IntoPositions {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        loop {
            let next = match &mut self.now {
                Some(Owned::Array(order)) => order.next(),
                Some(Owned::Tree(tree)) => tree.next(),
                None => None,
            };
            if next.is_some() {
                return next;
            }
            self.now = Some(match self.spaces.next()?.1 {
                Space::Array(order) => Owned::Array(order.into_iter()),
                Space::Tree(tree) => Owned::Tree(tree.into_values()),
            });
        }
    }
}
