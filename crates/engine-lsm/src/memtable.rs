//! Versions of keys in memory, ordered by key, newest first within a key.
//!
//! One writer (the commit thread, or a load in its own memtable), any number of readers, no lock for these: a
//! thread that is preempted while it reads must not hold up the commit thread. A skip list (`list`) holds the
//! versions. A filter answers most searches for keys that are not here, which is most searches, without it.
//!
//! A large transaction's memtable is its write set as it is (`staged`): a list of the same would take as much memory again.

use crate::filter::Filter;
use crate::key::{Span, VersionKey};
use crate::list::{Entry, List, Pen, Probe, Write, head};
use crate::walk::{self, Walk};
use bytes::Bytes;
use omnibus_engine::{EngineError, Lent, Pending, WriteSet};
use parking_lot::{Mutex, MutexGuard};
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering as Memory};

/// The estimated bytes of an entry besides key and value, with the allocator's share.
const ENTRY_BYTES: u64 = 200;

/// Bytes of a batch of staged versions, whose values may have been read from a file.
const STAGED_BATCH: usize = 1 << 20;

/// Old versions looked at when a newer one comes: bounds the work on the commit thread, and is more than come.
const PRUNED_AT_ONCE: usize = 8;

/// A version with its number and value; `None` is a deletion.
pub(crate) struct Version {
    pub(crate) key: Bytes,
    pub(crate) number: u64,
    pub(crate) value: Option<Bytes>,
}

/// A walk over a range, forward, in place: of each key the newest version that a snapshot at `at`
/// sees, deletions included.
pub(crate) enum Cursor<'m> {
    /// A cursor over versions of several transactions.
    List(ListCursor<'m>),
    /// A cursor over versions of one transaction, which the snapshot sees.
    Staged(Walk<'m>),
}

impl<'m> Cursor<'m> {
    /// Moves to the next key, the first at first. False at the end.
    pub(crate) fn advance(&mut self) -> Result<bool, EngineError> {
        match self {
            Cursor::List(list) => Ok(list.advance()),
            Cursor::Staged(walk) => walk.advance(),
        }
    }

    /// The number of the version it stands at.
    pub(crate) fn number(&self) -> u64 {
        match self {
            Cursor::List(list) => list.now().number(),
            Cursor::Staged(walk) => walk.number,
        }
    }

    /// The beginning of the key where it stands.
    pub(crate) fn head(&self) -> [u64; 2] {
        match self {
            Cursor::List(list) => list.now().head(),
            Cursor::Staged(walk) => head(walk.key()),
        }
    }

    /// The key it stands at, if needed in `short`.
    pub(crate) fn key_in<'b>(&'b self, short: &'b mut [u8; 16]) -> Lent<'b>
    where
        'm: 'b,
    {
        match self {
            Cursor::List(list) => list.now().key(short),
            Cursor::Staged(walk) => Lent::Short(walk.key()),
        }
    }

    /// Calls `each` with the key and the value where it stands, unless that is a deletion. False: no more wanted.
    pub(crate) fn emit(&mut self, each: &mut dyn FnMut(Lent<'_>, Lent<'_>) -> bool) -> bool {
        match self {
            Cursor::List(list) => list.emit(each),
            Cursor::Staged(walk) => match walk.value() {
                Some(value) => each(Lent::Short(walk.key()), Lent::Shared(&value)),
                None => true,
            },
        }
    }
}

pub(crate) struct ListCursor<'m> {
    next: Option<Entry<'m>>,
    end: Bound<Probe<'m>>,
    at: u64,
    now: Option<Entry<'m>>,
    short: [u8; 16],
}

impl<'m> ListCursor<'m> {
    fn advance(&mut self) -> bool {
        while let Some(entry) = self.next.filter(|entry| is_within(entry, &self.end)) {
            self.next = entry.next();
            if entry.number() > self.at || self.now.is_some_and(|now| now.same_key(&entry)) {
                continue;
            }
            self.now = Some(entry);
            return true;
        }
        self.next = None;
        false
    }

    /// The present entry. Valid only after `advance` returned true.
    fn now(&self) -> &Entry<'m> {
        self.now.as_ref().expect("a cursor is read only where it stands at a key")
    }

    fn emit(&mut self, each: &mut dyn FnMut(Lent<'_>, Lent<'_>) -> bool) -> bool {
        let Some(now) = self.now else { return true };
        match now.value() {
            Some(value) => each(now.key(&mut self.short), Lent::Shared(value)),
            None => true,
        }
    }
}

fn is_within(entry: &Entry<'_>, end: &Bound<Probe<'_>>) -> bool {
    match end {
        Bound::Included(end) => entry.cmp(end) != Ordering::Greater,
        Bound::Excluded(end) => entry.cmp(end) == Ordering::Less,
        Bound::Unbounded => true,
    }
}

