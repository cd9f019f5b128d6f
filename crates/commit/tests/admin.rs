//! Rotation, purge limits and reset on real files, with an engine that persists only at checkpoints.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use omnibus_commit::{CommitSettings, Coordinator, ResetLogError};
use omnibus_engine::{CommitNo, Engine};
use omnibus_format::ServerUuid;
use omnibus_log::FileSeq;
use std::path::Path;
use std::sync::atomic::Ordering;
use support::{MapEngine, Server, crash, open_engine, request};

const UUID: ServerUuid = ServerUuid([9; 16]);

fn start(path: &Path, engine: MapEngine) -> Server {
    open_engine(path, 1 << 20, CommitSettings::default(), engine, Box::new(|_| {}))
}

fn commit(coordinator: &Coordinator, key: &str) -> CommitNo {
    coordinator.commit(request(coordinator, key, "v")).wait().unwrap()
}

fn files(server: &Server) -> Vec<u32> {
    server.coordinator.log().files().list().iter().map(|entry| entry.file.0).collect()
}

#[test]
fn rotation_moves_the_published_place_and_records_what_was_before() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path(), MapEngine::lazy());
    let coordinator = &server.coordinator;
    commit(coordinator, "a");
    commit(coordinator, "b");
    coordinator.rotate().unwrap();
    let (number, position) = coordinator.published().place();
    assert_eq!((number, position.file), (CommitNo(2), FileSeq(2)));
    assert_eq!(position, coordinator.log().files().durable_end().get());
    assert_eq!(coordinator.gtids().executed().to_string(), format!("{UUID}:1-2"));
    assert!(coordinator.gtids().purged().unwrap().is_empty());
    coordinator.log().files().purge_to(FileSeq(2), || Ok(FileSeq(2))).unwrap();
    assert_eq!(coordinator.gtids().purged().unwrap().to_string(), format!("{UUID}:1-2"));
    coordinator.close().unwrap();
    assert!(coordinator.rotate().is_err(), "a closed log does not rotate");
}

/// PURGE-1: the numbers of files begin anew with a RESET; what recovery needed of the old ones says nothing of the new ones.
#[test]
fn a_purge_beside_a_reset_asks_about_the_files_that_it_removes() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path(), MapEngine::lazy());
    let coordinator = &server.coordinator;
    for key in ["a", "b", "c", "d"] {
        commit(coordinator, key);
        coordinator.rotate().unwrap();
    }
    server.engine.checkpoint().unwrap();
    let (go, going) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            going.recv().unwrap();
            coordinator.reset_log(FileSeq(1)).unwrap();
            for key in ["e", "f"] {
                commit(coordinator, key);
                coordinator.rotate().unwrap();
            }
        });
        let asked = coordinator.log().files().purge_to(FileSeq(3), || {
            let needed = coordinator.recovery_start();
            go.send(()).unwrap();
            // Everything that the reset can do before it changes the list of files.
            while server.engine.checkpoints.load(Ordering::SeqCst) < 3 {
                std::thread::yield_now();
            }
            needed
        });
        assert_eq!(asked.unwrap().files, [FileSeq(1), FileSeq(2)], "the old ones");
    });
    let engine = server.engine.after_crash();
    crash(server.coordinator);
    let server = start(dir.path(), engine);
    assert_eq!((server.recovered.last, server.replayed.clone()), (CommitNo(6), vec![5, 6]));
    server.coordinator.close().unwrap();
}

#[test]
fn recovery_needs_the_file_of_the_first_number_that_is_not_persistent() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path(), MapEngine::lazy());
    for key in ["a", "b", "c"] {
        commit(&server.coordinator, key);
        server.coordinator.rotate().unwrap();
    }
    assert_eq!(server.coordinator.recovery_start().unwrap(), FileSeq(1), "PURGE-1: nothing is persistent");
    server.engine.checkpoint().unwrap();
    assert_eq!(server.coordinator.recovery_start().unwrap(), FileSeq(4));
    commit(&server.coordinator, "d");
    server.coordinator.rotate().unwrap();
    assert_eq!(server.coordinator.recovery_start().unwrap(), FileSeq(4), "number 4 is in file 4");
    // What it says is enough: without the files before it, a crash loses nothing (PURGE-1, COMMIT-3).
    let keep = server.coordinator.recovery_start().unwrap();
    server.coordinator.log().files().purge_to(keep, || Ok(keep)).unwrap();
    let engine = server.engine.after_crash();
    crash(server.coordinator);
    let server = start(dir.path(), engine);
    assert_eq!((server.recovered.last, server.replayed.clone()), (CommitNo(4), vec![4]));
    server.coordinator.close().unwrap();
}

