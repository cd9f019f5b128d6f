//! Commits that meet work with exclusive use of the log.

use super::*;
use std::time::{Duration, Instant};

/// Returns the shortest duration of a commit that arrives during `quiet`, on a thread that leads no group and writes to
/// an idle log.
fn commit_during(quiet: impl Fn(&Pipeline<Test>) + Sync) -> Duration {
    let world = Arc::new(World::default());
    world.slow_us.store(50_000, Ordering::Relaxed);
    let settings = CommitSettings { fast_sync_us: AtomicU64::new(1_000_000), ..CommitSettings::default() };
    let pipeline = start(&world, settings);
    pipeline.commit(request()).wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut took = Vec::new();
    while took.len() < 4 {
        assert!(Instant::now() < deadline, "no commit came in time");
        if pipeline.awake() > 0 {
            std::thread::yield_now();
            continue;
        }
        std::thread::scope(|scope| {
            let other = scope.spawn(|| quiet(&pipeline));
            while pipeline.in_flight() == 0 {
                if other.is_finished() {
                    return; // On a busy machine this thread may miss it.
                }
                std::thread::yield_now();
            }
            let started = Instant::now();
            pipeline.commit(request()).wait().unwrap();
            took.push(started.elapsed());
        });
    }
    took.into_iter().min().unwrap()
}

#[test]
fn who_comes_while_the_log_is_kept_quiet_is_not_left_to_a_clock() {
    // Whoever finds a write in flight calls nobody: the one who wrote must. Otherwise the log threads find out when they
    // look around, once a second.
    let quiet = commit_during(|pipeline| pipeline.with_quiet_log(|_, _| ()).unwrap());
    let rotation = commit_during(|pipeline| pipeline.rotate().unwrap());
    assert!(quiet.max(rotation) < Duration::from_millis(500), "commits took {quiet:?} and {rotation:?}");
}

/// Locks that another session waits for are released while no write can start: the next session gets into the same
/// group.
#[test]
fn who_is_waited_for_has_its_place_while_a_write_is_in_flight() {
    for protocol in [CommitProtocol::OneSync, CommitProtocol::GroupRedo] {
        let world = Arc::new(World::default());
        let settings =
            CommitSettings { fast_sync_us: AtomicU64::new(u64::MAX), protocol, ..CommitSettings::default() };
        let pipeline = start(&world, settings);
        world.stuck_write.store(1, Ordering::SeqCst);
        let first = pipeline.commit(request());
        wait_until("its write is under way", || pipeline.in_flight() == 1);
        let placed = Arc::new(AtomicU64::new(0));
        let tickets: Vec<_> = (0..3)
            .map(|_| {
                let counted = placed.clone();
                let on_ordered = Box::new(move |_| {
                    counted.fetch_add(1, Ordering::SeqCst);
                });
                let awaited = CommitRequest { awaited: true, on_ordered: Some(on_ordered), ..request() };
                let before = placed.load(Ordering::SeqCst);
                let ticket = pipeline.commit(awaited);
                wait_until("it has its place", || placed.load(Ordering::SeqCst) > before);
                ticket
            })
            .collect();
        assert!(tickets.iter().all(|ticket| ticket.poll_now().is_none()), "COMMIT-2: none is told");
        world.stuck_write.store(0, Ordering::SeqCst);
        for ticket in tickets {
            ticket.wait().unwrap();
        }
        first.wait().unwrap();
        assert_eq!(world.writes.load(Ordering::SeqCst), 2, "all of them share the next write");
    }
}

/// On a device that takes one write at a time one thread leads, however many transactions arrive; more threads would
/// only take turns.
#[test]
fn one_thread_leads_where_one_write_is_in_flight() {
    let world = Arc::new(World::default());
    let settings = CommitSettings { fast_sync_us: AtomicU64::new(u64::MAX), ..CommitSettings::default() };
    let pipeline = start(&world, settings);
    wait_until("all sleep", || pipeline.awake() == 0);
    world.stuck_write.store(1, Ordering::SeqCst);
    let mut tickets = vec![pipeline.commit(request())];
    wait_until("its write is under way", || pipeline.in_flight() == 1);
    tickets.extend((0..100).map(|_| pipeline.commit(request())));
    assert_eq!(pipeline.awake(), 1);
    world.stuck_write.store(0, Ordering::SeqCst);
    for ticket in tickets {
        ticket.wait().unwrap();
    }
    assert_eq!(world.writes.load(Ordering::SeqCst), 2, "all of them share the next write");
}

/// A group that shares a block with one in flight waits asleep until that is acknowledged.
#[test]
fn who_may_not_seal_yet_does_not_ask_again_and_again() {
    let world = Arc::new(World::default());
    let settings = CommitSettings { fast_sync_us: AtomicU64::new(0), ..CommitSettings::default() };
    settings.max_in_flight.store(4, Ordering::Relaxed);
    let pipeline = start(&world, settings);
    // A first measure of the device, without which writes go one by one.
    pipeline.sync_all().unwrap();
    pipeline.commit(request()).wait().unwrap();
    world.overlapping.store(true, Ordering::SeqCst);
    world.stuck_write.store(world.writes.load(Ordering::SeqCst) + 1, Ordering::SeqCst);
    let first = pipeline.commit(request());
    wait_until("its write is under way", || pipeline.in_flight() == 1);
    let second = pipeline.commit(request());
    wait_until("it was refused", || world.overlaps_asked.load(Ordering::SeqCst) > 0);
    std::thread::sleep(Duration::from_millis(50));
    let asked = world.overlaps_asked.load(Ordering::SeqCst);
    world.stuck_write.store(0, Ordering::SeqCst);
    first.wait().unwrap();
    second.wait().unwrap();
    assert!(asked < 100, "asked {asked} times in 50 ms");
}
