//! Versions of keys in memory, ordered by key, newest first within a key.
//!
//! One writer (the commit thread, or a load in its own memtable), any number of readers, no lock: a
//! thread that is preempted while it reads must not hold up the commit thread. A crossbeam skip
//! list with small nodes, because a search is a chain of cache misses: the first 16 bytes of the
//! key are in the node, which is all of nearly every index key, so a comparison does not leave it;
//! the key as bytes and the value are behind one pointer. A filter answers most searches for
//! keys that are not here, which is most searches, without the list.

use crate::filter::Filter;
use bytes::Bytes;
use crossbeam_epoch::{self as epoch, Guard};
use crossbeam_skiplist::base::{Range, RefEntry, SkipList};
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering as Memory};

const HEAD: usize = 16;
/// What an entry costs besides key and value bytes: the node, the pair, and the allocator's share.
const ENTRY_BYTES: u64 = 200;

/// Old versions looked at when a newer one comes: bounds the work on the commit thread, and is more than come.
const PRUNED_AT_ONCE: usize = 8;

/// A key and a commit number. Sorts by key, then newest first.
#[derive(Clone, Debug)]
pub(crate) struct VersionKey {
    /// The first 16 bytes, big-endian, zero-padded.
    head: [u64; 2],
    number: u64,
    /// The whole key, if it is longer.
    long: Option<Box<Bytes>>,
    len: u32,
}

impl VersionKey {
    pub(crate) fn new(key: &Bytes, number: u64) -> VersionKey {
        let long = (key.len() > HEAD).then(|| Box::new(key.clone()));
        VersionKey { head: head(key), number, long, len: key.len() as u32 }
    }

    /// For lookups by bytes that are not counted: copies them only if they do not fit.
    pub(crate) fn probe(key: &[u8], number: u64) -> VersionKey {
        let long = (key.len() > HEAD).then(|| Box::new(Bytes::copy_from_slice(key)));
        VersionKey { head: head(key), number, long, len: key.len() as u32 }
    }

    pub(crate) fn head(&self) -> [u64; 2] {
        self.head
    }

    fn cmp_key(&self, other: &VersionKey) -> Ordering {
        self.head.cmp(&other.head).then_with(|| match (&self.long, &other.long) {
            (Some(own), Some(other)) => own[HEAD..].cmp(&other[HEAD..]),
            // Equal heads, one of them whole: the shorter key is the longer without some zeros.
            _ => self.len.cmp(&other.len),
        })
    }
}

/// The first 16 bytes, big-endian, zero-padded: what nearly every comparison ends with.
#[inline]
pub(crate) fn head(key: &[u8]) -> [u64; 2] {
    let head = match key.first_chunk::<HEAD>() {
        Some(chunk) => *chunk,
        None => {
            let mut head = [0; HEAD];
            head[..key.len()].copy_from_slice(key);
            head
        }
    };
    let both = u128::from_be_bytes(head);
    [(both >> 64) as u64, both as u64]
}

impl Ord for VersionKey {
    #[inline]
    fn cmp(&self, other: &VersionKey) -> Ordering {
        self.cmp_key(other).then_with(|| other.number.cmp(&self.number))
    }
}

impl PartialOrd for VersionKey {
    #[inline]
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

/// What a node points to.
struct Pair {
    key: Bytes,
    value: Option<Bytes>,
}

impl Pair {
    /// What it takes of the memtable's budget.
    fn cost(&self) -> u64 {
        (self.key.len() + self.value.as_ref().map_or(0, Bytes::len)) as u64 + ENTRY_BYTES
    }

