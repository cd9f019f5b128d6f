//! A job that reports "durable" has waited for all earlier bytes, with several jobs under way at once (COMMIT-2).

use super::*;
use std::sync::mpsc;
use std::time::Duration;

/// How long a job gets to show that it does not wait. Only a broken one ends it early.
const WAITS: Duration = Duration::from_millis(50);

/// Appends bytes up to a block boundary and seals them, so that the next job shares no block with this one.
fn seal_block(writer: &mut LogWriter) -> WriteJob {
    let missing = BLOCK - writer.position().offset.0 as usize % BLOCK;
    writer.buffer().extend_from_slice(&vec![1; missing]);
    writer.seal()
}

#[test]
fn of_two_jobs_behind_unsynced_bytes_neither_is_durable_before_a_sync_has_ended() {
    for method in METHODS {
        let dir = tempfile::tempdir().unwrap();
        let faults = Faults::default();
        let mut writer = start(dir.path(), LogConfig { faults: faults.clone(), ..config(method) });
        seal_block(&mut writer).run_without_sync().unwrap();
        let (first, second) = (seal_block(&mut writer), seal_block(&mut writer));
        let (done, is_done) = mpsc::channel();
        faults.when(Point::JobSync, move || {
            std::thread::spawn(move || done.send(second.run()));
            assert!(is_done.recv_timeout(WAITS).is_err(), "{method}: the bytes before are not durable yet");
        });
        first.run().unwrap();
        writer.wait_idle();
    }
}

#[test]
fn a_synced_job_vouches_for_the_unsynced_one_under_way_before_it() {
    for method in METHODS {
        let dir = tempfile::tempdir().unwrap();
        let faults = Faults::default();
        let mut writer = start(dir.path(), LogConfig { faults: faults.clone(), ..config(method) });
        let (unsynced, synced) = (seal_block(&mut writer), seal_block(&mut writer));
        let (done, is_done) = mpsc::channel();
        faults.when(Point::JobWrite, move || {
            std::thread::spawn(move || done.send(synced.run()));
            assert!(is_done.recv_timeout(WAITS).is_err(), "{method}: the write before has not returned");
        });
        unsynced.run_without_sync().unwrap();
        writer.wait_idle();
        assert!(faults.passed().contains(&Point::JobSync), "{method}: and it was not synced before");
    }
}
