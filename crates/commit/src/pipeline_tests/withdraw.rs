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
    let (second, third) = (pipeline.commit(request()), pipeline.commit(request()));
    assert!(!first.withdraw(), "it is under way");
    assert!(second.withdraw(), "it waits for a place");
    assert!(!second.withdraw(), "once is enough");
    world.stuck_write.store(0, Ordering::SeqCst);
    assert_eq!(first.wait().unwrap(), CommitNo(1));
    assert!(matches!(second.wait(), Err(CommitError::Withdrawn)));
    assert_eq!(third.wait().unwrap(), CommitNo(2), "nothing of the one before is anywhere");
    assert_eq!((&*world.appended.lock(), &*world.installed.lock()), (&vec![1, 2], &vec![1, 2]));
}
