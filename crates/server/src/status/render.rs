//! SHOW STATUS as names and texts.

use super::counters::{COM_NAMES, Counter, ServerCounters, SessionCounters, Totals};
use crate::clock;
use crate::log_admin::LogAdmin;
use omnibus_wire::compressed::Compression;
use std::sync::atomic::Ordering;

/// The sources of the lines.
pub struct StatusSources<'a> {
    /// The server's own counters.
    pub server: &'a ServerCounters,
    /// All live sessions.
    pub sessions: Vec<&'a SessionCounters>,
    /// For SHOW SESSION STATUS, the session.
    pub own: Option<&'a SessionCounters>,
    /// How many sessions run a statement.
    pub running: usize,
    /// The log's counters.
    pub log: &'a dyn LogAdmin,
    /// The SQL layer's counters.
    pub sql: Vec<(String, String)>,
    /// The session's.
    pub transport: &'a TransportStatus,
}

/// The transport of a session's bytes.
#[derive(Clone, Debug, Default)]
pub struct TransportStatus {
    /// TLS version and cipher.
    pub tls: Option<(String, String)>,
    /// Compression, and the level that the client asked for.
    pub compression: Option<Compression>,
}

/// The lines, sorted by name.
#[must_use]
pub fn render(sources: &StatusSources<'_>) -> Vec<(String, String)> {
    let s = sources.server;
    let totals = match sources.own {
        Some(own) => Totals::of(std::iter::once(own)),
        None => s.totals(sources.sessions.iter().copied()),
    };
    let mut lines: Vec<(String, String)> = Vec::with_capacity(250);
    let mut put = |name: &str, value: String| lines.push((name.to_owned(), value));
    for (counter, name) in Counter::ALL {
        put(name, totals.values[*counter as usize].to_string());
    }
    for (i, name) in COM_NAMES.iter().enumerate() {
        put(&format!("Com_{name}"), totals.com[i].to_string());
    }
    let load = |a: &std::sync::atomic::AtomicU64| a.load(Ordering::Relaxed).to_string();
    put("Aborted_clients", load(&s.aborted_clients));
    put("Aborted_connects", load(&s.aborted_connects));
    put("Connections", load(&s.connections));
    put("Connection_errors_max_connections", load(&s.refused_max));
    put("Max_used_connections", load(&s.max_used));
    put("Max_used_connections_time", clock::utc_text(s.max_used_us.load(Ordering::Relaxed) as i64));
    put("Prepared_stmt_count", load(&s.prepared));
    put("Threads_cached", "0".into());
    put("Threads_connected", load(&s.connected));
    put("Threads_created", load(&s.threads_created));
    put("Threads_running", sources.running.to_string());
    let uptime = (clock::now_us() - s.started_us.load(Ordering::Relaxed)).max(0) / 1_000_000;
    put("Uptime", uptime.to_string());
    put("Uptime_since_flush_status", uptime.to_string());
    let (version, cipher) = sources.transport.tls.clone().unwrap_or_default();
    put("Ssl_version", version);
    put("Ssl_cipher", cipher);
    let compression = sources.transport.compression;
    put("Compression", if compression.is_some() { "ON" } else { "OFF" }.into());
    put("Compression_algorithm", compression.map_or("", |of| of.algorithm.name()).into());
    put("Compression_level", compression.map_or(0, |of| of.level).to_string());
    put("Last_query_cost", "0.000000".into());
    put("Open_tables", "0".into());
    put("Opened_tables", "0".into());
    put("Flush_commands", "1".into());
    for (name, value) in sources.log.counters().iter().chain(&sources.sql) {
        put(name, value.clone());
    }
    lines.sort_by_cached_key(|(name, _)| name.to_ascii_lowercase());
    lines.dedup_by(|a, b| a.0.eq_ignore_ascii_case(&b.0));
    lines
}
