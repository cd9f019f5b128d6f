//! The default engine and this one as a set: the contract again, and transactions that span both.

use super::*;
use omnibus_engine::{EngineSet, SpaceId, TrxId};
use omnibus_engine_lsm::{LsmConfig, LsmEngine};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::SystemTime;

fn shared_keys() -> std::ops::Range<Bytes> {
    // The suite's own spaces are not below it.
    Bytes::from_static(b"\0\0\0\0D")..Bytes::from_static(b"\0\0\0\0E")
}

fn open_set(directory: &Path) -> EngineSet<LsmEngine> {
    let lsm = LsmConfig { block_cache_size: 1 << 20, ..LsmConfig::new(&directory.join("lsm")) };
    let btree = open(&directory.join("btree"));
    EngineSet::new(LsmEngine::open(lsm).unwrap(), vec![Arc::new(btree)], shared_keys()).unwrap()
}

/// The names, lengths and times of all files below a directory.
fn listing(directory: &Path) -> BTreeSet<(PathBuf, u64, Option<SystemTime>)> {
    let entries = std::fs::read_dir(directory).unwrap().flatten();
    entries.fold(BTreeSet::new(), |mut all, entry| match entry.metadata() {
        Ok(about) if about.is_dir() => {
            all.append(&mut listing(&entry.path()));
            all
        }
        Ok(about) => {
            all.insert((entry.path(), about.len(), about.modified().ok()));
            all
        }
        // It was renamed or removed meanwhile.
        Err(_) => all,
    })
}

/// Copies the files while the engines are open: closing the B-tree's file would make it durable. Their own threads may replace files, so a copy
/// counts if nothing has changed beside it.
fn crash(directory: &Path) -> tempfile::TempDir {
    for _ in 0..100 {
        let (copy, before) = (tempfile::tempdir().unwrap(), listing(directory));
        let run =
            std::process::Command::new("cp").arg("-r").arg(directory.join(".")).arg(copy.path()).status();
        if run.unwrap().success() && listing(directory) == before {
            return copy;
        }
    }
    panic!("{} does not come to rest", directory.display());
}

fn theirs(number: u64) -> Bytes {
    key(SpaceId::in_slot(1, 100).0, number)
}

#[test]
fn a_set_conforms() {
    conformance::run_all(|directory| Arc::new(open_set(directory)));
}

#[test]
fn a_set_tells_its_members() {
    let directory = tempfile::tempdir().unwrap();
    let set = open_set(directory.path());
    let names: Vec<_> = set.members().iter().map(|info| (info.slot, info.name)).collect();
    assert_eq!(names, [(0, "InnoDB"), (1, "BTREE")]);
}

#[test]
fn one_snapshot_sees_a_spanning_transaction_in_both_or_in_neither() {
    let directory = tempfile::tempdir().unwrap();
    let set = open_set(directory.path());
    for no in 1..=100u64 {
        put(&set, no, &[key(100, no % 7), theirs(no % 7), theirs(50)], &no.to_string());
        let before = set.snapshot(CommitNo(no - 1));
        let now = set.snapshot(CommitNo(no));
        let text = Bytes::from(no.to_string());
        assert_eq!(before.get(&theirs(50)).unwrap(), (no > 1).then(|| Bytes::from((no - 1).to_string())));
        for key in [key(100, no % 7), theirs(no % 7), theirs(50)] {
            assert_ne!(before.get(&key).unwrap(), Some(text.clone()));
            assert_eq!(now.get(&key).unwrap(), Some(text.clone()));
            assert_eq!(now.get_version(&key).unwrap(), Some((CommitNo(no), text.clone())));
        }
        set.commit_ordered(CommitNo(no));
    }
    let ascending: Vec<Bytes> = all(&set, 100).into_iter().map(|(key, _)| key).collect();
    let expected: Vec<Bytes> =
        (0..7).map(|n| key(100, n)).chain((0..7).map(theirs)).chain([theirs(50)]).collect();
    assert_eq!(ascending, expected);
    let snapshot = set.snapshot(CommitNo(100));
    let down = snapshot.scan(Bound::Unbounded, Bound::Excluded(&theirs(50)), true);
    let down: Vec<Bytes> = down.map(|pair| pair.unwrap().0).collect();
    assert_eq!(down, expected[..14].iter().rev().cloned().collect::<Vec<_>>());
    let mut seen = Vec::new();
    let more = snapshot.visit(Bound::Excluded(&key(100, 5)), Bound::Included(&theirs(1)), &mut |key, _| {
        seen.push(key.to_bytes());
        seen.len() < 3
    });
    assert_eq!((more.unwrap(), seen), (false, vec![key(100, 6), theirs(0), theirs(1)]));
}

