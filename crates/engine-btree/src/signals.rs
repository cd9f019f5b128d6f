//! Wakes the writer thread, and the threads that wait for it.

use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const LOOK: Duration = Duration::from_millis(50);

#[derive(Default)]
pub(crate) struct Signals {
    stop: AtomicBool,
    asked: AtomicBool,
    lock: Mutex<()>,
    work: Condvar,
    progress: Condvar,
}

impl Signals {
    pub(crate) fn stopping(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        let _lock = self.lock.lock();
        self.work.notify_all();
        self.progress.notify_all();
    }

    /// There is something to do. Cheap if that is known already.
    pub(crate) fn ask(&self) {
        if !self.asked.swap(true, Ordering::AcqRel) {
            let _lock = self.lock.lock();
            self.work.notify_one();
        }
    }

    /// The thread begins to look: what is asked from now on is asked anew.
    pub(crate) fn look(&self) {
        self.asked.store(false, Ordering::Release);
    }

    /// Until asked or for so long.
    pub(crate) fn wait_for_work(&self, longest: Duration) {
        let mut lock = self.lock.lock();
        if !self.asked.load(Ordering::Acquire) && !self.stopping() {
            self.work.wait_for(&mut lock, longest);
        }
    }

    /// Something was written.
    pub(crate) fn progressed(&self) {
        let _lock = self.lock.lock();
        self.progress.notify_all();
    }

    /// Blocks until `done` gives something. A disk that has become full is seen a little later.
    pub(crate) fn wait_until<T>(&self, mut done: impl FnMut() -> Option<T>) -> T {
        let mut lock = self.lock.lock();
        loop {
            if let Some(result) = done() {
                return result;
            }
            self.progress.wait_for(&mut lock, LOOK);
        }
    }
}
