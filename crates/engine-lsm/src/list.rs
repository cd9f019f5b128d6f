//! A skip list of versions: keys as bytes ascending, newest first within a key.
//!
//! One writer at a time (`List::insert` needs the `Pen`), any number of readers, no lock and nothing to free while
//! it is in use: a version that is taken out stays where it is, with the way on from it, until the whole list goes
//! (SNAP-1: what a reader's snapshot needs is never taken out, so it is on the way from wherever the reader stands).
//!
//! A search is a chain of cache misses, so all that it looks at of a node is one cache line: the first 16 bytes of
//! the key, which are all of nearly every index key, the number, and the ways on. Longer keys and values are elsewhere.

use super::arena::Arena;
use super::sync::atomic::{AtomicU32, AtomicU64, Ordering as Memory};
use bytes::Bytes;
use omnibus_engine::Lent;
use std::cmp::Ordering;
use std::sync::OnceLock;

const HEAD: usize = 16;
/// The number of levels. One node in four is on the next level, so eight are enough for a million; more only cost time.
const LEVELS: usize = 8;
/// No node; also the number of the one in front of all.
const NONE: u32 = 0;

/// The kinds of a version, in the top bits of `Node::place`.
const DELETED: u32 = 0;
const EMPTY: u32 = 1 << 30;
const VALUE: u32 = 2 << 30;
const KIND: u32 = 3 << 30;

static NOTHING: Bytes = Bytes::new();

#[derive(Default)]
#[repr(align(64))]
struct Node {
    head: [AtomicU64; 2],
    number: AtomicU64,
    len: AtomicU32,
    /// The place of a long key, followed by the value, among the blobs; and the kind.
    place: AtomicU32,
    next: [AtomicU32; LEVELS],
}

/// A key and a commit number to look for.
#[derive(Clone, Copy)]
pub(crate) struct Probe<'k> {
    head: [u64; 2],
    number: u64,
    key: &'k [u8],
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

impl<'k> Probe<'k> {
    #[inline]
    pub(crate) fn new(key: &'k [u8], number: u64) -> Probe<'k> {
        Probe { head: head(key), number, key }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn key(&self) -> &'k [u8] {
        self.key
    }
}

/// The right to write, and what only a writer needs.
pub(crate) struct Pen {
    nodes: u32,
    blobs: u32,
    random: u64,
}

impl Pen {
    /// Chooses a node's level: one for three nodes in four, two for three in sixteen, and so on.
    fn levels(&mut self) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (1 + self.random.trailing_zeros() as usize / 2).min(LEVELS)
    }
}

pub(crate) struct List {
    nodes: Arena<Node>,
    /// Long keys and values.
    blobs: Arena<OnceLock<Bytes>>,
    /// Levels in use.
    height: AtomicU32,
}

/// A version in a list.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'l> {
    list: &'l List,
    node: &'l Node,
}

impl<'l> Entry<'l> {
    #[inline]
    pub(crate) fn head(&self) -> [u64; 2] {
        [self.node.head[0].load(Memory::Relaxed), self.node.head[1].load(Memory::Relaxed)]
    }

    #[inline]
    pub(crate) fn number(&self) -> u64 {
        self.node.number.load(Memory::Relaxed)
    }

    fn len(&self) -> usize {
        self.node.len.load(Memory::Relaxed) as usize
    }

    fn blob(&self, offset: u32) -> &'l Bytes {
        let place = self.node.place.load(Memory::Relaxed) & !KIND;
        self.list.blobs.get(place + offset).get().unwrap_or(&NOTHING)
    }

    /// The key, if it is longer than a head.
    fn long(&self) -> Option<&'l Bytes> {
        (self.len() > HEAD).then(|| self.blob(0))
    }

    /// The value; `None` is a deletion.
    pub(crate) fn value(&self) -> Option<&'l Bytes> {
        match self.node.place.load(Memory::Relaxed) & KIND {
            DELETED => None,
            EMPTY => Some(&NOTHING),
            _ => Some(self.blob(u32::from(self.len() > HEAD))),
        }
    }

    /// The key, if needed in `short`.
    pub(crate) fn key<'b>(&self, short: &'b mut [u8; HEAD]) -> Lent<'b>
    where
        'l: 'b,
    {
        if let Some(long) = self.long() {
            return Lent::Shared(long);
        }
        let [high, low] = self.head();
        *short = (u128::from(high) << 64 | u128::from(low)).to_be_bytes();
        Lent::Short(&short[..self.len()])
    }

    #[inline]
    fn cmp_key(&self, head: [u64; 2], key: &[u8]) -> Ordering {
        self.head().cmp(&head).then_with(|| {
            if self.len() > HEAD && key.len() > HEAD {
                return self.blob(0)[HEAD..].cmp(&key[HEAD..]);
            }
            // Equal heads, one of them whole: the shorter key is the longer without some zeros.
            self.len().cmp(&key.len())
        })
    }

    /// Compares this entry with the probe.
    #[inline]
    pub(crate) fn cmp(&self, probe: &Probe<'_>) -> Ordering {
        self.cmp_key(probe.head, probe.key).then_with(|| probe.number.cmp(&self.number()))
    }

    /// Returns whether this is a version of the probe's key.
    #[inline]
    pub(crate) fn is_of(&self, probe: &Probe<'_>) -> bool {
        self.cmp_key(probe.head, probe.key) == Ordering::Equal
    }

    /// Returns whether both are versions of one key.
    #[inline]
    pub(crate) fn same_key(&self, other: &Entry<'_>) -> bool {
        self.head() == other.head()
            && self.len() == other.len()
            && (self.len() <= HEAD || self.blob(0)[HEAD..] == other.blob(0)[HEAD..])
    }

    #[inline]
    pub(crate) fn next(&self) -> Option<Entry<'l>> {
        self.list.entry(self.node.next[0].load(Memory::Acquire))
    }

    /// The entry before it. As long as a search.
    pub(crate) fn previous(&self) -> Option<Entry<'l>> {
        let mut short = [0; HEAD];
        let key = self.key(&mut short);
        self.list.last_before(&Probe { head: self.head(), number: self.number(), key: &key })
    }
}

