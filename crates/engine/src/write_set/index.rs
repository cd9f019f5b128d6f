//! The index of a write set: for each key the position of its live write in the list, in key order.
//!
//! A few keys are one sorted array. More keys have an order of their own for each space, because keys begin with the
//! number of their space: rows of a bulk load arrive in the order of their keys, while entries of the table's other
//! indexes arrive in between and in no order. The latter may be left unsorted until they are read (`insert_loose`):
//! sorting them together costs a fraction of a search each.

use super::log::Log;
use omnibus_ordered::{Keys, Order, Positions as SpacePositions};
use smallvec::SmallVec;
use std::ops::{Bound, RangeBounds};

/// Keys up to which one array takes a key in its middle.
const SMALL: usize = 128;

/// See the module.
#[derive(Debug)]
pub(super) enum Index {
    /// The keys of all spaces.
    Few(SmallVec<[u32; 4]>),
    /// The keys by their prefix. No entry is empty.
    Spaces(Vec<(u32, Space)>),
}

#[derive(Debug, Default)]
pub(super) struct Space {
    order: Order,
    /// Writes that are not in the order yet, oldest first.
    loose: Vec<u32>,
}

impl Space {
    fn settle(&mut self, log: &mut Log) {
        let loose = std::mem::take(&mut self.loose);
        if loose.is_empty() {
            return;
        }
        let mut hidden = Vec::new();
        self.order.merge(log, &loose, |newer, older| hidden.push((newer, older)));
        for (newer, older) in hidden {
            log.set_hides(newer, older);
        }
    }

    fn is_empty(&self) -> bool {
        self.order.is_empty() && self.loose.is_empty()
    }
}

impl Default for Index {
    fn default() -> Index {
        Index::Few(SmallVec::new())
    }
}

