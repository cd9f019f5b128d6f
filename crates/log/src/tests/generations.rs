//! Sync generations: which writes a sync covers, and which jobs wait for which. Every interleaving of it:
//! `crate::interleavings`.
#![allow(clippy::unwrap_used)]

use crate::generation::Generations;
use std::sync::mpsc;
use std::time::Duration;

/// COMMIT-2: it vouches for what another's sync, not finished yet, is to make durable.
#[test]
fn a_job_waits_for_the_sync_under_way_that_covers_it() {
    let generations = Generations::default();
    generations.wrote();
    let (done, is_done) = mpsc::channel();
    std::thread::scope(|scope| {
        generations
            .cover(|| {
                scope.spawn(|| {
                    generations.cover(|| panic!("the sync under way covers it")).unwrap();
                    done.send(()).unwrap();
                });
                assert!(is_done.recv_timeout(Duration::from_millis(30)).is_err(), "not before it has ended");
                Ok(())
            })
            .unwrap();
    });
    is_done.try_recv().unwrap();
}

#[test]
fn a_sync_covers_what_was_there_when_it_began() {
    let generations = Generations::default();
    generations.wrote();
    generations
        .cover(|| {
            generations.wrote();
            Ok(())
        })
        .unwrap();
    let synced = std::cell::Cell::new(false);
    let sync = || {
        synced.set(true);
        Ok(())
    };
    generations.cover(sync).unwrap();
    assert!(synced.get());
    generations.cover(|| panic!("nothing is unsynced")).unwrap();
}

#[test]
fn after_a_sync_that_failed_no_other_succeeds() {
    let generations = Generations::default();
    let eio = std::io::Error::from_raw_os_error(super::IO_ERROR);
    let failure = crate::IoFailure::new("sync", std::path::Path::new("binlog.000001"), &eio);
    generations.wrote();
    generations.cover(|| Err(failure.clone())).unwrap_err();
    let again = generations.cover(|| panic!("the kernel has forgotten the error")).unwrap_err();
    assert_eq!(again.to_string(), failure.to_string());
}

#[test]
fn a_job_that_is_made_durable_waits_for_earlier_ones_that_are_not() {
    let generations = Generations::default();
    let (unsynced, synced, later) = (generations.seal(), generations.seal(), generations.seal());
    generations.release(synced);
    let (done, is_done) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            generations.wait_for_earlier(synced);
            done.send(()).unwrap();
        });
        assert!(is_done.recv_timeout(Duration::from_millis(30)).is_err());
        generations.release(unsynced);
        is_done.recv().unwrap();
    });
    generations.wait_for_earlier(later);
}
