//! Versions of keys in memory, ordered by key, newest first within a key.
//!
//! One writer (the commit thread, or a load in its own memtable), any number of readers, no lock.
//! A crossbeam skip list, with the first 16 bytes of the key inside the node: nearly every index
//! key of a small primary key fits, so a comparison does not leave the node.

use bytes::Bytes;
use crossbeam_skiplist::SkipMap;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering as Memory};

const HEAD: usize = 16;
/// A guess at what a node costs besides key and value bytes.
const NODE_BYTES: u64 = 160;

/// A key and a commit number. Sorts by key, then newest first.
#[derive(Clone, Debug)]
pub(crate) struct VersionKey {
    /// The first 16 bytes, big-endian, zero-padded.
    head: u128,
    len: u32,
    /// The whole key; empty in a probe whose key fits `head`.
    key: Bytes,
    number: u64,
}

impl VersionKey {
    fn new(key: Bytes, number: u64) -> VersionKey {
        VersionKey { head: head(&key), len: key.len() as u32, key, number }
    }

    /// For lookups: copies the key only where comparisons may need all of it.
    pub(crate) fn probe(key: &[u8], number: u64) -> VersionKey {
        let rest = if key.len() > HEAD { Bytes::copy_from_slice(key) } else { Bytes::new() };
        VersionKey { head: head(key), len: key.len() as u32, key: rest, number }
    }

    fn cmp_key(&self, other: &VersionKey) -> Ordering {
        self.head.cmp(&other.head).then_with(|| {
            let (short, long) = (HEAD as u32, self.len.min(other.len));
            if long <= short {
                // Equal heads: the shorter is the other without some zeros.
                self.len.cmp(&other.len)
            } else {
                self.key[HEAD..].cmp(&other.key[HEAD..])
            }
        })
    }
}

fn head(key: &[u8]) -> u128 {
    let mut head = [0; HEAD];
    let len = key.len().min(HEAD);
    head[..len].copy_from_slice(&key[..len]);
    u128::from_be_bytes(head)
}

impl Ord for VersionKey {
    fn cmp(&self, other: &VersionKey) -> Ordering {
        self.cmp_key(other).then_with(|| other.number.cmp(&self.number))
    }
}

