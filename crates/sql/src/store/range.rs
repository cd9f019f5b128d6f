//! Ranges of an index, and the rows found in them.

use bytes::Bytes;
use std::ops::Bound;

/// A row and its key in the clustered index (with the space prefix).
#[derive(Clone, Debug)]
pub struct RowAt {
    /// Clustered key.
    pub key: Bytes,
    /// Full row image.
    pub row: Bytes,
}

/// A range of full keys (with the space prefix) of one index, and a direction.
#[derive(Clone, Debug)]
pub struct KeyRange {
    /// Lower bound.
    pub from: Bound<Bytes>,
    /// Upper bound.
    pub to: Bound<Bytes>,
    /// Descending.
    pub reverse: bool,
}

/// Reference form of a bound.
pub(crate) fn by_ref(bound: &Bound<Bytes>) -> Bound<&[u8]> {
    match bound {
        Bound::Included(key) => Bound::Included(key),
        Bound::Excluded(key) => Bound::Excluded(key),
        Bound::Unbounded => Bound::Unbounded,
    }
}

impl KeyRange {
    /// Whether nothing can be in it. `BTreeMap::range` panics on such bounds.
    pub(super) fn is_empty(&self) -> bool {
        match (by_ref(&self.from), by_ref(&self.to)) {
            (Bound::Included(from), Bound::Included(to)) => from > to,
            (Bound::Included(from) | Bound::Excluded(from), Bound::Included(to) | Bound::Excluded(to)) => {
                from >= to
            }
            _ => false,
        }
    }

    /// Goes on behind `key`.
    pub fn resume_after(&mut self, key: Bytes) {
        if self.reverse {
            self.to = Bound::Excluded(key);
        } else {
            self.from = Bound::Excluded(key);
        }
    }
}
