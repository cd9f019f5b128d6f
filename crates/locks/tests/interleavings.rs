//! The lock manager under thousands of interleavings, chosen by a scheduler (`omnibus_sync`). Its files are this test's own modules, over
//! the names of `interleavings`. Waiting never times out, so that a wake-up that is lost, or a cycle that nobody finds, is a deadlock.
//!
//! LOCK-1, LOCK-2, LOCK-3: what is held together goes together, by the rule of the naive model; every wait ends.
#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    missing_docs,
    reason = "the modules of a library, of which this uses a part"
)]

use omnibus_sync::interleavings as sync;

#[path = "../src/bulk.rs"]
mod bulk;
#[path = "../src/deadlock.rs"]
mod deadlock;
#[path = "../src/detect.rs"]
mod detect;
#[path = "../src/gate.rs"]
mod gate;
#[path = "../src/handle.rs"]
mod handle;
#[path = "../src/interval.rs"]
mod interval;
#[path = "../src/tests/lock.rs"]
mod lock;
#[path = "../src/manager.rs"]
mod manager;
#[path = "../src/mode.rs"]
mod mode;
#[path = "../src/outcome.rs"]
mod outcome;
#[path = "../src/queue.rs"]
mod queue;
#[path = "../src/reach.rs"]
mod reach;
#[path = "../src/released.rs"]
mod released;
#[path = "../src/request.rs"]
mod request;
#[path = "../src/space.rs"]
mod space;
#[path = "../src/stats.rs"]
mod stats;
#[path = "../src/tables.rs"]
mod tables;
#[path = "../src/trx.rs"]
mod trx;
#[path = "../src/wait.rs"]
mod wait;

pub use handle::{TrxHandle, TrxLocks};
pub use manager::LockManager;
pub use mode::{RowMode, TableMode};
pub use outcome::WaitOutcome;
pub use released::Stamp;
pub use stats::{LockStats, LockTarget, WaitInfo};
pub use wait::{LockWait, Request};

use lock::Lock;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::panic::catch_unwind;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use sync::thread;

const PLANS: u64 = 80;
const SCHEDULES: usize = 60;
const KEYS: u8 = 3;

/// The locks granted to each transaction. Its mutex is never waited for: threads change only between the steps of the
/// lock manager.
#[derive(Default)]
struct Held(Mutex<Vec<(u64, Lock)>>);

impl Held {
    fn granted(&self, who: u64, lock: Lock) {
        let mut held = self.0.lock().expect("nobody panics with it");
        let against = held.iter().find(|(other, held)| *other != who && lock.waits_for(*held)).copied();
        held.push((who, lock));
        drop(held);
        assert_eq!(against, None, "{who} was granted {lock:?}");
    }

    /// Before the locks are given back.
    fn gives_back(&self, who: u64) {
        self.0.lock().expect("nobody panics with it").retain(|(other, _)| *other != who);
    }
}

/// A session's part: for each transaction, what it locks, one after the other.
type Plan = Vec<Vec<Lock>>;

fn plan(seed: u64, of: u64) -> Plan {
    let mut rng = StdRng::seed_from_u64(seed * 100 + of);
    (0..2).map(|_| (0..rng.random_range(2..9)).map(|_| Lock::random(&mut rng, KEYS, 1)).collect()).collect()
}

/// How a wait is ended by its own thread, if it is.
#[derive(Clone, Copy, PartialEq)]
enum Patience {
    Endless,
    /// Gives up at once.
    None,
}

fn session(trx: &TrxLocks, plan: &Plan, held: &Held, patience: Patience) {
    let who = trx.id();
    for transaction in plan {
        for lock in transaction {
            let outcome = match lock.ask(trx) {
                Request::Granted { .. } => WaitOutcome::Granted,
                Request::Wait(wait) if patience == Patience::None => wait.cancel(),
                Request::Wait(wait) => wait.wait(Duration::MAX),
            };
            match outcome {
                WaitOutcome::Granted => held.granted(who, *lock),
                WaitOutcome::Timeout => {}
                WaitOutcome::Killed => trx.clear_kill(),
                // The transaction is over.
                WaitOutcome::Deadlock => break,
            }
        }
        held.gives_back(who);
        trx.release_all();
    }
}

/// Sessions at once, of which the last may be impatient, and somebody who kills the first one's wait.
fn run(seed: u64) {
    let manager = LockManager::new();
    let held = Arc::new(Held::default());
    let trxs: Vec<_> = (1..=3).map(|id| Arc::new(manager.begin(id))).collect();
    let mut threads: Vec<_> = trxs
        .iter()
        .map(|trx| {
            let (trx, held, plan) = (Arc::clone(trx), Arc::clone(&held), plan(seed, trx.id()));
            let impatient = trx.id() == 3 && seed.is_multiple_of(3);
            let patience = if impatient { Patience::None } else { Patience::Endless };
            thread::spawn(move || session(&trx, &plan, &held, patience))
        })
        .collect();
    if seed.is_multiple_of(4) {
        let first = trxs[0].handle();
        threads.push(thread::spawn(move || {
            first.kill();
        }));
    }
    threads.into_iter().for_each(|thread| thread.join().expect("a session"));
    let stats = manager.stats();
    assert_eq!(stats.current_waits, 0, "LOCK-2: everybody has an answer");
    // Nothing is left behind.
    let last = manager.begin(99);
    assert!(last.lock_table(0, TableMode::Exclusive).is_granted());
    assert!(Lock::Range { from: 0, to: KEYS }.ask(&last).is_granted());
    for key in 0..KEYS {
        assert!(Lock::Record { key, exclusive: true, insert: true }.ask(&last).is_granted());
    }
}