pub(crate) struct MemTable {
    list: List,
    /// Locked once a transaction, by the one writer.
    pen: Mutex<Pen>,
    filter: Filter,
    /// All that is here, if it was staged: then nothing is in the list.
    staged: Option<WriteSet>,
    bytes: AtomicU64,
    /// The number of a bulk load; such a memtable holds nothing else and covers nothing.
    pub(crate) loaded_at: Option<u64>,
    /// The memtable is a load that was dropped for lack of space.
    pub(crate) given_up: AtomicBool,
    /// The commit number up to which everything that is not in an older memtable is in this one.
    pub(crate) covers: AtomicU64,
    /// The commit number up to which the memtable has been flushed, if it was flushed in part.
    pub(crate) flushed: AtomicU64,
    /// The one number of all that is here if it was staged before it had one. Else 0.
    staged_at: AtomicU64,
}

/// A memtable that is being written to.
pub(crate) struct Writing<'m> {
    memtable: &'m MemTable,
    pen: MutexGuard<'m, Pen>,
    watermark: u64,
}

impl Writing<'_> {
    /// Adds versions of one number, whose keys ascend, and takes out versions of the keys that no snapshot at or above the
    /// watermark can see: a row that is written all the time would otherwise be in the way of every scan that passes it.
    /// (ENGINE-1 is not touched: the newest of them is as durable as they are.) What is taken out still counts as `bytes`.
    pub(crate) fn insert_all(&mut self, number: u64, writes: impl IntoIterator<Item = Write>) {
        let memtable = self.memtable;
        let mut writes = writes.into_iter().fuse();
        loop {
            let batch = std::array::from_fn(|_| writes.next());
            let mut cost = 0;
            for (key, value) in batch.iter().flatten() {
                cost += (key.len() + value.as_ref().map_or(0, Bytes::len)) as u64 + ENTRY_BYTES;
                memtable.filter.insert(Filter::hash(key));
            }
            if cost == 0 {
                return;
            }
            memtable.list.insert(&mut self.pen, batch, number, self.watermark, PRUNED_AT_ONCE);
            memtable.bytes.store(memtable.bytes.load(Memory::Relaxed) + cost, Memory::Release);
        }
    }

    /// Adds a version, as [`Writing::insert_all`] does.
    pub(crate) fn insert(&mut self, key: Bytes, number: u64, value: Option<Bytes>) {
        self.insert_all(number, [(key, value)]);
    }
}

impl MemTable {
    /// Creates a memtable for about `size` bytes.
    pub(crate) fn new(size: u64) -> MemTable {
        let (list, pen) = List::new();
        MemTable {
            list,
            pen: Mutex::new(pen),
            filter: Filter::for_keys(size / (ENTRY_BYTES + 20)),
            staged: None,
            bytes: AtomicU64::new(0),
            loaded_at: None,
            given_up: AtomicBool::new(false),
            covers: AtomicU64::new(0),
            flushed: AtomicU64::new(0),
            staged_at: AtomicU64::new(0),
        }
    }

    pub(crate) fn for_load(size: u64, at: u64) -> MemTable {
        MemTable { loaded_at: Some(at), ..MemTable::new(size) }
    }

    /// Creates a memtable of the writes of a transaction that has no number yet. It has no filter, because the search
    /// for an absent key costs about the same.
    pub(crate) fn of_staged(mut writes: WriteSet) -> MemTable {
        writes.seal();
        let bytes = AtomicU64::new(writes.memory() as u64);
        MemTable { staged: Some(writes), bytes, ..MemTable::new(0) }
    }

    /// Sets the commit number of all versions of a staged memtable, before it is in any view.
    pub(crate) fn number_staged(&self, number: u64) {
        self.staged_at.store(number, Memory::Release);
    }

    /// Only a snapshot at or above this sees anything here that the versions' own numbers would not tell.
    pub(crate) fn staged_at(&self) -> u64 {
        self.staged_at.load(Memory::Acquire)
    }

