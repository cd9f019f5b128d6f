//! The pipeline with no file and no database behind it: order, durability, failure, many committers.
#![allow(clippy::unwrap_used)]

mod gate;
mod panic;
mod quiet;
mod withdraw;

use crate::Pipeline;
use crate::env::{AppendError, Env};
use crate::{
    CacheSettings, CommitError, CommitProtocol, CommitRequest, CommitSettings, LogPosition, TrxCache,
};
use omnibus_engine::{CommitNo, WriteSet};
use omnibus_log::FileSeq;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A record of what happened, in that order.
#[derive(Default)]
struct World {
    appended: Mutex<Vec<u64>>,
    installed: Mutex<Vec<u64>>,
    /// Highest number whose bytes are on the "device" without a hole.
    written: Mutex<Vec<(u64, u64)>>,
    durable: AtomicU64,
    /// Fail the n-th write (1-based); 0 never.
    fail_write: AtomicU64,
    writes: AtomicU64,
    rotations: AtomicU64,
    rotate_at: AtomicU64,
    slow_us: AtomicU64,
    padded: AtomicU64,
    /// Numbers whose bytes are in the page cache only.
    cached: Mutex<BTreeSet<u64>>,
    /// The first numbers of the jobs that a later sync waits for, as the log has it.
    open: Mutex<BTreeSet<u64>>,
    /// A group shares a block with the one before; and how often that was asked.
    overlapping: AtomicBool,
    overlaps_asked: AtomicU64,
    /// The n-th write (1-based) waits until this is another number; 0 never.
    stuck_write: AtomicU64,
    /// That write waits for room on a full disk.
    no_room: AtomicBool,
    engines: Engines,
}

/// Participants of two-phase commits, with their state of each xid.
#[derive(Default)]
struct Engines {
    /// Prepared, not synced.
    prepared: Mutex<BTreeSet<u64>>,
    /// Prepared and synced.
    durable: Mutex<BTreeSet<u64>>,
    committed: Mutex<Vec<(u64, u64)>>,
    rolled_back: Mutex<Vec<u64>>,
    syncs: AtomicU64,
    /// Happens once, while the redo is being synced: what was prepared by then is in this sync.
    during_sync: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    /// In the log without durable redo: a crash now would lose them in every engine.
    lost: Mutex<Vec<u64>>,
}

struct Test(Arc<World>);

#[derive(Default)]
struct Writer {
    end: u64,
    sealed: u64,
    last: u64,
    first_unsealed: u64,
}

struct Job {
    first: u64,
    last: u64,
}

impl Env for Test {
    type Writer = Writer;
    type Job = Job;

    fn append(
        &self,
        writer: &mut Writer,
        no: CommitNo,
        last_seen: CommitNo,
        request: &mut CommitRequest,
    ) -> Result<(), AppendError> {
        assert!(last_seen < no, "nothing depends on a later transaction");
        if request.commit_timestamp_us == u64::MAX {
            return Err(AppendError::Cache("unreadable".into()));
        }
        if let Some(xid) = request.xid.filter(|_| request.prepared)
            && !self.0.engines.durable.lock().contains(&xid)
        {
            self.0.engines.lost.lock().push(xid);
        }
        self.0.appended.lock().push(no.0);
        writer.end += 10;
        writer.last = no.0;
        Ok(())
    }

    fn position(&self, writer: &Writer) -> LogPosition {
        LogPosition::new(FileSeq(1), writer.end)
    }

    fn seal(&self, writer: &mut Writer, pad: bool) -> Result<Job, Arc<str>> {
        self.0.padded.fetch_add(u64::from(pad), Ordering::Relaxed);
        let job = Job { first: writer.first_unsealed + 1, last: writer.last };
        writer.first_unsealed = writer.last;
        writer.sealed = writer.end;
        self.0.open.lock().insert(job.first);
        Ok(job)
    }

    fn overlaps(&self, _writer: &Writer) -> bool {
        self.0.overlaps_asked.fetch_add(1, Ordering::SeqCst);
        self.0.overlapping.load(Ordering::SeqCst)
    }

