//! SEMI-1: groups that wait behind the gate.

use super::*;
use crate::Gate;

fn end_of(n: u64) -> LogPosition {
    LogPosition::new(FileSeq(1), n * 10)
}

/// `n` transactions that are durable and held.
fn held(pipeline: &Pipeline<Test>, world: &World, n: u64) -> Vec<crate::Ticket> {
    let first = world.durable.load(Ordering::SeqCst);
    let mut tickets = Vec::new();
    for done in 1..=n {
        tickets.push(pipeline.commit(request()));
        // One group each: the next only once this one is durable.
        wait_until("it is durable", || world.durable.load(Ordering::SeqCst) >= first + done);
    }
    tickets
}

#[test]
fn what_is_not_synced_does_not_overtake_what_is_held() {
    let world = Arc::new(World::default());
    let pipeline = start(&world, CommitSettings::default());
    pipeline.set_gate(Gate::AfterSync);
    let before = held(&pipeline, &world, 1).remove(0);
    pipeline.settings().sync_binlog.store(0, Ordering::Relaxed);
    let behind = pipeline.commit(request());
    wait_until("its group is written", || {
        world.writes.load(Ordering::SeqCst) == 2 && pipeline.in_flight() == 0
    });
    assert_eq!(pipeline.published().number(), CommitNo(0), "SEMI-1: what is let go keeps its order");
    assert!(behind.poll_now().is_none());
    // No replica is ever sent what is not durable, so that nothing would let it go.
    assert_eq!(pipeline.release(end_of(1)).transactions, 2);
    assert!([before, behind].iter().all(|ticket| ticket.poll_now().is_some()));
    assert_eq!(pipeline.commit(request()).wait().unwrap(), CommitNo(3), "with nothing held there is no wait");
}

#[test]
fn what_replicas_are_never_sent_waits_for_none_but_keeps_its_place() {
    let world = Arc::new(World::default());
    let pipeline = start(&world, CommitSettings::default());
    let private = || CommitRequest { logged: false, ..request() };
    for gate in [Gate::AfterSync, Gate::AfterCommit] {
        pipeline.set_gate(gate);
        pipeline.commit(private()).wait().unwrap();
        let before = held(&pipeline, &world, 1).remove(0);
        let groups = world.writes.load(Ordering::SeqCst);
        let behind = pipeline.commit(private());
        wait_until("its group is written", || {
            world.writes.load(Ordering::SeqCst) > groups && pipeline.in_flight() == 0
        });
        assert!(behind.poll_now().is_none(), "SEMI-1: what is let go keeps its order");
        let first = world.durable.load(Ordering::SeqCst) - 1;
        assert_eq!(pipeline.release(end_of(first)).transactions, 2);
        assert!([before, behind].iter().all(|ticket| ticket.poll_now().is_some()));
    }
}

#[test]
fn publishing_only_grows_however_the_gate_moves() {
    // COMMIT-1: many committers, and a gate that opens and closes under them.
    let world = Arc::new(World::default());
    let settings = CommitSettings { sync_binlog: AtomicU64::new(2), ..CommitSettings::default() };
    let pipeline = Arc::new(start(&world, settings));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let committers: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..300 {
                        let no = pipeline.commit(request()).wait().unwrap();
                        assert!(pipeline.published().number() >= no, "a session sees its own commit");
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            let mut last = CommitNo::ZERO;
            while !done.load(Ordering::SeqCst) {
                let (number, position) = pipeline.published().place();
                assert_eq!(position, end_of(number.0), "number and position are of one moment");
                assert!(number >= last, "published went from {last} back to {number}");
                last = number;
            }
        });
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                for gate in [Gate::AfterSync, Gate::AfterCommit, Gate::Open] {
                    pipeline.set_gate(gate);
                    std::thread::yield_now();
                }
            }
        });
        for committer in committers {
            committer.join().unwrap();
        }
        done.store(true, Ordering::SeqCst);
    });
}

