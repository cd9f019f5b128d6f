//! Half-open key intervals, and a transaction's set of them in one space, kept merged.
//!
//! Merging loses nothing: range locks have no modes and all go at the end of the transaction. It
//! keeps a check at one binary search a transaction however many ranges that has locked.

use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::Bound;

/// From a key, inclusive, to a key, exclusive, or to the end of the space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) from: Bytes,
    pub(crate) to: Option<Bytes>,
}

impl Interval {
    /// Byte strings have a next one (`key` followed by a zero), so half-open is enough.
    pub(crate) fn new(from: Bound<&[u8]>, to: Bound<&[u8]>) -> Interval {
        let from = match from {
            Bound::Unbounded => Bytes::new(),
            Bound::Included(key) => Bytes::copy_from_slice(key),
            Bound::Excluded(key) => successor(key),
        };
        let to = match to {
            Bound::Unbounded => None,
            Bound::Included(key) => Some(successor(key)),
            Bound::Excluded(key) => Some(Bytes::copy_from_slice(key)),
        };
        Interval { from, to }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.to.as_ref().is_some_and(|to| *to <= self.from)
    }

    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        *key >= self.from[..] && self.to.as_ref().is_none_or(|to| key < &to[..])
    }

    /// The bounds for `BTreeMap::range`. The interval must not be empty.
    pub(crate) fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let to = self.to.as_ref().map_or(Bound::Unbounded, |to| Bound::Excluded(&to[..]));
        (Bound::Included(&self.from[..]), to)
    }
}

fn successor(key: &[u8]) -> Bytes {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    Bytes::from(next)
}

/// Disjoint intervals, by their start.
#[derive(Debug, Default)]
pub(crate) struct IntervalSet(BTreeMap<Bytes, Option<Bytes>>);

impl IntervalSet {
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        let before = self.0.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back();
        before.is_some_and(|(_, to)| to.as_ref().is_none_or(|to| key < &to[..]))
    }

    /// Returns whether one of the intervals contains all of `interval`.
    pub(crate) fn covers(&self, interval: &Interval) -> bool {
        let start = (Bound::Unbounded, Bound::Included(&interval.from[..]));
        self.0.range::<[u8], _>(start).next_back().is_some_and(|(_, to)| ends_by(&interval.to, to))
    }

    pub(crate) fn insert(&mut self, interval: Interval) {
        let Interval { mut from, mut to } = interval;
        loop {
            let reach = to.as_ref().map_or(Bound::Unbounded, |to| Bound::Included(&to[..]));
            let last = self.0.range::<[u8], _>((Bound::Unbounded, reach)).next_back();
            let Some((start, end)) = last else { break };
            if end.as_ref().is_some_and(|end| *end < from) {
                break;
            }
            let (start, end) = (start.clone(), end.clone());
            self.0.remove(&start);
            from = from.min(start);
            if ends_by(&to, &end) {
                to = end;
            }
        }
        self.0.insert(from, to);
    }
}

/// Returns whether an interval that ends at `inner` ends no later than one that ends at `outer`.
fn ends_by(inner: &Option<Bytes>, outer: &Option<Bytes>) -> bool {
    match (inner, outer) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(inner), Some(outer)) => inner <= outer,
    }
}
