//! SNAP-3: whoever is given a lock takes over the stamp of the commit that gave it back.

use super::*;
use crate::TableMode;
use std::ops::Bound::{Excluded, Included};

/// Commits as `stamp`: its locks go.
fn commit(trx: &TrxLocks, stamp: u64) {
    trx.committed(stamp);
    trx.release_all();
}

fn range(trx: &TrxLocks, from: &str, to: &str) -> Request {
    trx.lock_range(SPACE, Included(&key(from)), Excluded(&key(to)))
}

fn insert(trx: &TrxLocks, name: &str) -> Request {
    trx.lock_insert(SPACE, &key(name))
}

#[test]
fn a_lock_carries_the_commit_that_gave_it_back() {
    let manager = LockManager::new();
    let [a, b, c, d] = trxs(&manager);
    granted(x(&a, "k"));
    let wait = waits(s(&b, "k"));
    commit(&a, 5);
    assert_eq!((a.stamp().get(), b.stamp().get()), (5, 0), "nothing is taken over before it is known");
    assert_eq!(wait.wait(std::time::Duration::ZERO), WaitOutcome::Granted);
    assert_eq!(b.stamp().get(), 5, "handed over");
    b.release_all();
    assert_eq!(c.try_lock_record(SPACE, &key("k"), RowMode::Exclusive), Some(true));
    assert_eq!(c.stamp().get(), 5, "found free");
    granted(x(&d, "other"));
    assert_eq!(d.stamp().get(), 0, "another lock");
}

#[test]
fn a_chain_of_locks_carries_the_stamp_of_its_first_holder() {
    let manager = LockManager::new();
    let [a, b, c] = trxs(&manager);
    granted(x(&a, "one"));
    commit(&a, 7);
    granted(x(&b, "one"));
    granted(x(&b, "two"));
    b.release_all();
    granted(x(&c, "two"));
    assert_eq!(c.stamp().get(), 7);
}

#[test]
fn a_record_that_is_given_back_early_carries_it_too() {
    let manager = LockManager::new();
    let [a, b, c] = trxs(&manager);
    granted(x(&a, "one"));
    commit(&a, 7);
    granted(x(&b, "one"));
    granted(x(&b, "two"));
    b.release_record(SPACE, &key("two"));
    granted(s(&c, "two"));
    assert_eq!(c.stamp().get(), 7);
}

#[test]
fn ranges_and_inserts_know_of_each_other() {
    let manager = LockManager::new();
    let [a, b, c, d] = trxs(&manager);
    granted(range(&a, "b", "d"));
    commit(&a, 3);
    granted(insert(&b, "c"));
    assert_eq!(b.stamp().get(), 3, "an insert after a range");
    commit(&b, 4);
    granted(range(&c, "a", "z"));
    assert_eq!(c.stamp().get(), 4, "a range after an insert");
    granted(insert(&d, "zz"));
    assert_eq!(d.stamp().get(), 3, "inserts beside each other know nothing of each other");
}

#[test]
fn tables_that_were_kept_from_others() {
    let manager = LockManager::new();
    let [a, b, c, d] = trxs(&manager);
    granted(a.lock_table(1, TableMode::IntentExclusive));
    commit(&a, 3);
    granted(b.lock_table(1, TableMode::IntentExclusive));
    assert_eq!(b.stamp().get(), 0, "beside each other");
    commit(&b, 4);
    granted(c.lock_table(1, TableMode::Shared));
    assert_eq!(c.stamp().get(), 4, "as a whole");
    commit(&c, 5);
    granted(d.lock_table(1, TableMode::IntentShared));
    assert_eq!(d.stamp().get(), 5, "after one that had it as a whole");
}

#[test]
fn many_records_carry_it() {
    let manager = LockManager::new();
    let [a, b] = trxs(&manager);
    // Beyond what has queues of its own.
    ["1", "2", "3", "4", "5", "6"].into_iter().for_each(|name| granted(x(&a, name)));
    commit(&a, 9);
    granted(s(&b, "5"));
    assert_eq!(b.stamp().get(), 9);
}

#[test]
fn all_locks_of_a_session_have_one_stamp() {
    let manager = LockManager::new();
    let [a, b] = trxs(&manager);
    let (named, next) = (a.begin_another(), a.begin_another());
    granted(x(&a, "k"));
    granted(x(&named, "name"));
    commit(&a, 2);
    assert_eq!(next.stamp().get(), 2);
    named.release_record(SPACE, &key("name"));
    granted(x(&b, "name"));
    assert_eq!(b.stamp().get(), 2, "through a lock by name");
}
