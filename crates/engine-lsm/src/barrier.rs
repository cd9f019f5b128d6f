//! The barrier between flushes, loads and the compactor (`compaction`).

use parking_lot::{Condvar, Mutex};

/// Keeps new tables out of the tree between the compactor's look at the watermark and its choice of
/// input. Closed by the compactor, opened by the filter factory, which the tree calls once it has
/// chosen and before it merges.
#[derive(Default)]
pub(crate) struct TableBarrier {
    closed: Mutex<bool>,
    opened: Condvar,
}

impl TableBarrier {
    pub(crate) fn close(&self) {
        *self.closed.lock() = true;
    }

    pub(crate) fn open(&self) {
        *self.closed.lock() = false;
        self.opened.notify_all();
    }

    /// Runs `register` while the barrier is open, and keeps it open meanwhile. The tree calls the
    /// factory only while the barrier is closed, so its locks are never wanted in two orders.
    pub(crate) fn register<T>(&self, register: impl FnOnce() -> T) -> T {
        let mut closed = self.closed.lock();
        while *closed {
            self.opened.wait(&mut closed);
        }
        register()
    }
}