/// Returns a key's first bytes, padded with zeros, which sort as the keys do.
pub(super) fn prefix(key: &[u8]) -> u32 {
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
    pub(super) fn insert(&mut self, log: &mut Log, key: &[u8], at: u32) -> Option<u32> {
        let spaces = match self {
            Index::Few(order) => match place(order, log, key) {
                Ok(found) => return Some(std::mem::replace(&mut order[found], at)),
                Err(gap) if order.len() < SMALL => {
                    order.insert(gap, at);
                    return None;
                }
                Err(_) => {
                    *self = Index::Spaces(by_spaces(order, log));
                    return self.insert(log, key, at);
                }
            },
            Index::Spaces(spaces) => spaces,
        };
        let space = space_of(spaces, key);
        space.settle(log);
        let order = &mut space.order;
        match order.find(log, key) {
            Ok(slot) => Some(order.replace(slot, at)),
            Err(slot) => {
                order.insert(slot, key, at);
                None
            }
        }
    }

    /// As `insert`, for a key that is not expected to be searched for soon.
    pub(super) fn insert_loose(&mut self, log: &mut Log, key: &[u8], at: u32) -> Option<u32> {
        let Index::Spaces(spaces) = self else { return self.insert(log, key, at) };
        let space = space_of(spaces, key);
        if !space.loose.is_empty() || !space.order.append(log, key, at) {
            space.loose.push(at);
        }
        None
    }

    /// Brings the writes of a key's space into order.
    pub(super) fn settle(&mut self, log: &mut Log, key: &[u8]) {
        if let Index::Spaces(spaces) = self
            && let Ok(space) = find(spaces, key)
        {
            spaces[space].1.settle(log);
        }
    }

    pub(super) fn settle_all(&mut self, log: &mut Log) {
        if let Index::Spaces(spaces) = self {
            spaces.iter_mut().for_each(|(_, space)| space.settle(log));
        }
    }

    /// Returns whether everything is sorted.
    pub(super) fn is_settled(&self) -> bool {
        match self {
            Index::Few(_) => true,
            Index::Spaces(spaces) => spaces.iter().all(|(_, space)| space.loose.is_empty()),
        }
    }

    pub(super) fn get(&self, log: &Log, key: &[u8]) -> Option<u32> {
        match self {
            Index::Few(order) => Some(order[place(order, log, key).ok()?]),
            Index::Spaces(spaces) => {
                let Space { order, loose } = &spaces[find(spaces, key).ok()?].1;
                let newest = loose.iter().rev().copied().find(|&at| log.key(at) == key);
                newest.or_else(|| Some(order.at(order.find(log, key).ok()?)))
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Index::Few(order) => order.len(),
            Index::Spaces(spaces) => spaces.iter().map(|(_, space)| space.order.len()).sum(),
        }
    }

    /// The list's last write, at `last`, is going to be undone.
    pub(super) fn take_back(&mut self, log: &Log, last: u32) {
        let (key, hides) = (log.key(last), log.hides(last));
        match self {
            Index::Few(order) => match (place(order, log, key), hides) {
                (Ok(at), Some(before)) => order[at] = before,
                (Ok(at), None) => {
                    order.remove(at);
                }
                (Err(_), _) => {}
            },
            Index::Spaces(spaces) => {
                let Ok(space) = find(spaces, key) else { return };
                let Space { order, loose } = &mut spaces[space].1;
                if loose.pop_if(|newest| *newest == last).is_none() {
                    match (order.find(log, key), hides) {
                        (Ok(slot), Some(before)) => {
                            order.replace(slot, before);
                        }
                        (Ok(slot), None) => order.remove(slot),
                        (Err(_), _) => {}
                    }
                }
                if spaces[space].1.is_empty() {
                    spaces.remove(space);
                }
            }
        }
    }

    pub(super) fn range<'a>(&'a self, log: &Log, range: &impl RangeBounds<[u8]>) -> Positions<'a> {
        let (start, end) = (range.start_bound(), range.end_bound());
        let spaces = match self {
            Index::Few(order) => {
                let front = Some(Part::Array(within(order, log, start, end).iter()));
                return Positions { front, middle: &[], back: None };
            }
            Index::Spaces(spaces) if self.is_settled() => spaces,
            Index::Spaces(spaces) => {
                let front = Some(Part::Owned(unsettled(spaces, log, range).into_iter()));
                return Positions { front, middle: &[], back: None };
            }
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
        // Bounds of another space say nothing within this one.
        let part = |(own, Space { order, .. }): &'a (u32, Space)| {
            let of_this = |bound: Bound<&'_ [u8]>| match bound {
                Bound::Included(key) | Bound::Excluded(key) => prefix(key) == *own,
                Bound::Unbounded => false,
            };
            let start = if of_this(start) { start } else { Bound::Unbounded };
            let end = if of_this(end) { end } else { Bound::Unbounded };
            Some(Part::Order(order.range(log, start, end)))
        };
        match spaces.get(from..to).unwrap_or_default() {
            [] => Positions { front: None, middle: &[], back: None },
            [one] => Positions { front: part(one), middle: &[], back: None },
            [first, middle @ .., last] => Positions { front: part(first), middle, back: part(last) },
        }
    }

    pub(super) fn into_positions(self) -> IntoPositions {
        match self {
            Index::Few(order) => IntoPositions { now: Some(order.into_iter()), spaces: None },
            Index::Spaces(spaces) => {
                let all = spaces.into_iter().map(|(_, space)| space.order);
                IntoPositions { now: None, spaces: Some(Box::new(all.flat_map(Order::into_positions))) }
            }
        }
    }

    #[cfg(test)]
    pub(super) fn has_spaces(&self) -> bool {
        matches!(self, Index::Spaces(_))
    }
}

/// The space of a key, made if there is none.
fn space_of<'s>(spaces: &'s mut Vec<(u32, Space)>, key: &[u8]) -> &'s mut Space {
    let at = find(spaces, key).unwrap_or_else(|gap| {
        spaces.insert(gap, (prefix(key), Space::default()));
        gap
    });
    &mut spaces[at].1
}

