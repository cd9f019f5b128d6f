//! The last minutes of the figures that the page plots, a sample a second, in memory.

use crate::clock::now_us;
use crate::server::Server;
use crate::status::TransportStatus;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Samples that are kept: five minutes.
const KEPT: usize = 300;
const EVERY: Duration = Duration::from_secs(1);

/// Status variables that only grow; the page shows their rates.
pub(super) const COUNTERS: [&str; 15] = [
    "Questions",
    "Binlog_commits",
    "Binlog_group_commits",
    "Binlog_syncs",
    "Binlog_bytes_written",
    "Bytes_received",
    "Bytes_sent",
    "Innodb_row_lock_waits",
    "Innodb_deadlocks",
    "Lsm_flushes",
    "Lsm_compactions",
    "Lsm_write_stalls",
    "Slow_queries",
    "Innodb_rows_read",
    "Omnibus_statement_time_us",
];
/// Those that are as they are.
pub(super) const GAUGES: [&str; 7] = [
    "Threads_connected",
    "Threads_running",
    "Lsm_memtable_bytes",
    "Lsm_disk_bytes",
    "Innodb_row_lock_current_waits",
    "Binlog_prepared_files",
    "Global_connection_memory",
];
/// The stages of a commit, in their order: histograms in microseconds.
pub(super) const STAGES: [&str; 4] = ["queue", "flush", "sync", "commit"];

/// One moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    /// Milliseconds since the epoch.
    pub at_ms: i64,
    /// By `COUNTERS`.
    pub counters: [f64; COUNTERS.len()],
    /// By `GAUGES`.
    pub gauges: [f64; GAUGES.len()],
    /// The median and the 99th percentile of each stage since the sample before, microseconds.
    pub stages: [[f64; 2]; STAGES.len()],
    /// The median and the 99th percentile of all statements since the sample before, in microseconds, and how many failed.
    pub statements: [f64; 3],
}

/// Counts of a histogram, by upper bound.
type Buckets = Vec<(u64, u64)>;

/// The samples that are kept.
#[derive(Debug, Default)]
pub(super) struct History(Mutex<VecDeque<Sample>>);

impl History {
    /// Takes samples for ever.
    pub(super) async fn sample(self: Arc<History>, server: Arc<Server>) {
        let mut before: [Buckets; STAGES.len()] = Default::default();
        let mut told = server.digests.latencies();
        let mut every = tokio::time::interval(EVERY);
        every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            every.tick().await;
            let mut sample = take(&server.status_lines(None, &TransportStatus::default()), &mut before);
            sample.statements = statements(server.digests.latencies(), &mut told);
            let mut kept = self.0.lock();
            if kept.len() == KEPT {
                kept.pop_front();
            }
            kept.push_back(sample);
        }
    }

    /// The samples behind a time.
    pub(super) fn since(&self, at_ms: i64) -> Vec<Sample> {
        self.0.lock().iter().filter(|sample| sample.at_ms > at_ms).cloned().collect()
    }
}

fn take(lines: &[(String, String)], before: &mut [Buckets; STAGES.len()]) -> Sample {
    let lines: HashMap<&str, &str> =
        lines.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let value = |name: &&str| lines.get(name).and_then(|value| value.parse().ok()).unwrap_or(0.0);
    let mut stages = [[0.0; 2]; STAGES.len()];
    for (at, stage) in STAGES.iter().enumerate() {
        let prefix = format!("Binlog_group_commit_{stage}_us_le_");
        let bucket = |(name, count): (&&str, &&str)| {
            Some((name.strip_prefix(&prefix)?.parse().ok()?, count.parse().ok()?))
        };
        let mut now: Buckets = lines.iter().filter_map(bucket).collect();
        now.sort_unstable();
        let old: HashMap<u64, u64> = before[at].iter().copied().collect();
        let new = |(bound, count): &(u64, u64)| (*bound, count.saturating_sub(*old.get(bound).unwrap_or(&0)));
        let new: Buckets = now.iter().map(new).collect();
        stages[at] = [quantile(&new, 0.5), quantile(&new, 0.99)];
        before[at] = now;
    }
    Sample {
        at_ms: now_us() / 1000,
        counters: COUNTERS.map(|n| value(&n)),
        gauges: GAUGES.map(|n| value(&n)),
        stages,
        statements: Default::default(),
    }
}

/// How long statements took since the last time, and how many failed.
fn statements<const N: usize>(now: ([u64; N], u64), before: &mut ([u64; N], u64)) -> [f64; 3] {
    let counts = now.0.iter().zip(&before.0).map(|(now, before)| now.saturating_sub(*before));
    let new: Buckets = counts.enumerate().map(|(bits, count)| ((1 << bits) - 1, count)).collect();
    let failed = now.1.saturating_sub(before.1);
    *before = now;
    [quantile(&new, 0.5), quantile(&new, 0.99), failed as f64]
}

/// A bucket ends at twice what it begins with: between the two the value is taken to be where its share of the bucket is.
fn quantile(buckets: &Buckets, fraction: f64) -> f64 {
    let total: u64 = buckets.iter().map(|(_, count)| count).sum();
    let mut left = total as f64 * fraction;
    for (bound, count) in buckets.iter().filter(|(_, count)| *count > 0) {
        let count = *count as f64;
        if left <= count {
            let low = bound.div_ceil(2) as f64;
            return low + (*bound as f64 - low) * (left / count);
        }
        left -= count;
    }
    0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_the_quantiles_of_its_own_second() {
        let lines = |counts: [u64; 2]| {
            [
                ("Binlog_group_commit_sync_us_le_7", counts[0]),
                ("Binlog_group_commit_sync_us_le_1023", counts[1]),
            ]
            .map(|(name, count)| (name.to_owned(), count.to_string()))
        };
        let mut before = Default::default();
        take(&lines([1000, 0]), &mut before);
        let sample = take(&lines([1000, 10]), &mut before);
        let [median, high] = sample.stages[2];
        assert!((512.0..=1023.0).contains(&median) && median < high && high <= 1023.0, "{median} {high}");
        assert_eq!(take(&lines([1000, 10]), &mut before).stages[2], [0.0, 0.0], "nothing was committed");
    }

    #[test]
    fn statements_are_those_since_the_last_time() {
        let mut before = ([0; 12], 0);
        let mut now = before;
        (now.0[10], now.1) = (100, 3);
        let [median, high, failed] = statements(now, &mut before);
        assert!((512.0..=1023.0).contains(&median) && median < high && high <= 1023.0, "{median} {high}");
        assert_eq!(failed, 3.0);
        assert_eq!(statements(now, &mut before), [0.0, 0.0, 0.0], "none came");
        assert_eq!(statements(([0; 12], 0), &mut before), [0.0, 0.0, 0.0], "they were cleared");
    }
}
