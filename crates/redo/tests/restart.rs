//! The state of a redo log after a stop.
#![allow(clippy::unwrap_used)]

use bytes::Bytes;
use omnibus_disk::Disk;
use omnibus_engine::{CommitNo, TrxId, WriteSet};
use omnibus_redo::Participant;
use std::path::Path;

fn open(directory: &Path, persisted: u64) -> Participant {
    Participant::open(&Disk::default(), &directory.join("redo"), 4096, CommitNo(persisted)).unwrap()
}

fn writes(n: u64) -> WriteSet {
    let mut set = WriteSet::default();
    set.put(Bytes::from(format!("key{n}")), Bytes::from(vec![n as u8; 300]));
    set
}

fn prepare(redo: &Participant, ids: std::ops::RangeInclusive<u64>, persisted: u64) {
    ids.for_each(|n| redo.prepare(TrxId(n), &writes(n), CommitNo(persisted)).unwrap());
}

fn segments(directory: &Path) -> usize {
    std::fs::read_dir(directory.join("redo")).map_or(0, |entries| entries.count())
}

#[test]
fn decisions_are_kept_and_the_rest_is_in_doubt() {
    let directory = tempfile::tempdir().unwrap();
    let redo = open(directory.path(), 0);
    assert_eq!(segments(directory.path()), 0, "nothing on disk before the first prepare");
    prepare(&redo, 1..=40, 0);
    assert!(redo.commit(TrxId(1), CommitNo(10)).is_none(), "its session has the writes");
    redo.commit(TrxId(2), CommitNo(11));
    redo.rollback(TrxId(3));
    redo.rollback(TrxId(99));
    redo.flush().unwrap();
    drop(redo);
    // 10 is in the engine's tables; 11 is not, so the log is asked about it again.
    let redo = open(directory.path(), 10);
    assert_eq!(redo.prepared(), [2].into_iter().chain(4..=40).map(TrxId).collect::<Vec<_>>());
    let found = redo.commit(TrxId(7), CommitNo(12)).unwrap();
    assert_eq!(found.get_held(b"key7"), writes(7).get_held(b"key7"));
    assert!(redo.commit(TrxId(7), CommitNo(12)).is_none());
    redo.rollback(TrxId(8));
    redo.flush().unwrap();
    drop(redo);
    let redo = open(directory.path(), 12);
    assert_eq!(redo.prepared(), (4..=40).filter(|n| ![7, 8].contains(n)).map(TrxId).collect::<Vec<_>>());
}

#[test]
fn segments_go_once_everything_in_them_is_persistent_or_rolled_back() {
    let directory = tempfile::tempdir().unwrap();
    let redo = open(directory.path(), 0);
    prepare(&redo, 1..=100, 0);
    let before = segments(directory.path());
    assert!(before > 5);
    (1..=50).for_each(|n| assert!(redo.commit(TrxId(n), CommitNo(n)).is_none()));
    redo.checkpoint(CommitNo(0)).unwrap();
    assert_eq!(segments(directory.path()), before, "committed, but not persistent");
    redo.checkpoint(CommitNo(50)).unwrap();
    let half = segments(directory.path());
    assert!(half < before && half > 1, "{before} {half}");
    (51..=100).for_each(|n| redo.rollback(TrxId(n)));
    redo.checkpoint(CommitNo(50)).unwrap();
    assert_eq!(segments(directory.path()), 1);
    // By itself, when a segment is full.
    for n in 101..=300 {
        prepare(&redo, n..=n, n - 1);
        redo.commit(TrxId(n), CommitNo(n));
    }
    assert!(segments(directory.path()) <= 2);
}

#[test]
fn a_torn_end_is_cut_and_damage_before_it_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let redo = open(directory.path(), 0);
    prepare(&redo, 1..=30, 0);
    redo.flush().unwrap();
    drop(redo);
    let mut paths: Vec<_> = std::fs::read_dir(directory.path().join("redo"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let flip = |path: &Path, at: usize| {
        let mut bytes = std::fs::read(path).unwrap();
        bytes[at] ^= 1;
        std::fs::write(path, bytes).unwrap();
    };
    let last = paths.last().unwrap();
    flip(last, 20);
    let redo = open(directory.path(), 0);
    let known = redo.prepared().len();
    assert!(known > 10 && known < 30, "{known}");
    prepare(&redo, 31..=31, 0);
    redo.flush().unwrap();
    drop(redo);
    // The torn segment is not the last any more, but its end was cut off: what follows is in a new one.
    assert!(open(directory.path(), 0).prepared().contains(&TrxId(31)));
    flip(&paths[0], 20);
    assert!(Participant::open(&Disk::default(), &directory.path().join("redo"), 4096, CommitNo(0)).is_err());
}

#[test]
fn many_threads_share_syncs_and_lose_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let redo = open(directory.path(), 0);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let redo = &redo;
            scope.spawn(move || {
                for n in 0..50 {
                    let trx = thread * 1000 + n;
                    prepare(redo, trx..=trx, 0);
                    redo.flush().unwrap();
                }
            });
        }
    });
    drop(redo);
    assert_eq!(open(directory.path(), 0).prepared().len(), 200);
}
