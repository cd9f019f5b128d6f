//! Simulated crashes; `docs/internals/simulation.md` says what they are. Every finding is a bug: `make simulate SEED=..` shows it again.

use omnibus_sim::run;
use std::sync::atomic::{AtomicU64, Ordering};

/// Seeds, of about 95 crashes each. `make test-all` says more by `SIM_SEEDS`.
const SEEDS: u64 = 25;

/// COMMIT-1, COMMIT-2, COMMIT-3, ENGINE-1, GTID-2, PURGE-1, RECOVER-1, RECOVER-2, SEMI-1: after every crash everything that was
/// acknowledged is there, in order, and nothing is there by halves.
#[test]
fn two_thousand_crashes_lose_nothing_that_was_acknowledged() {
    let seeds = std::env::var("SIM_SEEDS").map_or(SEEDS, |text| text.parse().expect("SIM_SEEDS is a number"));
    let (next, crashes) = (AtomicU64::new(1), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(seed) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).filter(|seed| *seed <= seeds)
                {
                    match run(seed, None) {
                        Ok(report) => crashes.fetch_add(report.crashes, Ordering::Relaxed),
                        Err(finding) => panic!("{finding}"),
                    };
                }
            });
        }
    });
    let crashes = crashes.into_inner();
    assert!(crashes >= 70 * seeds, "only {crashes} crashes");
}