/// Returns the positions within a range while some keys are unsorted, which is slow.
fn unsettled(spaces: &[(u32, Space)], log: &Log, range: &impl RangeBounds<[u8]>) -> Vec<u32> {
    let all = spaces.iter().flat_map(|(_, space)| space.order.all().chain(space.loose.iter().copied()));
    let mut within: Vec<u32> = all.filter(|&at| range.contains(log.key(at))).collect();
    // The newest of a key first.
    within.sort_unstable_by(|&at, &than| log.key(at).cmp(log.key(than)).then(than.cmp(&at)));
    within.dedup_by(|at, before| log.key(*at) == log.key(*before));
    within
}

fn by_spaces(order: &[u32], log: &Log) -> Vec<(u32, Space)> {
    let mut spaces: Vec<(u32, Space)> = Vec::new();
    for &at in order {
        let key = log.key(at);
        if spaces.last().is_none_or(|(last, _)| *last != prefix(key)) {
            spaces.push((prefix(key), Space::default()));
        }
        if let Some((_, space)) = spaces.last_mut() {
            space.order.append(log, key, at);
        }
    }
    spaces
}

/// The part of an array within bounds.
fn within<'a>(order: &'a [u32], log: &Log, start: Bound<&[u8]>, end: Bound<&[u8]>) -> &'a [u32] {
    let order = &order[first(order, log, start)..];
    &order[..behind(order, log, end)]
}

/// Returns the key's place in the array, or the place where it belongs. A place behind the last key is found at once.
fn place(order: &[u32], log: &Log, key: &[u8]) -> Result<usize, usize> {
    match order.last() {
        Some(&last) if log.key(last) >= key => order.binary_search_by(|&at| log.key(at).cmp(key)),
        _ => Err(order.len()),
    }
}

fn first(order: &[u32], log: &Log, bound: Bound<&[u8]>) -> usize {
    match bound {
        Bound::Unbounded => 0,
        Bound::Included(key) => order.partition_point(|&at| log.key(at) < key),
        Bound::Excluded(key) => order.partition_point(|&at| log.key(at) <= key),
    }
}

fn behind(order: &[u32], log: &Log, bound: Bound<&[u8]>) -> usize {
    match bound {
        Bound::Unbounded => order.len(),
        Bound::Included(key) => order.partition_point(|&at| log.key(at) <= key),
        Bound::Excluded(key) => order.partition_point(|&at| log.key(at) < key),
    }
}

/// Positions of one space, in key order.
#[derive(Clone, Debug)]
enum Part<'a> {
    Array(std::slice::Iter<'a, u32>),
    Order(SpacePositions<'a>),
    Owned(std::vec::IntoIter<u32>),
}

impl Iterator for Part<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        match self {
            Part::Array(order) => order.next().copied(),
            Part::Order(order) => order.next(),
            Part::Owned(all) => all.next(),
        }
    }
}

impl DoubleEndedIterator for Part<'_> {
    fn next_back(&mut self) -> Option<u32> {
        match self {
            Part::Array(order) => order.next_back().copied(),
            Part::Order(order) => order.next_back(),
            Part::Owned(all) => all.next_back(),
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
            (self.front, self.middle) = (Some(Part::Order(space.order.all())), rest);
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
            (self.back, self.middle) = (Some(Part::Order(space.order.all())), rest);
        }
    }
}

/// Positions in key order, taken out of their index.
pub(super) struct IntoPositions {
    now: Option<smallvec::IntoIter<[u32; 4]>>,
    spaces: Option<Box<dyn Iterator<Item = u32> + Send>>,
}

impl std::fmt::Debug for IntoPositions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IntoPositions").finish_non_exhaustive()
    }
}

impl Iterator for IntoPositions {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        match (&mut self.now, &mut self.spaces) {
            (Some(few), _) => few.next(),
            (None, spaces) => spaces.as_mut()?.next(),
        }
    }
}
