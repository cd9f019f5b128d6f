//! The threads behind the engine: what they reclaim, how they push back, how they fail.

use super::*;
use omnibus_engine::SpaceId;

#[test]
fn memtables_are_flushed_without_being_asked() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(tiny(directory.path()));
    for no in 1..=2000 {
        put(&engine, no, key(1, no), 100);
        std::thread::sleep(engine.write_stall());
    }
    eventually("a flush", || engine.persisted() > CommitNo(1500));
    eventually("a compaction", || engine.stats().compactions > 0);
    assert!(engine.stats().flushes > 5);
}

#[test]
fn nothing_is_flushed_that_is_not_durable() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(tiny(directory.path()));
    for no in 1..=500 {
        let mut set = WriteSet::default();
        set.put(key(1, no), vec![7; 200].into());
        engine.prepare_ordered(CommitNo(no), set);
    }
    assert!(!engine.write_stall().is_zero(), "memtables pile up");
    assert_eq!((engine.persisted(), engine.stats().flushes), (CommitNo::ZERO, 0));
    engine.commit_ordered(CommitNo(500));
    eventually("a flush", || engine.persisted() > CommitNo(400));
    eventually("the end of the stall", || engine.write_stall().is_zero());
}

/// Overwrites the same keys until compactions have seen most of what was written.
fn churn(engine: &LsmEngine, from: u64, count: u64, watermark: impl Fn(u64) -> u64) -> u64 {
    for no in from..from + count {
        put(engine, no, key(1, no % 20), 200);
        engine.gc_watermark(CommitNo(watermark(no)));
        if no % 50 == 0 {
            engine.checkpoint().unwrap();
        }
    }
    from + count - 1
}

#[test]
fn old_versions_go_when_no_snapshot_needs_them_and_stay_when_one_does() {
    let (directory, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let engine = open(tiny(directory.path()));
    churn(&engine, 1, 2000, |_| 10);
    let kept = engine.stats().disk_bytes;
    assert!(kept > 200 * 1900, "a snapshot at 10 keeps what came after it: {kept}");
    assert_eq!(engine.snapshot(CommitNo(10)).get_version(&key(1, 7)).unwrap().unwrap().0, CommitNo(7));
    let engine = open(tiny(other.path()));
    churn(&engine, 1, 2000, |no| no);
    eventually("garbage collection", || engine.stats().disk_bytes < kept / 5);
    assert!(engine.stats().compactions > 0);
}

#[test]
fn what_deletions_leave_goes_when_nothing_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(LsmConfig {
        sweep_after: std::time::Duration::from_millis(10),
        memtable_size: 64 << 20,
        ..tiny(directory.path())
    });
    for no in 1..=2000 {
        put(&engine, no, key(1, no), 100);
    }
    engine.checkpoint().unwrap();
    let before = engine.stats().disk_bytes;
    let mut set = WriteSet::default();
    (1..=1500).for_each(|no| set.delete(key(1, no)));
    engine.prepare_ordered(CommitNo(2001), set);
    engine.commit_ordered(CommitNo(2001));
    engine.checkpoint().unwrap();
    let deletions = || engine.shared().views.current().tables.deletions;
    assert_eq!(deletions(), 1500);
    assert!(engine.snapshot(CommitNo(2000)).get(&key(1, 7)).unwrap().is_some(), "a snapshot needs it");
    engine.gc_watermark(CommitNo(2001));
    eventually("a sweep", || deletions() == 0);
    assert!(engine.stats().disk_bytes < before / 2, "{} of {before}", engine.stats().disk_bytes);
    let newest = engine.snapshot(CommitNo(2001));
    assert_eq!(newest.get(&key(1, 1500)).unwrap(), None);
    assert!(newest.get(&key(1, 1501)).unwrap().is_some());
}

