//! SHOW GLOBAL STATUS in Prometheus's text format: the same figures under conventional names.
//!
//! A counter ends in `_total`, times are in seconds, `Com_` counters are one metric with a label, and the lines of a histogram
//! (`_le_N`, `_sum`) are a histogram with cumulative buckets.

use super::activity::Room;
use crate::server::Server;
use crate::starting::Starting;
use crate::status::TransportStatus;
use omnibus_commit::Progress;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Of the format.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Figures that go up and down; beginnings of names end in `*`, ends begin with it.
const GAUGES: &[&str] = &[
    "Binlog_dump_connections",
    "Binlog_prepared_files",
    "Binlog_snapshot_position",
    "Disk_full",
    "Disk_full_seconds",
    "Disk_reserve_bytes",
    "Global_connection_memory",
    "Innodb_history_list_length",
    "Innodb_row_lock_current_waits",
    "Innodb_row_lock_time_avg",
    "Innodb_row_lock_time_max",
    "Last_query_cost",
    "Max_used_connections",
    "Omnibus_definition_memory",
    "Omnibus_oldest_snapshot_*",
    "Ongoing_anonymous_transaction_count",
    "Open_tables",
    "Prepared_stmt_count",
    "Replicas_connected",
    "Rpl_semi_sync_*",
    "Threads_*",
    "Uptime*",
    "*_disk_bytes",
    "*_memtable_bytes",
    "*_persisted_commit",
    "*_published_commit",
];
/// Counters among those.
const COUNTERS: &[&str] = &[
    "Rpl_semi_sync_*_no_times",
    "Rpl_semi_sync_*_no_tx",
    "Rpl_semi_sync_*_yes_tx",
    "Rpl_semi_sync_*_tx_waits",
    "Rpl_semi_sync_*_net_waits",
    "Threads_created",
];
/// Shown under another name, or of one session.
const PASSED_OVER: &[&str] =
    &["Slaves_connected", "Com_unsupported", "Last_query_cost", "Binlog_snapshot_position"];

/// The answer while the server starts.
pub(super) fn of_start(starting: &Starting) -> String {
    let Progress { read, total, replayed } = starting.recovery();
    let figures = [
        ("omnibus_recovery_read_bytes", "Bytes of the binary log that recovery has read", read),
        (
            "omnibus_recovery_log_bytes",
            "Bytes of the files that it reads; the last one may end before",
            total,
        ),
        ("omnibus_recovery_replayed_transactions", "Transactions that it has replayed", replayed),
    ];
    let mut out = String::new();
    for (name, help, value) in figures {
        head(&mut out, name, "gauge", help);
        let _ = writeln!(out, "{name} {value}");
    }
    out
}

/// The whole answer.
pub(super) fn text(server: &Server) -> String {
    let mut out = String::with_capacity(32 << 10);
    let version = server.globals.named("version");
    head(&mut out, "omnibus_build_info", "gauge", "The version that runs");
    let _ = writeln!(out, "omnibus_build_info{{version=\"{}\"}} 1", label(version.as_str()));
    lines(&server.status_lines(None, &TransportStatus::default()), &mut out);
    statements(server, &mut out);
    room(server, &mut out);
    super::state::lag(server, &mut out);
    out
}

/// How long statements took, and how many failed: of all that the digests know.
fn statements(server: &Server, out: &mut String) {
    let (counts, failed) = server.digests.latencies();
    let buckets = counts.into_iter().enumerate().map(|(bits, count)| ((1 << bits) - 1, count));
    let found = Histogram { buckets: buckets.collect(), sum: server.digests.time_us() };
    histogram("Statement_us", "How long statements took", &found, out);
    let name = "omnibus_statement_errors_total";
    head(out, name, "counter", "Statements that failed");
    let _ = writeln!(out, "{name} {failed}");
}