    /// Begins adding versions. No snapshot below `watermark` exists, now or later.
    pub(crate) fn write(&self, watermark: u64) -> Writing<'_> {
        Writing { memtable: self, pen: self.pen.lock(), watermark }
    }

    /// Approximate memory use.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Memory::Relaxed)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.staged.as_ref().is_none_or(WriteSet::is_empty) && self.list.first().is_none()
    }

    /// Returns whether the key may be in the memtable; `hash` is `Filter::hash`.
    pub(crate) fn may_hold(&self, hash: u64) -> bool {
        self.staged.is_some() || self.filter.may_hold(hash)
    }

    /// The newest version that `probe` may see (its number is the snapshot's): outer `None` if this
    /// memtable knows nothing of the key.
    pub(crate) fn get(&self, probe: &Probe<'_>) -> Result<Option<(u64, Option<Bytes>)>, EngineError> {
        if let Some(staged) = &self.staged {
            let number = self.staged_at();
            let written = if number > probe.number() { None } else { staged.get(probe.key())? };
            return Ok(written.map(|write| (number, write)));
        }
        let found = self.list.at_or_after(probe).filter(|found| found.is_of(probe));
        Ok(found.map(|found| (found.number(), found.value().cloned())))
    }

    /// A walk over a range as a snapshot at `at` sees it.
    pub(crate) fn cursor<'m>(&'m self, span: &'m Span, at: u64) -> Cursor<'m> {
        if let Some(staged) = &self.staged {
            return Cursor::Staged(Walk::new(staged, span, self.staged_at()));
        }
        Cursor::List(self.list_cursor(span, at))
    }

    fn list_cursor<'m>(&'m self, span: &'m Span, at: u64) -> ListCursor<'m> {
        let end = span.1.as_ref().map(VersionKey::probe);
        ListCursor { next: self.first(&span.0), end, at, now: None, short: [0; 16] }
    }

    /// All versions, for a flush.
    pub(crate) fn versions(&self) -> impl Iterator<Item = Result<Version, EngineError>> + '_ {
        let staged = self.staged.iter().flat_map(WriteSet::iter);
        let staged = staged.map(|pending| pending.map(|pending| self.staged_version(&pending)));
        staged.chain(std::iter::successors(self.list.first(), Entry::next).map(|entry| Ok(version(&entry))))
    }

    fn staged_version(&self, pending: &Pending<'_>) -> Version {
        let key = Bytes::copy_from_slice(pending.key());
        Version { key, number: self.staged_at(), value: pending.write() }
    }

    fn first(&self, from: &Bound<VersionKey>) -> Option<Entry<'_>> {
        match from {
            Bound::Unbounded => self.list.first(),
            Bound::Included(from) => self.list.at_or_after(&from.probe()),
            Bound::Excluded(from) => {
                let first = self.list.at_or_after(&from.probe())?;
                if first.cmp(&from.probe()) == Ordering::Equal { first.next() } else { Some(first) }
            }
        }
    }

    fn last(&self, to: &Bound<VersionKey>) -> Option<Entry<'_>> {
        match to {
            Bound::Unbounded => self.list.last(),
            Bound::Excluded(to) => self.list.last_before(&to.probe()),
            Bound::Included(to) => match self.list.at_or_after(&to.probe()) {
                Some(equal) if equal.cmp(&to.probe()) == Ordering::Equal => Some(equal),
                _ => self.list.last_before(&to.probe()),
            },
        }
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
    ) -> Result<bool, EngineError> {
        let last = match (&self.staged, reverse) {
            (Some(staged), _) => self.staged_batch(staged, span, reverse, count, out)?,
            (None, true) => self.backward(span, at, count, out),
            (None, false) => self.forward(span, at, count, out),
        };
        let Some(last) = last else { return Ok(false) };
        match reverse {
            false => span.0 = Bound::Excluded(VersionKey { number: 0, ..last }),
            true => span.1 = Bound::Excluded(VersionKey { number: u64::MAX, ..last }),
        }
        Ok(true)
    }

    /// The last key looked at if there is more behind it.
    fn forward(&self, span: &Span, at: u64, count: usize, out: &mut VecDeque<Version>) -> Option<VersionKey> {
        let mut cursor = self.list_cursor(span, at);
        let (mut last, mut left) = (None, count);
        while cursor.advance() {
            if left == 0 {
                return last.as_ref().map(VersionKey::of);
            }
            out.push_back(version(cursor.now()));
            last = cursor.now;
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
        let mut last: Option<Entry<'_>> = None;
        let mut left = count;
        let mut next = self.last(&span.1);
        while let Some(entry) = next {
            let behind_start = match &span.0 {
                Bound::Included(from) => entry.cmp(&from.probe()) != Ordering::Less,
                Bound::Excluded(from) => entry.cmp(&from.probe()) == Ordering::Greater,
                Bound::Unbounded => true,
            };
            if !behind_start {
                return None;
            }
            next = entry.previous();
            if entry.number() > at {
                continue;
            }
            if last.is_some_and(|last| last.same_key(&entry)) {
                out.pop_back();
            } else if left == 0 {
                return last.as_ref().map(VersionKey::of);
            } else {
                left -= 1;
            }
            out.push_back(version(&entry));
            last = Some(entry);
        }
        None
    }

    fn staged_batch(
        &self,
        staged: &WriteSet,
        span: &Span,
        reverse: bool,
        count: usize,
        out: &mut VecDeque<Version>,
    ) -> Result<Option<VersionKey>, EngineError> {
        let (mut left, mut bytes) = (count, 0);
        for pending in walk::within(staged, span, reverse) {
            if left == 0 || bytes > STAGED_BATCH {
                return Ok(out.back().map(|last| VersionKey { key: last.key.clone(), number: 0 }));
            }
            let version = self.staged_version(&pending?);
            (left, bytes) = (left - 1, bytes + version.value.as_ref().map_or(0, Bytes::len));
            out.push_back(version);
        }
        Ok(None)
    }
}

fn version(entry: &Entry<'_>) -> Version {
    let (key, value) = (entry.key(&mut [0; 16]).to_bytes(), entry.value().cloned());
    Version { key, number: entry.number(), value }
}
