//! The engine contract's suite, alone and in a set beside the default engine, and what only this engine has.
#![allow(clippy::unwrap_used)]

mod damage;
mod form;
mod set;
mod space;

use crate::{BtreeConfig, BtreeEngine};
use bytes::Bytes;
use omnibus_engine::{CommitNo, Engine, WriteSet, conformance};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

fn config(directory: &Path) -> BtreeConfig {
    BtreeConfig { cache_size: 1 << 20, ..BtreeConfig::new(directory) }
}

fn open(directory: &Path) -> BtreeEngine {
    BtreeEngine::open(config(directory)).unwrap()
}

fn key(space: u32, number: u64) -> Bytes {
    [&space.to_be_bytes()[..], &number.to_be_bytes()].concat().into()
}

fn put(engine: &dyn Engine, no: u64, keys: &[Bytes], text: &str) {
    let mut set = WriteSet::default();
    keys.iter().for_each(|key| set.put(key.clone(), Bytes::copy_from_slice(text.as_bytes())));
    engine.prepare_ordered(CommitNo(no), set);
}

fn all(engine: &dyn Engine, at: u64) -> Vec<(Bytes, Bytes)> {
    let snapshot = engine.snapshot(CommitNo(at));
    snapshot.scan(Bound::Unbounded, Bound::Unbounded, false).map(Result::unwrap).collect()
}

#[test]
fn conforms() {
    conformance::run_all(|directory| Arc::new(open(directory)));
}

#[test]
fn conforms_when_every_transaction_of_the_file_is_durable() {
    conformance::run_all(|directory| {
        Arc::new(BtreeEngine::open(BtreeConfig { durable_every: 0, ..config(directory) }).unwrap())
    });
}

/// Waits for background work that nothing announces.
#[track_caller]
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !holds() {
        assert!(start.elapsed() < std::time::Duration::from_secs(120), "{what} did not happen");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

fn stored(engine: &BtreeEngine) -> u64 {
    use redb::ReadableTableMetadata;
    engine.shared_for_tests().store.versions().unwrap().len().unwrap()
}

#[test]
fn replaced_versions_leave_the_file_once_nobody_can_see_them() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    for no in 1..=50 {
        put(&engine, no, &[key(1, 1), key(1, 2)], &no.to_string());
        engine.commit_ordered(CommitNo(no));
        engine.checkpoint().unwrap();
    }
    assert_eq!(stored(&engine), 100, "snapshots may want all of them");
    let mut set = WriteSet::default();
    set.delete(key(1, 2));
    engine.prepare_ordered(CommitNo(51), set);
    engine.commit_ordered(CommitNo(51));
    engine.gc_watermark(CommitNo(51));
    engine.checkpoint().unwrap();
    eventually("pruning", || stored(&engine) == 1);
    assert_eq!(all(&engine, 51), [(key(1, 1), Bytes::from_static(b"50"))]);
}

#[test]
fn garbage_is_remembered_across_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    for no in 1..=20 {
        put(&engine, no, &[key(1, 1)], "x");
        engine.commit_ordered(CommitNo(no));
        engine.checkpoint().unwrap();
    }
    assert_eq!(stored(&engine), 20);
    drop(engine);
    let engine = open(directory.path());
    eventually("pruning", || stored(&engine) == 1);
}

#[test]
fn an_idle_file_follows_the_commit_number() {
    let directory = tempfile::tempdir().unwrap();
    let engine = BtreeEngine::open(BtreeConfig { idle_s: 0, ..config(directory.path()) }).unwrap();
    engine.commit_ordered(CommitNo(77));
    eventually("catching up", || engine.persisted() == CommitNo(77));
    drop(engine);
    assert_eq!(open(directory.path()).applied(), CommitNo(77));
}

#[test]
fn a_foreign_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("data.redb"), vec![7; 10_000]).unwrap();
    assert!(BtreeEngine::open(config(directory.path())).is_err());
}

/// Rows written after a snapshot are what it keeps, in memory and then in the file; a newer snapshot keeps none of them.
#[test]
fn a_snapshot_keeps_what_was_written_since() {
    let place = tempfile::tempdir().unwrap();
    let engine = BtreeEngine::open(config(&place.path().join("btree"))).unwrap();
    let keys: Vec<Bytes> = (0..200).map(|at| key(7, at)).collect();
    let value = "x".repeat(100);
    for no in 1..=4 {
        put(&engine, no, &keys, &value);
        engine.commit_ordered(CommitNo(no));
    }
    let [old, new] = [1, 4].map(|at| engine.kept_since(CommitNo(at)));
    assert!(old.bytes > 200 * 100, "{old:?}");
    assert_eq!(new.bytes, 0);
    engine.checkpoint().unwrap();
    let [old, new] = [0, 4].map(|at| engine.kept_since(CommitNo(at)));
    assert!(old.bytes > 200 * 100 && old.files == 1, "{old:?}");
    assert_eq!(new.bytes, 0, "{new:?}");
}
