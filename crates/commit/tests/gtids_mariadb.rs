//! MariaDB's dialect on real files (GTID-1, GTID-2): numbers by domain, what comes back, damage told from a crash.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use omnibus_commit::{CommitError, CommitRequest, CommitSettings, Refusal, SetGtidsError};
use omnibus_engine::{CommitNo, Engine};
use omnibus_format::events::{MariadbGtidEvent, MariadbGtidList};
use omnibus_format::{AnyGtid, Dialect, EventType, Origin};
use omnibus_log::{FileSeq, LogConfig, LogDir, Next};
use std::path::Path;
use std::sync::atomic::Ordering;
use support::{MapEngine, Server, crash, open_dialect, request};

fn start(path: &Path) -> Server {
    let settings = CommitSettings::default();
    open_dialect(path, 1 << 20, settings, MapEngine::lazy(), Box::new(|_| {}), Dialect::Mariadb)
}

fn own(server: &Server, key: &str, domain: u32) -> CommitNo {
    let mut own = request(&server.coordinator, key, "v");
    own.cache.naming.domain = domain;
    server.coordinator.commit(own).wait().unwrap()
}

fn given(server: &Server, gtid: &str, value: &str) -> CommitRequest {
    let mut foreign = request(&server.coordinator, gtid, value);
    let gtid: omnibus_format::events::MariadbGtid = gtid.parse().unwrap();
    let origin = Origin { gtid: Some(AnyGtid::Mariadb(gtid)), server_id: gtid.server, ..Origin::default() };
    foreign.cache.set_origin(origin);
    foreign
}

fn commit(server: &Server, request: CommitRequest) -> Result<CommitNo, CommitError> {
    server.coordinator.commit(request).wait()
}

fn state(server: &Server) -> String {
    server.coordinator.gtids().binlog_state().to_string()
}

/// GTIDs of a log, and the list in the head of its last file.
fn events(path: &Path) -> (Vec<String>, String) {
    let dir = LogDir::open(path, LogConfig::default()).unwrap();
    let (mut found, mut last) = (Vec::new(), String::new());
    for &file in dir.files() {
        let mut reader = dir.read(file).unwrap();
        while let Next::Event(event) = reader.next().unwrap() {
            match event.header.event_type {
                EventType::MARIADB_GTID => {
                    let gtid = MariadbGtidEvent::decode(event.body).unwrap();
                    assert_eq!(gtid.flags & MariadbGtidEvent::FLAG_STANDALONE, 0);
                    found.push(format!("{}-{}-{}", gtid.domain, event.header.server_id, gtid.sequence));
                }
                EventType::MARIADB_GTID_LIST => {
                    let list = MariadbGtidList::decode(event.body).unwrap();
                    let list: Vec<String> = list.gtids.iter().map(ToString::to_string).collect();
                    last = list.join(",");
                }
                other => assert!(other != EventType::GTID && other != EventType::PREVIOUS_GTIDS),
            }
        }
    }
    (found, last)
}

