//! A file system that is full for a while: writing waits, reads do not, a load fails, and nothing is lost.

use super::*;
use omnibus_engine::EngineError;
use std::sync::atomic::AtomicBool;

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

fn is_full(error: &EngineError) -> bool {
    matches!(error, EngineError::Io { source, .. } if crate::space::is_full(source))
}

#[test]
fn a_full_disk_is_waited_for_and_a_load_fails_on_it() {
    let Some(disk) = Small::new(6 << 20) else { return };
    let ballast = disk.place.path().join("ballast");
    let config = BtreeConfig {
        // Small, so that redb writes while a transaction is under way and for readers.
        cache_size: 64 << 10,
        wait_for_space: Arc::new(AtomicBool::new(true)),
        ..config(&disk.place.path().join("btree"))
    };
    let engine = BtreeEngine::open(config.clone()).unwrap();
    put(&engine, 1, &[key(1, 1)], "first");
    engine.commit_ordered(CommitNo(1));
    engine.checkpoint().unwrap();
    // Fails with what there is written.
    let _ = std::fs::write(&ballast, vec![1; 8 << 20]);
    let pairs = |space, count| (0..count).map(move |n| (key(space, n), Bytes::from(vec![n as u8; 500])));
    assert!(is_full(&engine.load(CommitNo(1), &mut pairs(2, 2000)).unwrap_err()));
    for no in 2..=900 {
        put(&engine, no, &[key(1, no)], &"v".repeat(500));
        engine.commit_ordered(CommitNo(no));
    }
    eventually("waiting", || engine.shared_for_tests().store.files.full());
    assert!(engine.failure().is_none(), "{:?}", engine.failure());
    assert_eq!(all(&engine, 900).len(), 900, "reads go on");
    assert!(is_full(&engine.load(CommitNo(1), &mut pairs(3, 10)).unwrap_err()));
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
    let config = BtreeConfig {
        cache_size: 64 << 10,
        wait_for_space: Arc::new(AtomicBool::new(true)),
        ..config(&directory)
    };
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