    fn write(&self, job: Job, sync: bool) -> Result<(), Arc<str>> {
        let n = self.0.writes.fetch_add(1, Ordering::SeqCst) + 1;
        if sync {
            self.0.open.lock().remove(&job.first);
            while self.0.open.lock().first().is_some_and(|first| *first < job.first) {
                std::thread::yield_now();
            }
        }
        // A sync covers what was written when it began.
        let covered = if sync { self.0.cached.lock().clone() } else { BTreeSet::new() };
        while n == self.0.stuck_write.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        let slow = self.0.slow_us.load(Ordering::Relaxed);
        if slow > 0 {
            std::thread::sleep(std::time::Duration::from_micros(slow));
        }
        if n == self.0.fail_write.load(Ordering::SeqCst) {
            self.0.open.lock().remove(&job.first);
            return Err("no space left on device".into());
        }
        if job.first <= job.last {
            self.0.written.lock().push((job.first, job.last));
        }
        let mut cached = self.0.cached.lock();
        if sync {
            cached.retain(|no| !covered.contains(no));
        } else {
            cached.extend(job.first..=job.last);
        }
        self.0.open.lock().remove(&job.first);
        Ok(())
    }

    fn is_stuck(&self) -> bool {
        self.0.no_room.load(Ordering::SeqCst)
    }

    fn wants_rotation(&self, writer: &Writer) -> bool {
        let at = self.0.rotate_at.load(Ordering::Relaxed);
        at > 0 && writer.end >= at * (self.0.rotations.load(Ordering::Relaxed) + 1)
    }

    fn rotate(&self, writer: &mut Writer) -> Result<(), Arc<str>> {
        assert_eq!(writer.sealed, writer.end, "everything is sealed before a rotation");
        assert_eq!(self.0.durable.load(Ordering::SeqCst), writer.last, "and durable");
        self.0.rotations.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn install(&self, no: CommitNo, _writes: WriteSet) {
        self.0.installed.lock().push(no.0);
    }

    fn install_staged(&self, no: CommitNo, _writes: crate::StagedWrites) {
        self.0.installed.lock().push(no.0);
    }

    fn flush_engines(&self) -> Result<(), Arc<str>> {
        let engines = &self.0.engines;
        let in_time = std::mem::take(&mut *engines.prepared.lock());
        if let Some(event) = engines.during_sync.lock().take() {
            event();
        }
        engines.syncs.fetch_add(1, Ordering::Relaxed);
        engines.durable.lock().extend(in_time);
        Ok(())
    }

    fn commit_prepared(&self, xid: u64, no: CommitNo) {
        assert!(self.0.durable.load(Ordering::SeqCst) >= no.0, "engines commit what the log has");
        self.0.engines.committed.lock().push((xid, no.0));
    }

    fn rollback_prepared(&self, xid: u64) {
        self.0.engines.rolled_back.lock().push(xid);
    }

    fn durable(&self, no: CommitNo, _position: LogPosition) {
        // ENGINE-1: only what the device has without a hole.
        let mut ranges = self.0.written.lock().clone();
        ranges.sort_unstable();
        let mut whole = 0;
        for (first, last) in ranges {
            if first == whole + 1 {
                whole = last;
            }
        }
        assert!(no.0 <= whole, "durable says {no} but the device has {whole}");
        let cached = self.0.cached.lock().range(..=no.0).next().copied();
        assert_eq!(cached, None, "durable says {no} but that was never synced");
        let before = self.0.durable.swap(no.0, Ordering::SeqCst);
        assert!(before <= no.0);
    }

    fn watermark(&self, _oldest: CommitNo) {}

    fn failed(&self, _reason: &str) {}
}

fn start(world: &Arc<World>, settings: CommitSettings) -> Pipeline<Test> {
    Pipeline::start(Test(world.clone()), Writer::default(), CommitNo::ZERO, Arc::new(settings)).unwrap()
}

fn request() -> CommitRequest {
    let settings = Arc::new(CacheSettings::new(std::env::temp_dir()));
    CommitRequest {
        cache: TrxCache::new(settings),
        writes: WriteSet::default(),
        logged: true,
        commit_timestamp_us: 0,
        xid: None,
        prepared: false,
        staged: None,
        awaited: false,
        inline: false,
        on_durable: None,
        on_ordered: None,
    }
}

/// Pushes `threads * each` commits through and checks COMMIT-1 and COMMIT-2 on the way.
fn storm(pipeline: &Arc<Pipeline<Test>>, world: &Arc<World>, threads: u64, each: u64, inline: bool) {
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut last = CommitNo::ZERO;
                for _ in 0..each {
                    let no = pipeline.commit(CommitRequest { inline, ..request() }).wait().unwrap();
                    assert!(no > last, "a session's commits are in its order");
                    assert!(world.durable.load(Ordering::SeqCst) >= no.0, "COMMIT-2");
                    assert!(pipeline.published().number() >= no, "a session sees its own commit");
                    last = no;
                }
            });
        }
    });
    let total: Vec<u64> = (1..=threads * each).collect();
    assert_eq!(*world.appended.lock(), total, "COMMIT-1: log order is number order, no gap");
    assert_eq!(*world.installed.lock(), total, "COMMIT-1: engine order is number order");
}

