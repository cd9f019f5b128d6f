//! The memtable's order is that of the keys as bytes, whatever their length.

use crate::filter::Filter;
use crate::key::span;
use crate::list::{List, Probe};
use crate::memtable::{MemTable, Version};
use bytes::Bytes;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;

/// Keys around the length that fits a node, of few different bytes, so that prefixes abound.
fn random_key(rng: &mut StdRng) -> Vec<u8> {
    let mut key = vec![[0, 1, 255][rng.random_range(0..3)]; rng.random_range(12..20)];
    for _ in 0..rng.random_range(0..3) {
        let at = rng.random_range(0..key.len());
        key[at] = rng.random_range(0..3);
    }
    key
}

#[test]
fn version_keys_sort_as_their_bytes_then_newest_first() {
    let mut rng = StdRng::seed_from_u64(1);
    for _ in 0..20_000 {
        let (a, b) = (random_key(&mut rng), random_key(&mut rng));
        let (na, nb) = (rng.random_range(0..3u64), rng.random_range(0..3u64));
        let expected = a.cmp(&b).then(nb.cmp(&na));
        let (list, mut pen) = List::new();
        list.insert(&mut pen, [Some((a.clone().into(), None)), None, None, None], na, 0, 0);
        assert_eq!(list.first().unwrap().cmp(&Probe::new(&b, nb)), expected, "{a:?} {b:?}");
    }
}

/// Searches for a transaction's keys go together, before any of them is there: what one adds and takes out, the others must know.
#[test]
fn transactions_of_any_size_are_as_if_their_writes_came_one_by_one() {
    let mut rng = StdRng::seed_from_u64(3);
    for few in [8, 60, 2000] {
        let memtable = MemTable::new(1 << 20);
        let mut model: BTreeMap<Vec<u8>, Vec<u64>> = BTreeMap::new();
        let mut watermark = 0;
        for number in 1..=800u64 {
            let keys: BTreeSet<Vec<u8>> = (0..rng.random_range(1..10))
                .map(|_| format!("{:03}{}", rng.random_range(0..few), "k".repeat(few % 30)).into_bytes())
                .collect();
            watermark = watermark.max(number - rng.random_range(1..4).min(number));
            let writes = keys.iter().map(|key| (Bytes::from(key.clone()), Some(Bytes::from_static(b"row"))));
            memtable.write(watermark).insert_all(number, writes);
            keys.into_iter().for_each(|key| model.entry(key).or_default().push(number));
        }
        for (key, numbers) in &model {
            for at in watermark..=800 {
                let found = memtable.get(&Probe::new(key, at)).unwrap().map(|(number, _)| number);
                assert_eq!(found, numbers.iter().copied().rfind(|number| *number <= at), "{key:?} at {at}");
            }
        }
        let all: Vec<Version> = memtable.versions().map(Result::unwrap).collect();
        let newest_first = |two: &[Version]| {
            (&two[0].key, std::cmp::Reverse(two[0].number)) < (&two[1].key, std::cmp::Reverse(two[1].number))
        };
        assert!(all.windows(2).all(newest_first));
        let there: BTreeSet<&[u8]> = all.iter().map(|version| &version.key[..]).collect();
        assert!(there.into_iter().eq(model.keys().map(Vec::as_slice)));
    }
}

#[test]
fn batches_of_any_size_cover_a_span_once() {
    let mut rng = StdRng::seed_from_u64(2);
    let memtable = MemTable::new(1 << 20);
    let mut keys = BTreeSet::new();
    for number in 1..=2000u64 {
        let key = random_key(&mut rng);
        memtable.write(0).insert(Bytes::from(key.clone()), number, None);
        if number <= 1000 {
            keys.insert(key);
        }
    }
    for reverse in [false, true] {
        for size in [1, 2, 7, 4000] {
            let (mut span, mut out) = (span(Bound::Unbounded, Bound::Unbounded), VecDeque::new());
            while memtable.batch(&mut span, 1000, reverse, size, &mut out).unwrap() {}
            let mut seen: Vec<_> = out.iter().map(|version| version.key.to_vec()).collect();
            if reverse {
                seen.reverse();
            }
            assert!(seen.iter().eq(keys.iter()), "reverse {reverse}, batches of {size}");
            assert!(out.iter().all(|version| version.number <= 1000));
        }
    }
}

#[test]
fn the_filter_lets_every_key_through_and_few_others() {
    let filter = Filter::for_keys(10_000);
    let hash = |n: u32| Filter::hash(&n.to_be_bytes());
    (0..10_000).for_each(|n| filter.insert(hash(n)));
    assert!((0..10_000).all(|n| filter.may_hold(hash(n))));
    let wrong = (10_000..110_000).filter(|n| filter.may_hold(hash(*n))).count();
    assert!(wrong < 4_000, "{wrong} of 100,000 absent keys were let through");
}

/// Returns the contents of a memtable: numbers by key.
fn numbers(memtable: &MemTable) -> Vec<u64> {
    memtable.versions().map(|version| version.unwrap().number).collect()
}

#[test]
fn versions_that_no_snapshot_sees_are_taken_out() {
    let memtable = MemTable::new(1 << 20);
    let insert = |key: &'static [u8], number, watermark| {
        memtable.write(watermark).insert(Bytes::from_static(key), number, Some(Bytes::from_static(b"row")));
    };
    insert(b"b", 1, 0);
    insert(b"b", 2, 0);
    // A snapshot at 3 still sees 2, but nothing sees 1.
    insert(b"b", 5, 3);
    assert_eq!(numbers(&memtable), [5, 2]);
    insert(b"b", 6, 5);
    assert_eq!(numbers(&memtable), [6, 5]);
    // Other keys are left alone.
    insert(b"a", 7, 6);
    insert(b"c", 8, 7);
    assert_eq!(numbers(&memtable), [7, 6, 5, 8]);
    // What piled up behind an old snapshot goes a few at a time.
    for number in 10..40 {
        insert(b"b", number, 7);
    }
    for number in 40..60 {
        insert(b"b", number, number - 1);
    }
    assert_eq!(numbers(&memtable), [7, 59, 58, 8]);
}