#[test]
fn replay_skips_what_an_engine_has_and_gives_the_other_what_it_lacks() {
    let directory = tempfile::tempdir().unwrap();
    let set = open_set(directory.path());
    let definition = Bytes::from_static(b"\0\0\0\0D1");
    for no in 1..=10u64 {
        put(&set, no, &[key(100, no), theirs(no), definition.clone()], &no.to_string());
        set.commit_ordered(CommitNo(no));
    }
    // Only the first engine goes to disk.
    assert_eq!(set.first().checkpoint().unwrap(), CommitNo(10));
    assert_eq!(set.persisted(), CommitNo(0));
    let crashed = crash(directory.path());
    drop(set);
    let set = open_set(crashed.path());
    assert_eq!((set.applied(), set.newest()), (CommitNo(0), CommitNo(10)));
    assert_eq!((set.applied_to(&key(100, 1)), set.applied_to(&theirs(1))), (CommitNo(10), CommitNo(0)));
    assert_eq!(set.definitions().get(&definition).unwrap(), None, "as of the engine that is behind");
    assert_eq!(set.snapshot(CommitNo::MAX).get(&definition).unwrap(), Some(Bytes::from_static(b"10")));
    for no in 1..=10u64 {
        // Wrong on purpose for the first engine: it must not take it.
        put(&set, no, &[key(100, no), theirs(no), definition.clone()], &format!("again {no}"));
        set.commit_ordered(CommitNo(no));
    }
    for no in 1..=10u64 {
        let get = |key: Bytes| set.snapshot(CommitNo(10)).get(&key).unwrap().unwrap();
        assert_eq!(get(key(100, no)), no.to_string());
        assert_eq!(get(theirs(no)), format!("again {no}"));
    }
    assert_eq!(set.checkpoint().unwrap(), CommitNo(10));
    assert_eq!(all(&open_again(set, crashed.path()), 10).len(), 21);
}

fn open_again(set: EngineSet<LsmEngine>, directory: &Path) -> EngineSet<LsmEngine> {
    drop(set);
    open_set(directory)
}

#[test]
fn an_engine_that_is_new_in_a_directory_gets_the_definitions() {
    let directory = tempfile::tempdir().unwrap();
    let definition = Bytes::from_static(b"\0\0\0\0D1");
    let lsm = LsmEngine::open(LsmConfig::new(&directory.path().join("lsm"))).unwrap();
    for no in 1..=10u64 {
        put(&lsm, no, &[key(100, no), definition.clone()], &no.to_string());
        lsm.commit_ordered(CommitNo(no));
    }
    lsm.checkpoint().unwrap();
    drop(lsm);
    for _ in 0..2 {
        let set = open_set(directory.path());
        assert_eq!(
            (set.applied(), set.persisted()),
            (CommitNo(10), CommitNo(10)),
            "nothing to replay for it"
        );
        assert_eq!(set.definitions().get(&definition).unwrap(), Some(Bytes::from_static(b"10")));
        assert_eq!(all(&set, 10).len(), 11, "shared keys show once");
    }
}

#[test]
fn a_spanning_transaction_is_prepared_and_decided_in_both() {
    let directory = tempfile::tempdir().unwrap();
    let set = open_set(directory.path());
    put(&set, 1, &[key(100, 1), theirs(1)], "old");
    set.commit_ordered(CommitNo(1));
    set.checkpoint().unwrap();
    let writes = |keys: &[Bytes]| {
        let mut set = WriteSet::default();
        keys.iter().for_each(|key| set.put(key.clone(), Bytes::from_static(b"new")));
        set
    };
    assert!(set.two_phase());
    for (trx, keys) in [
        (1, vec![key(100, 1), theirs(1)]),
        (2, vec![key(100, 2), theirs(2)]),
        (3, vec![theirs(3)]),
        (4, vec![key(100, 4)]),
    ] {
        set.prepare(TrxId(trx), &writes(&keys)).unwrap();
    }
    set.flush_logs().unwrap();
    let set = open_again(set, directory.path());
    assert_eq!(set.prepared(), [1, 2, 3, 4].map(TrxId));
    // The log has the first as 2 and the last as 3.
    set.commit_prepared(TrxId(1), CommitNo(2));
    set.commit_prepared(TrxId(4), CommitNo(3));
    set.commit_ordered(CommitNo(3));
    set.rollback(TrxId(2));
    set.rollback(TrxId(3));
    let keys: Vec<_> = all(&set, 3).into_iter().collect();
    let new = Bytes::from_static(b"new");
    let expected = [key(100, 1), key(100, 4), theirs(1)].map(|key| (key, new.clone()));
    assert_eq!(keys, expected);
    set.checkpoint().unwrap();
    let set = open_again(set, directory.path());
    assert_eq!((set.prepared(), all(&set, 3)), (vec![], expected.to_vec()));
}
