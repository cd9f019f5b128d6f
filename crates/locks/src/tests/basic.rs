//! Conflicts on one key or table, and outcomes of waits.

use super::*;
use crate::{LockTarget, TableMode};
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

#[test]
fn shared_goes_with_shared_and_nothing_else_goes_together() {
    let manager = LockManager::new();
    let [a, b, c] = trxs(&manager);
    granted(s(&a, "k"));
    granted(s(&b, "k"));
    let wait = waits(x(&c, "k"));
    a.release_all();
    assert_eq!(wait.outcome(), None);
    b.release_all();
    assert_eq!(wait.outcome(), GRANTED);
    assert!(!s(&a, "k").is_granted());
    granted(x(&a, "other"));
}

#[test]
fn first_come_first_served_and_shared_does_not_overtake_exclusive() {
    // LOCK-1.
    let manager = LockManager::new();
    let [a, b, c, d, e] = trxs(&manager);
    granted(s(&a, "k"));
    let wb = waits(x(&b, "k"));
    let wc = waits(s(&c, "k"));
    let wd = waits(s(&d, "k"));
    let we = waits(x(&e, "k"));
    a.release_all();
    assert_eq!([wb.outcome(), wc.outcome(), wd.outcome(), we.outcome()], [GRANTED, None, None, None]);
    b.release_all();
    assert_eq!([wc.outcome(), wd.outcome(), we.outcome()], [GRANTED, GRANTED, None]);
    c.release_all();
    assert_eq!(we.outcome(), None);
    d.release_all();
    assert_eq!(we.outcome(), GRANTED);
}

#[test]
fn a_holder_may_ask_again_and_upgrade_before_those_who_wait() {
    let manager = LockManager::new();
    let [a, b] = trxs(&manager);
    assert!(matches!(s(&a, "k"), Request::Granted { fresh: true }));
    assert!(matches!(s(&a, "k"), Request::Granted { fresh: false }));
    let wait = waits(x(&b, "k"));
    assert!(matches!(x(&a, "k"), Request::Granted { fresh: false }), "must not wait for a waiter");
    assert!(matches!(x(&a, "k"), Request::Granted { fresh: false }));
    a.release_all();
    assert_eq!(wait.outcome(), GRANTED);
}

#[test]
fn giving_up_lets_those_behind_go_on() {
    let manager = LockManager::new();
    let [a, b, c] = trxs(&manager);
    granted(s(&a, "k"));
    let wb = waits(x(&b, "k"));
    let wc = waits(s(&c, "k"));
    assert_eq!(wb.cancel(), WaitOutcome::Timeout);
    assert_eq!(wc.outcome(), GRANTED);
    a.release_all();
    c.release_all();
    granted(x(&b, "k"));
    let stats = manager.stats();
    assert_eq!((stats.waits, stats.timeouts, stats.deadlocks), (2, 1, 0));
    drop(wc);
    assert_eq!(manager.stats().current_waits, 0);
}

#[test]
fn a_wait_given_up_leaves_nothing_queued_and_the_next_has_the_slot_for_itself() {
    // LOCK-3: a transaction waits for one lock at a time.
    let manager = LockManager::new();
    let [a, b, c] = trxs(&manager);
    granted(x(&a, "k"));
    granted(x(&c, "l"));
    let first = waits(x(&b, "k"));
    assert!(b.handle().waits_for().is_some());
    drop(first);
    assert!(b.handle().waits_for().is_none());
    let second = waits(x(&b, "l"));
    a.release_all();
    assert_eq!(second.outcome(), None, "the release of a key that it no longer waits for is nothing to it");
    granted(x(&a, "k"));
    c.release_all();
    assert_eq!(second.outcome(), GRANTED);
    assert!(b.handle().waits_for().is_none());
}

#[test]
fn a_cancel_that_comes_too_late_says_granted() {
    let manager = LockManager::new();
    let [a, b] = trxs(&manager);
    granted(x(&a, "k"));
    let wait = waits(x(&b, "k"));
    a.release_all();
    assert_eq!(wait.cancel(), WaitOutcome::Granted);
    assert!(!x(&a, "k").is_granted());
}