#[test]
fn ten_thousand_commits_keep_one_order() {
    let world = Arc::new(World::default());
    let pipeline = Arc::new(start(&world, CommitSettings::default()));
    storm(&pipeline, &world, 100, 100, false);
    let stats = pipeline.stats();
    assert_eq!(stats.commits.load(Ordering::Relaxed), 10_000);
    assert!(stats.groups.load(Ordering::Relaxed) <= 10_000);
    assert!(pipeline.close().is_some());
    assert!(pipeline.close().is_none());
}

#[test]
fn committing_threads_may_lead() {
    let world = Arc::new(World::default());
    let pipeline = Arc::new(start(&world, CommitSettings::default()));
    // The first group tells that the device is fast.
    pipeline.commit(request()).wait().unwrap();
    world.appended.lock().clear();
    world.installed.lock().clear();
    for _ in 0..100 {
        pipeline.commit(request().inline()).wait().unwrap();
    }
    assert!(pipeline.stats().inline_groups.load(Ordering::Relaxed) > 0);
    world.appended.lock().clear();
    let (a, b) = (Arc::clone(&pipeline), Arc::clone(&world));
    std::thread::scope(|scope| {
        for n in 0..8 {
            let (pipeline, world) = (&a, &b);
            scope.spawn(move || {
                for _ in 0..2000 {
                    let request = CommitRequest { inline: n % 2 == 0, ..request() };
                    let no = pipeline.commit(request).wait().unwrap();
                    assert!(world.durable.load(Ordering::SeqCst) >= no.0, "COMMIT-2");
                }
            });
        }
    });
    assert_eq!(world.appended.lock().len(), 16_000);
}

#[test]
fn writes_in_flight_are_acknowledged_in_order() {
    let world = Arc::new(World::default());
    world.slow_us.store(500, Ordering::Relaxed);
    let settings = CommitSettings { fast_sync_us: AtomicU64::new(10), ..CommitSettings::default() };
    let pipeline = Arc::new(start(&world, settings));
    storm(&pipeline, &world, 32, 40, false);
}

#[test]
fn groups_are_padded_where_they_meet_in_flight_and_not_for_a_lone_client() {
    for (threads, padded) in [(1, false), (8, true)] {
        let world = Arc::new(World::default());
        world.slow_us.store(500, Ordering::Relaxed);
        let settings = CommitSettings { fast_sync_us: AtomicU64::new(10), ..CommitSettings::default() };
        let pipeline = Arc::new(start(&world, settings));
        storm(&pipeline, &world, threads, 40, false);
        assert_eq!(world.padded.load(Ordering::Relaxed) > 0, padded, "{threads} clients");
    }
}

