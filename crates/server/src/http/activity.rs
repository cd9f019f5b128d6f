//! Activity that the page lists: the oldest open transactions, running statements, what costs most time, and the room that is left.
//!
//! As everywhere on the page there are no values of statements: digests, and the first words of what runs.

use super::state::first_words;
use crate::digests::{Figure, Kind};
use crate::monitoring::transactions;
use crate::server::Server;
use serde_json::{Value, json};

/// Lines of each list.
const LINES: usize = 10;
/// The shown part of a digest.
const DIGEST: usize = 300;

/// Open transactions, the oldest first.
pub(super) fn transactions(server: &Server, now: i64) -> Vec<Value> {
    let shown = transactions::open(server).into_iter().take(LINES).map(|trx| {
        let line = trx.line.as_ref();
        json!({
            "id": trx.connection(), "user": line.map(|line| line.identity.user.clone()), "seconds": trx.seconds(now),
            "statement": first_words(line.and_then(|line| line.info.as_deref())),
            "state": match line {
                None => "prepared",
                Some(_) if trx.seen.waits_for_row().is_some() => "waits for a lock",
                Some(_) if trx.running => "runs",
                Some(_) => "idle",
            },
            "locked": trx.seen.held.rows, "changed": trx.seen.rows_changed, "reads": trx.seen.snapshot.is_some(),
        })
    });
    shown.collect()
}

/// The holder of old versions.
pub(super) fn snapshot(server: &Server) -> Option<Value> {
    let oldest = crate::old_versions::oldest(&server.processes, &*server.log)?;
    Some(json!({ "id": oldest.connection, "seconds": oldest.seconds, "behind": oldest.behind,
                "kept": oldest.kept.bytes, "files": oldest.kept.files }))
}

/// Statements that run, the longest first.
pub(super) fn running(server: &Server, now: i64) -> Vec<Value> {
    let running = server.processes.clients().into_iter().filter(|process| process.is_running());
    let mut lines: Vec<_> =
        running.map(|process| process.line(now)).filter(|line| line.info.is_some()).collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.seconds));
    let shown = lines.iter().take(LINES).map(|line| {
        json!({ "id": line.id, "user": line.identity.user, "db": line.identity.db.as_deref(), "seconds": line.seconds,
                "state": line.state_in(server.log.dialect()), "statement": first_words(line.info.as_deref()) })
    });
    shown.collect()
}

/// Kinds of statements that took most time.
pub(super) fn top(server: &Server) -> Vec<Value> {
    let mut kinds: Vec<(u64, Value)> = Vec::new();
    server.digests.for_each(|kind: &Kind| {
        let took = kind.get(Figure::Time);
        if kinds.len() == LINES && kinds.last().is_some_and(|(least, _)| *least >= took) {
            return;
        }
        let count = kind.get(Figure::Count).max(1);
        let text: String = kind.text.chars().take(DIGEST).collect();
        let line = json!({
            "db": kind.schema, "text": if text.is_empty() { "all others".to_owned() } else { text }, "count": count, "us": took,
            "mean_us": took / count, "p99_us": kind.quantile(0.99), "examined": kind.get(Figure::Examined) / count,
            "errors": kind.get(Figure::Errors),
        });
        let at = kinds.partition_point(|(more, _)| *more >= took);
        kinds.insert(at, (took, line));
        kinds.truncate(LINES);
    });
    kinds.into_iter().map(|(_, line)| line).collect()
}

/// Bytes that are free and taken; 0 for what is not known, and for a limit that is none.
pub(super) struct Room {
    /// Free for the server where the data is.
    pub free: u64,
    /// Of that file system.
    pub size: u64,
    /// Of the files of the binary log.
    pub log: u64,
    /// `binlog_space_limit`.
    pub log_limit: u64,
    /// Of memory, kept by connections.
    pub memory: u64,
    /// `global_connection_memory_limit`.
    pub memory_limit: u64,
}

impl Room {
    pub(super) fn of(server: &Server) -> Room {
        let number = |name| server.globals.named(name).as_u64();
        let disk = rustix::fs::statvfs(server.globals.named("datadir").as_str()).ok();
        let (free, size) =
            disk.map_or((0, 0), |disk| (disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize));
        let files = server.log.coordinator().map(|coordinator| coordinator.log().files().list());
        Room {
            free,
            size,
            log: files.unwrap_or_default().iter().map(|file| file.size).sum(),
            log_limit: number("binlog_space_limit"),
            memory: server.database.memory().used(),
            memory_limit: number("global_connection_memory_limit"),
        }
    }

    /// For the page.
    pub(super) fn json(&self) -> Value {
        json!({ "free": self.free, "size": self.size, "log": self.log, "log_limit": self.log_limit,
                "memory": self.memory, "memory_limit": self.memory_limit })
    }
}
