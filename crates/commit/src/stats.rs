//! Counters and histograms of the pipeline. Relaxed atomics: exact totals, no ordering.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The number of buckets, one per power of two from 1 up; the last one takes the rest.
const BUCKETS: usize = 32;

/// A histogram of counts by powers of two.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum: AtomicU64,
}

impl Histogram {
    /// Counts one value.
    pub fn record(&self, value: u64) {
        let bucket = (64 - value.leading_zeros() as usize).min(BUCKETS - 1);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// Counts one duration in microseconds.
    pub fn record_us(&self, duration: Duration) {
        self.record(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX));
    }

    /// `(inclusive upper bound, count)` of each non-empty bucket, ascending.
    #[must_use]
    pub fn rows(&self) -> Vec<(u64, u64)> {
        let counts = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed));
        counts.enumerate().filter(|(_, n)| *n > 0).map(|(i, n)| ((1u64 << i) - 1, n)).collect()
    }

    /// The number of values, and their sum.
    #[must_use]
    pub fn totals(&self) -> (u64, u64) {
        let count = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).sum();
        (count, self.sum.load(Ordering::Relaxed))
    }

    /// Returns the upper bound of the bucket that contains the `fraction` quantile (0 to 1); 0 if the histogram is
    /// empty.
    #[must_use]
    pub fn quantile(&self, fraction: f64) -> u64 {
        let rows = self.rows();
        let total: u64 = rows.iter().map(|(_, n)| n).sum();
        let mut left = (total as f64 * fraction).ceil() as u64;
        for (bound, count) in rows {
            if left <= count {
                return bound;
            }
            left -= count;
        }
        0
    }
}

/// The counters and histograms of commits that SHOW STATUS reports.
#[derive(Debug, Default)]
pub struct CommitStats {
    /// `Binlog_commits`: transactions committed through the log.
    pub commits: AtomicU64,
    /// `Binlog_group_commits`: groups written.
    pub groups: AtomicU64,
    /// Device syncs of the log.
    pub syncs: AtomicU64,
    /// Bytes of events appended to the log.
    pub bytes: AtomicU64,
    /// Commits led by the committing thread itself.
    pub inline_groups: AtomicU64,
    /// Number of transactions per group.
    pub group_size: Histogram,
    /// From enrolling to having a number, microseconds.
    pub queue_us: Histogram,
    /// The flush stage of a group, microseconds.
    pub flush_us: Histogram,
    /// The write and sync of a group, microseconds.
    pub sync_us: Histogram,
    /// The commit stage of a group, wake-ups included, microseconds.
    pub commit_us: Histogram,
}

impl CommitStats {
    pub(crate) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }
}
