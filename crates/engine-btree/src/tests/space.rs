//! A file system that is full for a while: writing waits, reads do not, a load fails, and nothing is lost.

use super::*;
use omnibus_disk::FullDisk;
use std::sync::atomic::{AtomicUsize, Ordering};

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
    let Some(disk) = Small::new(6 << 20) else { return };
    let ballast = disk.place.path().join("ballast");
    let config = BtreeConfig {
        // Small, so that redb writes while a transaction is under way and for readers.
        cache_size: 64 << 10,
        full_disk: Arc::new(FullDisk::patient()),
        ..config(&disk.place.path().join("btree"))
    };
    let engine = BtreeEngine::open(config.clone()).unwrap();
    put(&engine, 1, &[key(1, 1)], "first");
    engine.commit_ordered(CommitNo(1));
    engine.checkpoint().unwrap();
    // Fails with what there is written.
    let _ = std::fs::write(&ballast, vec![1; 8 << 20]);
    let pairs = |space, count| (0..count).map(move |n| (key(space, n), Bytes::from(vec![n as u8; 500])));
    assert!(engine.load(CommitNo(1), &mut pairs(2, 2000)).unwrap_err().is_full());
    for no in 2..=900 {
        put(&engine, no, &[key(1, no)], &"v".repeat(500));
        engine.commit_ordered(CommitNo(no));
    }
    eventually("waiting", || engine.shared_for_tests().store.files.full());
    assert!(engine.failure().is_none(), "{:?}", engine.failure());
    assert_eq!(all(&engine, 900).len(), 900, "reads go on");
    assert!(engine.load(CommitNo(1), &mut pairs(3, 10)).unwrap_err().is_full());
    assert!(engine.checkpoint_if_room().unwrap_err().is_full(), "who makes room does not wait for it");
    assert_eq!(engine.persisted(), CommitNo(1), "nothing is durable that is not on the device");
    std::fs::remove_file(&ballast).unwrap();
    assert_eq!(engine.checkpoint().unwrap(), CommitNo(900));
    engine.load(CommitNo(900), &mut pairs(4, 10)).unwrap();
    drop(engine);
    let engine = BtreeEngine::open(config).unwrap();
    assert_eq!(engine.applied(), CommitNo(900));
    assert_eq!(all(&engine, 900).iter().filter(|(row, _)| row.starts_with(&1u32.to_be_bytes())).count(), 900);
    assert!(engine.verify().is_empty());
}

/// A kill while something waits: the file is as before, and the log has the rest.
#[test]
fn what_waits_for_space_is_not_in_the_file_after_a_crash() {
    let Some(disk) = Small::new(6 << 20) else { return };
    let directory = disk.place.path().join("btree");
    let config =
        BtreeConfig { cache_size: 64 << 10, full_disk: Arc::new(FullDisk::patient()), ..config(&directory) };
    let engine = BtreeEngine::open(config).unwrap();
    put(&engine, 1, &[key(1, 1)], "first");
    engine.commit_ordered(CommitNo(1));
    engine.checkpoint().unwrap();
    let _ = std::fs::write(disk.place.path().join("ballast"), vec![1; 8 << 20]);
    for no in 2..=900 {
        put(&engine, no, &[key(1, no)], &"v".repeat(500));
        engine.commit_ordered(CommitNo(no));
    }
    eventually("waiting", || engine.shared_for_tests().store.files.full());
    let copy = tempfile::tempdir().unwrap();
    for name in ["data.redb", "data.sums"] {
        std::fs::copy(directory.join(name), copy.path().join(name)).unwrap();
    }
    let crashed = open(copy.path());
    let applied = crashed.applied();
    assert_eq!(all(&crashed, applied.0).len() as u64, applied.0);
    assert!(crashed.verify().is_empty());
}

/// A large transaction that is replayed waits between its rows, so that not all of it is kept in memory.
#[test]
fn a_large_transaction_waits_for_space_and_is_there_as_a_whole() {
    let Some(disk) = Small::new(6 << 20) else { return };
    let ballast = disk.place.path().join("ballast");
    let waits = Arc::new(FullDisk::patient());
    let config = BtreeConfig {
        cache_size: 64 << 10,
        full_disk: Arc::clone(&waits),
        ..config(&disk.place.path().join("btree"))
    };
    let engine = BtreeEngine::open(config.clone()).unwrap();
    put(&engine, 1, &[key(1, 1)], "first");
    engine.commit_ordered(CommitNo(1));
    engine.checkpoint().unwrap();
    let _ = std::fs::write(&ballast, vec![1; 8 << 20]);
    let kept = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let (engine, kept) = (&engine, &kept);
        let mut writes = (0..4000).map(move |n| {
            kept.fetch_max(engine.shared_for_tests().store.files.kept(), Ordering::Relaxed);
            Ok((key(2, n), Some(Bytes::from(vec![n as u8; 500]))))
        });
        let installed = scope.spawn(move || engine.install_sorted(CommitNo(2), &mut writes));
        eventually("waiting", || engine.shared_for_tests().store.files.full() || installed.is_finished());
        assert!(!installed.is_finished());
        // Where it does not wait it gets on meanwhile, as far as what it keeps tells.
        eventually("rest", || {
            let before = kept.load(Ordering::Relaxed);
            std::thread::sleep(std::time::Duration::from_millis(50));
            before == kept.load(Ordering::Relaxed)
        });
        std::fs::remove_file(&ballast).unwrap();
        installed.join().unwrap().unwrap();
    });
    let kept = kept.into_inner();
    assert!(kept < 128 << 10, "{kept} bytes were kept");
    engine.commit_ordered(CommitNo(2));
    assert_eq!(all(&engine, 2).len(), 4001);
    drop(engine);
    // COMMIT-3: given up, nothing of it is there.
    let engine = BtreeEngine::open(config.clone()).unwrap();
    let _ = std::fs::write(&ballast, vec![1; 8 << 20]);
    waits.give_up();
    let mut more = (0..8000).map(|n| Ok((key(3, n), Some(Bytes::from(vec![n as u8; 500])))));
    assert!(engine.install_sorted(CommitNo(3), &mut more).is_err());
    std::fs::remove_file(&ballast).unwrap();
    drop(engine);
    let engine = BtreeEngine::open(config).unwrap();
    assert_eq!((engine.applied(), all(&engine, 9).len()), (CommitNo(2), 4001));
    assert!(engine.verify().is_empty());
}
