//! Wakes the engine's threads and the threads that wait for them. Only the sealing of a memtable is on the commit path.

use crate::io_error;
use omnibus_engine::EngineError;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Requests to the threads, and news from them.
#[derive(Default)]
pub(crate) struct Signals {
    stop: Arc<AtomicBool>,
    state: Mutex<Asked>,
    flush: Condvar,
    compact: Condvar,
    progress: Condvar,
}

#[derive(Default)]
struct Asked {
    flush: bool,
    compact: bool,
}

impl Signals {
    pub(crate) fn stopping(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    pub(crate) fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        let _state = self.state.lock();
        self.flush.notify_all();
        self.compact.notify_all();
        self.progress.notify_all();
    }

    pub(crate) fn ask_flush(&self) {
        self.state.lock().flush = true;
        self.flush.notify_one();
    }

    pub(crate) fn ask_compaction(&self) {
        self.state.lock().compact = true;
        self.compact.notify_one();
    }

    /// Signals that tables changed; waiting threads check their condition again.
    pub(crate) fn flushed(&self) {
        self.state.lock().compact = true;
        self.compact.notify_one();
        self.progress.notify_all();
    }

    /// Until asked; with something in the queue no longer than `poll`.
    pub(crate) fn wait_for_flush(&self, poll: Duration, idle: bool) {
        let mut state = self.state.lock();
        if !std::mem::take(&mut state.flush) && !self.stopping() {
            let longest = if idle { Duration::from_secs(1) } else { poll };
            self.flush.wait_for(&mut state, longest);
            state.flush = false;
        }
    }

    /// Until asked or for `poll`; false if the thread is to end.
    pub(crate) fn wait_for_compaction(&self, poll: Duration) -> bool {
        let mut state = self.state.lock();
        if !state.compact && !self.stopping() {
            self.compact.wait_for(&mut state, poll);
        }
        state.compact = false;
        !self.stopping()
    }

    /// Blocks until `look` has an answer, or the engine closes.
    pub(crate) fn wait_until(
        &self,
        look: impl Fn() -> Option<Result<(), EngineError>>,
    ) -> Result<(), EngineError> {
        let mut state = self.state.lock();
        loop {
            if let Some(answer) = look() {
                return answer;
            }
            if self.stopping() {
                return Err(io_error(std::io::Error::other("the engine is closing")));
            }
            self.progress.wait(&mut state);
        }
    }
}