fn room(server: &Server, out: &mut String) {
    let room = Room::of(server);
    let figures = [
        ("omnibus_disk_free_bytes", "Bytes that the server may still write where its data is", room.free),
        ("omnibus_disk_size_bytes", "Bytes of that file system", room.size),
        ("omnibus_binlog_files_bytes", "Bytes of the files of the binary log", room.log),
        ("omnibus_binlog_space_limit_bytes", "binlog_space_limit, 0 without one", room.log_limit),
        ("omnibus_memory_used_bytes", "Bytes that connections keep in memory", room.memory),
        ("omnibus_memory_limit_bytes", "global_connection_memory_limit", room.memory_limit),
    ];
    for (name, help, value) in figures {
        head(out, name, "gauge", help);
        let _ = writeln!(out, "{name} {value}");
    }
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// A label's value.
pub(super) fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[derive(Default)]
struct Histogram {
    /// By inclusive upper bound; not cumulative.
    buckets: BTreeMap<u64, u64>,
    sum: u64,
}

fn lines(status: &[(String, String)], out: &mut String) {
    let mut histograms: BTreeMap<&str, Histogram> = BTreeMap::new();
    for (name, value) in status {
        // A histogram that nothing was counted in yet has its sum only.
        if let (Some(base), Ok(sum)) = (name.strip_suffix("_sum"), value.parse()) {
            histograms.entry(base).or_default().sum = sum;
        }
    }
    let of_histogram = |name: &str| {
        histograms.keys().any(|base| {
            name.strip_prefix(base).is_some_and(|rest| {
                rest.starts_with("_le_") || matches!(rest, "_sum" | "_avg" | "_p50" | "_p99")
            })
        })
    };
    let mut commands = String::new();
    for (name, value) in status {
        let Some(number) = number(value) else { continue };
        if PASSED_OVER.contains(&name.as_str()) || of_histogram(name) {
            continue;
        }
        if let Some(command) = name.strip_prefix("Com_") {
            let _ = writeln!(commands, "omnibus_commands_total{{command=\"{command}\"}} {number}");
            continue;
        }
        let gauge = !is_in(name, COUNTERS) && is_in(name, GAUGES);
        let kind = if gauge { "gauge" } else { "counter" };
        let metric = format!("omnibus_{}{}", name.to_ascii_lowercase(), if gauge { "" } else { "_total" });
        head(out, &metric, kind, &format!("Status variable {name}"));
        let _ = writeln!(out, "{metric} {number}");
    }
    head(out, "omnibus_commands_total", "counter", "Status variables Com_*: statements by kind");
    out.push_str(&commands);
    for (name, value) in status {
        let Some((base, bound)) = name.rsplit_once("_le_") else { continue };
        if let (Some(found), Ok(bound), Ok(count)) = (histograms.get_mut(base), bound.parse(), value.parse())
        {
            found.buckets.insert(bound, count);
        }
    }
    for (name, found) in &histograms {
        histogram(name, &format!("Status variables {name}_*"), found, out);
    }
}

/// Numbers, and what is on or off.
fn number(value: &str) -> Option<&str> {
    match value {
        "ON" => Some("1"),
        "OFF" => Some("0"),
        _ => value.parse::<f64>().is_ok_and(f64::is_finite).then_some(value),
    }
}

/// Whether a name is in a list of patterns with one `*` each at most.
fn is_in(name: &str, patterns: &[&str]) -> bool {
    patterns.iter().any(|pattern| match pattern.split_once('*') {
        Some((begin, end)) => {
            name.len() >= begin.len() + end.len() && name.starts_with(begin) && name.ends_with(end)
        }
        None => name == *pattern,
    })
}

/// Every bucket there can be within a minute, so that none appears later: rates over a bucket that begins to exist are wrong.
fn histogram(name: &str, help: &str, found: &Histogram, out: &mut String) {
    let lower = name.to_ascii_lowercase();
    let (metric, scale) = match lower.strip_suffix("_us") {
        Some(base) => (format!("omnibus_{base}_seconds"), 1e-6),
        None => (format!("omnibus_{lower}"), 1.0),
    };
    head(out, &metric, "histogram", help);
    let last = if scale < 1.0 { 26 } else { 14 };
    for bits in 0..=last {
        let bound = (1_u64 << bits) - 1;
        let below: u64 = found.buckets.range(..=bound).map(|(_, count)| count).sum();
        let _ =
            writeln!(out, "{metric}_bucket{{le=\"{}\"}} {below}", (bound as f64 * scale * 1e6).round() / 1e6);
    }
    let count: u64 = found.buckets.values().sum();
    let _ = writeln!(out, "{metric}_bucket{{le=\"+Inf\"}} {count}");
    let _ = writeln!(out, "{metric}_sum {}\n{metric}_count {count}", found.sum as f64 * scale);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_lines_become_metrics() {
        let status = [
            ("Binlog_group_commit_sync_us_avg", "3.000"),
            ("Binlog_group_commit_sync_us_le_1", "2"),
            ("Binlog_group_commit_sync_us_le_7", "3"),
            ("Binlog_group_commit_sync_us_sum", "17"),
            ("Bytes_sent", "42"),
            ("Com_select", "7"),
            ("Rpl_semi_sync_source_no_times", "1"),
            ("Rpl_semi_sync_source_status", "ON"),
            ("Ssl_version", ""),
            ("Threads_running", "2"),
        ];
        let status = status.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut out = String::new();
        lines(&status, &mut out);
        for line in [
            "omnibus_bytes_sent_total 42",
            "# TYPE omnibus_threads_running gauge",
            "omnibus_commands_total{command=\"select\"} 7",
            "omnibus_rpl_semi_sync_source_no_times_total 1",
            "omnibus_rpl_semi_sync_source_status 1",
            "# TYPE omnibus_binlog_group_commit_sync_seconds histogram",
            "omnibus_binlog_group_commit_sync_seconds_bucket{le=\"0.000001\"} 2",
            "omnibus_binlog_group_commit_sync_seconds_bucket{le=\"0.000003\"} 2",
            "omnibus_binlog_group_commit_sync_seconds_bucket{le=\"0.000007\"} 5",
            "omnibus_binlog_group_commit_sync_seconds_bucket{le=\"+Inf\"} 5",
            "omnibus_binlog_group_commit_sync_seconds_count 5",
        ] {
            assert!(out.lines().any(|found| found == line), "{line} in\n{out}");
        }
        assert!(!out.contains("_avg") && !out.contains("ssl_version"), "{out}");
    }
}