/// Versions that are added together, at most.
pub(crate) const AT_ONCE: usize = 4;

/// A key and its value; `None` is a deletion.
pub(crate) type Write = (Bytes, Option<Bytes>);

/// A place for a version: the node in front of it on each level.
type Place = [u32; LEVELS];

/// A search for a place that stops after each node.
struct Walk<'l, 'k> {
    list: &'l List,
    probe: Probe<'k>,
    at: u32,
    node: &'l Node,
    /// Levels left.
    level: usize,
    stop: u32,
    found: Place,
}

impl<'l, 'k> Walk<'l, 'k> {
    fn new(list: &'l List, probe: Probe<'k>) -> Walk<'l, 'k> {
        let level = list.height.load(Memory::Relaxed) as usize;
        Walk { list, probe, at: NONE, node: list.nodes.get(NONE), level, stop: NONE, found: [NONE; LEVELS] }
    }

    /// Looks at one more node. False if there was none left.
    #[inline]
    fn step(&mut self) -> bool {
        while self.level > 0 {
            let level = self.level - 1;
            let next = self.node.next[level].load(Memory::Acquire);
            if next != self.stop && next != NONE {
                let candidate = self.list.nodes.get(next);
                if (Entry { list: self.list, node: candidate }).cmp(&self.probe).is_lt() {
                    (self.at, self.node) = (next, candidate);
                } else {
                    (self.level, self.stop, self.found[level]) = (level, next, self.at);
                }
                return true;
            }
            (self.level, self.stop, self.found[level]) = (level, next, self.at);
        }
        false
    }
}

impl List {
    pub(crate) fn new() -> (List, Pen) {
        let list = List { nodes: Arena::new(), blobs: Arena::new(), height: AtomicU32::new(1) };
        list.nodes.make(NONE);
        (list, Pen { nodes: 1, blobs: 0, random: 0x9e37_79b9_7f4a_7c15 })
    }