#[test]
fn rotation_finds_the_log_quiet() {
    let world = Arc::new(World::default());
    world.rotate_at.store(1000, Ordering::Relaxed);
    let pipeline = Arc::new(start(&world, CommitSettings::default()));
    storm(&pipeline, &world, 16, 250, false);
    assert!(world.rotations.load(Ordering::Relaxed) >= 30);
}

#[test]
fn a_lone_committer_that_leads_still_rotates() {
    let world = Arc::new(World::default());
    world.rotate_at.store(100, Ordering::Relaxed);
    let pipeline =
        start(&world, CommitSettings { fast_sync_us: u64::MAX.into(), ..CommitSettings::default() });
    for _ in 0..100 {
        pipeline.commit(request().inline()).wait().unwrap();
    }
    assert!(pipeline.stats().inline_groups.load(Ordering::Relaxed) > 0);
    assert!(world.rotations.load(Ordering::Relaxed) >= 5);
}

#[test]
fn a_failed_write_fails_its_group_and_all_after_it() {
    let world = Arc::new(World::default());
    world.fail_write.store(50, Ordering::SeqCst);
    let pipeline = Arc::new(start(&world, CommitSettings::default()));
    let acknowledged = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                for _ in 0..200 {
                    match pipeline.commit(request()).wait() {
                        Ok(no) => acknowledged.lock().push(no.0),
                        Err(CommitError::LogFailed(reason)) => {
                            assert!(reason.contains("no space left"));
                            assert!(pipeline.commit(request()).wait().is_err(), "nothing is retried");
                            return;
                        }
                        Err(other) => panic!("{other}"),
                    }
                }
            });
        }
    });
    let durable = world.durable.load(Ordering::SeqCst);
    assert!(acknowledged.lock().iter().all(|no| *no <= durable), "COMMIT-2");
    assert!(pipeline.published().number().0 <= durable, "nothing that failed is visible");
    assert!(pipeline.wait_published(CommitNo(durable + 1)).wait().is_err());
}

#[test]
fn an_unreadable_cache_harms_nobody_else() {
    let world = Arc::new(World::default());
    let pipeline = start(&world, CommitSettings::default());
    assert_eq!(pipeline.commit(request()).wait().unwrap(), CommitNo(1));
    let bad = CommitRequest { commit_timestamp_us: u64::MAX, ..request() };
    assert!(matches!(pipeline.commit(bad).wait(), Err(CommitError::Cache(_))));
    assert_eq!(pipeline.commit(request()).wait().unwrap(), CommitNo(2), "its number is not used up");
}

#[test]
fn without_sync_commits_are_published_and_later_synced() {
    let world = Arc::new(World::default());
    let settings = CommitSettings { sync_binlog: AtomicU64::new(0), ..CommitSettings::default() };
    let begun = std::time::Instant::now();
    let pipeline = start(&world, settings);
    let no = pipeline.commit(request()).wait().unwrap();
    assert_eq!(pipeline.published().number(), no);
    let durable = pipeline.durable();
    // The threads sync by themselves every second; on a machine so slow, this says nothing.
    if begun.elapsed() < std::time::Duration::from_millis(900) {
        assert_eq!(durable, CommitNo::ZERO);
    }
    assert_eq!(pipeline.sync_all().unwrap(), no);
    assert_eq!(pipeline.durable(), no);
}

/// Waits until other threads have made `done` true.
fn wait_until(what: &str, done: impl Fn() -> bool) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(120);
    while !done() {
        assert!(std::time::Instant::now() < deadline, "never: {what}");
        std::thread::yield_now();
    }
}

#[test]
fn a_closed_pipeline_refuses() {
    let world = Arc::new(World::default());
    let pipeline = start(&world, CommitSettings::default());
    pipeline.commit(request()).wait().unwrap();
    pipeline.close();
    assert!(matches!(pipeline.commit(request()).wait(), Err(CommitError::ShuttingDown)));
}

/// A session's part under a two-phase protocol.
fn prepared(world: &World, xid: u64) -> CommitRequest {
    world.engines.prepared.lock().insert(xid);
    CommitRequest { xid: Some(xid), prepared: true, ..request() }
}