#[test]
fn a_thread_times_out() {
    let manager = LockManager::new();
    let [a, b] = trxs(&manager);
    granted(x(&a, "k"));
    assert_eq!(x(&b, "k").wait(Duration::from_millis(5)), WaitOutcome::Timeout);
    assert!(b.waits_for().is_none());
    assert!(manager.stats().wait_us_max >= 5000);
}

#[test]
fn a_kill_ends_this_wait_and_the_next_until_cleared() {
    let manager = LockManager::new();
    let [a, b] = trxs(&manager);
    granted(x(&a, "k"));
    let wait = waits(x(&b, "k"));
    assert!(b.handle().kill());
    assert_eq!(wait.outcome(), Some(WaitOutcome::Killed));
    assert_eq!(x(&b, "k").wait(Duration::MAX), WaitOutcome::Killed);
    granted(x(&b, "free"));
    b.clear_kill();
    let wait = waits(x(&b, "k"));
    a.release_all();
    assert_eq!(wait.outcome(), GRANTED);
    assert!(!a.handle().kill(), "does not wait");
}

struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_future_is_woken_once_when_its_turn_comes() {
    let manager = LockManager::new();
    let [a, b, c] = trxs(&manager);
    granted(x(&a, "k"));
    let (count, late) = (Arc::new(Count(AtomicUsize::new(0))), Arc::new(Count(AtomicUsize::new(0))));
    let (waker, late_waker) = (Waker::from(Arc::clone(&count)), Waker::from(Arc::clone(&late)));
    let mut wait = std::pin::pin!(waits(x(&b, "k")));
    let mut behind = std::pin::pin!(waits(x(&c, "k")));
    assert_eq!(wait.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Pending);
    assert_eq!(behind.as_mut().poll(&mut Context::from_waker(&late_waker)), Poll::Pending);
    a.handle().release_all();
    assert_eq!((count.0.load(Ordering::SeqCst), late.0.load(Ordering::SeqCst)), (1, 0));
    assert_eq!(wait.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Ready(WaitOutcome::Granted));
}

#[test]
fn table_modes_follow_the_matrix() {
    use TableMode::{Exclusive as X, IntentExclusive as IX, IntentShared as IS, Shared as S};
    let together = [(IS, IS), (IS, IX), (IS, S), (IX, IX), (S, S)];
    for held in [IS, IX, S, X] {
        for asked in [IS, IX, S, X] {
            let manager = LockManager::new();
            let [a, b] = trxs(&manager);
            granted(a.lock_table(1, held));
            let compatible = together.contains(&(held, asked)) || together.contains(&(asked, held));
            assert_eq!(b.lock_table(1, asked).is_granted(), compatible, "{held:?} {asked:?}");
            granted(b.lock_table(2, asked));
        }
    }
}

#[test]
fn a_shared_table_holder_that_writes_keeps_other_writers_out_but_not_readers() {
    let manager = LockManager::new();
    let [a, b, c] = trxs(&manager);
    granted(a.lock_table(1, TableMode::Shared));
    granted(a.lock_table(1, TableMode::IntentExclusive));
    granted(b.lock_table(1, TableMode::IntentShared));
    let wait = waits(c.lock_table(1, TableMode::IntentExclusive));
    a.release_table(1);
    assert_eq!(wait.outcome(), GRANTED);
}

#[test]
fn ddl_waits_for_open_transactions_and_new_ones_wait_behind_it() {
    let manager = LockManager::new();
    let [a, ddl, b] = trxs(&manager);
    granted(a.lock_table(1, TableMode::IntentExclusive));
    let wddl = waits(ddl.lock_table(1, TableMode::Exclusive));
    let wb = waits(b.lock_table(1, TableMode::IntentShared));
    a.release_records();
    assert_eq!(wddl.outcome(), None, "record release must keep table locks");
    a.release_all();
    assert_eq!((wddl.outcome(), wb.outcome()), (GRANTED, None));
    ddl.release_all();
    assert_eq!(wb.outcome(), GRANTED);
}

