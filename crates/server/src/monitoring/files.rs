//! Counts of file operations, by file and by kind of file. Counted where the server's own files are opened (`omnibus_disk::FileUses`):
//! those of the log, of redo logs and of the engines' state, and the B-tree's. The LSM tree's tables are read and written by a library.

use super::{Row, text};
use crate::server::Server;
use omnibus_disk::{Figures, Request};
use omnibus_value::Value;
use std::collections::BTreeMap;
use std::path::Path;

const KINDS: [Request; 3] = [Request::Read, Request::Write, Request::Other];

type Sums = [Figures; 3];

fn event_name(path: &Path, log: &str) -> &'static str {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let inside = |folder: &str| {
        path.parent().is_some_and(|parent| parent.components().any(|part| part.as_os_str() == folder))
    };
    match () {
        () if name.starts_with(log) && name.ends_with(".index") => "wait/io/file/sql/binlog_index",
        () if name.starts_with(log) => "wait/io/file/sql/binlog",
        () if inside("lsm") => "wait/io/file/lsm/file",
        () if inside("btree") => "wait/io/file/btree/file",
        () => "wait/io/file/sql/misc",
    }
}

fn all(server: &Server) -> Vec<(String, &'static str, Sums)> {
    let base = server.globals.named("log_bin_basename");
    let log = Path::new(base.as_str()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let figures = server.file_uses.all().into_iter();
    figures
        .map(|(path, uses)| {
            (path.display().to_string(), event_name(&path, &log), KINDS.map(|kind| uses.of(kind)))
        })
        .collect()
}

fn by_kind(server: &Server) -> BTreeMap<&'static str, Sums> {
    let mut found = BTreeMap::<&'static str, Sums>::new();
    for (_, event, sums) in all(server) {
        let kept = found.entry(event).or_default();
        for (sum, more) in kept.iter_mut().zip(sums) {
            *sum = sum.with(more);
        }
    }
    found
}

/// `file_summary_by_instance`.
pub(super) fn by_instance(server: &Server) -> Vec<Row> {
    let row = |(path, event, sums): (String, &str, Sums)| {
        let mut row = vec![("FILE_NAME", text(path)), ("EVENT_NAME", text(event))];
        row.extend(columns(&sums));
        row
    };
    all(server).into_iter().map(row).collect()
}

/// `file_summary_by_event_name`.
pub(super) fn by_event_name(server: &Server) -> Vec<Row> {
    let row = |(event, sums): (&str, Sums)| {
        let mut row = vec![("EVENT_NAME", text(event))];
        row.extend(columns(&sums));
        row
    };
    by_kind(server).into_iter().map(row).collect()
}

/// `events_waits_summary_global_by_event_name`: of waits, only those for files are measured.
pub(super) fn waits(server: &Server) -> Vec<Row> {
    let row = |(event, sums): (&str, Sums)| {
        let mut row = vec![("EVENT_NAME", text(event))];
        row.extend(star(&sums));
        row
    };
    by_kind(server).into_iter().map(row).collect()
}

fn picoseconds(ns: u64) -> Value {
    Value::UInt(ns.saturating_mul(1000))
}

fn timed(names: [&'static str; 5], of: Figures) -> Row {
    let [count, sum, min, avg, max] = names;
    vec![
        (count, Value::UInt(of.count)),
        (sum, picoseconds(of.ns)),
        (min, picoseconds(of.ns_min)),
        (avg, picoseconds(of.ns / of.count.max(1))),
        (max, picoseconds(of.ns_max)),
    ]
}

fn star(sums: &Sums) -> Row {
    let all = sums.iter().fold(Figures::default(), |sum, more| sum.with(*more));
    timed(["COUNT_STAR", "SUM_TIMER_WAIT", "MIN_TIMER_WAIT", "AVG_TIMER_WAIT", "MAX_TIMER_WAIT"], all)
}

fn columns(sums: &Sums) -> Row {
    let [read, write, other] = *sums;
    let bytes = |bytes: u64| Value::Int(i64::try_from(bytes).unwrap_or(i64::MAX));
    let mut row = star(sums);
    row.extend(timed(
        ["COUNT_READ", "SUM_TIMER_READ", "MIN_TIMER_READ", "AVG_TIMER_READ", "MAX_TIMER_READ"],
        read,
    ));
    row.push(("SUM_NUMBER_OF_BYTES_READ", bytes(read.bytes)));
    row.extend(timed(
        ["COUNT_WRITE", "SUM_TIMER_WRITE", "MIN_TIMER_WRITE", "AVG_TIMER_WRITE", "MAX_TIMER_WRITE"],
        write,
    ));
    row.push(("SUM_NUMBER_OF_BYTES_WRITE", bytes(write.bytes)));
    row.extend(timed(
        ["COUNT_MISC", "SUM_TIMER_MISC", "MIN_TIMER_MISC", "AVG_TIMER_MISC", "MAX_TIMER_MISC"],
        other,
    ));
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_of_kinds() {
        let kind = |path: &str| event_name(Path::new(path), "binlog");
        assert_eq!(kind("/d/binlog.000001"), "wait/io/file/sql/binlog");
        assert_eq!(kind("/d/binlog.index"), "wait/io/file/sql/binlog_index");
        assert_eq!(kind("/d/lsm/redo/1"), "wait/io/file/lsm/file");
        assert_eq!(kind("/d/btree/btree.redb"), "wait/io/file/btree/file");
        assert_eq!(kind("/d/lsm"), "wait/io/file/sql/misc");
    }
}