#[test]
fn a_snapshot_that_outlives_flushes_and_compactions_keeps_its_versions() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(tiny(directory.path()));
    let last = churn(&engine, 1, 300, |no| no);
    let snapshot = engine.snapshot(CommitNo(last));
    let read = || (0..20).map(|n| snapshot.get_version(&key(1, n)).unwrap().unwrap().0).collect::<Vec<_>>();
    let expected = read();
    churn(&engine, last + 1, 2000, |_| last);
    eventually("a compaction", || engine.stats().compactions > 3);
    assert_eq!(read(), expected);
}

#[test]
fn a_dropped_space_gives_its_disk_back() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(LsmConfig { memtable_size: 64 << 10, ..tiny(directory.path()) });
    put(&engine, 1, key(1, 1), 100);
    let mut pairs = (0..5000).map(|n| (key(2, n), noise(n, 100)));
    engine.load(CommitNo(1), &mut pairs).unwrap();
    assert!(engine.stats().disk_bytes > 100_000);
    engine.drop_space(SpaceId(2), CommitNo(2));
    put(&engine, 2, key(1, 2), 100);
    engine.gc_watermark(CommitNo(2));
    eventually("reclaiming", || engine.stats().disk_bytes < 20_000);
    assert_eq!(engine.snapshot(CommitNo(2)).get(&key(2, 1)).unwrap(), None);
    assert!(engine.snapshot(CommitNo(2)).get(&key(1, 1)).unwrap().is_some());
}

#[test]
fn a_failed_flush_is_reported_and_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(tiny(directory.path()));
    put(&engine, 1, key(1, 1), 100);
    engine.checkpoint().unwrap();
    let tables = directory.path().join("tree/tables");
    let aside = directory.path().join("aside");
    std::fs::rename(&tables, &aside).unwrap();
    for no in 2..=300 {
        put(&engine, no, key(1, no), 200);
    }
    assert!(engine.checkpoint().is_err());
    assert!(engine.failure().unwrap().contains("flush"), "{:?}", engine.failure());
    assert_eq!(engine.persisted(), CommitNo(1));
    for no in 2..=300 {
        assert!(
            engine.snapshot(CommitNo(300)).get(&key(1, no)).unwrap().is_some(),
            "{no} is still in memory"
        );
    }
    drop(engine);
    std::fs::rename(&aside, &tables).unwrap();
    let engine = open(tiny(directory.path()));
    assert_eq!(engine.applied(), CommitNo(1));
    assert!(engine.snapshot(CommitNo(1)).get(&key(1, 1)).unwrap().is_some());
}

/// A power cut takes back what the log does not have yet: a dropped table's rows are needed until the drop is durable.
#[test]
fn a_space_stays_until_its_drop_is_durable() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(LsmConfig { memtable_size: 64 << 10, ..tiny(directory.path()) });
    put(&engine, 1, key(1, 1), 100);
    for space in [2, 3] {
        engine.load(CommitNo(1), &mut (0..2000).map(|n| (key(space, n), noise(n, 100)))).unwrap();
    }
    let before = engine.stats().disk_bytes;
    let mut set = WriteSet::default();
    set.put(key(1, 2), noise(2, 100));
    engine.prepare_ordered(CommitNo(2), set);
    engine.drop_space(SpaceId(2), CommitNo(2));
    engine.drop_space(SpaceId(3), CommitNo(1));
    // Published, as `sync_binlog=0` does, but not durable.
    engine.gc_watermark(CommitNo(2));
    eventually("the older drop", || engine.stats().disk_bytes < before * 2 / 3);
    drop(engine);
    let engine = open(tiny(directory.path()));
    assert_eq!(engine.applied(), CommitNo(1));
    for number in 0..2000 {
        assert!(
            engine.snapshot(CommitNo::MAX).get(&key(2, number)).unwrap().is_some(),
            "row {number} is gone"
        );
    }
}

/// A file system of its own that is full at once; none where mounting is not allowed.
struct Small {
    place: tempfile::TempDir,
}

