//! The commit pipeline under thousands of interleavings, chosen by a scheduler (`omnibus_sync`): queue, leaders,
//! tickets, gate, publishing. A model is its environment; waits have no timeouts, so a lost wake-up is a deadlock.
//!
//! COMMIT-1, COMMIT-2, COMMIT-4, SNAP-1, SEMI-1. The same tests find deliberate faults.

use omnibus_sync::interleavings as sync;

#[allow(clippy::duplicate_mod, reason = "the same files over the explored `sync`")]
#[path = "pipeline/mod.rs"]
#[allow(dead_code, unused_imports, reason = "what the tests do not use")]
mod pipeline;
#[allow(clippy::duplicate_mod, reason = "the same file over the explored `sync`")]
#[path = "published.rs"]
#[allow(dead_code, reason = "what the tests do not use")]
mod published;
#[allow(clippy::duplicate_mod, reason = "the same file over the explored `sync`")]
#[path = "ticket.rs"]
#[allow(dead_code, reason = "what the tests do not use")]
mod ticket;

use crate::{AppendError, CacheSettings, CommitRequest, CommitSettings, Env, LogPosition, TrxCache};
use omnibus_engine::{CommitNo, WriteSet};
use omnibus_log::FileSeq;
use omnibus_log::mutant::{Mutant, set_for_thread};
use pipeline::{Gate, Pipeline};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use sync::thread;

const SCHEDULES: usize = 600;

/// A log and a device without errors.
#[derive(Default)]
struct World {
    appended: sync::Mutex<Vec<u64>>,
    installed: sync::Mutex<Vec<u64>>,
    /// Groups on the device, in no order.
    written: sync::Mutex<Vec<(u64, u64)>>,
}

impl World {
    /// The offset up to which the device has everything.
    fn durable(&self) -> u64 {
        let mut groups = self.written.lock().clone();
        groups.sort_unstable();
        groups.into_iter().fold(0, |whole, (first, last)| if first == whole + 1 { last } else { whole })
    }
}

struct Model(Arc<World>);

#[derive(Default)]
struct Writer {
    last: u64,
    sealed: u64,
}

impl Env for Model {
    type Writer = Writer;
    type Job = (u64, u64);

    fn append(
        &self,
        writer: &mut Writer,
        no: CommitNo,
        last_seen: CommitNo,
        _: &mut CommitRequest,
    ) -> Result<(), AppendError> {
        assert!(last_seen < no);
        self.0.appended.lock().push(no.0);
        writer.last = no.0;
        Ok(())
    }
    fn position(&self, writer: &Writer) -> LogPosition {
        LogPosition::new(FileSeq::FIRST, writer.last)
    }
    fn seal(&self, writer: &mut Writer, _: bool) -> Result<(u64, u64), Arc<str>> {
        let job = (writer.sealed + 1, writer.last);
        writer.sealed = writer.last;
        Ok(job)
    }
    fn overlaps(&self, _: &Writer) -> bool {
        false
    }
    fn write(&self, job: (u64, u64), _: bool) -> Result<(), Arc<str>> {
        thread::yield_now();
        if job.0 <= job.1 {
            self.0.written.lock().push(job);
        }
        Ok(())
    }
    fn wants_rotation(&self, _: &Writer) -> bool {
        false
    }
    fn rotate(&self, _: &mut Writer) -> Result<(), Arc<str>> {
        Ok(())
    }
    fn install(&self, no: CommitNo, _: WriteSet) {
        self.0.installed.lock().push(no.0);
    }
    fn install_staged(&self, _: CommitNo, _: crate::StagedWrites) {}
    fn durable(&self, no: CommitNo, _: LogPosition) {
        assert!(no.0 <= self.0.durable(), "ENGINE-1: {no} is not durable");
    }
    fn watermark(&self, _: CommitNo) {}
    fn failed(&self, _: &str) {}
}

