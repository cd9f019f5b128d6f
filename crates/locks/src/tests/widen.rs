//! Bulks that stand for all records of their space.

use super::*;
use std::ops::Bound::{Excluded, Included};

fn insert(trx: &TrxLocks, name: &str) -> Request {
    trx.lock_insert(SPACE, &key(name))
}

fn range(trx: &TrxLocks, from: &str, to: &str) -> Request {
    trx.lock_range(SPACE, Included(&key(from)), Excluded(&key(to)))
}

/// Has so many locks that the last ones are in its bulk.
fn fill(trx: &TrxLocks) {
    ["a", "b", "c", "d"].iter().for_each(|name| granted(x(trx, name)));
    ["m", "n"].iter().for_each(|name| granted(insert(trx, name)));
}

#[test]
fn whoever_has_all_records_is_waited_for_at_each_and_asks_for_none() {
    let manager = LockManager::new();
    let [whole, others, third] = trxs(&manager);
    granted(x(&others, "theirs"));
    fill(&whole);
    granted(s(&whole, "shared"));
    granted(s(&others, "shared"));
    assert!(whole.widen() >= 6, "those before the bulk go too");
    assert_eq!(whole.memory(), 0);
    assert_eq!(whole.widen(), 0, "nothing is left to give up");
    for name in ["c", "new", "newer"] {
        assert!(matches!(x(&whole, name), Request::Granted { fresh: false }), "{name}");
        assert!(matches!(insert(&whole, name), Request::Granted { fresh: false }), "{name}");
    }
    let memory = whole.memory();
    assert!(others.try_lock_record(SPACE, &key("theirs"), RowMode::Exclusive).is_some(), "it has that");
    let old = waits(s(&others, "a"));
    let kept = waits(x(&third, "d"));
    assert_eq!(manager.record_holder(SPACE, &key("d")), Some(whole.id()));
    assert!(others.try_lock_record(SPACE, &key("nowhere"), RowMode::Shared).is_none());
    // One that has come out is the owner's still, and may be asked for in any way.
    granted(x(&whole, "d"));
    granted(insert(&whole, "d"));
    assert_eq!(whole.memory(), memory);
    whole.release_all();
    assert_eq!((old.outcome(), kept.outcome()), (GRANTED, GRANTED));
    granted(insert(&others, "n"));
    granted(s(&third, "nowhere"));
}

#[test]
fn ranges_and_all_records_keep_each_other_out() {
    let manager = LockManager::new();
    let [whole, others] = trxs(&manager);
    granted(range(&others, "p", "q"));
    fill(&whole);
    assert!(whole.widen() > 0);
    let fenced = waits(insert(&whole, "pp"));
    others.release_all();
    assert_eq!(fenced.outcome(), GRANTED);
    let fence = waits(range(&others, "s", "t"));
    assert_eq!(fence.outcome(), None);
    whole.release_all();
    assert_eq!(fence.outcome(), GRANTED);
    let behind = waits(insert(&whole, "s"));
    drop(others);
    assert_eq!(behind.outcome(), GRANTED);
}

#[test]
fn waiting_for_who_has_all_records_may_be_a_deadlock() {
    let manager = LockManager::new();
    let [whole, others] = trxs(&manager);
    granted(x(&others, "theirs"));
    fill(&whole);
    assert!(whole.widen() > 0);
    whole.set_weight(10);
    let first = waits(x(&others, "anything"));
    let second = waits(x(&whole, "theirs"));
    assert_eq!(first.outcome(), Some(WaitOutcome::Deadlock));
    others.release_all();
    assert_eq!(second.outcome(), GRANTED);
}

#[test]
fn two_with_many_records_keep_them() {
    let manager = LockManager::new();
    let [one, two] = trxs(&manager);
    fill(&one);
    ["e", "f", "g", "h"].iter().for_each(|name| granted(x(&two, name)));
    assert_eq!((one.widen(), two.widen()), (0, 0));
    drop(waits(x(&one, "h")));
    granted(x(&two, "z"));
}
