//! Rows that tables have packed (`large`).

use super::*;
use lsm_tree::{AbstractTree, InternalValue, ValueType};
use std::ops::Bound;

const LEN: usize = 300_000;

/// Compresses well, and is not what another seed has.
fn large(seed: u64) -> Bytes {
    noise(seed, 1000).repeat(LEN / 1000).into()
}

#[track_caller]
fn reads(engine: &LsmEngine, at: u64, wanted: &[(Bytes, Bytes)]) {
    let snapshot = engine.snapshot(CommitNo(at));
    for (key, row) in wanted {
        assert_eq!(snapshot.get(key).unwrap().as_ref(), Some(row));
        assert_eq!(snapshot.get_version(key).unwrap().map(|(_, row)| row).as_ref(), Some(row));
    }
    let forward: Vec<_> =
        snapshot.scan(Bound::Unbounded, Bound::Unbounded, false).map(Result::unwrap).collect();
    assert_eq!(forward, wanted);
    let mut backward: Vec<_> =
        snapshot.scan(Bound::Unbounded, Bound::Unbounded, true).map(Result::unwrap).collect();
    backward.reverse();
    assert_eq!(backward, wanted);
    let mut visited = Vec::new();
    let whole = snapshot.visit(Bound::Unbounded, Bound::Unbounded, &mut |key, row| {
        visited.push((Bytes::copy_from_slice(&key), row.to_bytes()));
        true
    });
    assert!(whole.unwrap());
    assert_eq!(visited, wanted);
}

#[test]
fn packed_rows_are_read_as_they_were_written() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(tiny(directory.path()));
    let mut wanted = Vec::new();
    for no in 1..=40 {
        let row = if no % 4 == 0 { noise(no, LEN) } else { large(no) };
        let mut set = WriteSet::default();
        set.put(key(1, no), row.clone());
        engine.prepare_ordered(CommitNo(no), set);
        engine.commit_ordered(CommitNo(no));
        wanted.push((key(1, no), row));
        if no % 10 == 0 {
            engine.checkpoint().unwrap();
        }
    }
    eventually("a compaction", || engine.stats().compactions > 0);
    // A quarter does not compress.
    let size = engine.stats().disk_bytes;
    assert!(size < 12 * LEN as u64, "{size} bytes of tables");
    reads(&engine, 40, &wanted);
    drop(engine);
    reads(&open(tiny(directory.path())), 40, &wanted);
}

#[test]
fn large_rows_that_an_older_version_wrote_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(tiny(directory.path()));
    let rows: Vec<_> = (1..=3).map(|no| (key(1, no), large(no))).collect();
    let entries = rows
        .iter()
        .map(|(key, row)| Ok(InternalValue::from_components(key.clone(), row.clone(), 1, ValueType::Value)));
    let tree = &engine.shared().tree;
    let (tables, _) = tree.flush_to_tables(entries).unwrap().unwrap();
    tree.register_tables(&tables, None, None, &[], u64::MAX >> 1).unwrap();
    drop(engine);
    let engine = open(tiny(directory.path()));
    assert!(engine.stats().disk_bytes > 3 * LEN as u64);
    reads(&engine, 1, &rows);
    // A merge mixes them with packed ones.
    let newer = (4..=20).map(|no| (key(1, no), large(no)));
    let rows: Vec<_> = rows.into_iter().chain(newer).collect();
    for (at, (key, row)) in rows.iter().enumerate().skip(3) {
        let mut set = WriteSet::default();
        set.put(key.clone(), row.clone());
        engine.prepare_ordered(CommitNo(at as u64), set);
        engine.commit_ordered(CommitNo(at as u64));
        engine.checkpoint().unwrap();
    }
    eventually("a compaction", || engine.stats().compactions > 0);
    reads(&engine, 20, &rows);
}
