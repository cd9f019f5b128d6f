//! Measures one lock and its release without contention.
//!
//! `cargo run --release -p omnibus-locks --example lock_speed`

use bytes::Bytes;
use omnibus_locks::{LockManager, RowMode, TableMode};
use std::hint::black_box;
use std::time::{Duration, Instant};

const ROUNDS: u32 = 1_000_000;

fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0))
}

fn measure(what: &str, rounds: u32, mut work: impl FnMut(u32)) {
    let (start, used) = (Instant::now(), processor_time());
    (0..rounds).for_each(&mut work);
    let each = |time: Duration| time.as_nanos() as f64 / f64::from(rounds);
    let (passed, used) = (start.elapsed(), processor_time() - used);
    println!("{what:<44} {:>7.0} ns {:>7.0} ns of processor", each(passed), each(used));
}

fn main() {
    let manager = LockManager::new();
    let trx = manager.begin(1);
    let keys: Vec<Bytes> = (0..1000u32).map(|n| Bytes::copy_from_slice(&n.to_be_bytes())).collect();
    let key = |n: u32| &keys[(n.wrapping_mul(7919) % 1000) as usize];
    measure("lock and release a record", ROUNDS, |n| {
        let _ = black_box(trx.lock_record(1, key(n), RowMode::Exclusive));
        trx.release_all();
    });
    measure("lock table and record, release both", ROUNDS, |n| {
        let _ = black_box(trx.lock_table(1, TableMode::IntentExclusive));
        let _ = black_box(trx.lock_record(1, key(n), RowMode::Exclusive));
        trx.release_all();
    });
    let others: Vec<_> = (0..500).map(|id| manager.begin(id)).collect();
    for (n, other) in others.iter().enumerate() {
        let _ = other.lock_table(1, TableMode::IntentExclusive);
        let _ = other.lock_record(1, &Bytes::from(format!("other {n}")), RowMode::Exclusive);
    }
    measure("the same beside 500 open transactions", ROUNDS, |n| {
        let _ = black_box(trx.lock_table(1, TableMode::IntentExclusive));
        let _ = black_box(trx.lock_record(1, key(n), RowMode::Exclusive));
        trx.release_all();
    });
    let many: Vec<Bytes> = (0..ROUNDS).map(|n| Bytes::copy_from_slice(&n.to_be_bytes())).collect();
    measure("a record of a million in one transaction", ROUNDS, |n| {
        let _ = black_box(trx.lock_record(2, &many[n as usize], RowMode::Exclusive));
    });
    let start = Instant::now();
    trx.release_all();
    println!("release of a million records: {:?}", start.elapsed());
}
