//! Keeps sockets and signals served while a worker thread is held up by the disk.
//!
//! A session that commits alone writes the log itself, on its worker. If that is the worker which polled for events last, and the
//! write takes long (a full disk, a device that hangs), no other worker knows that it should poll now: nobody could connect,
//! and SIGTERM would be for nothing. A task from outside wakes one that sleeps, and it polls before it sleeps again.
//!
//! A thread of its own, because nothing that the runtime itself does would be done then.

use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Handle;

/// How long events may be left alone.
const EVERY: Duration = Duration::from_millis(200);

/// The running thread. Dropping it ends it.
pub(crate) struct Pulse {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Pulse {
    /// Starts it for a runtime.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub(crate) fn start(runtime: Handle) -> std::io::Result<Pulse> {
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let signal = stop.clone();
        let thread = std::thread::Builder::new().name("pulse".into()).spawn(move || {
            let mut stopped = signal.0.lock();
            while !*stopped {
                signal.1.wait_for(&mut stopped, EVERY);
                drop(runtime.spawn(async {}));
            }
        })?;
        Ok(Pulse { stop, thread: Some(thread) })
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        *self.stop.0.lock() = true;
        self.stop.1.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
