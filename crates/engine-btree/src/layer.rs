//! Versions in memory that the file does not have yet. The commit thread inserts, anybody reads, without a lock.

use bytes::Bytes;
use crossbeam_skiplist::SkipMap;
use omnibus_engine::{EngineError, Pending, WriteSet};
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering as Memory};

/// The estimated bytes of an entry besides its key and value.
const ENTRY_BYTES: u64 = 120;

/// Bytes of a batch of staged versions, whose values may have been read from a file.
const STAGED_BATCH: usize = 1 << 20;

/// A version; `value` is `None` for a deletion.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) key: Bytes,
    pub(crate) number: u64,
    pub(crate) value: Option<Bytes>,
}

/// A version's key and number, ordered by key, then newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VersionRef {
    pub(crate) key: Bytes,
    pub(crate) number: u64,
}

impl Ord for VersionRef {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key).then_with(|| other.number.cmp(&self.number))
    }
}

impl PartialOrd for VersionRef {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A range of places.
pub(crate) type Span = (Bound<VersionRef>, Bound<VersionRef>);

/// All versions of the keys within bounds.
pub(crate) fn span(from: Bound<&[u8]>, to: Bound<&[u8]>) -> Span {
    let place = |key: &[u8], number| VersionRef { key: Bytes::copy_from_slice(key), number };
    let from = match from {
        Bound::Included(key) => Bound::Included(place(key, u64::MAX)),
        Bound::Excluded(key) => Bound::Excluded(place(key, 0)),
        Bound::Unbounded => Bound::Unbounded,
    };
    let to = match to {
        Bound::Included(key) => Bound::Included(place(key, 0)),
        Bound::Excluded(key) => Bound::Excluded(place(key, u64::MAX)),
        Bound::Unbounded => Bound::Unbounded,
    };
    (from, to)
}

#[derive(Default)]
pub(crate) struct Layer {
    map: SkipMap<VersionRef, Option<Bytes>>,
    /// All that is here, if it is a large transaction's: then nothing is in the map.
    staged: Option<WriteSet>,
    bytes: AtomicU64,
    /// Once sealed: everything up to here that was prepared is in this layer, an older one, or the file.
    pub(crate) covers: AtomicU64,
    /// The commit number up to which the layer has been written out, if it was written out in part.
    pub(crate) written: AtomicU64,
    /// The one number of all that is here, if it was staged before it had one. Else 0.
    pub(crate) staged_at: AtomicU64,
}

impl Layer {
    /// Creates a layer of the writes of a transaction that has no number yet, without copying them.
    pub(crate) fn of_staged(mut writes: WriteSet) -> Layer {
        writes.seal();
        Layer { bytes: AtomicU64::new(writes.memory() as u64), staged: Some(writes), ..Layer::default() }
    }

    pub(crate) fn insert(&self, key: Bytes, number: u64, value: Option<Bytes>) {
        let bytes = key.len() + value.as_ref().map_or(0, Bytes::len);
        self.map.insert(VersionRef { key, number }, value);
        self.bytes.fetch_add(bytes as u64 + ENTRY_BYTES, Memory::Relaxed);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.staged.as_ref().is_none_or(WriteSet::is_empty) && self.map.is_empty()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Memory::Relaxed)
    }

    /// The newest version at or below the place's number: outer `None` if there is none.
    pub(crate) fn get(&self, place: &VersionRef) -> Result<Option<(u64, Option<Bytes>)>, EngineError> {
        if let Some(staged) = &self.staged {
            let number = self.staged_at.load(Memory::Acquire);
            let written = if number > place.number { None } else { staged.get(&place.key)? };
            return Ok(written.map(|write| (number, write)));
        }
        let entry = self.map.lower_bound(Bound::Included(place));
        let entry = entry.filter(|entry| entry.key().key == place.key);
        Ok(entry.map(|entry| (entry.key().number, entry.value().clone())))
    }

    /// All versions in order.
    pub(crate) fn versions(&self) -> impl Iterator<Item = Result<Version, EngineError>> + '_ {
        let staged = self.staged.iter().flat_map(WriteSet::iter);
        let staged = staged.map(|pending| pending.map(|pending| self.staged_version(&pending)));
        staged.chain(self.map.iter().map(|entry| Ok(version(entry.key(), entry.value()))))
    }

    fn staged_version(&self, pending: &Pending<'_>) -> Version {
        let (key, number) = (Bytes::copy_from_slice(pending.key()), self.staged_at.load(Memory::Acquire));
        Version { key, number, value: pending.write() }
    }

    /// Appends up to `count` versions of the span in its direction, fewer if files have them and they are large, and moves it behind them.
    /// False at its end.
    pub(crate) fn batch(
        &self,
        span: &mut Span,
        reverse: bool,
        count: usize,
        out: &mut VecDeque<Version>,
    ) -> Result<bool, EngineError> {
        let before = out.len();
        let more = match &self.staged {
            Some(staged) => self.staged_batch(staged, span, reverse, count, out)?,
            None => {
                let mut listed = self.map.range((span.0.as_ref(), span.1.as_ref()));
                let next = || if reverse { listed.next_back() } else { listed.next() };
                let listed = std::iter::from_fn(next).map(|entry| version(entry.key(), entry.value()));
                out.extend(listed.take(count));
                out.len() - before == count
            }
        };
        if out.len() > before
            && let Some(last) = out.back()
        {
            let place = Bound::Excluded(VersionRef { key: last.key.clone(), number: last.number });
            *if reverse { &mut span.1 } else { &mut span.0 } = place;
        }
        Ok(more)
    }

    fn staged_batch(
        &self,
        staged: &WriteSet,
        span: &Span,
        reverse: bool,
        count: usize,
        out: &mut VecDeque<Version>,
    ) -> Result<bool, EngineError> {
        // Each key of what was staged has one version: the places' numbers say nothing.
        let keys = (span.0.as_ref().map(|from| &from.key[..]), span.1.as_ref().map(|to| &to.key[..]));
        let (mut left, mut bytes) = (count, 0);
        for pending in staged.range::<KeyBounds<'_>>(keys, reverse) {
            let version = self.staged_version(&pending?);
            (left, bytes) = (left - 1, bytes + version.value.as_ref().map_or(0, Bytes::len));
            out.push_back(version);
            if left == 0 || bytes > STAGED_BATCH {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

type KeyBounds<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);

fn version(place: &VersionRef, value: &Option<Bytes>) -> Version {
    Version { key: place.key.clone(), number: place.number, value: value.clone() }
}