#[test]
fn what_is_held_goes_together_and_every_wait_ends_under_every_schedule() {
    for seed in 0..PLANS {
        sync::explore(SCHEDULES, move || run(seed));
    }
}

fn exclusive(key: u8) -> Lock {
    Lock::Record { key, exclusive: true, insert: false }
}

/// LOCK-2: one key has a queue and no cycles; whoever finds one there is mistaken.
#[test]
fn a_queue_for_one_key_is_never_called_a_deadlock() {
    sync::explore(1000, || {
        let manager = LockManager::new();
        let threads: Vec<_> = (1..=3)
            .map(|id| {
                let trx = manager.begin(id);
                thread::spawn(move || {
                    for _ in 0..2 {
                        assert_eq!(exclusive(0).ask(&trx).wait(Duration::MAX), WaitOutcome::Granted);
                        trx.release_all();
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("a session"));
        assert_eq!(manager.stats().deadlocks, 0);
    });
}

/// LOCK-2: two sessions that take two keys in opposite orders; one of them is told if they meet, and never both.
#[test]
fn of_two_that_wait_for_each_other_one_goes_on_under_every_schedule() {
    sync::explore(2000, || {
        let manager = LockManager::new();
        let threads: Vec<_> = [[0, 1], [1, 0]]
            .into_iter()
            .zip(1..)
            .map(|(keys, id)| {
                let trx = manager.begin(id);
                thread::spawn(move || {
                    keys.into_iter()
                        .any(|key| exclusive(key).ask(&trx).wait(Duration::MAX) == WaitOutcome::Deadlock)
                })
            })
            .collect();
        let told = threads.into_iter().map(|thread| thread.join().expect("a session"));
        assert!(told.filter(|told| *told).count() < 2, "LOCK-2: both were told");
    });
}

/// LOCK-2: an insert waits for a range whose holder comes to wait behind it. Of the two only the holder blocks somebody with what it has.
#[test]
fn of_an_insert_and_the_range_before_it_one_goes_on_under_every_schedule() {
    sync::explore(2000, || {
        let manager = LockManager::new();
        let insert = Lock::Record { key: 0, exclusive: true, insert: true };
        let shared = Lock::Record { key: 0, exclusive: false, insert: false };
        let threads: Vec<_> = [vec![Lock::Range { from: 0, to: 1 }, shared], vec![insert]]
            .into_iter()
            .zip(1..)
            .map(|(locks, id)| {
                let trx = manager.begin(id);
                thread::spawn(move || {
                    locks.into_iter().any(|lock| lock.ask(&trx).wait(Duration::MAX) == WaitOutcome::Deadlock)
                })
            })
            .collect();
        let told = threads.into_iter().map(|thread| thread.join().expect("a session"));
        assert!(told.filter(|told| *told).count() < 2, "LOCK-2: both were told");
    });
}

/// FLUSH TABLES WITH READ LOCK: once the gate is closed and nobody else writes, nobody begins to.
#[test]
fn behind_a_closed_gate_nobody_writes_under_every_schedule() {
    sync::explore(2000, || {
        let manager = LockManager::new();
        let writes = Arc::new(Mutex::new(0));
        let writers: Vec<_> = (1..=2)
            .map(|id| {
                let (trx, writes) = (manager.begin(id), Arc::clone(&writes));
                thread::spawn(move || {
                    // A wait that was granted may have been for the gate.
                    while let Request::Wait(wait) = trx.lock_table(id, TableMode::IntentExclusive) {
                        assert_eq!(wait.wait(Duration::MAX), WaitOutcome::Granted);
                    }
                    *writes.lock().expect("nobody panics with it") += 1;
                    thread::yield_now();
                    *writes.lock().expect("nobody panics with it") -= 1;
                    trx.release_all();
                })
            })
            .collect();
        let closer = manager.begin(9);
        assert_eq!(closer.close_gate().wait(Duration::MAX), WaitOutcome::Granted);
        while closer.others_write() {
            thread::yield_now();
        }
        for _ in 0..3 {
            assert_eq!(*writes.lock().expect("nobody panics with it"), 0, "somebody writes");
            thread::yield_now();
        }
        closer.open_gate();
        writers.into_iter().for_each(|writer| writer.join().expect("a writer"));
    });
}

/// The search sees what it is for: a session that does not wait for what it was not granted.
#[test]
fn a_session_that_does_not_wait_is_found() {
    let impatient = || {
        let (manager, held) = (LockManager::new(), Arc::new(Held::default()));
        let threads: Vec<_> = (1..=2)
            .map(|id| {
                let (trx, held) = (manager.begin(id), Arc::clone(&held));
                thread::spawn(move || {
                    drop(exclusive(0).ask(&trx));
                    held.granted(id, exclusive(0));
                    thread::yield_now();
                    held.gives_back(id);
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("a session"));
    };
    assert!(catch_unwind(|| sync::explore(200, impatient)).is_err());
}