    #[inline]
    fn entry(&self, at: u32) -> Option<Entry<'_>> {
        (at != NONE).then(|| Entry { list: self, node: self.nodes.get(at) })
    }

    pub(crate) fn first(&self) -> Option<Entry<'_>> {
        self.entry(self.nodes.get(NONE).next[0].load(Memory::Acquire))
    }

    /// The first entry at or behind `probe`.
    pub(crate) fn at_or_after(&self, probe: &Probe<'_>) -> Option<Entry<'_>> {
        self.entry(self.search(probe).1)
    }

    /// The last entry before `probe`.
    pub(crate) fn last_before(&self, probe: &Probe<'_>) -> Option<Entry<'_>> {
        self.entry(self.search(probe).0)
    }

    pub(crate) fn last(&self) -> Option<Entry<'_>> {
        let (mut at, mut level) = (NONE, LEVELS - 1);
        loop {
            match (self.nodes.get(at).next[level].load(Memory::Acquire), level) {
                (NONE, 0) => return self.entry(at),
                (NONE, _) => level -= 1,
                (next, _) => at = next,
            }
        }
    }

    /// Finds the nodes before and at or behind a place.
    #[inline]
    fn search(&self, probe: &Probe<'_>) -> (u32, u32) {
        let mut level = self.height.load(Memory::Relaxed) as usize;
        let (mut at, mut node) = (NONE, self.nodes.get(NONE));
        // Known not to be before the place: nearly always what stopped a level stops the next one, too.
        let mut stop = NONE;
        while level > 0 {
            level -= 1;
            loop {
                let next = node.next[level].load(Memory::Acquire);
                if next == stop {
                    break;
                }
                let candidate = self.nodes.get(next);
                if next == NONE || (Entry { list: self, node: candidate }).cmp(probe).is_ge() {
                    stop = next;
                    break;
                }
                (at, node) = (next, candidate);
            }
        }
        (at, stop)
    }

    /// Adds versions of one transaction, whose keys ascend. Of the versions that come behind each one's key, those that no
    /// snapshot at or above `watermark` can see are taken out, `prune` of them at most.
    pub(crate) fn insert(
        &self,
        pen: &mut Pen,
        writes: [Option<Write>; AT_ONCE],
        number: u64,
        watermark: u64,
        prune: usize,
    ) {
        let mut places = self.places(&writes, number);
        let mut rest = &mut places[..];
        for write in writes.into_iter().flatten() {
            let Some((place, behind)) = rest.split_first_mut() else { return };
            let newest = self.put(pen, write, number, place, behind);
            self.prune(newest, place, behind, watermark, prune);
            rest = behind;
        }
    }

    /// Finds the places of all of them at once: each search is a chain of cache misses, and chains that do not depend on
    /// each other take no longer than one.
    fn places(&self, writes: &[Option<Write>; AT_ONCE], number: u64) -> [Place; AT_ONCE] {
        let mut walks = writes.each_ref().map(|write| {
            let (key, _) = write.as_ref()?;
            Some(Walk::new(self, Probe::new(key, number)))
        });
        while walks.iter_mut().flatten().filter_map(|walk| walk.step().then_some(())).count() > 0 {}
        walks.map(|walk| walk.map_or([NONE; LEVELS], |walk| walk.found))
    }

    /// Adds a version at its place, which becomes that of what follows it. The places of keys `behind` it move along.
    fn put(
        &self,
        pen: &mut Pen,
        (key, value): Write,
        number: u64,
        place: &mut Place,
        behind: &mut [Place],
    ) -> Entry<'_> {
        let levels = pen.levels();
        let head = head(&key);
        let at = pen.nodes;
        pen.nodes = at.checked_add(1).expect("four billion versions fit no memory");
        let node = self.nodes.make(at);
        node.head[0].store(head[0], Memory::Relaxed);
        node.head[1].store(head[1], Memory::Relaxed);
        node.number.store(number, Memory::Relaxed);
        node.len.store(key.len() as u32, Memory::Relaxed);
        node.place.store(self.keep(pen, key, value), Memory::Relaxed);
        for (level, before) in place.iter().enumerate().take(levels) {
            let next = self.nodes.get(*before).next[level].load(Memory::Relaxed);
            node.next[level].store(next, Memory::Relaxed);
        }
        // Whole by now: whoever comes by one of these sees all of it.
        for (level, before) in place.iter_mut().enumerate().take(levels) {
            self.nodes.get(*before).next[level].store(at, Memory::Release);
            // A key behind this one with the same node in front of it has this one in front of it now.
            replace(behind, level, *before, at);
            *before = at;
        }
        if levels > self.height.load(Memory::Relaxed) as usize {
            self.height.store(levels as u32, Memory::Relaxed);
        }
        Entry { list: self, node }
    }

    /// Puts a long key and a value among the blobs; what `Node::place` says of them.
    fn keep(&self, pen: &mut Pen, key: Bytes, value: Option<Bytes>) -> u32 {
        let place = pen.blobs;
        if key.len() > HEAD {
            self.keep_blob(pen, key);
        }
        match value {
            None => place | DELETED,
            Some(value) if value.is_empty() => place | EMPTY,
            Some(value) => {
                self.keep_blob(pen, value);
                place | VALUE
            }
        }
    }

    fn keep_blob(&self, pen: &mut Pen, blob: Bytes) {
        // Made by one writer, once each: it is empty.
        let _ = self.blobs.make(pen.blobs).set(blob);
        pen.blobs += 1;
        assert!(pen.blobs < EMPTY, "a billion values fit no memory");
    }

    /// Removes versions of a key that no snapshot sees: of those at or below the watermark all but the newest. `before`
    /// are the nodes in front of the successors of `newest`, on each level; no place `behind` keeps one that is removed.
    fn prune(
        &self,
        newest: Entry<'_>,
        before: &mut Place,
        behind: &mut [Place],
        watermark: u64,
        count: usize,
    ) {
        let mut settled = newest.number() <= watermark;
        let mut at = newest.node.next[0].load(Memory::Relaxed);
        for _ in 0..count {
            let Some(entry) = self.entry(at) else { return };
            if !entry.same_key(&newest) {
                return;
            }
            let gone = settled || entry.number() == newest.number();
            settled |= entry.number() <= watermark;
            let next = entry.node.next[0].load(Memory::Relaxed);
            for (level, before) in before.iter_mut().enumerate() {
                let link = &self.nodes.get(*before).next[level];
                if link.load(Memory::Relaxed) != at {
                    break;
                }
                if gone {
                    link.store(entry.node.next[level].load(Memory::Relaxed), Memory::Release);
                    replace(behind, level, at, *before);
                } else {
                    *before = at;
                }
            }
            at = next;
        }
    }
}

/// Puts one node in another's stead on a level of places.
#[inline]
fn replace(places: &mut [Place], level: usize, old: u32, new: u32) {
    for before in places.iter_mut().map(|place| &mut place[level]).filter(|before| **before == old) {
        *before = new;
    }
}
