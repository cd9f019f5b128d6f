//! After a sync that failed, the cache holds what the device never got, and says that it is clean; the next process must not build
//! on it.
#![allow(clippy::unwrap_used, missing_docs)]

use bytes::Bytes;
use omnibus_disk::{Disk, Open};
use omnibus_engine::{CommitNo, TrxId, WriteSet};
use omnibus_redo::Participant;
use omnibus_sim::{NameRule, Random, Rules, Schedule, SimDisk, Trouble, run};
use std::path::Path;
use std::sync::Arc;

const RULES: Rules = Rules { unit: 512, names: NameRule::Strict, capacity: u64::MAX, short_writes: false };

fn prepare(redo: &Participant, trx: u64) {
    let mut writes = WriteSet::default();
    writes.put(Bytes::from(trx.to_string()), Bytes::from(vec![b'v'; 700]));
    redo.prepare(TrxId(trx), &writes, CommitNo::ZERO).unwrap();
}

fn open(disk: &Disk) -> Participant {
    Participant::open(disk, Path::new("/data/redo"), 4096, CommitNo::ZERO).unwrap()
}

/// Redo records that are in the cache alone are not gone on behind: a power cut would leave them torn in a segment that is not the
/// last.
#[test]
fn redo_goes_on_behind_what_the_device_has() {
    for seed in 0..60 {
        let first = SimDisk::new(seed, RULES, Schedule::new());
        let redo = open(&first.disk());
        prepare(&redo, 1);
        redo.flush().unwrap();
        prepare(&redo, 2);
        prepare(&redo, 3);
        first.plan(0, Trouble::FailSync);
        redo.flush().unwrap_err();
        let killed = first.crash_or_kill(false, &Schedule::new());
        let redo = open(&killed.disk());
        let found = redo.prepared();
        assert!(found.contains(&TrxId(1)));
        prepare(&redo, 4);
        redo.flush().unwrap();
        let cut = killed.crash_or_kill(true, &Schedule::new());
        let redo = open(&cut.disk());
        let stays = redo.prepared();
        assert!(
            found.iter().all(|trx| stays.contains(trx)),
            "{found:?} were found, then {stays:?} (seed {seed})"
        );
    }
}

/// RECOVER-1: of two syncs of one segment the device tells only one that a page was lost. The other must not take its segment for whole and
/// go on in a new one.
#[test]
fn a_sync_that_failed_is_not_the_success_of_another_thread() {
    for seed in 0..1000 {
        let (schedule, mut random) = (Schedule::new(), Random::new(seed));
        let disk = SimDisk::new(seed, RULES, Arc::clone(&schedule));
        let redo = Arc::new(open(&disk.disk()));
        disk.plan(random.below(60), Trouble::FailSync);
        for thread in 0..3 {
            let redo = Arc::clone(&redo);
            schedule.spawn(move || {
                for trx in 0..8 {
                    let mut writes = WriteSet::default();
                    writes.put(Bytes::from(trx.to_string()), Bytes::from(vec![b'v'; 700]));
                    let done = redo.prepare(TrxId(thread * 10 + trx), &writes, CommitNo::ZERO);
                    // One of them has everybody's records synced.
                    if done.and_then(|()| if thread == 0 { redo.flush() } else { Ok(()) }).is_err() {
                        return;
                    }
                }
            });
        }
        while let Some(thread) = Some(schedule.waiting()).filter(|waiting| !waiting.is_empty()) {
            schedule.go_on(random.pick(&thread), 1);
        }
        let cut = disk.crash_or_kill(true, &Schedule::new());
        let opened = Participant::open(&cut.disk(), Path::new("/data/redo"), 4096, CommitNo::ZERO);
        assert!(opened.is_ok(), "{opened:?} (seed {seed})");
    }
}

/// The simulated disk does what the operating system does.
#[test]
fn what_is_cached_differs_from_the_device_until_it_is_forgotten() {
    let mut differed = 0;
    for seed in 0..20 {
        let disk = SimDisk::new(seed, RULES, Schedule::new());
        disk.disk().create_dir_all(Path::new("/data")).unwrap();
        let path = Path::new("/data/file");
        let file = disk.disk().open(path, Open::CreateNew).unwrap();
        file.write_all_at(&[1; 4096], 0).unwrap();
        file.sync_all().unwrap();
        file.write_all_at(&[2; 4096], 0).unwrap();
        disk.plan(0, Trouble::FailSync);
        file.sync_all().unwrap_err();
        file.sync_all().unwrap();
        assert_eq!(file.read_all().unwrap(), [2; 4096]);
        file.forget_cached().unwrap();
        let device = file.read_all().unwrap();
        differed += u32::from(device != [2; 4096]);
        let after = disk.crash_or_kill(true, &Schedule::new());
        assert_eq!(after.peek(path).unwrap_or(device.clone()), device);
    }
    assert!(differed > 5);
}

/// COMMIT-2: the sync of zeros that extend the log ahead of time was told of the loss of what a job had written, said so to nobody, and
/// the next job's sync found nothing wrong.
#[test]
fn a_sync_of_zeros_that_failed_is_a_failure_of_the_log() {
    if let Err(finding) = run(1_795_387_082_865, None) {
        panic!("{finding}");
    }
}

/// RECOVER-2: a ROTATE in the cache alone was taken for the end of a closed file, which a power cut then left without it.
#[test]
fn a_log_that_was_closed_in_the_cache_alone_is_not_taken_for_closed() {
    for _ in 0..3 {
        if let Err(finding) = run(1_795_371_021_136, None) {
            panic!("{finding}");
        }
    }
}
