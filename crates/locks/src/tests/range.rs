//! Range locks: they fence inserts, wait for inserts, and never hinder each other.

use super::*;
use crate::interval::{Interval, IntervalSet};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::ops::Bound::{self, Excluded, Included, Unbounded};

fn range(trx: &TrxLocks, from: Bound<&str>, to: Bound<&str>) -> Request {
    let (from, to) = (from.map(key), to.map(key));
    trx.lock_range(SPACE, from.as_ref().map(|key| &key[..]), to.as_ref().map(|key| &key[..]))
}

fn insert(trx: &TrxLocks, name: &str) -> Request {
    trx.lock_insert(SPACE, &key(name))
}

#[test]
fn a_range_keeps_inserts_of_others_out_and_nothing_else() {
    let manager = LockManager::new();
    let [a, b] = trxs(&manager);
    granted(range(&a, Included("d"), Excluded("m")));
    granted(range(&b, Included("e"), Included("z")));
    granted(x(&b, "f"));
    granted(insert(&b, "c"));
    granted(insert(&b, "m"));
    granted(b.lock_insert(SPACE + 1, &key("e")));
    granted(insert(&a, "d"));
    let wait = waits(insert(&b, "e"));
    a.release_all();
    assert_eq!(wait.outcome(), GRANTED);
}

#[test]
fn bounds_mean_what_they_say() {
    let manager = LockManager::new();
    let [a, b] = trxs(&manager);
    granted(range(&a, Excluded("d"), Included("m")));
    granted(insert(&b, "d"));
    granted(insert(&b, "n"));
    assert!(!insert(&b, "d\0").is_granted());
    assert!(!insert(&b, "m").is_granted());
    granted(range(&a, Included("z"), Unbounded));
    assert!(!insert(&b, "zz").is_granted());
    granted(range(&a, Included("y"), Excluded("b")));
}

#[test]
fn a_range_waits_for_uncommitted_inserts_inside_but_not_for_updates() {
    let manager = LockManager::new();
    let [a, b, c] = trxs(&manager);
    granted(insert(&a, "k"));
    granted(x(&b, "l"));
    let wait = waits(range(&c, Included("a"), Included("z")));
    granted(range(&c.0.manager.begin(9), Excluded("k"), Unbounded));
    b.release_all();
    assert_eq!(wait.outcome(), None);
    a.release_all();
    assert_eq!(wait.outcome(), GRANTED);
    assert!(!insert(&a, "k").is_granted());
}

#[test]
fn inserts_do_not_overtake_a_waiting_range_unless_it_waits_for_them() {
    let manager = LockManager::new();
    let [a, b, scan] = trxs(&manager);
    granted(insert(&a, "k"));
    let wait = waits(range(&scan, Unbounded, Unbounded));
    let wb = waits(insert(&b, "l"));
    granted(insert(&a, "m"));
    a.release_all();
    assert_eq!((wait.outcome(), wb.outcome()), (GRANTED, None));
    scan.release_all();
    assert_eq!(wb.outcome(), GRANTED);
}

#[test]
fn a_withdrawn_range_lets_inserts_go_on() {
    let manager = LockManager::new();
    let [a, b, scan] = trxs(&manager);
    granted(insert(&a, "k"));
    let wait = waits(range(&scan, Unbounded, Unbounded));
    let wb = waits(insert(&b, "l"));
    assert_eq!(wait.cancel(), WaitOutcome::Timeout);
    assert_eq!(wb.outcome(), GRANTED);
}

#[test]
fn a_lock_on_an_absent_key_that_becomes_an_insert_looks_at_ranges() {
    let manager = LockManager::new();
    let [a, b] = trxs(&manager);
    granted(range(&a, Unbounded, Unbounded));
    granted(x(&b, "k"));
    let wait = waits(insert(&b, "k"));
    a.release_all();
    assert_eq!(wait.outcome(), GRANTED);
    assert!(!range(&a, Unbounded, Unbounded).is_granted(), "the insert is seen as one");
}

#[test]
fn both_the_key_and_the_range_must_be_free_for_an_insert() {
    let manager = LockManager::new();
    let [a, b, c] = trxs(&manager);
    granted(x(&a, "k"));
    granted(range(&b, Unbounded, Unbounded));
    let wait = waits(insert(&c, "k"));
    a.release_all();
    assert_eq!(wait.outcome(), None);
    b.release_all();
    assert_eq!(wait.outcome(), GRANTED);
}

#[test]
fn merged_intervals_contain_exactly_what_went_in() {
    let mut rng = StdRng::seed_from_u64(4);
    for _ in 0..300 {
        let (mut set, mut all) = (IntervalSet::default(), Vec::new());
        for _ in 0..rng.random_range(1..12) {
            let (from, to) = ([rng.random_range(0..60u8)], [rng.random_range(0..64u8)]);
            let from = if rng.random_bool(0.5) { Included(&from[..]) } else { Excluded(&from[..]) };
            let to = match rng.random_range(0..9) {
                0 => Unbounded,
                1..5 => Included(&to[..]),
                _ => Excluded(&to[..]),
            };
            let interval = Interval::new(from, to);
            if !interval.is_empty() {
                set.insert(interval.clone());
                assert!(set.covers(&interval));
                all.push(interval);
            }
        }
        for probe in 0..65u8 {
            for name in [vec![probe], vec![probe, 0]] {
                let expected = all.iter().any(|interval| interval.contains(&name));
                assert_eq!(set.contains(&name), expected, "{name:?} in {all:?}");
            }
        }
    }
}
