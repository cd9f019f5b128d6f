//! Transactions that their sessions take back.

use super::*;

#[test]
fn what_has_no_place_in_the_log_can_be_withdrawn_and_nothing_else() {
    // COMMIT-4
    let world = Arc::new(World::default());
    let settings = CommitSettings { fast_sync_us: AtomicU64::new(u64::MAX), ..CommitSettings::default() };
    let pipeline = start(&world, settings);
    world.stuck_write.store(1, Ordering::SeqCst);
    let first = pipeline.commit(request());
    wait_until("its write is under way", || pipeline.in_flight() == 1);
    world.no_room.store(true, Ordering::SeqCst);
    let (second, third) = (pipeline.commit(request()), pipeline.commit(request()));
    let awaited = pipeline.commit(CommitRequest { awaited: true, ..request() });
    assert!(!pipeline.lead(), "no thread empties the queue while the write may take for ever");
    assert!(awaited.withdraw(), "not even for one whose locks others wait for");
    assert!(!first.withdraw(), "it is under way");
    assert!(second.withdraw(), "it waits for a place");
    assert!(!second.withdraw(), "once is enough");
    world.no_room.store(false, Ordering::SeqCst);
    world.stuck_write.store(0, Ordering::SeqCst);
    assert_eq!(first.wait().unwrap(), CommitNo(1));
    for withdrawn in [second, awaited] {
        assert!(matches!(withdrawn.wait(), Err(CommitError::Withdrawn)));
    }
    assert_eq!(third.wait().unwrap(), CommitNo(2), "nothing of the one before is anywhere");
    assert_eq!((&*world.appended.lock(), &*world.installed.lock()), (&vec![1, 2], &vec![1, 2]));
}

#[test]
fn what_is_withdrawn_holds_nothing_while_no_leader_comes() {
    // COMMIT-4
    let world = Arc::new(World::default());
    let pipeline = start(&world, CommitSettings::default());
    let held = Arc::new(());
    let callback = held.clone();
    let on_ordered: crate::OnOrdered = Box::new(move |_| drop(callback));
    let prepared = CommitRequest { xid: Some(7), prepared: true, on_ordered: Some(on_ordered), ..request() };
    // The flush lock is held: the queue is stuck.
    let (before, withdrawn, after, rolled_back, tickets) = pipeline
        .with_quiet_log(|_, _| {
            let (first, second) = (pipeline.commit(prepared), pipeline.commit(request()));
            let before = Arc::strong_count(&held);
            let withdrawn = first.withdraw();
            let rolled_back = world.engines.rolled_back.lock().clone();
            (before, withdrawn, Arc::strong_count(&held), rolled_back, (first, second))
        })
        .unwrap();
    assert_eq!((before, withdrawn, after), (2, true, 1), "its callbacks, and with them its locks, are gone");
    assert_eq!(rolled_back, [7], "engines do not hold it prepared");
    assert_eq!(tickets.1.wait().unwrap(), CommitNo(1), "nothing of it is anywhere");
    assert!(matches!(tickets.0.wait(), Err(CommitError::Withdrawn)));
    assert_eq!(*world.engines.rolled_back.lock(), [7], "once");
    assert_eq!((&*world.appended.lock(), &*world.installed.lock()), (&vec![1], &vec![1]));
}
