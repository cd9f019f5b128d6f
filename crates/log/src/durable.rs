//! State that the writer, its jobs and the readers share: the durable end, the poison, the buffers.

use crate::buffer::BufferPool;
use crate::error::{IoFailure, WriteError};
use crate::position::LogPosition;
use crate::recent::Recent;
use crate::space::DiskRoom;
use omnibus_disk::FullDisk;
use omnibus_sync::{Condvar, Mutex};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The position up to which the log is durable, and a way to wait for it to move. Readers stop here (COMMIT-2).
///
/// Cheap to clone. The commit pipeline advances it once per group, which is one uncontended lock; a pair of atomics
/// could show a reader the file of one position with the offset of another.
#[derive(Clone, Debug)]
pub struct DurableEnd {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    position: Mutex<LogPosition>,
    moved: Condvar,
    waiters: AtomicUsize,
}

impl DurableEnd {
    pub(crate) fn new(position: LogPosition) -> DurableEnd {
        let inner =
            Inner { position: Mutex::new(position), moved: Condvar::new(), waiters: AtomicUsize::new(0) };
        DurableEnd { inner: Arc::new(inner) }
    }

    /// The durable end now.
    #[must_use]
    pub fn get(&self) -> LogPosition {
        *self.inner.position.lock()
    }

    /// Moves the end forward; has no effect if `to` is not ahead of it.
    pub fn advance(&self, to: LogPosition) {
        let mut position = self.inner.position.lock();
        if to > *position {
            *position = to;
            drop(position);
            if self.inner.waiters.load(Ordering::SeqCst) > 0 {
                self.inner.moved.notify_all();
            }
        }
    }

    /// Moves the end to the start of a log that begins anew, whose file number may be lower.
    pub(crate) fn restart(&self, to: LogPosition) {
        *self.inner.position.lock() = to;
        self.inner.moved.notify_all();
    }

    /// Waits until the end is past `position`, or until `timeout` has elapsed. Returns the end. For threads that may
    /// block, such as a dump thread.
    #[must_use]
    pub fn wait_past(&self, position: LogPosition, timeout: Duration) -> LogPosition {
        let deadline = Instant::now() + timeout;
        self.inner.waiters.fetch_add(1, Ordering::SeqCst);
        let mut end = self.inner.position.lock();
        while *end <= position {
            if self.inner.moved.wait_until(&mut end, deadline).timed_out() {
                break;
            }
        }
        let end = *end;
        self.inner.waiters.fetch_sub(1, Ordering::SeqCst);
        end
    }
}

/// The first failure of a write or sync. Only reopening the log clears it.
#[derive(Debug, Default)]
pub(crate) struct Poison {
    cause: OnceLock<WriteError>,
}

impl Poison {
    /// Returns the failure if the log is poisoned.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), WriteError> {
        self.cause.get().map_or(Ok(()), |cause| Err(cause.clone()))
    }

    /// Poisons the log and returns the error that every caller gets: the first cause.
    pub(crate) fn set(&self, failure: IoFailure) -> WriteError {
        self.cause.get_or_init(|| WriteError(Arc::new(failure))).clone()
    }
}

/// State that the writer and its jobs share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) pool: BufferPool,
    pub(crate) poison: Poison,
    pub(crate) durable: DurableEnd,
    pub(crate) recent: Arc<Recent>,
    pub(crate) space: DiskRoom,
    idle: Mutex<()>,
    done: Condvar,
    waiting: AtomicBool,
}

impl Shared {
    pub(crate) fn new(durable: DurableEnd, full_disk: Arc<FullDisk>) -> Shared {
        Shared {
            space: DiskRoom::new(full_disk),
            pool: BufferPool::default(),
            poison: Poison::default(),
            durable,
            recent: Arc::default(),
            idle: Mutex::new(()),
            done: Condvar::new(),
            waiting: AtomicBool::new(false),
        }
    }

    /// Called by each job at its end.
    pub(crate) fn job_done(&self) {
        if self.waiting.load(Ordering::SeqCst) {
            let _idle = self.idle.lock();
            self.done.notify_all();
        }
    }

    /// Waits until `outstanding` is zero. One waiter at a time: the owner of the writer.
    pub(crate) fn wait_idle(&self, outstanding: &AtomicUsize) {
        let mut idle = self.idle.lock();
        self.waiting.store(true, Ordering::SeqCst);
        while outstanding.load(Ordering::SeqCst) > 0 {
            self.done.wait(&mut idle);
        }
        self.waiting.store(false, Ordering::SeqCst);
    }
}
