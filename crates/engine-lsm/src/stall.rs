//! Computes the delay of a writer when flushing or compaction lags.
//!
//! Too many sealed memtables cost memory, too many level-0 runs cost every read. Above the soft limit the delay doubles
//! or quadruples with each additional one, up to a second, which amounts to a stop and still lets every session notice
//! when it is over.

use crate::config::LsmConfig;
use std::time::Duration;

const LONGEST_US: u64 = 1_000_000;

/// Returns the delay in microseconds for an amount of sealed memory, in memtables, and a number of runs.
pub(crate) fn delay_us(config: &LsmConfig, sealed: u64, l0_runs: u64) -> u64 {
    let memory = excess_us(sealed, config.sealed_soft_limit as u64, 2);
    let reads = excess_us(l0_runs, config.l0_soft_limit as u64, 1);
    memory.max(reads)
}

fn excess_us(have: u64, limit: u64, bits: u32) -> u64 {
    let Some(excess) = have.checked_sub(limit + 1) else { return 0 };
    let shift = u32::try_from(excess).unwrap_or(u32::MAX).saturating_mul(bits).min(20);
    (1000u64 << shift).min(LONGEST_US)
}

/// Converts microseconds to a duration.
pub(crate) fn delay(us: u64) -> Duration {
    Duration::from_micros(us)
}
