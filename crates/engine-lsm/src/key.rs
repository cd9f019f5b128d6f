//! A key with a commit number, and bounds of them.

use crate::list::{Entry, Probe};
use bytes::Bytes;
use std::ops::Bound;

/// A key and a commit number: the position at which a scan continues.
#[derive(Clone, Debug)]
pub(crate) struct VersionKey {
    pub(crate) key: Bytes,
    pub(crate) number: u64,
}

impl VersionKey {
    pub(crate) fn of(entry: &Entry<'_>) -> VersionKey {
        VersionKey { key: entry.key(&mut [0; 16]).to_bytes(), number: entry.number() }
    }

    pub(crate) fn probe(&self) -> Probe<'_> {
        Probe::new(&self.key, self.number)
    }
}

/// The bounds of a scan that is under way: they shrink from the side it starts at.
pub(crate) type Span = (Bound<VersionKey>, Bound<VersionKey>);

/// Bounds over keys.
pub(crate) type Keys<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);

/// Bounds over keys as bounds over versions: all versions of an included key, none of an excluded.
pub(crate) fn span(from: Bound<&[u8]>, to: Bound<&[u8]>) -> Span {
    let version = |key: &[u8], number| VersionKey { key: Bytes::copy_from_slice(key), number };
    let from = match from {
        Bound::Included(key) => Bound::Included(version(key, u64::MAX)),
        Bound::Excluded(key) => Bound::Excluded(version(key, 0)),
        Bound::Unbounded => Bound::Unbounded,
    };
    let to = match to {
        Bound::Included(key) => Bound::Included(version(key, 0)),
        Bound::Excluded(key) => Bound::Excluded(version(key, u64::MAX)),
        Bound::Unbounded => Bound::Unbounded,
    };
    (from, to)
}