/// Runs one group during whose redo sync another transaction prepares and enrols. Returns the transactions that were in
/// the log without durable redo.
fn late_arrival(swapped: bool) -> Vec<u64> {
    let world = Arc::new(World::default());
    let settings = CommitSettings { protocol: CommitProtocol::GroupRedo, ..CommitSettings::default() };
    let pipeline = Arc::new(start(&world, settings));
    pipeline.set_redo_before_queue(swapped);
    let (late, theirs) = (Arc::new(Mutex::new(None)), world.clone());
    let (slot, other) = (late.clone(), Arc::downgrade(&pipeline));
    *world.engines.during_sync.lock() = Some(Box::new(move || {
        let other = other.upgrade().unwrap();
        *slot.lock() = Some(other.commit(prepared(&theirs, 2)));
    }));
    pipeline.commit(prepared(&world, 1)).wait().unwrap();
    let late = late.lock().take().unwrap();
    late.wait().unwrap();
    pipeline.close();
    world.engines.lost.lock().clone()
}

#[test]
fn the_queue_is_taken_before_the_redo_is_synced() {
    // RECOVER-1: whatever the log has, the engines' redo has too.
    assert_eq!(late_arrival(false), [0u64; 0]);
    // So may the first one be, if the leader's sync was over before it came.
    let lost = late_arrival(true);
    assert!(lost.contains(&2), "with the two steps swapped, a transaction is lost by a crash: {lost:?}");
}

#[test]
fn a_group_shares_one_redo_sync_and_commits_in_order() {
    let world = Arc::new(World::default());
    let settings = CommitSettings { protocol: CommitProtocol::GroupRedo, ..CommitSettings::default() };
    let pipeline = start(&world, settings);
    std::thread::scope(|scope| {
        for session in 0..16u64 {
            let (pipeline, world) = (&pipeline, &world);
            scope.spawn(move || {
                for n in 0..200 {
                    pipeline.commit(prepared(world, session * 1000 + n)).wait().unwrap();
                }
            });
        }
    });
    let committed = world.engines.committed.lock();
    assert_eq!(committed.len(), 3200);
    assert!(committed.windows(2).all(|pair| pair[0].1 < pair[1].1), "COMMIT-1: engines commit in log order");
    assert!(world.engines.syncs.load(Ordering::Relaxed) < 3200, "the redo's sync is shared");
    assert_eq!(*world.engines.lost.lock(), [0u64; 0]);
}

#[test]
fn without_ordered_commits_each_waiter_commits_its_own() {
    let world = Arc::new(World::default());
    let settings = CommitSettings {
        protocol: CommitProtocol::Group,
        order_commits: AtomicBool::new(false),
        ..CommitSettings::default()
    };
    let pipeline = start(&world, settings);
    world.engines.durable.lock().extend([7, 8]);
    let (waited, dropped) = (pipeline.commit(prepared(&world, 7)), pipeline.commit(prepared(&world, 8)));
    let no = waited.wait().unwrap();
    assert!(world.engines.committed.lock().contains(&(7, no.0)));
    drop(dropped);
    pipeline.close();
    assert_eq!(world.engines.committed.lock().len(), 2, "also that of a session that is gone");
}

#[test]
fn what_does_not_get_into_the_log_is_rolled_back_in_the_engines() {
    let world = Arc::new(World::default());
    let settings = CommitSettings { protocol: CommitProtocol::GroupRedo, ..CommitSettings::default() };
    let pipeline = start(&world, settings);
    let bad = CommitRequest { commit_timestamp_us: u64::MAX, ..prepared(&world, 5) };
    assert!(matches!(pipeline.commit(bad).wait(), Err(CommitError::Cache(_))));
    assert_eq!(*world.engines.rolled_back.lock(), [5]);
    pipeline.close();
    assert!(pipeline.commit(prepared(&world, 6)).wait().is_err());
    assert_eq!(*world.engines.rolled_back.lock(), [5, 6]);
}