#[test]
fn after_sync_nothing_is_seen_or_told_before_its_release_and_order_is_kept() {
    let world = Arc::new(World::default());
    let pipeline = start(&world, CommitSettings::default());
    pipeline.set_gate(Gate::AfterSync);
    let tickets = held(&pipeline, &world, 3);
    let reader = pipeline.wait_published(CommitNo(2));
    assert_eq!(pipeline.published().number(), CommitNo(0));
    assert!(tickets.iter().all(|ticket| ticket.poll_now().is_none()));
    assert!(reader.poll_now().is_none(), "who read a version that no replica has waits as well");
    assert_eq!(pipeline.held().unwrap().1, 3);
    let released = pipeline.release(end_of(2));
    assert_eq!((released.transactions, pipeline.published().number()), (2, CommitNo(2)));
    assert!(
        reader.poll_now().is_some() && tickets[1].poll_now().is_some() && tickets[2].poll_now().is_none()
    );
    assert_eq!(pipeline.release(end_of(2)).transactions, 0);
    assert_eq!(pipeline.set_gate(Gate::Open).transactions, 1, "opened, it lets all go");
    assert_eq!(tickets[2].poll_now().unwrap().unwrap(), CommitNo(3));
    assert_eq!(pipeline.commit(request()).wait().unwrap(), CommitNo(4));
}

#[test]
fn after_commit_it_is_seen_and_not_told_but_never_before_an_earlier_one() {
    let world = Arc::new(World::default());
    let pipeline = start(&world, CommitSettings::default());
    pipeline.set_gate(Gate::AfterCommit);
    let told_later = held(&pipeline, &world, 1).remove(0);
    pipeline.wait_published(CommitNo(1)).wait().unwrap();
    assert_eq!(pipeline.published().number(), CommitNo(1));
    assert!(told_later.poll_now().is_none());
    pipeline.set_gate(Gate::AfterSync);
    let unseen = held(&pipeline, &world, 1).remove(0);
    pipeline.set_gate(Gate::AfterCommit);
    let behind = held(&pipeline, &world, 1).remove(0);
    assert_eq!(pipeline.published().number(), CommitNo(1), "the third may not be seen before the second");
    pipeline.release(end_of(3));
    assert_eq!(pipeline.published().number(), CommitNo(3));
    assert!([told_later, unseen, behind].iter().all(|ticket| ticket.poll_now().is_some()));
}

#[test]
fn closing_and_rotating_do_not_leave_anyone_behind() {
    let world = Arc::new(World::default());
    let pipeline = Arc::new(start(&world, CommitSettings::default()));
    pipeline.set_gate(Gate::AfterSync);
    let ticket = held(&pipeline, &world, 1).remove(0);
    let rotating = {
        let pipeline = pipeline.clone();
        std::thread::spawn(move || pipeline.rotate())
    };
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(
        world.rotations.load(Ordering::SeqCst),
        0,
        "positions of what is held would be wrong behind it"
    );
    pipeline.release(end_of(1));
    rotating.join().unwrap().unwrap();
    assert_eq!(ticket.wait().unwrap(), CommitNo(1));
    let last = held(&pipeline, &world, 1).remove(0);
    pipeline.close();
    assert_eq!(last.wait().unwrap(), CommitNo(2), "durable, and nobody will acknowledge it");
}

#[test]
fn a_gate_that_is_closed_while_the_pipeline_ends_holds_nobody() {
    for _ in 0..100 {
        let world = Arc::new(World::default());
        let pipeline = start(&world, CommitSettings::default());
        let tickets: Vec<_> = (0..4).map(|_| pipeline.commit(request())).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| pipeline.set_gate(Gate::AfterSync));
            assert!(pipeline.close().is_some(), "it waits for nobody");
        });
        assert!(
            tickets.iter().all(|ticket| ticket.poll_now().is_some()),
            "SEMI-1: everybody is told at the end"
        );
    }
}
