//! Real threads: exclusion holds, every wait ends, nobody starves.

use super::lock::name;
use super::*;
use crate::TableMode;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::ops::Bound::{Excluded, Included};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

const KEYS: usize = 6;
/// Far beyond anything a correct run needs; reaching it is the failure.
const FOREVER: Duration = Duration::from_secs(120);

/// Positive: shared holders; -1: one exclusive holder.
#[derive(Default)]
struct Guarded([AtomicI64; KEYS]);

fn transaction(trx: &TrxLocks, rng: &mut StdRng, guarded: &Guarded, deadlocks: &AtomicU64) {
    let mut entered: [i64; KEYS] = [0; KEYS];
    let table = if rng.random_bool(0.02) { TableMode::Exclusive } else { TableMode::IntentExclusive };
    let mut alive = trx.lock_table(rng.random_range(1..3), table).wait(FOREVER);
    for _ in 0..rng.random_range(1..5) {
        if alive != WaitOutcome::Granted {
            break;
        }
        let at = rng.random_range(0..KEYS);
        let name = name(u8::try_from(at).unwrap());
        let kind = rng.random_range(0..10);
        let request = match kind {
            0..3 => trx.lock_record(SPACE, &name, RowMode::Shared),
            3..8 => trx.lock_record(SPACE, &name, RowMode::Exclusive),
            8 => trx.lock_insert(SPACE, &name),
            _ => trx.lock_range(SPACE, Included(&name), Excluded(&[u8::try_from(at).unwrap() + 2])),
        };
        alive = request.wait(FOREVER);
        if alive == WaitOutcome::Granted {
            enter(guarded, &mut entered, at, kind);
            // Holding it: else, on few cores, a thread is through before the next one starts.
            std::thread::yield_now();
        }
    }
    assert!(matches!(alive, WaitOutcome::Granted | WaitOutcome::Deadlock), "{alive:?}");
    if alive == WaitOutcome::Deadlock {
        deadlocks.fetch_add(1, Ordering::Relaxed);
    }
    for (cell, mine) in guarded.0.iter().zip(entered) {
        cell.fetch_sub(mine, Ordering::SeqCst);
    }
    trx.handle().release_all();
}

/// Marks the key as used, checking that nobody else uses it in a way that does not go with it.
fn enter(guarded: &Guarded, entered: &mut [i64; KEYS], at: usize, kind: u32) {
    let wanted = match kind {
        0..3 if entered[at] == 0 => 1,
        3..9 => -1000,
        _ => return,
    };
    if entered[at] != wanted && entered[at] != -1000 {
        let before = guarded.0[at].fetch_add(wanted - entered[at], Ordering::SeqCst) - entered[at];
        assert!(if wanted == 1 { before >= 0 } else { before == 0 }, "key {at} is used by others: {before}");
        entered[at] = wanted;
    }
}

#[test]
fn stress_with_deadlocks_always_comes_to_an_end() {
    let manager = LockManager::new();
    let (guarded, deadlocks) = (Guarded::default(), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let start = Arc::new(std::sync::Barrier::new(8));
        for thread in 0..8u64 {
            let (manager, guarded, deadlocks, start) = (&manager, &guarded, &deadlocks, start.clone());
            scope.spawn(move || {
                let mut rng = StdRng::seed_from_u64(thread);
                let trx = manager.begin(thread);
                start.wait();
                for _ in 0..1500 {
                    trx.set_weight(rng.random_range(0..4));
                    transaction(&trx, &mut rng, guarded, deadlocks);
                }
            });
        }
    });
    let stats = manager.stats();
    assert_eq!(stats.current_waits, 0);
    assert_eq!(stats.timeouts, 0);
    assert_eq!(stats.deadlocks, deadlocks.load(Ordering::Relaxed), "each victim was told, once");
    assert!(stats.deadlocks > 0, "the test met no deadlock");
    assert!(manager.waits().is_empty());
}

#[test]
fn a_writer_is_not_starved_by_readers_that_never_stop() {
    let manager = LockManager::new();
    let done = AtomicU64::new(0);
    let first = manager.begin(0);
    granted(s(&first, "k"));
    std::thread::scope(|scope| {
        for id in 1..5 {
            let (manager, done) = (&manager, &done);
            scope.spawn(move || {
                let (one, two) = (manager.begin(id), manager.begin(id));
                while done.load(Ordering::SeqCst) == 0 {
                    // Overlapping holds: without a queue there is always a reader.
                    for (next, last) in [(&one, &two), (&two, &one)] {
                        let request = s(next, "k");
                        // The two are one reader and must not wait for each other through a writer.
                        last.release_all();
                        assert_eq!(request.wait(FOREVER), WaitOutcome::Granted);
                    }
                }
            });
        }
        let writer = manager.begin(9);
        let wait = waits(x(&writer, "k"));
        first.release_all();
        assert_eq!(wait.wait(FOREVER), WaitOutcome::Granted);
        done.store(1, Ordering::SeqCst);
        writer.release_all();
    });
}

#[test]
fn a_hot_row_passes_from_hand_to_hand() {
    let manager = LockManager::new();
    let counter = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for id in 0..16 {
            let (manager, counter) = (&manager, &counter);
            scope.spawn(move || {
                let trx = manager.begin(id);
                for _ in 0..500 {
                    granted(trx.lock_table(1, TableMode::IntentExclusive));
                    assert_eq!(x(&trx, "hot").wait(FOREVER), WaitOutcome::Granted);
                    // Not atomic as a whole: only the lock makes it so.
                    let seen = counter.load(Ordering::Relaxed);
                    counter.store(seen + 1, Ordering::Relaxed);
                    trx.release_all();
                }
            });
        }
    });
    assert_eq!(counter.load(Ordering::Relaxed), 16 * 500);
    assert_eq!(manager.stats().deadlocks, 0);
}
