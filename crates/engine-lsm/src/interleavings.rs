//! SNAP-1: the memtable's skip list under thousands of interleavings, chosen by a scheduler (`omnibus_sync`): one writer, who also takes
//! versions out, and readers at their snapshots.

use omnibus_sync::interleavings as sync;

#[allow(clippy::duplicate_mod, reason = "the same file over the explored `sync`")]
#[path = "arena.rs"]
mod arena;
#[allow(clippy::duplicate_mod, reason = "the same file over the explored `sync`")]
#[path = "list.rs"]
#[allow(dead_code, reason = "what the tests do not use")]
mod list;

use bytes::Bytes;
use list::{Entry, List, Pen, Probe};
use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::sync::Arc;
use sync::atomic::{AtomicU64, Ordering};
use sync::thread;

/// Small, so that chunks are made while others read.
const ARENA_BITS: u32 = 2;

const SCHEDULES: usize = 1500;
/// Transactions before the threads begin, and all.
const BEFORE: u64 = 3;
const ALL: u64 = 9;

/// Two that fit a node and two that do not, each one's head the beginning of the next one's.
const KEYS: [&[u8]; 4] = [b"k", b"k\0", b"k\0aaaaaaaaaaaaaaaaaaaa", b"k\0aaaaaaaaaaaaaaaaaaab"];

/// The keys that transaction `no` writes: ascending, some next to each other, over versions of their own and of others.
fn keys(no: u64) -> &'static [&'static [u8]] {
    const OF: [(usize, usize); 9] = [(0, 1), (2, 4), (3, 4), (0, 2), (1, 4), (1, 2), (0, 4), (3, 4), (2, 3)];
    let (first, end) = OF[no as usize % 9];
    &KEYS[first..end]
}

fn value(no: u64) -> Option<Bytes> {
    match no % 4 {
        3 => None,
        2 => Some(Bytes::new()),
        _ => Some(Bytes::from(no.to_string())),
    }
}

/// Returns the contents of a snapshot: of each key the newest version, which may be a deletion.
fn visible(at: u64) -> BTreeMap<&'static [u8], u64> {
    (1..=at).flat_map(|no| keys(no).iter().map(move |key| (*key, no))).collect()
}

struct World {
    list: List,
    published: AtomicU64,
    /// Snapshots that are held.
    pins: sync::Mutex<Vec<u64>>,
}

impl World {
    fn insert(&self, pen: &mut Pen, no: u64, careless: bool) {
        let watermark = {
            let pins = self.pins.lock();
            let published = self.published.load(Ordering::SeqCst);
            pins.iter().copied().min().filter(|_| !careless).unwrap_or(published)
        };
        let mut keys = keys(no).iter().map(|key| (Bytes::from_static(key), value(no)));
        self.list.insert(pen, std::array::from_fn(|_| keys.next()), no, watermark, 3);
        self.published.store(no, Ordering::SeqCst);
    }

    /// A snapshot of now.
    fn pin(&self) -> u64 {
        let mut pins = self.pins.lock();
        let at = self.published.load(Ordering::SeqCst);
        pins.push(at);
        at
    }

    fn unpin(&self, at: u64) {
        let mut pins = self.pins.lock();
        let place = pins.iter().position(|pin| *pin == at).expect("it was pinned");
        pins.swap_remove(place);
    }

    fn look_up(&self, at: u64) {
        let there = visible(at);
        for key in KEYS {
            let probe = Probe::new(key, at);
            let found = self.list.at_or_after(&probe).filter(|entry| entry.is_of(&probe));
            assert_eq!(found.map(|entry| entry.number()), there.get(key).copied(), "SNAP-1: {key:?} at {at}");
            if let Some(entry) = found {
                assert_eq!(entry.value(), value(entry.number()).as_ref(), "{key:?} at {at}");
            }
        }
    }

    /// Notes an entry that a walk comes by; the newest of its key at `at` counts.
    fn note(seen: &mut BTreeMap<Vec<u8>, u64>, entry: Entry<'_>, at: u64) {
        let number = entry.number();
        if number <= at {
            let newest = seen.entry(entry.key(&mut [0; 16]).to_vec()).or_default();
            *newest = number.max(*newest);
        }
    }

    fn walk(&self, at: u64, backwards: bool) {
        let (mut seen, mut steps) = (BTreeMap::new(), 0);
        let mut entry = if backwards { self.list.last() } else { self.list.first() };
        while let Some(here) = entry {
            World::note(&mut seen, here, at);
            entry = if backwards { here.previous() } else { here.next() };
            steps += 1;
            assert!(steps <= ALL * KEYS.len() as u64, "round in circles");
        }
        let there: BTreeMap<Vec<u8>, u64> =
            visible(at).into_iter().map(|(key, no)| (key.to_vec(), no)).collect();
        assert_eq!(seen, there, "SNAP-1: at {at}, backwards: {backwards}");
    }
}

fn run(careless: bool) {
    let (list, mut pen) = List::new();
    let world = World { list, published: AtomicU64::new(0), pins: sync::Mutex::default() };
    (1..=BEFORE).for_each(|no| world.insert(&mut pen, no, false));
    let world = Arc::new(world);
    let readers: Vec<_> = (0..2)
        .map(|reader| {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let at = world.pin();
                world.walk(at, reader == 1);
                world.look_up(at);
                world.unpin(at);
                let at = world.pin();
                world.look_up(at);
                world.walk(at, reader == 0);
                world.unpin(at);
            })
        })
        .collect();
    (BEFORE + 1..=ALL).for_each(|no| world.insert(&mut pen, no, careless));
    readers.into_iter().for_each(|reader| reader.join().expect("a reader"));
}

#[test]
fn a_snapshot_sees_its_versions_under_every_schedule() {
    sync::explore(SCHEDULES, || run(false));
}

/// The search sees what it is for: a writer that takes out what a snapshot needs.
#[test]
fn a_writer_that_does_not_mind_snapshots_is_found() {
    assert!(catch_unwind(|| sync::explore(SCHEDULES, || run(true))).is_err());
}
