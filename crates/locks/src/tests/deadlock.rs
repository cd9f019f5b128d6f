//! Cycles are found when they close, and the right transaction pays.

use super::*;
use crate::TableMode;

const DEADLOCK: Option<WaitOutcome> = Some(WaitOutcome::Deadlock);

#[test]
fn the_requester_pays_when_all_weigh_the_same() {
    let manager = LockManager::new();
    let [a, b] = trxs(&manager);
    granted(x(&a, "k"));
    granted(x(&b, "l"));
    let wa = waits(x(&a, "l"));
    let wb = waits(x(&b, "k"));
    assert_eq!((wa.outcome(), wb.outcome()), (None, DEADLOCK));
    b.release_all();
    assert_eq!(wa.outcome(), GRANTED);
    assert_eq!(manager.stats().deadlocks, 1);
}

#[test]
fn the_lightest_pays_and_the_requester_goes_on_waiting_for_its_rollback() {
    let manager = LockManager::new();
    let [a, b] = trxs(&manager);
    a.set_weight(1);
    b.set_weight(5);
    granted(x(&a, "k"));
    granted(x(&b, "l"));
    let wa = waits(x(&a, "l"));
    let wb = waits(x(&b, "k"));
    assert_eq!((wa.outcome(), wb.outcome()), (DEADLOCK, None));
    a.release_all();
    assert_eq!(wb.outcome(), GRANTED);
}

#[test]
fn two_upgrades_of_one_key_deadlock() {
    let manager = LockManager::new();
    let [a, b] = trxs(&manager);
    granted(s(&a, "k"));
    granted(s(&b, "k"));
    let wa = waits(x(&a, "k"));
    let wb = waits(x(&b, "k"));
    assert_eq!(wb.outcome(), DEADLOCK);
    b.release_all();
    assert_eq!(wa.outcome(), GRANTED);
}

#[test]
fn a_cycle_through_a_queue_of_waiters_is_found() {
    // c waits for b's place in the queue, not for b's lock.
    let manager = LockManager::new();
    let [a, b, c] = trxs(&manager);
    granted(s(&a, "k"));
    granted(x(&c, "l"));
    let _wb = waits(x(&b, "k"));
    let wc = waits(s(&c, "k"));
    assert_eq!(wc.outcome(), None);
    let wa = waits(x(&a, "l"));
    assert_eq!(wa.outcome(), DEADLOCK);
}

#[test]
fn three_in_a_ring_across_rows_and_tables() {
    let manager = LockManager::new();
    let [a, b, c] = trxs(&manager);
    granted(x(&a, "k"));
    granted(x(&b, "l"));
    granted(c.lock_table(3, TableMode::IntentExclusive));
    let wa = waits(x(&a, "l"));
    let wb = waits(b.lock_table(3, TableMode::Exclusive));
    let wc = waits(x(&c, "k"));
    assert_eq!((wa.outcome(), wb.outcome(), wc.outcome()), (None, None, DEADLOCK));
}

#[test]
fn ddl_that_waits_for_a_transaction_that_waits_for_a_transaction_behind_it() {
    // b holds only a row, so the search from `a` must look past the hot-row short cut.
    let manager = LockManager::new();
    let [a, ddl, b] = trxs(&manager);
    granted(a.lock_table(1, TableMode::IntentExclusive));
    granted(x(&b, "k"));
    let _wddl = waits(ddl.lock_table(1, TableMode::Exclusive));
    let wb = waits(b.lock_table(1, TableMode::IntentExclusive));
    assert_eq!(wb.outcome(), None);
    let wa = waits(x(&a, "k"));
    assert_eq!(wa.outcome(), DEADLOCK);
}

#[test]
fn one_wait_that_closes_two_cycles_ends_with_both_broken() {
    let manager = LockManager::new();
    let [a, b, c] = trxs(&manager);
    for (trx, weight) in [(&a, 9), (&b, 1), (&c, 1)] {
        trx.set_weight(weight);
    }
    granted(x(&a, "k"));
    granted(s(&b, "l"));
    granted(s(&c, "l"));
    let wb = waits(s(&b, "k"));
    let wc = waits(s(&c, "k"));
    let wa = waits(x(&a, "l"));
    assert_eq!((wa.outcome(), wb.outcome(), wc.outcome()), (None, DEADLOCK, DEADLOCK));
    b.release_all();
    c.release_all();
    assert_eq!(wa.outcome(), GRANTED);
}

