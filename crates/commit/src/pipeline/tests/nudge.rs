//! Transactions for which a leader is called when their threads have nothing else to do.

use super::*;
use crate::Ticket;
use crate::pipeline::threads::THREADS;

fn later(us: u64) -> CommitRequest {
    CommitRequest { later: true, commit_timestamp_us: us, ..request() }
}

/// Once nobody looks at the queue by himself.
fn quiet(pipeline: &Pipeline<Test>) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while pipeline.shared.idle.sleeping() < THREADS {
        assert!(std::time::Instant::now() < deadline, "log threads do not go to sleep");
        std::thread::yield_now();
    }
}

fn groups(pipeline: &Pipeline<Test>, tickets: Vec<Ticket>) -> u64 {
    for ticket in tickets {
        ticket.wait().unwrap();
    }
    pipeline.stats().groups.load(Ordering::Relaxed)
}

#[test]
fn those_who_enrol_before_a_nudge_are_one_group() {
    let world = Arc::new(World::default());
    let pipeline = start(&world, CommitSettings::default());
    pipeline.will_nudge();
    for round in 1..=20 {
        quiet(&pipeline);
        let tickets: Vec<_> = (0..5).map(|_| pipeline.commit(later(0))).collect();
        pipeline.nudge();
        // A thread that looks around once a second may have come by.
        assert!(groups(&pipeline, tickets) <= round + 1);
        assert_eq!(world.durable.load(Ordering::SeqCst), 5 * round);
    }
}

#[test]
fn a_nudge_comes_too_late_for_nobody() {
    // Whoever waits longer than a thread may be busy is called for; a thread that nobody nudges for calls by itself.
    let world = Arc::new(World::default());
    let pipeline = start(&world, CommitSettings::default());
    let unknown = pipeline.commit(later(0));
    assert_eq!(unknown.wait().unwrap(), CommitNo(1));
    pipeline.will_nudge();
    quiet(&pipeline);
    let ticket = pipeline.commit(later(1000));
    pipeline.nudge_if_overdue(1010);
    pipeline.nudge_if_overdue(1200);
    assert_eq!(ticket.wait().unwrap(), CommitNo(2));
    quiet(&pipeline);
    let many: Vec<_> = (0..100).map(|_| pipeline.commit(later(0))).collect();
    let last = many.into_iter().next_back().unwrap();
    pipeline.nudge();
    assert_eq!(last.wait().unwrap(), CommitNo(102));
}
