//! The engine contract's suite, with roomy and with tiny limits, and what only this engine has.
#![allow(clippy::unwrap_used)]

mod background;
mod directory;
mod form;
mod large;
mod memtable;
mod tables;

use crate::{LsmConfig, LsmEngine};
use bytes::Bytes;
use omnibus_engine::{CommitNo, Engine, WriteSet, conformance};
use rand::{RngCore, SeedableRng};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn tiny(directory: &Path) -> LsmConfig {
    LsmConfig {
        memtable_size: 8 << 10,
        block_cache_size: 1 << 20,
        table_target_size: 16 << 10,
        ..LsmConfig::new(directory)
    }
}

fn open(config: LsmConfig) -> LsmEngine {
    LsmEngine::open(config).unwrap()
}

fn key(space: u32, number: u64) -> Bytes {
    let mut key = space.to_be_bytes().to_vec();
    key.extend_from_slice(&number.to_be_bytes());
    key.into()
}

fn put(engine: &LsmEngine, no: u64, key: Bytes, size: usize) {
    let mut set = WriteSet::default();
    set.put(key, noise(no, size));
    engine.prepare_ordered(CommitNo(no), set);
    engine.commit_ordered(CommitNo(no));
}

/// Bytes that do not compress.
fn noise(seed: u64, size: usize) -> Bytes {
    let mut bytes = vec![0; size];
    rand::rngs::StdRng::seed_from_u64(seed).fill_bytes(&mut bytes);
    bytes.into()
}

/// Waits for background work that nothing announces.
#[track_caller]
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(120), "{what} did not happen");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn conforms() {
    conformance::run_all(|directory| {
        // Opening takes its time with a big cache.
        let config = LsmConfig { block_cache_size: 1 << 20, ..LsmConfig::new(directory) };
        Arc::new(open(config))
    });
}

#[test]
fn conforms_when_everything_is_flushed_all_the_time() {
    conformance::run_all(|directory| Arc::new(open(tiny(directory))));
}

/// Rows written after a snapshot are what it keeps, in memory and then in files; a newer snapshot keeps none of them.
#[test]
fn a_snapshot_keeps_what_was_written_since() {
    let place = tempfile::tempdir().unwrap();
    let engine = open(LsmConfig::new(place.path()));
    (1..=100).for_each(|no| put(&engine, no, key(7, no), 1000));
    let kept = |at| engine.kept_since(CommitNo(at));
    assert_eq!(kept(100).bytes, 0);
    assert!(kept(50).bytes > 40_000 && kept(0).bytes > 90_000 && kept(50).files == 0, "{:?}", kept(50));
    engine.checkpoint().unwrap();
    assert_eq!((kept(100).bytes, kept(100).files), (0, 0));
    assert!(kept(50).bytes > 40_000 && kept(50).files == 1, "{:?}", kept(50));
}
