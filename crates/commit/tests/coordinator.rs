//! The coordinator on real files: what is committed is in the log, in order, and comes back.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use omnibus_commit::CommitSettings;
use omnibus_engine::CommitNo;
use omnibus_format::events::{Query, RowsQuery, Xid};
use omnibus_format::{EventType, ServerUuid};
use support::{Server, crash, open, open_with, request};

fn commit_many(server: &Server, threads: usize, each: usize) {
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                for n in 0..each {
                    let value = "v".repeat(n % 300);
                    let request = request(&server.coordinator, &format!("{thread}-{n}"), &value);
                    server.coordinator.commit(request.inline()).wait().unwrap();
                }
            });
        }
    });
}

#[test]
fn what_was_committed_comes_back_after_a_crash_and_after_a_clean_stop() {
    let dir = tempfile::tempdir().unwrap();
    let server = open(dir.path(), 64 << 10);
    commit_many(&server, 8, 100);
    let expected = server.engine.rows.lock().unwrap().clone();
    let (number, position) = server.coordinator.published().place();
    assert_eq!(number, CommitNo(800));
    assert!(position.file.0 > 1, "small files rotate");
    crash(server.coordinator);

    let server = open(dir.path(), 64 << 10);
    assert_eq!(server.recovered.last, CommitNo(800));
    assert_eq!(server.replayed, (1..=800).collect::<Vec<u64>>(), "RECOVER-2: all, in order, once");
    assert_eq!(*server.engine.rows.lock().unwrap(), expected, "RECOVER-2");
    assert_eq!(server.recovered.executed.set().unwrap().count(), 800);
    commit_many(&server, 2, 10);
    server.coordinator.close().unwrap();
    assert!(server.coordinator.commit(request(&server.coordinator, "late", "")).wait().is_err());

    let server = open(dir.path(), 64 << 10);
    assert_eq!(server.recovered.last, CommitNo(820));
    server.coordinator.close().unwrap();
}

#[test]
fn groups_without_gtid_keep_their_number() {
    let dir = tempfile::tempdir().unwrap();
    let server = open(dir.path(), 1 << 20);
    commit_many(&server, 1, 3);
    let mut private = request(&server.coordinator, "p", "q");
    private.cache.clear();
    private.cache.set_context(0, 7);
    private.cache.append_event(EventType::IGNORABLE.0, 0x80, b"OMNI\x01\x01something").unwrap();
    private.logged = false;
    assert_eq!(server.coordinator.commit(private).wait().unwrap(), CommitNo(4));
    commit_many(&server, 1, 3);
    crash(server.coordinator);
    let server = open(dir.path(), 1 << 20);
    assert_eq!(server.replayed, vec![1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(server.recovered.executed.to_string(), format!("{}:1-6", ServerUuid([9; 16])), "no hole");
    server.coordinator.close().unwrap();
}

#[test]
fn the_log_reads_with_the_standard_tool() {
    let dir = tempfile::tempdir().unwrap();
    let server = open(dir.path(), 32 << 10);
    commit_many(&server, 4, 50);
    // Larger than a piece, and spilled: goes through the file in pieces.
    let mut big = request(&server.coordinator, "big", "");
    big.cache.clear();
    big.cache.set_context(1_700_000_000, 7);
    let mut body = Vec::new();
    let begin =
        Query { thread_id: 1, exec_time: 0, error_code: 0, status: &[], database: b"", sql: b"BEGIN" };
    begin.encode(&mut body);
    big.cache.append_event(EventType::QUERY.0, 0, &body).unwrap();
    for n in 0..500 {
        body.clear();
        RowsQuery(format!("big{n}={}", "x".repeat(10_000)).as_bytes()).encode(&mut body);
        big.cache.append_event(EventType::ROWS_QUERY.0, 0x80, &body).unwrap();
    }
    body.clear();
    Xid(1).encode(&mut body);
    big.cache.append_event(EventType::XID.0, 0, &body).unwrap();
    assert!(big.cache.spilled() > 4_000_000);
    server.coordinator.commit(big).wait().unwrap();
    server.coordinator.close().unwrap();

    let mut files: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.file_name().unwrap().to_string_lossy().starts_with("binlog.0"));
    files.sort();
    assert!(files.len() > 2);
    for file in &files {
        let read = std::process::Command::new("mariadb-binlog")
            .args(["--no-defaults", "--verify-binlog-checksum"])
            .arg(file)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&read.stderr).into_owned();
        assert!(read.status.success() && !errors.contains("ERROR"), "LOG-1: {}: {errors}", file.display());
    }
    let server = open(dir.path(), 32 << 10);
    assert_eq!(server.recovered.last, CommitNo(201));
    server.coordinator.close().unwrap();
}

#[test]
fn a_torn_last_transaction_is_wholly_absent() {
    let source = tempfile::tempdir().unwrap();
    // One write at a time, so that no padding stands between the transactions.
    let settings = CommitSettings { fast_sync_us: u64::MAX.into(), ..CommitSettings::default() };
    let server = open_with(source.path(), 1 << 20, settings);
    commit_many(&server, 1, 3);
    let mut private = request(&server.coordinator, "p", "q");
    private.cache.clear();
    for _ in 0..3 {
        private.cache.append_event(EventType::IGNORABLE.0, 0x80, b"OMNI\x01\x01something").unwrap();
    }
    private.logged = false;
    let before_private = server.coordinator.position().offset.0;
    server.coordinator.commit(private).wait().unwrap();
    let after_private = server.coordinator.position().offset.0;
    server.coordinator.commit(request(&server.coordinator, "k", "v")).wait().unwrap();
    let end = server.coordinator.position().offset.0;
    crash(server.coordinator);
    let whole = std::fs::read(source.path().join("binlog.000001")).unwrap();
    for cut in (before_private..=end).step_by(3).chain([after_private, end]) {
        let dir = tempfile::tempdir().unwrap();
        let name = dir.path().join("binlog.000001");
        std::fs::write(&name, &whole[..usize::try_from(cut).unwrap()]).unwrap();
        std::fs::write(dir.path().join("binlog.index"), "./binlog.000001\n").unwrap();
        let server = open(dir.path(), 1 << 20);
        let expected = if cut >= end {
            5
        } else if cut >= after_private {
            4
        } else {
            3
        };
        assert_eq!(server.recovered.last, CommitNo(expected), "COMMIT-3 at {cut}");
        assert_eq!(server.replayed.len() as u64, expected, "COMMIT-3 at {cut}");
        let gtids = if expected == 5 { 4 } else { 3 };
        assert_eq!(server.recovered.executed.set().unwrap().count(), gtids, "gtid_executed at {cut}");
        server.coordinator.close().unwrap();
    }
}
