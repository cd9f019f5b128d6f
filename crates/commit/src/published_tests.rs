//! SNAP-1: snapshots, and the versions that may be discarded. Every interleaving of it: `crate::interleavings`.

use crate::LogPosition;
use crate::published::Published;
use omnibus_engine::CommitNo;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

fn at(number: u64) -> LogPosition {
    LogPosition::new(omnibus_log::FileSeq::FIRST, number * 100)
}

#[test]
fn snapshots_are_one_number_and_stay_readable_until_released() {
    // SNAP-1: what a snapshot sees is fixed when it is taken, whatever is published afterwards.
    let published = Arc::new(Published::new(CommitNo(5), at(5)));
    let mut first = published.reader();
    let mut second = published.reader();
    assert_eq!(first.take(), CommitNo(5));
    published.publish(CommitNo(7), at(7));
    assert_eq!(second.take_with_position(), (CommitNo(7), at(7)));
    published.publish(CommitNo(9), at(9));
    assert_eq!(published.oldest(), Some(CommitNo(5)), "the first snapshot may still read 5");
    first.release();
    assert_eq!(published.oldest(), Some(CommitNo(7)));
    drop(second);
    assert_eq!(published.oldest(), Some(CommitNo(9)));
}

#[test]
fn a_snapshot_may_be_ahead_of_what_is_published() {
    // SNAP-3: who was given a lock by commit 8 sees it, published or not; nobody else does.
    let published = Arc::new(Published::new(CommitNo(7), at(7)));
    let (mut given, mut other) = (published.reader(), published.reader());
    assert_eq!(given.take_at_least(CommitNo(8)), CommitNo(8));
    assert_eq!(other.take(), CommitNo(7));
    assert_eq!(published.oldest(), Some(CommitNo(7)));
    other.release();
    published.publish(CommitNo(10), at(10));
    assert_eq!(published.oldest(), Some(CommitNo(8)));
    assert_eq!(other.take_at_least(CommitNo(9)), CommitNo(10), "what is published is more");
}

#[test]
fn nothing_that_a_snapshot_reads_is_ever_given_up() {
    // SNAP-1 under races: an engine that collects below `oldest` never overtakes a snapshot.
    let published = Arc::new(Published::new(CommitNo(1), at(1)));
    let collected = AtomicU64::new(0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut reader = published.reader();
                while !done.load(Ordering::SeqCst) {
                    let (number, position) = reader.take_with_position();
                    assert_eq!(position, at(number.0), "number and position are of one moment");
                    assert!(collected.load(Ordering::SeqCst) <= number.0, "collected what {number:?} reads");
                    let number = reader.take();
                    assert!(collected.load(Ordering::SeqCst) <= number.0, "collected what {number:?} reads");
                    reader.release();
                }
            });
        }
        for number in 2..20_000 {
            published.publish(CommitNo(number), at(number));
            if let Some(oldest) = published.oldest() {
                collected.store(oldest.0, Ordering::SeqCst);
            }
        }
        done.store(true, Ordering::SeqCst);
    });
}