#[test]
fn a_definition_that_weakens_its_lock_lets_others_in_and_is_first_again() {
    use TableMode::{Exclusive, IntentExclusive, IntentShared};
    let manager = LockManager::new();
    let [ddl, writer, late] = trxs(&manager);
    granted(ddl.lock_table(1, Exclusive));
    granted(ddl.lock_table(2, Exclusive));
    let (one, two) = (waits(writer.lock_table(1, IntentExclusive)), waits(late.lock_table(2, Exclusive)));
    ddl.keep_tables(&[(1, IntentShared)]);
    assert_eq!((one.outcome(), two.outcome()), (GRANTED, GRANTED));
    drop((one, two));
    let again = waits(ddl.lock_table(1, Exclusive));
    let behind = waits(late.lock_table(1, IntentExclusive));
    writer.release_all();
    assert_eq!((again.outcome(), behind.outcome()), (GRANTED, None), "the upgrade goes before others");
    ddl.release_all();
    assert_eq!(behind.outcome(), GRANTED);
}

#[test]
fn trying_never_waits_and_never_queues() {
    let manager = LockManager::new();
    let [a, b] = trxs(&manager);
    assert_eq!(a.try_lock_record(SPACE, &key("k"), RowMode::Exclusive), Some(true));
    assert_eq!(a.try_lock_record(SPACE, &key("k"), RowMode::Shared), Some(false));
    assert_eq!(b.try_lock_record(SPACE, &key("k"), RowMode::Shared), None);
    a.release_all();
    assert_eq!(a.try_lock_record(SPACE, &key("k"), RowMode::Exclusive), Some(true));
}

#[test]
fn one_record_can_go_early() {
    let manager = LockManager::new();
    let [a, b] = trxs(&manager);
    granted(x(&a, "k"));
    granted(x(&a, "l"));
    let wait = waits(x(&b, "k"));
    a.release_record(SPACE, &key("k"));
    assert_eq!(wait.outcome(), GRANTED);
    assert_eq!(a.held_count(), 1);
    drop(wait);
    assert!(!x(&b, "l").is_granted());
}

#[test]
fn dropping_a_transaction_releases_it() {
    let manager = LockManager::new();
    let [a, b] = trxs(&manager);
    granted(x(&a, "k"));
    drop(a);
    granted(x(&b, "k"));
}

#[test]
fn introspection_tells_who_blocks_whom_on_what() {
    let manager = LockManager::new();
    let [a, b] = trxs(&manager);
    granted(x(&a, "k"));
    let wait = waits(s(&b, "k"));
    let info = manager.waits();
    assert_eq!(info.len(), 1);
    assert_eq!((info[0].waiter, &info[0].blockers[..], info[0].mode), (2, &[1][..], "S"));
    assert_eq!(info[0].target, LockTarget::Record { space: SPACE, key: key("k") });
    drop(wait);
    assert!(manager.waits().is_empty());
}

#[test]
fn a_million_locks_in_one_transaction() {
    let manager = LockManager::new();
    let [a, b] = trxs(&manager);
    for i in 0..1_000_000u32 {
        granted(a.lock_record(SPACE, &Bytes::copy_from_slice(&i.to_be_bytes()), RowMode::Exclusive));
    }
    let wait = waits(b.lock_record(SPACE, &Bytes::copy_from_slice(&77u32.to_be_bytes()), RowMode::Shared));
    assert_eq!(a.held_count(), 1_000_000);
    a.release_all();
    assert_eq!(wait.outcome(), GRANTED);
}

#[test]
fn a_closed_gate_stops_new_writers_and_lets_old_ones_end() {
    let manager = LockManager::new();
    let [closer, old, new, reader, queued] = trxs(&manager);
    granted(old.lock_table(1, TableMode::IntentExclusive));
    granted(old.lock_table(9, TableMode::Exclusive));
    let queued_wait = waits(queued.lock_table(9, TableMode::IntentExclusive));
    granted(closer.close_gate());
    granted(old.lock_table(2, TableMode::IntentExclusive));
    granted(reader.lock_table(1, TableMode::IntentShared));
    let wait = waits(new.lock_table(3, TableMode::IntentExclusive));
    let upgrade = waits(reader.lock_table(1, TableMode::IntentExclusive));
    assert!(closer.others_write());
    old.release_all();
    assert_eq!(queued_wait.outcome(), GRANTED);
    assert!(closer.others_write(), "it asked before the gate was closed");
    queued.release_all();
    assert!(!closer.others_write());
    assert_eq!((wait.outcome(), upgrade.outcome()), (None, None));
    closer.open_gate();
    assert_eq!((wait.outcome(), upgrade.outcome()), (GRANTED, GRANTED));
    granted(new.lock_table(3, TableMode::IntentExclusive));
    assert!(closer.others_write());
}
