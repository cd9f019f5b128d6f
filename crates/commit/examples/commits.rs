//! Commits per second of the commit path alone: no SQL, no sockets, no engine work.
//!
//! `cargo run --release -p omnibus-commit --example commits -- [DIR]`; run it under a library that slows
//! syncs to see writes overlap.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};
use support::{open, request};

fn main() {
    let parent = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    println!("threads  inline  commits/s  groups/s  us/commit p50-ish sync");
    for threads in [1, 2, 4, 8, 16, 32, 128] {
        for inline in [false, true] {
            let dir = tempfile::tempdir_in(&parent).unwrap();
            let server = open(dir.path(), 1 << 30);
            let started = Instant::now();
            let end = started + Duration::from_millis(1500);
            let total: u64 = std::thread::scope(|scope| {
                let workers: Vec<_> = (0..threads)
                    .map(|n| {
                        let server = &server;
                        scope.spawn(move || {
                            let mut count = 0;
                            while Instant::now() < end {
                                let request = request(&server.coordinator, &format!("{n}"), &"v".repeat(200));
                                let request = if inline { request.inline() } else { request };
                                server.coordinator.commit(request).wait().unwrap();
                                count += 1;
                            }
                            count
                        })
                    })
                    .collect();
                workers.into_iter().map(|worker| worker.join().unwrap()).sum()
            });
            let seconds = started.elapsed().as_secs_f64();
            let stats = server.coordinator.stats();
            let groups = stats.group_size.totals().0;
            println!(
                "{threads:7}  {inline:6}  {:9.0}  {:8.0}  sync p50 <= {} us",
                total as f64 / seconds,
                groups as f64 / seconds,
                stats.sync_us.quantile(0.5)
            );
            server.coordinator.close().unwrap();
        }
    }
}