    fn version(&self, number: u64) -> Version {
        Version { key: self.key.clone(), number, value: self.value.clone() }
    }
}

type Entry<'a> = RefEntry<'a, VersionKey, Box<Pair>>;

/// References to a span's bounds, as the list wants them.
type SpanRef<'g> = (Bound<&'g VersionKey>, Bound<&'g VersionKey>);

/// A walk over a range, forward, in place: of each key the newest version that a snapshot at `at`
/// sees, deletions included.
pub(crate) struct Cursor<'g> {
    entries: Range<'g, 'g, VersionKey, SpanRef<'g>, VersionKey, Box<Pair>>,
    at: u64,
    staged_at: u64,
    now: Option<(&'g VersionKey, &'g Pair)>,
}

impl<'g> Cursor<'g> {
    /// Moves to the next key, the first at first.
    pub(crate) fn advance(&mut self) -> Option<&'g VersionKey> {
        let last = self.now.map(|(key, _)| key);
        for entry in self.entries.by_ref() {
            let key = entry.key();
            if key.number > self.at || last.is_some_and(|last| last.cmp_key(key) == Ordering::Equal) {
                continue;
            }
            self.now = Some((key, &**entry.value()));
            return Some(key);
        }
        None
    }

    /// The number of a version that `advance` gave.
    pub(crate) fn number(&self, key: &VersionKey) -> u64 {
        key.number.max(self.staged_at)
    }

    /// The key it stands at. Only after `advance`.
    pub(crate) fn key(&self) -> &'g Bytes {
        &self.now.expect("a cursor is read only where it stands at a key").1.key
    }

    /// Its value; `None` is a deletion.
    pub(crate) fn value(&self) -> Option<&'g Bytes> {
        self.now.and_then(|(_, pair)| pair.value.as_ref())
    }
}

/// The bounds of a scan that is under way: they shrink from the side it starts at.
pub(crate) type Span = (Bound<VersionKey>, Bound<VersionKey>);

pub(crate) struct MemTable {
    list: SkipList<VersionKey, Box<Pair>>,
    filter: Filter,
    bytes: AtomicU64,
    /// The number of a bulk load; such a memtable holds nothing else and covers nothing.
    pub(crate) loaded_at: Option<u64>,
    /// Everything up to this number that is not in an older memtable is here.
    pub(crate) covers: AtomicU64,
    /// What has been written out already, if it was written out in part.
    pub(crate) flushed: AtomicU64,
    /// The one number of all that is here if it was staged before it had one: its keys then say 0. Else 0.
    staged_at: AtomicU64,
}

impl MemTable {
    /// For about `size` bytes.
    pub(crate) fn new(size: u64) -> MemTable {
        MemTable {
            list: SkipList::new(epoch::default_collector().clone()),
            filter: Filter::for_keys(size / (ENTRY_BYTES + 20)),
            bytes: AtomicU64::new(0),
            loaded_at: None,
            covers: AtomicU64::new(0),
            flushed: AtomicU64::new(0),
            staged_at: AtomicU64::new(0),
        }
    }

    pub(crate) fn for_load(size: u64, at: u64) -> MemTable {
        MemTable { loaded_at: Some(at), ..MemTable::new(size) }
    }

    /// For `keys` keys of a transaction that has no number yet: they are inserted with number 0.
    pub(crate) fn for_staging(keys: usize) -> MemTable {
        MemTable::new(keys as u64 * (ENTRY_BYTES + 20))
    }

    /// Gives everything in a staged memtable its number. Before it is in any view.
    pub(crate) fn number_staged(&self, number: u64) {
        self.staged_at.store(number, Memory::Release);
    }

    /// Only a snapshot at or above this sees anything here that the versions' own numbers would not tell.
    pub(crate) fn staged_at(&self) -> u64 {
        self.staged_at.load(Memory::Acquire)
    }

    /// Adds a version, and takes out versions of the key that no snapshot at or above `watermark` can see:
    /// a row that is written all the time would otherwise be in the way of every scan that passes it.
    pub(crate) fn insert(
        &self,
        key: Bytes,
        number: u64,
        value: Option<Bytes>,
        watermark: u64,
        guard: &Guard,
    ) {
        let pair = Pair { key, value };
        self.bytes.fetch_add(pair.cost(), Memory::Relaxed);
        self.filter.insert(Filter::hash(&pair.key));
        let version = VersionKey::new(&pair.key, number);
        let entry = self.list.insert(version, Box::new(pair), guard);
        self.prune(&entry, watermark, guard);
        entry.release(guard);
    }