#[test]
fn after_a_reset_gtids_begin_again_and_commit_numbers_go_on() {
    for first in [1, 2, 40] {
        let dir = tempfile::tempdir().unwrap();
        let server = start(dir.path(), MapEngine::lazy());
        for key in ["a", "b", "c"] {
            commit(&server.coordinator, key);
        }
        server.coordinator.reset_log(FileSeq(first)).unwrap();
        assert_eq!(files(&server), [first]);
        assert!(server.coordinator.gtids().executed().is_empty());
        assert_eq!(server.coordinator.published().place().1.file, FileSeq(first));
        assert_eq!(commit(&server.coordinator, "d"), CommitNo(4));
        server.coordinator.rotate().unwrap();
        assert_eq!(commit(&server.coordinator, "e"), CommitNo(5));
        assert_eq!(server.coordinator.gtids().executed().to_string(), format!("{UUID}:1-2"));
        let rows = server.engine.rows.lock().unwrap().clone();
        let engine = server.engine.after_crash();
        crash(server.coordinator);

        let server = start(dir.path(), engine);
        assert_eq!(server.recovered.last, CommitNo(5));
        assert_eq!(server.replayed, [4, 5], "RECOVER-2: by commit number, not by GTID");
        assert_eq!(*server.engine.rows.lock().unwrap(), rows, "RECOVER-2");
        assert_eq!(server.coordinator.gtids().executed().to_string(), format!("{UUID}:1-2"));
        assert!(server.coordinator.gtids().purged().unwrap().is_empty());
        commit(&server.coordinator, "f");
        assert_eq!(server.coordinator.gtids().executed().to_string(), format!("{UUID}:1-3"));
        // Once more, now with a base already.
        server.coordinator.reset_log(FileSeq(1)).unwrap();
        commit(&server.coordinator, "g");
        server.coordinator.close().unwrap();
        let server = start(dir.path(), server.engine.after_crash());
        assert_eq!((server.recovered.last, server.replayed.len()), (CommitNo(7), 0));
        assert_eq!(server.coordinator.gtids().executed().to_string(), format!("{UUID}:1"));
        server.coordinator.close().unwrap();
    }
}

#[test]
fn a_reset_waits_for_the_engine_or_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path(), MapEngine::lazy());
    commit(&server.coordinator, "a");
    *server.engine.broken.lock().unwrap() = Some("broken".into());
    let refused = server.coordinator.reset_log(FileSeq(1));
    assert!(matches!(refused, Err(ResetLogError::Engine(_))));
    assert_eq!(server.coordinator.gtids().executed().count(), 1);
    assert_eq!(commit(&server.coordinator, "b"), CommitNo(2), "the log works on");
    *server.engine.broken.lock().unwrap() = None;
    server.coordinator.reset_log(FileSeq(1)).unwrap();
    assert_eq!(server.engine.after_crash().applied(), CommitNo(2));
    server.coordinator.close().unwrap();
}

#[test]
fn commits_go_on_during_resets_and_each_has_a_number_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path(), MapEngine::lazy());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let server = &server;
            scope.spawn(move || {
                for n in 0..100 {
                    commit(&server.coordinator, &format!("{thread}-{n}"));
                }
            });
        }
        for _ in 0..5 {
            server.coordinator.reset_log(FileSeq(1)).unwrap();
        }
    });
    let rows = server.engine.rows.lock().unwrap().clone();
    assert_eq!(rows.len(), 400);
    let executed = server.coordinator.gtids().executed();
    let engine = server.engine.after_crash();
    crash(server.coordinator);
    let server = start(dir.path(), engine);
    assert_eq!(server.recovered.last, CommitNo(400));
    assert_eq!(*server.engine.rows.lock().unwrap(), rows, "COMMIT-3, RECOVER-2");
    assert_eq!(server.coordinator.gtids().executed(), executed);
    server.coordinator.close().unwrap();
}

#[test]
fn each_transaction_with_events_counts_as_one_use_of_a_cache() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path(), MapEngine::lazy());
    for n in 0..3 {
        commit(&server.coordinator, &n.to_string());
    }
    let mut cache = server.coordinator.new_cache();
    for _ in 0..2 {
        cache.clear();
        let mark = cache.mark();
        cache.append_event(2, 0, b"event").unwrap();
        cache.rollback_to(mark).unwrap();
        cache.append_event(2, 0, b"event").unwrap();
    }
    assert_eq!(server.coordinator.cache_settings().uses.load(Ordering::Relaxed), 5);
    server.coordinator.close().unwrap();
}
