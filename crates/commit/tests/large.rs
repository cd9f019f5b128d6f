//! Large transactions on real files: what is in the log, and what stops and crashes leave of it.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use omnibus_commit::{CommitRequest, CommitSettings, Coordinator};
use omnibus_engine::CommitNo;
use omnibus_format::{Checksum, EventType};
use omnibus_log::{LogConfig, LogDir, Next};
use std::path::Path;
use std::sync::atomic::Ordering;
use support::*;

fn open(path: &Path, engine: MapEngine) -> Server {
    let server = open_engine(path, 1 << 30, CommitSettings::default(), engine, Box::new(|_| {}));
    server.coordinator.cache_settings().large.threshold.store(50_000, Ordering::Relaxed);
    server
}

fn big(coordinator: &Coordinator, key: &str) -> CommitRequest {
    request(coordinator, key, &key.repeat(100_000))
}

fn promoted(server: &Server) -> u64 {
    server.coordinator.cache_settings().large.promoted.load(Ordering::Relaxed)
}

/// The GTID numbers of a log, each file read by itself to a clean end.
fn gtids(path: &Path) -> Vec<u64> {
    let dir = LogDir::open(path, LogConfig::default()).unwrap();
    let mut found = Vec::new();
    for &file in dir.files() {
        let mut reader = dir.read(file).unwrap();
        while let Next::Event(event) = reader.next().unwrap() {
            if event.header.event_type == EventType::GTID {
                let gtid = omnibus_format::events::Gtid::decode(event.body).unwrap();
                found.push(gtid.gno);
            }
        }
    }
    found
}

#[test]
fn large_transactions_take_their_turn_in_one_order() {
    let dir = tempfile::tempdir().unwrap();
    let server = open(dir.path(), MapEngine::lazy());
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let coordinator = &server.coordinator;
            scope.spawn(move || {
                for n in 0..12 {
                    let key = format!("t{thread}n{n}");
                    let request =
                        if n % 4 == 3 { big(coordinator, &key) } else { request(coordinator, &key, "v") };
                    coordinator.commit(request).wait().unwrap();
                }
            });
        }
    });
    assert_eq!(promoted(&server), 18);
    assert_eq!(server.coordinator.published().number(), CommitNo(72));
    server.coordinator.log().files().wait_for_background();
    assert_eq!(gtids(dir.path()), (1..=72).collect::<Vec<_>>());
    // COMMIT-3: a crash here loses nothing.
    let engine = server.engine.after_crash();
    crash(server.coordinator);
    let server = open(dir.path(), engine);
    assert_eq!((server.recovered.last, server.recovered.replayed), (CommitNo(72), 72));
    assert_eq!(server.engine.rows.lock().unwrap().len(), 72);
    let key = "t0n3";
    let value = server.engine.rows.lock().unwrap()[key.as_bytes()].clone();
    assert_eq!(value, key.repeat(100_000).as_bytes());
    server.coordinator.close().unwrap();
}

#[test]
fn a_file_that_does_not_suit_the_log_is_copied() {
    let dir = tempfile::tempdir().unwrap();
    let server = open(dir.path(), MapEngine::lazy());
    let coordinator = &server.coordinator;
    // Spilled with checksums, and then the log has none.
    let request_with_checksums = big(coordinator, "b");
    coordinator.log().set_checksum(Checksum::None);
    coordinator.rotate().unwrap();
    coordinator.commit(request_with_checksums).wait().unwrap();
    assert_eq!(promoted(&server), 0);
    coordinator.commit(big(coordinator, "c")).wait().unwrap();
    assert_eq!(promoted(&server), 1);
    coordinator.commit(request(coordinator, "d", "small")).wait().unwrap();
    let left = std::fs::read_dir(dir.path().join("#binlog_cache_files")).unwrap().count();
    assert_eq!(left, 0);
    let engine = server.engine.after_crash();
    crash(server.coordinator);
    let server = open(dir.path(), engine);
    assert_eq!(server.recovered.replayed, 3);
    assert_eq!(server.replayed.len(), 3);
}

#[test]
fn a_private_group_can_be_large_as_well() {
    let dir = tempfile::tempdir().unwrap();
    let server = open(dir.path(), MapEngine::lazy());
    let coordinator = &server.coordinator;
    let mut cache = coordinator.new_cache();
    cache.append_event(EventType::IGNORABLE.0, 0x80, &vec![7; 300_000]).unwrap();
    let private = CommitRequest { cache, logged: false, ..request(coordinator, "a", "v") };
    coordinator.commit(private).wait().unwrap();
    coordinator.commit(request(coordinator, "b", "v")).wait().unwrap();
    assert_eq!(promoted(&server), 1);
    let engine = server.engine.after_crash();
    crash(server.coordinator);
    let server = open(dir.path(), engine);
    assert_eq!(server.recovered.last, CommitNo(2));
}
