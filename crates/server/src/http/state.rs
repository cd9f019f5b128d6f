//! The data of the page: samples for its plots, and how things are now: replicas, channels, lock waits.

use super::activity;
use super::history::{COUNTERS, GAUGES, History, STAGES, Sample};
use super::metrics::label;
use crate::clock::now_us;
use crate::server::Server;
use crate::starting::Starting;
use omnibus_commit::Progress;
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::atomic::Ordering;

/// Lock waits that are shown, the longest first.
const WAITS: usize = 20;

/// Why nobody should be sent to this server, if so.
pub(super) fn trouble(server: &Server) -> Option<String> {
    if server.is_stopping() {
        return Some("shutting down".to_owned());
    }
    full_disk(server).map(|(why, seconds)| format!("the disk is full for {seconds} s: {why}"))
}

/// SPACE-1: what can not be written for want of room, and for how many seconds.
fn full_disk(server: &Server) -> Option<(String, u64)> {
    let (why, since) = server.log.handle()?.full_disk().trouble()?;
    Some((why, since.as_secs()))
}

/// As JSON, with the samples behind `since` (milliseconds since the epoch).
pub(super) fn json(server: &Server, history: &History, since: i64) -> String {
    let samples: Vec<Value> = history.since(since).iter().map(sample).collect();
    let now = now_us();
    let uptime = (now - server.counters.started_us.load(Ordering::Relaxed)) / 1_000_000;
    json!({
        "version": server.globals.named("version").as_str(),
        "host": server.globals.named("hostname").as_str(),
        "engine": server.globals.named("default_storage_engine").as_str(),
        "protocol": server.globals.named("commit_protocol").as_str(),
        "uptime": uptime,
        "names": { "counters": COUNTERS, "gauges": GAUGES, "stages": STAGES },
        "samples": samples,
        "full": full_disk(server),
        "replicas": replicas(server),
        "channels": channels(server),
        "waits": waits(server, now),
        "definitions": definitions(server, now),
        "transactions": activity::transactions(server, now),
        "snapshot": activity::snapshot(server),
        "running": activity::running(server, now),
        "top": activity::top(server),
        "room": activity::Room::of(server).json(),
    })
    .to_string()
}

/// Before there is a server: how far its start is.
pub(super) fn of_start(starting: &Starting) -> String {
    let Progress { read, total, replayed } = starting.recovery();
    json!({ "starting": { "read": read, "total": total, "replayed": replayed } }).to_string()
}

fn sample(sample: &Sample) -> Value {
    json!([sample.at_ms, sample.counters, sample.gauges, sample.stages, sample.statements])
}

fn replicas(server: &Server) -> Vec<Value> {
    let shown = server.dumps.replicas().into_iter().map(|replica| {
        json!({ "server_id": replica.registration.server_id, "host": replica.registration.host,
                "port": replica.registration.port, "uuid": replica.uuid })
    });
    shown.collect()
}

fn channels(server: &Server) -> Vec<Value> {
    let lags = server.replicas.get().map(|replicas| replicas.lags()).unwrap_or_default();
    let shown = lags.into_iter().map(|lag| {
        json!({ "name": lag.channel, "source": lag.source, "receives": lag.receives, "applies": lag.applies,
                "seconds": lag.seconds, "queued_bytes": lag.queued_bytes, "error": lag.error })
    });
    shown.collect()
}

/// Waits, with their holders. Connections, and no statement's text: that is for SHOW PROCESSLIST and its rights.
fn waits(server: &Server, now: i64) -> Vec<Value> {
    let mut waits = crate::held_locks::lock_waits(&server.database);
    waits.sort_by_key(|wait| std::cmp::Reverse(wait.waited));
    waits.truncate(WAITS);
    let command = |id: u64| {
        let process = server.processes.get(id)?;
        let line = process.line(now);
        Some(json!({ "id": id, "user": line.identity.user, "statement": first_words(line.info.as_deref()),
                     "state": if line.command == "Sleep" { "idle in its transaction" } else { line.state },
                     "seconds": line.seconds }))
    };
    let shown = waits.into_iter().map(|wait| {
        let blockers: Vec<Value> = wait.blockers.iter().filter_map(|id| command(*id)).collect();
        json!({ "waiter": command(wait.waiter), "blockers": blockers, "mode": wait.mode,
                "table": wait.table_name(), "ms": wait.waited.as_millis() as u64 })
    });
    shown.collect()
}

/// Definitions that are being changed.
fn definitions(server: &Server, now: i64) -> Vec<Value> {
    let running = server.processes.clients().into_iter().filter(|process| process.is_running());
    let shown = running.filter_map(|process| {
        let line = process.line(now);
        let words = first_words(line.info.as_deref());
        let changes = ["ALTER", "CREATE", "OPTIMIZE", "ANALYZE", "DROP", "TRUNCATE"];
        let first = words.split(' ').next().unwrap_or_default();
        let chosen = changes.contains(&first);
        chosen.then(
            || json!({ "id": line.id, "statement": words, "state": line.state_in(server.log.dialect()), "seconds": line.seconds }),
        )
    });
    shown.collect()
}

/// The verb and what it is about; values are nobody's business here.
pub(super) fn first_words(text: Option<&str>) -> String {
    let words = text.unwrap_or_default().split_whitespace();
    let plain = |word: &&str| word.chars().all(|c| c.is_alphanumeric() || "_.`".contains(c));
    let mut words: Vec<String> = words.take_while(plain).take(3).map(str::to_owned).collect();
    if let Some(verb) = words.first_mut() {
        *verb = verb.to_ascii_uppercase();
    }
    words.join(" ")
}

/// How far behind its sources this server is, for Prometheus.
pub(super) fn lag(server: &Server, out: &mut String) {
    let lags = server.replicas.get().map(|replicas| replicas.lags()).unwrap_or_default();
    if lags.is_empty() {
        return;
    }
    let metrics: [(&str, &str); 3] = [
        ("omnibus_replica_lag_seconds", "Seconds_Behind_Source of each channel"),
        ("omnibus_replica_receiver_running", "Replica_IO_Running of each channel"),
        ("omnibus_replica_applier_running", "Replica_SQL_Running of each channel"),
    ];
    for (at, (name, help)) in metrics.into_iter().enumerate() {
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} gauge");
        for lag in &lags {
            let value = match at {
                0 => lag.seconds,
                1 => Some(u64::from(lag.receives)),
                _ => Some(u64::from(lag.applies)),
            };
            if let Some(value) = value {
                let _ = writeln!(out, "{name}{{channel=\"{}\"}} {value}", label(&lag.channel));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_show_no_values() {
        assert_eq!(first_words(Some("update  t.a set x='secret'")), "UPDATE t.a set");
        assert_eq!(first_words(Some("SELECT 'secret'")), "SELECT");
        assert_eq!(first_words(None), "");
    }
}
