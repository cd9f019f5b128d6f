//! SHOW STATUS lines of the log, the commit pipeline and the engine.

use super::variables::LogLimits;
use omnibus_commit::{Coordinator, Histogram};
use std::sync::atomic::{AtomicU64, Ordering};

/// The lines, in no particular order. Does not block.
pub(super) fn lines(coordinator: &Coordinator, limits: &LogLimits) -> Vec<(String, String)> {
    let mut lines = Vec::with_capacity(120);
    put(&mut lines, "Binlog_verify_files", limits.verified_files.load(Ordering::Relaxed));
    put(&mut lines, "Binlog_verify_damaged", limits.damaged_files.load(Ordering::Relaxed));
    commits(coordinator, &mut lines);
    place(coordinator, &mut lines);
    engine(coordinator, &mut lines);
    full_disk(coordinator, &mut lines);
    lines
}

type Lines = Vec<(String, String)>;

fn put(lines: &mut Lines, name: impl Into<String>, value: impl ToString) {
    lines.push((name.into(), value.to_string()));
}

fn commits(coordinator: &Coordinator, lines: &mut Lines) {
    let (stats, caches) = (coordinator.stats(), coordinator.cache_settings());
    let counters: [(&str, &AtomicU64); 8] = [
        ("Binlog_commits", &stats.commits),
        ("Binlog_group_commits", &stats.groups),
        ("Binlog_inline_commits", &stats.inline_groups),
        ("Binlog_syncs", &stats.syncs),
        ("Binlog_bytes_written", &stats.bytes),
        ("Binlog_cache_use", &caches.uses),
        ("Binlog_cache_disk_use", &caches.disk_uses),
        ("Binlog_large_commits", &caches.large.promoted),
    ];
    for (name, counter) in counters {
        put(lines, name, counter.load(Ordering::Relaxed));
    }
    put(lines, "Ongoing_anonymous_transaction_count", coordinator.gtids().anonymous_count());
    // One cache serves all statements here.
    put(lines, "Binlog_stmt_cache_use", 0);
    put(lines, "Binlog_stmt_cache_disk_use", 0);
    histogram(lines, "Binlog_group_size", &stats.group_size);
    histogram(lines, "Binlog_group_commit_queue_us", &stats.queue_us);
    histogram(lines, "Binlog_group_commit_flush_us", &stats.flush_us);
    histogram(lines, "Binlog_group_commit_sync_us", &stats.sync_us);
    histogram(lines, "Binlog_group_commit_commit_us", &stats.commit_us);
}

/// Quantiles are upper bounds of their bucket; `_le_N` counts the values in the bucket that ends at N.
fn histogram(lines: &mut Lines, name: &str, histogram: &Histogram) {
    let (count, sum) = histogram.totals();
    let mean = if count == 0 { 0.0 } else { sum as f64 / count as f64 };
    put(lines, format!("{name}_sum"), sum);
    put(lines, format!("{name}_avg"), format!("{mean:.3}"));
    put(lines, format!("{name}_p50"), histogram.quantile(0.50));
    put(lines, format!("{name}_p99"), histogram.quantile(0.99));
    for (bound, count) in histogram.rows() {
        put(lines, format!("{name}_le_{bound}"), count);
    }
}

/// Where a snapshot taken now would be. A session's own snapshot has a place of its own.
fn place(coordinator: &Coordinator, lines: &mut Lines) {
    let (_, position) = coordinator.published().place();
    let names = coordinator.log().files().names();
    put(lines, "Binlog_snapshot_file", names.log(position.file));
    put(lines, "Binlog_snapshot_position", position.offset);
    put(lines, "Binlog_prepared_files", coordinator.log().files().prepared_files());
    let executed = coordinator.gtids().state();
    put(lines, "Binlog_snapshot_gtid", &executed);
    put(lines, "Binlog_snapshot_gtid_executed", executed);
}

/// SPACE-1: whether somebody waits for room on the disk, what could not be written, for how long.
fn full_disk(coordinator: &Coordinator, lines: &mut Lines) {
    let files = coordinator.log().files();
    let (why, since) = files.full_disk().trouble().unwrap_or_default();
    put(lines, "Disk_full", if why.is_empty() { "OFF" } else { "ON" });
    put(lines, "Disk_full_reason", why);
    put(lines, "Disk_full_seconds", since.as_secs());
    put(lines, "Disk_full_times", files.full_disk().times());
    put(lines, "Disk_reserve_bytes", files.reserve_bytes());
}

fn engine(coordinator: &Coordinator, lines: &mut Lines) {
    let engine = coordinator.engine();
    let stats = engine.stats();
    // The default engine's kind, not the name that it goes by: programs take `Innodb_` for other figures.
    let name = "Lsm";
    put(lines, format!("{name}_memtable_bytes"), stats.memtable_bytes);
    put(lines, format!("{name}_flushes"), stats.flushes);
    put(lines, format!("{name}_compactions"), stats.compactions);
    put(lines, format!("{name}_write_stalls"), stats.write_stalls);
    put(lines, format!("{name}_disk_bytes"), stats.disk_bytes);
    put(lines, format!("{name}_redo_syncs"), stats.redo_syncs);
    put(lines, format!("{name}_persisted_commit"), engine.persisted());
    put(lines, format!("{name}_published_commit"), coordinator.published().number());
}