impl PartialOrd for VersionKey {
    fn partial_cmp(&self, other: &VersionKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for VersionKey {
    fn eq(&self, other: &VersionKey) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for VersionKey {}

/// One version: `None` is a deletion.
pub(crate) struct Version {
    pub(crate) key: Bytes,
    pub(crate) number: u64,
    pub(crate) value: Option<Bytes>,
}

/// The bounds of a scan that is under way: they shrink from the side it starts at.
pub(crate) type Span = (Bound<VersionKey>, Bound<VersionKey>);

#[derive(Default)]
pub(crate) struct MemTable {
    map: SkipMap<VersionKey, Option<Bytes>>,
    bytes: AtomicU64,
    /// The number of a bulk load; such a memtable holds nothing else and covers nothing.
    pub(crate) loaded_at: Option<u64>,
    /// Everything up to this number that is not in an older memtable is here.
    pub(crate) covers: AtomicU64,
    /// What has been written out already, if it was written out in part.
    pub(crate) flushed: AtomicU64,
}

impl MemTable {
    pub(crate) fn for_load(at: u64) -> MemTable {
        MemTable { loaded_at: Some(at), ..MemTable::default() }
    }

    pub(crate) fn insert(&self, key: Bytes, number: u64, value: Option<Bytes>) {
        let bytes = key.len() + value.as_ref().map_or(0, Bytes::len);
        self.bytes.fetch_add(bytes as u64 + NODE_BYTES, Memory::Relaxed);
        self.map.insert(VersionKey::new(key, number), value);
    }

    /// Approximate memory use.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Memory::Relaxed)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// The newest version that `probe` may see (its number is the snapshot's): outer `None` if this
    /// memtable knows nothing of the key.
    pub(crate) fn get(&self, probe: &VersionKey) -> Option<(u64, Option<Bytes>)> {
        let entry = self.map.lower_bound(Bound::Included(probe))?;
        let found = entry.key();
        (found.cmp_key(probe) == Ordering::Equal).then(|| (found.number, entry.value().clone()))
    }

    /// All versions, for a flush.
    pub(crate) fn versions(&self) -> impl Iterator<Item = Version> {
        self.map.iter().map(|entry| Version {
            key: entry.key().key.clone(),
            number: entry.key().number,
            value: entry.value().clone(),
        })
    }

    /// Appends to `out` what a snapshot at `at` sees of the next `count` keys in `span`, in the
    /// direction asked for, deletions included, and shrinks the span. Tells whether more may follow.
    ///
    /// In batches, because an iterator would borrow the memtable, which the scan must own; a
    /// batch also seeks once instead of once a key.
    pub(crate) fn batch(
        &self,
        span: &mut Span,
        at: u64,
        reverse: bool,
        count: usize,
        out: &mut VecDeque<Version>,
    ) -> bool {
        let last =
            if reverse { self.backward(span, at, count, out) } else { self.forward(span, at, count, out) };
        let Some(last) = last else { return false };
        match reverse {
            false => span.0 = Bound::Excluded(VersionKey { number: 0, ..last }),
            true => span.1 = Bound::Excluded(VersionKey { number: u64::MAX, ..last }),
        }
        true
    }

    /// The last key looked at if there is more behind it.
    fn forward(&self, span: &Span, at: u64, count: usize, out: &mut VecDeque<Version>) -> Option<VersionKey> {
        let mut last: Option<VersionKey> = None;
        let mut left = count;
        for entry in self.map.range::<VersionKey, _>((span.0.as_ref(), span.1.as_ref())) {
            let key = entry.key();
            let seen = last.as_ref().is_some_and(|last| last.cmp_key(key) == Ordering::Equal);
            if seen || key.number > at {
                continue;
            }
            if left == 0 {
                return last;
            }
            out.push_back(Version { key: key.key.clone(), number: key.number, value: entry.value().clone() });
            last = Some(key.clone());
            left -= 1;
        }
        None
    }

    /// Backwards the oldest version of a key comes first, so a key is known when it is over.
    fn backward(
        &self,
        span: &Span,
        at: u64,
        count: usize,
        out: &mut VecDeque<Version>,
    ) -> Option<VersionKey> {
        let mut last: Option<VersionKey> = None;
        let mut left = count;
        for entry in self.map.range::<VersionKey, _>((span.0.as_ref(), span.1.as_ref())).rev() {
            let key = entry.key();
            if key.number > at {
                continue;
            }
            let same = last.as_ref().is_some_and(|last| last.cmp_key(key) == Ordering::Equal);
            if same {
                out.pop_back();
            } else if left == 0 {
                return last;
            } else {
                left -= 1;
            }
            out.push_back(Version { key: key.key.clone(), number: key.number, value: entry.value().clone() });
            last = Some(key.clone());
        }
        None
    }
}

/// Bounds over keys as bounds over versions: all versions of an included key, none of an excluded.
pub(crate) fn span(from: Bound<&[u8]>, to: Bound<&[u8]>) -> Span {
    let from = match from {
        Bound::Included(key) => Bound::Included(VersionKey::probe(key, u64::MAX)),
        Bound::Excluded(key) => Bound::Excluded(VersionKey::probe(key, 0)),
        Bound::Unbounded => Bound::Unbounded,
    };
    let to = match to {
        Bound::Included(key) => Bound::Included(VersionKey::probe(key, 0)),
        Bound::Excluded(key) => Bound::Excluded(VersionKey::probe(key, u64::MAX)),
        Bound::Unbounded => Bound::Unbounded,
    };
    (from, to)
}