#[test]
fn two_holders_of_one_gap_who_both_insert_deadlock() {
    use std::ops::Bound::Unbounded;
    let manager = LockManager::new();
    let [a, b] = trxs(&manager);
    granted(a.lock_range(SPACE, Unbounded, Unbounded));
    granted(b.lock_range(SPACE, Unbounded, Unbounded));
    let wa = waits(a.lock_insert(SPACE, &key("k")));
    let wb = waits(b.lock_insert(SPACE, &key("l")));
    assert_eq!(wb.outcome(), DEADLOCK);
    b.release_all();
    assert_eq!(wa.outcome(), GRANTED);
}

#[test]
fn a_second_range_in_the_same_space_is_searched_from() {
    use std::ops::Bound::{Excluded, Included};
    let manager = LockManager::new();
    let [a, b] = trxs(&manager);
    let range = |trx: &TrxLocks, from: &str, to: &str| {
        trx.lock_range(SPACE, Included(&key(from)), Excluded(&key(to)))
    };
    granted(range(&a, "a", "b"));
    granted(b.lock_insert(SPACE, &key("x")));
    let _wb = waits(b.lock_insert(SPACE, &key("aa")));
    let wa = waits(range(&a, "w", "z"));
    assert_eq!(wa.outcome(), DEADLOCK);
}

#[test]
fn a_cycle_through_what_is_beside_a_transaction_is_found() {
    let manager = LockManager::new();
    let [a, a_named, b, b_named] = trxs(&manager);
    a.set_beside(&a_named);
    b.set_beside(&b_named);
    granted(x(&a_named, "name"));
    granted(b.lock_table(1, crate::TableMode::IntentShared));
    let by_name = waits(x(&b_named, "name"));
    // b waits as b_named, and holds as b what a wants.
    let definition = waits(a.lock_table(1, crate::TableMode::Exclusive));
    assert_eq!(definition.outcome(), Some(WaitOutcome::Deadlock), "the requester, among equals");
    assert_eq!(by_name.outcome(), None);
    // One that takes a session's place is beside what that was beside; the former one is nobody's.
    let later = manager.begin(7);
    later.replace_beside(&b);
    b.release_all();
    granted(later.lock_table(2, crate::TableMode::IntentShared));
    let definition = waits(a.lock_table(2, crate::TableMode::Exclusive));
    assert_eq!(definition.outcome(), Some(WaitOutcome::Deadlock));
}

#[test]
fn an_observer_is_told_of_the_circle_and_its_victim_before_anybody_goes_on() {
    let manager = LockManager::new();
    let seen: Arc<std::sync::Mutex<Vec<crate::Deadlock>>> = Arc::default();
    let kept = seen.clone();
    manager.observe_deadlocks(Box::new(move |deadlock| kept.lock().unwrap().push(deadlock.clone())));
    let [a, b, c] = trxs(&manager);
    b.set_weight(1);
    c.set_weight(1);
    a.set_weight(2);
    granted(x(&a, "k"));
    granted(x(&b, "l"));
    granted(x(&c, "m"));
    let _wa = waits(x(&a, "l"));
    let wb = waits(x(&b, "m"));
    let wc = waits(s(&c, "k"));
    assert_eq!((wb.outcome(), wc.outcome()), (None, DEADLOCK));
    let seen = seen.lock().unwrap();
    let [deadlock] = &seen[..] else { panic!("{seen:?}") };
    let owners: Vec<u64> = deadlock.members.iter().map(|member| member.owner).collect();
    assert_eq!((owners, deadlock.victim), (vec![a.id(), b.id(), c.id()], 2));
    let wanted = |at: usize| deadlock.members[at].target.clone();
    assert_eq!(wanted(1), Some(crate::LockTarget::Record { space: SPACE, key: key("m") }));
    assert_eq!((deadlock.members[2].mode, deadlock.members[1].mode), ("S", "X"));
    assert_eq!(deadlock.members[0].rows, 2, "what it waits for counts");
}

#[test]
fn what_is_held_can_be_listed_and_what_is_waited_for_is_not_in_it() {
    let manager = LockManager::new();
    let [a, b] = trxs(&manager);
    granted(x(&a, "k"));
    granted(s(&b, "l"));
    let _wb = waits(x(&b, "k"));
    let held = b.held_in_spaces(10);
    assert_eq!(held, [crate::HeldLock { space: SPACE, key: Some(key("l")), mode: "S" }]);
    let waiting = b.waiting().unwrap();
    assert_eq!((waiting.mode, a.waiting().is_none()), ("X", true));
    assert_eq!(a.held(), crate::HeldCounts { rows: 1, spaces: 1, tables: 0, written: 0 });
    assert_eq!(a.held_in_spaces(0), []);
}