    /// Of a key's versions at or below the watermark only the newest is seen (ENGINE-1 is not touched: it is as
    /// durable as they are).
    fn prune(&self, newest: &Entry<'_>, watermark: u64, guard: &Guard) {
        let mut settled = newest.key().number <= watermark;
        let mut next = newest.next(guard);
        for _ in 0..PRUNED_AT_ONCE {
            let Some(entry) = next else { return };
            next = None;
            if entry.key().cmp_key(newest.key()) == Ordering::Equal {
                next = entry.next(guard);
                if !settled {
                    settled = entry.key().number <= watermark;
                } else if entry.remove(guard) {
                    self.bytes.fetch_sub(entry.value().cost(), Memory::Relaxed);
                }
            }
            entry.release(guard);
        }
        if let Some(entry) = next {
            entry.release(guard);
        }
    }

    /// Approximate memory use.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Memory::Relaxed)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    /// Whether the key may be here at all; `hash` is `Filter::hash`.
    pub(crate) fn may_hold(&self, hash: u64) -> bool {
        self.filter.may_hold(hash)
    }

    /// The newest version that `probe` may see (its number is the snapshot's): outer `None` if this
    /// memtable knows nothing of the key.
    pub(crate) fn get(&self, probe: &VersionKey) -> Option<(u64, Option<Bytes>)> {
        let staged_at = self.staged_at();
        if staged_at > probe.number {
            return None;
        }
        let guard = epoch::pin();
        let entry = self.list.lower_bound(Bound::Included(probe), &guard)?;
        let found = entry.key();
        (found.cmp_key(probe) == Ordering::Equal)
            .then(|| (found.number.max(staged_at), entry.value().value.clone()))
    }

    /// A walk over a range as a snapshot at `at` sees it.
    pub(crate) fn cursor<'g>(&'g self, span: &'g Span, at: u64, guard: &'g Guard) -> Cursor<'g> {
        let entries = self.list.range((span.0.as_ref(), span.1.as_ref()), guard);
        Cursor { entries, at, staged_at: self.staged_at(), now: None }
    }

    /// All versions, for a flush.
    pub(crate) fn versions<'a>(&'a self, guard: &'a Guard) -> impl Iterator<Item = Version> + 'a {
        let staged_at = self.staged_at();
        self.list.iter(guard).map(move |entry| entry.value().version(entry.key().number.max(staged_at)))
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
        let guard = epoch::pin();
        let mut last: Option<&VersionKey> = None;
        let mut left = count;
        let entries = self.list.range::<VersionKey, _>((span.0.as_ref(), span.1.as_ref()), &guard);
        for entry in entries {
            let key = entry.key();
            if key.number > at || last.is_some_and(|last| last.cmp_key(key) == Ordering::Equal) {
                continue;
            }
            if left == 0 {
                return last.cloned();
            }
            out.push_back(entry.value().version(key.number.max(self.staged_at())));
            last = Some(key);
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
        let guard = epoch::pin();
        let mut last: Option<&VersionKey> = None;
        let mut left = count;
        let entries = self.list.range::<VersionKey, _>((span.0.as_ref(), span.1.as_ref()), &guard);
        for entry in entries.rev() {
            let key = entry.key();
            if key.number > at {
                continue;
            }
            if last.is_some_and(|last| last.cmp_key(key) == Ordering::Equal) {
                out.pop_back();
            } else if left == 0 {
                return last.cloned();
            } else {
                left -= 1;
            }
            out.push_back(entry.value().version(key.number.max(self.staged_at())));
            last = Some(key);
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