fn request() -> CommitRequest {
    let settings = Arc::new(CacheSettings::new(std::env::temp_dir()));
    CommitRequest::new(TrxCache::new(settings), WriteSet::default(), true, 0)
}

fn start(world: &Arc<World>, log_threads: usize, fast_sync_us: u64) -> Arc<Pipeline<Model>> {
    let fast_sync_us = AtomicU64::new(fast_sync_us);
    let settings = CommitSettings { log_threads, fast_sync_us, ..CommitSettings::default() };
    let started =
        Pipeline::start(Model(world.clone()), Writer::default(), CommitNo::ZERO, Arc::new(settings));
    Arc::new(started.expect("threads start"))
}

/// No device is faster: several writes are in flight, and no session leads inline.
const SLOW: u64 = 0;
/// Every device is faster: one write at a time.
const FAST: u64 = u64::MAX;

/// Sessions that commit twice each, with another one waiting for their locks the second time. Half of them lead their
/// own groups where they may.
fn sessions(count: u64, log_threads: usize, fast_sync_us: u64) {
    let world = Arc::new(World::default());
    let pipeline = start(&world, log_threads, fast_sync_us);
    let threads: Vec<_> = (0..count)
        .map(|id| {
            let (world, pipeline) = (world.clone(), pipeline.clone());
            thread::spawn(move || {
                let mut last = CommitNo::ZERO;
                for turn in 0..2 {
                    let seen = pipeline.published().number();
                    assert!(seen.0 <= world.durable(), "COMMIT-2: {seen} is published and not durable");
                    let inline = id % 2 == 0;
                    let request = CommitRequest { awaited: turn == 1, inline, ..request() };
                    let no = pipeline.commit(request).wait().expect("a log without errors");
                    assert!(no > last && no.0 <= world.durable(), "COMMIT-2: {no} is acknowledged");
                    assert!(pipeline.published().number() >= no, "a session sees its own commit");
                    last = no;
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("a session"));
    assert!(pipeline.close().is_some());
    let all: Vec<u64> = (1..=count * 2).collect();
    assert_eq!(*world.appended.lock(), all, "COMMIT-1: the log's order");
    assert_eq!(*world.installed.lock(), all, "COMMIT-1: the engine's order");
}

#[test]
fn every_commit_is_durable_in_order_and_acknowledged_under_every_schedule() {
    sync::explore(SCHEDULES, || sessions(3, 2, FAST));
    sync::explore(SCHEDULES, || sessions(3, 2, SLOW));
    sync::explore(SCHEDULES, || sessions(2, 1, FAST));
}

/// COMMIT-2: a session that commits while the pipeline ends gets an answer, and acknowledged commits are in the log.
#[test]
fn nobody_is_left_without_an_answer_when_the_pipeline_ends() {
    for log_threads in [0, 1] {
        sync::explore(SCHEDULES, move || {
            let world = Arc::new(World::default());
            let pipeline = start(&world, log_threads, SLOW);
            let sessions: Vec<_> = (0..2)
                .map(|_| {
                    let (world, pipeline) = (world.clone(), pipeline.clone());
                    thread::spawn(move || {
                        if let Ok(no) = pipeline.commit(request()).wait() {
                            assert!(no.0 <= world.durable(), "COMMIT-2: {no} is acknowledged");
                        }
                    })
                })
                .collect();
            assert!(pipeline.close().is_some());
            sessions.into_iter().for_each(|session| session.join().expect("a session"));
        });
    }
}

/// COMMIT-4: a session takes its transaction back while a leader comes to the queue. One of them has it.
#[test]
fn what_is_withdrawn_is_nowhere_under_every_schedule() {
    sync::explore(SCHEDULES, || {
        let world = Arc::new(World::default());
        let pipeline = start(&world, 1, SLOW);
        let withdraws = {
            let pipeline = pipeline.clone();
            thread::spawn(move || {
                let ticket = pipeline.commit(request());
                thread::yield_now();
                (ticket.withdraw(), ticket.wait())
            })
        };
        pipeline.commit(request()).wait().expect("a log without errors");
        let (withdrawn, result) = withdraws.join().expect("a session");
        assert_eq!(withdrawn, result.is_err(), "COMMIT-4: it is withdrawn or committed");
        assert!(pipeline.close().is_some());
        let there: Vec<u64> = (1..=2 - u64::from(withdrawn)).collect();
        assert_eq!((&*world.appended.lock(), &*world.installed.lock()), (&there, &there), "COMMIT-4");
    });
}

/// Returns whether the tests above detect a fault.
fn is_found(mutant: Mutant) -> bool {
    set_for_thread(mutant);
    let found = catch_unwind(AssertUnwindSafe(|| sync::explore(SCHEDULES, || sessions(3, 2, SLOW)))).is_err();
    set_for_thread(Mutant::None);
    found
}

#[test]
fn a_wake_up_that_is_forgotten_is_found() {
    assert!(is_found(Mutant::ForgetWakeUp));
}

#[test]
fn publishing_before_it_is_durable_is_found() {
    assert!(is_found(Mutant::PublishEarly));
}

#[test]
fn acknowledging_out_of_order_is_found() {
    assert!(is_found(Mutant::AcknowledgeOutOfOrder));
}

/// SEMI-1: a group behind the gate is not visible before it is released, and opening the gate releases all, in order.
#[test]
fn the_gate_holds_and_opens_under_every_schedule() {
    sync::explore(SCHEDULES, || {
        let world = Arc::new(World::default());
        let pipeline = start(&world, 2, FAST);
        pipeline.set_gate(Gate::AfterSync);
        let released = Arc::new(AtomicU64::new(0));
        let sessions: Vec<_> = (0..2)
            .map(|_| {
                let (pipeline, released) = (pipeline.clone(), released.clone());
                thread::spawn(move || {
                    let no = pipeline.commit(request()).wait().expect("a log without errors");
                    assert!(released.load(Ordering::SeqCst) >= no.0, "SEMI-1: {no} passed a closed gate");
                })
            })
            .collect();
        let replica = {
            let (pipeline, released) = (pipeline.clone(), released.clone());
            thread::spawn(move || {
                released.store(1, Ordering::SeqCst);
                pipeline.release(LogPosition::new(FileSeq::FIRST, 1));
                thread::yield_now();
                released.store(u64::MAX, Ordering::SeqCst);
                pipeline.set_gate(Gate::Open);
            })
        };
        replica.join().expect("a replica");
        sessions.into_iter().for_each(|session| session.join().expect("a session"));
        pipeline.close();
    });
}

/// SNAP-1: an engine that discards versions older than `oldest` never discards those of a snapshot.
#[test]
fn nothing_that_a_snapshot_reads_is_given_up_under_every_schedule() {
    sync::explore(4 * SCHEDULES, || {
        let at = |number: u64| LogPosition::new(FileSeq::FIRST, number * 100);
        let published = Arc::new(published::Published::new(CommitNo(1), at(1)));
        let collected = Arc::new(AtomicU64::new(0));
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let (published, collected) = (published.clone(), collected.clone());
                thread::spawn(move || {
                    let mut reader = published.reader();
                    let (number, position) = reader.take_with_position();
                    assert_eq!(position, at(number.0), "number and position are of one moment");
                    assert!(collected.load(Ordering::SeqCst) <= number.0);
                    let number = reader.take();
                    thread::yield_now();
                    assert!(collected.load(Ordering::SeqCst) <= number.0, "SNAP-1");
                })
            })
            .collect();
        for number in 2..5 {
            published.publish(CommitNo(number), at(number));
            if let Some(oldest) = published.oldest() {
                collected.store(oldest.0, Ordering::SeqCst);
            }
        }
        readers.into_iter().for_each(|reader| reader.join().expect("a reader"));
    });
}