impl Small {
    fn new(bytes: u64) -> Option<Small> {
        let place = tempfile::tempdir().unwrap();
        let mount = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"])
            .arg(place.path())
            .status();
        mount.is_ok_and(|status| status.success()).then_some(Small { place })
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(self.place.path()).status();
    }
}

#[test]
fn a_full_disk_is_waited_for_and_a_load_fails_on_it() {
    let Some(disk) = Small::new(2 << 20) else { return };
    let ballast = disk.place.path().join("ballast");
    let directory = disk.place.path().join("lsm");
    std::fs::create_dir(&directory).unwrap();
    let config = LsmConfig {
        memtable_size: 256 << 10,
        full_disk: Arc::new(omnibus_disk::FullDisk::patient()),
        ..tiny(&directory)
    };
    let engine = open(config.clone());
    put(&engine, 1, key(1, 1), 100);
    engine.checkpoint().unwrap();
    // Fails with what there is written.
    let _ = std::fs::write(&ballast, vec![1; 4 << 20]);
    let mut pairs = (0..2000).map(|n| (key(2, n), noise(n, 200)));
    let error = engine.load(CommitNo(1), &mut pairs).unwrap_err();
    assert!(error.is_full(), "{error}");
    for no in 2..=900 {
        put(&engine, no, key(1, no), 500);
    }
    eventually("waiting", || engine.shared().space.waiting());
    assert!(engine.failure().is_none(), "{:?}", engine.failure());
    assert!(engine.snapshot(CommitNo(900)).get(&key(1, 700)).unwrap().is_some(), "reads go on");
    let mut pairs = (0..10).map(|n| (key(3, n), noise(n, 200)));
    assert!(engine.load(CommitNo(1), &mut pairs).unwrap_err().is_full());
    assert!(engine.checkpoint_if_room().unwrap_err().is_full(), "who makes room does not wait for it");
    std::fs::remove_file(&ballast).unwrap();
    assert_eq!(engine.checkpoint().unwrap(), CommitNo(900));
    engine.load(CommitNo(1), &mut (0..10).map(|n| (key(4, n), noise(n, 200)))).unwrap();
    drop(engine);
    let engine = open(config);
    assert_eq!(engine.applied(), CommitNo(900));
    for no in 1..=900 {
        assert!(engine.snapshot(CommitNo(900)).get(&key(1, no)).unwrap().is_some());
    }
}

/// COMMIT-3: a replay that meets a full disk is given up, and the next one finds nothing of it.
#[test]
fn a_large_transaction_that_finds_no_space_is_not_there_at_all() {
    let Some(disk) = Small::new(2 << 20) else { return };
    let (ballast, directory) = (disk.place.path().join("ballast"), disk.place.path().join("lsm"));
    std::fs::create_dir(&directory).unwrap();
    let config = LsmConfig {
        memtable_size: 256 << 10,
        full_disk: Arc::new(omnibus_disk::FullDisk::patient()),
        ..tiny(&directory)
    };
    let engine = open(config.clone());
    put(&engine, 1, key(1, 1), 100);
    engine.checkpoint().unwrap();
    let writes = || (0..2000).map(|n| Ok((key(2, n), Some(noise(n, 400)))));
    let _ = std::fs::write(&ballast, vec![1; 4 << 20]);
    let error = engine.install_sorted(CommitNo(2), &mut writes()).unwrap_err();
    assert!(error.is_full(), "{error}");
    drop(engine);
    let engine = open(config.clone());
    assert_eq!(engine.applied(), CommitNo(1));
    assert!(engine.snapshot(CommitNo(2)).get(&key(2, 0)).unwrap().is_none());
    std::fs::remove_file(&ballast).unwrap();
    engine.install_sorted(CommitNo(2), &mut writes()).unwrap();
    engine.commit_ordered(CommitNo(2));
    drop(engine);
    let engine = open(config);
    assert_eq!(engine.applied(), CommitNo(2));
    for no in 0..2000 {
        assert!(engine.snapshot(CommitNo(2)).get(&key(2, no)).unwrap().is_some());
    }
}