#[test]
fn numbers_go_on_in_each_domain_and_come_back_after_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path());
    server.coordinator.cache_settings().large.threshold.store(50_000, Ordering::Relaxed);
    own(&server, "a", 0);
    commit(&server, given(&server, "0-5-10", "v")).unwrap();
    own(&server, "b", 0);
    own(&server, "c", 3);
    commit(&server, given(&server, "4-6-1", &"x".repeat(100_000))).unwrap();
    commit(&server, request(&server.coordinator, "large", &"y".repeat(100_000))).unwrap();
    assert_eq!(server.coordinator.cache_settings().large.promoted.load(Ordering::Relaxed), 2);
    server.coordinator.rotate().unwrap();
    // A group that only recovery reads has a number and no GTID.
    let mut private = request(&server.coordinator, "p", "q");
    private.cache.clear();
    private.cache.append_event(EventType::IGNORABLE.0, 0x80, b"OMNI\x01\x01something").unwrap();
    private.logged = false;
    assert_eq!(commit(&server, private).unwrap(), CommitNo(7));
    assert_eq!(own(&server, "d", 0), CommitNo(8));
    let all = "0-5-10,0-7-13,3-7-1,4-6-1";
    assert_eq!(state(&server), all);
    assert_eq!(server.coordinator.gtids().state().to_string(), "0-7-13,3-7-1,4-6-1");
    let mut rows = server.engine.rows.lock().unwrap().clone();
    // What the private event says is the SQL layer's to know.
    rows.remove(&b"p"[..]);
    crash(server.coordinator);

    let server = start(dir.path());
    assert_eq!(server.replayed, (1..=8).collect::<Vec<u64>>(), "RECOVER-2");
    assert!(*server.engine.rows.lock().unwrap() == rows, "RECOVER-2");
    assert_eq!(state(&server), all);
    own(&server, "e", 0);
    own(&server, "f", 3);
    server.coordinator.close().unwrap();
    let (found, list) = events(dir.path());
    assert_eq!(found, ["0-7-1", "0-5-10", "0-7-11", "3-7-1", "4-6-1", "0-7-12", "0-7-13", "0-7-14", "3-7-2"]);
    assert_eq!(list, all, "the head of the file after the crash");
}

#[test]
fn strict_mode_refuses_what_is_out_of_order_and_a_state_can_be_set_on_an_empty_log() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path());
    let coordinator = &server.coordinator;
    coordinator.gtids().set_binlog_state("0-5-10,1-5-3".parse().unwrap()).unwrap();
    own(&server, "a", 0);
    assert_eq!(state(&server), "0-5-10,0-7-11,1-5-3");
    assert!(matches!(
        coordinator.gtids().set_binlog_state("0-1-1".parse().unwrap()),
        Err(SetGtidsError::NotEmpty)
    ));
    coordinator.log().set_strict(true);
    let refused = commit(&server, given(&server, "0-5-11", "v"));
    assert!(matches!(refused, Err(CommitError::Refused(Refusal::OutOfOrder { .. }))), "{refused:?}");
    commit(&server, given(&server, "1-9-4", "v")).unwrap();
    coordinator.log().set_strict(false);
    commit(&server, given(&server, "0-5-11", "v")).unwrap();
    server.engine.checkpoint().unwrap();
    coordinator.reset_log(FileSeq(1)).unwrap();
    assert_eq!(state(&server), "");
    own(&server, "b", 0);
    assert_eq!(state(&server), "0-7-1");
    server.coordinator.close().unwrap();
}

#[test]
fn the_standard_tool_reads_it_in_strict_mode() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path());
    for n in 0..20 {
        own(&server, &format!("k{n}"), n % 3);
    }
    server.coordinator.close().unwrap();
    let read = std::process::Command::new("mariadb-binlog")
        .args(["--no-defaults", "--verify-binlog-checksum", "--gtid-strict-mode"])
        .arg(dir.path().join("binlog.000001"))
        .output()
        .unwrap();
    let (text, errors) = (String::from_utf8_lossy(&read.stdout), String::from_utf8_lossy(&read.stderr));
    assert!(read.status.success() && !errors.contains("ERROR"), "LOG-1: {errors}");
    assert!(text.contains("GTID 2-7-6"), "{text}");
    assert!(text.contains("Gtid list []") && text.contains("START TRANSACTION"), "{text}");
}

#[test]
fn damage_in_the_middle_is_not_taken_for_a_torn_tail() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path());
    own(&server, "a", 0);
    let damaged = server.coordinator.position().offset.0;
    for n in 0..5 {
        own(&server, &format!("b{n}"), 0);
    }
    crash(server.coordinator);
    let path = dir.path().join("binlog.000001");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[usize::try_from(damaged).unwrap() + 20] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let log = LogDir::open(dir.path(), LogConfig::default()).unwrap();
    let engine = MapEngine::lazy();
    let error =
        omnibus_commit::recover(&log, &engine, &mut support::Texts::default()).unwrap_err().to_string();
    assert!(error.contains("is damaged at offset"), "COMMIT-3: {error}");
}
