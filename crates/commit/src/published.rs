//! Published state: the commit number up to which everyone may see, and the older numbers that snapshots hold.
//!
//! Reading is lock-free (SNAP-1: a snapshot is one number, the same in every engine). A reader announces the number
//! that it uses in a slot of its own, so that engines keep the versions that it may still read.

use super::sync::Mutex;
use super::sync::atomic::{AtomicU64, Ordering};
use crate::LogPosition;
use omnibus_engine::CommitNo;
use omnibus_log::mutant::{self, Mutant};
use std::sync::Arc;

/// The slot's value without a snapshot.
const IDLE: u64 = u64::MAX;
/// The slot's value while a reader is choosing its number: engines must keep everything meanwhile.
const CHOOSING: u64 = 0;

/// The published state of a server.
#[derive(Debug)]
pub struct Published {
    number: AtomicU64,
    /// Number and log position, which must be read together.
    place: Mutex<(CommitNo, LogPosition)>,
    slots: Mutex<Vec<Arc<AtomicU64>>>,
}

/// A session's means of taking snapshots, one at a time.
#[derive(Debug)]
pub struct SnapshotReader {
    published: Arc<Published>,
    slot: Arc<AtomicU64>,
}

/// A session's snapshot as others see it.
#[derive(Clone, Debug)]
pub struct SnapshotWatch(Arc<AtomicU64>);

impl Default for SnapshotWatch {
    fn default() -> SnapshotWatch {
        SnapshotWatch(Arc::new(AtomicU64::new(IDLE)))
    }
}

impl SnapshotWatch {
    /// The number that is held readable now, if there is one. One that is just being chosen does not count.
    #[must_use]
    pub fn number(&self) -> Option<CommitNo> {
        match self.0.load(Ordering::SeqCst) {
            IDLE | CHOOSING => None,
            number => Some(CommitNo(number)),
        }
    }
}

impl Published {
    /// Creates the state in which everything up to `number`, whose last event ends at `position`, is visible.
    #[must_use]
    pub fn new(number: CommitNo, position: LogPosition) -> Published {
        Published {
            number: AtomicU64::new(number.0),
            place: Mutex::new((number, position)),
            slots: Mutex::new(Vec::new()),
        }
    }

    /// The newest published commit number.
    #[must_use]
    pub fn number(&self) -> CommitNo {
        CommitNo(self.number.load(Ordering::SeqCst))
    }

    /// The newest published number with the log position behind it.
    #[must_use]
    pub fn place(&self) -> (CommitNo, LogPosition) {
        *self.place.lock()
    }

    /// Publishes up to `number`, which only grows. Called by the commit stage, under the order lock.
    pub(crate) fn publish(&self, number: CommitNo, position: LogPosition) {
        let mut place = self.place.lock();
        if mutant::is(Mutant::PublishBackwards) {
            *place = (number, position);
            return self.number.store(number.0, Ordering::SeqCst);
        }
        assert!(number >= place.0, "COMMIT-1: publishing goes forward");
        *place = (number, position);
        self.number.store(number.0, Ordering::SeqCst);
    }

    /// Records that the log continues in another file, so that the same number is now at another position. Called with
    /// nothing in flight.
    pub(crate) fn moved(&self, position: LogPosition) {
        self.place.lock().1 = position;
    }

    /// Creates a reader, one per session.
    #[must_use]
    pub fn reader(self: &Arc<Self>) -> SnapshotReader {
        let slot = Arc::new(AtomicU64::new(IDLE));
        self.slots.lock().push(slot.clone());
        SnapshotReader { published: self.clone(), slot }
    }

    /// The oldest number that a snapshot may still read. `None` while a reader is choosing.
    #[must_use]
    pub fn oldest(&self) -> Option<CommitNo> {
        // Published first: a reader that chooses after this load gets this number or a later one.
        let mut oldest = self.number.load(Ordering::SeqCst);
        for slot in self.slots.lock().iter() {
            match slot.load(Ordering::SeqCst) {
                CHOOSING => return None,
                number => oldest = oldest.min(number),
            }
        }
        Some(CommitNo(oldest))
    }
}

impl SnapshotReader {
    /// Takes a snapshot, replacing the one held; its number stays readable until `release`.
    pub fn take(&mut self) -> CommitNo {
        self.take_at_least(CommitNo::ZERO)
    }

    /// As `take`, but the snapshot includes everything up to `at_least` even if that is not published yet. It must be
    /// installed in all engines: a session that was given a lock sees the commits of the former holder (SNAP-3), and
    /// its reply waits until they are published (SESSION-1).
    pub fn take_at_least(&mut self, at_least: CommitNo) -> CommitNo {
        self.slot.store(CHOOSING, Ordering::SeqCst);
        let number = self.published.number().max(at_least);
        self.slot.store(number.0.max(1), Ordering::SeqCst);
        number
    }

    /// As `take`, with the log position of exactly this snapshot.
    pub fn take_with_position(&mut self) -> (CommitNo, LogPosition) {
        self.slot.store(CHOOSING, Ordering::SeqCst);
        let (number, position) = self.published.place();
        self.slot.store(number.0.max(1), Ordering::SeqCst);
        (number, position)
    }

    /// A view of the snapshot for other threads.
    #[must_use]
    pub fn watch(&self) -> SnapshotWatch {
        SnapshotWatch(self.slot.clone())
    }

    /// Releases the snapshot held, if any.
    pub fn release(&mut self) {
        self.slot.store(IDLE, Ordering::SeqCst);
    }
}

impl Drop for SnapshotReader {
    fn drop(&mut self) {
        let mut slots = self.published.slots.lock();
        slots.retain(|slot| !Arc::ptr_eq(slot, &self.slot));
    }
}
