//! The server after a failure of the log or of an engine.
//!
//! The pipeline has refused everything since the failure, and every transaction of the group has its error
//! (nothing is retried: after a failed sync nobody knows what the device has). What is left to decide is
//! `binlog_error_action`:
//! - ABORT_SERVER stops the server, with a message and a failure as its exit code;
//! - IGNORE_ERROR goes on reading. The log is the only write-ahead log, so writing without it would lose
//!   transactions; writes stay refused until a restart.
//!
//! A failed engine always stops the server: it can no longer keep what the log gives it.

use omnibus_commit::OnFailure;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Asked to stop the server, once, with the reason, on a thread of its own.
pub type OnStop = Box<dyn Fn(&str) + Send + Sync>;

/// Watches for the failure that ends the server. Any thread; nothing here blocks.
pub struct FailureWatch {
    ignore_errors: AtomicBool,
    state: Mutex<Failures>,
    on_stop: OnStop,
}

#[derive(Default)]
struct Failures {
    log: Option<String>,
    stopped: Option<String>,
}

impl FailureWatch {
    /// `on_stop` begins the server's shutdown.
    #[must_use]
    pub fn new(on_stop: OnStop) -> Arc<FailureWatch> {
        let state = Mutex::new(Failures::default());
        Arc::new(FailureWatch { ignore_errors: AtomicBool::new(false), state, on_stop })
    }

    /// The callback for [`omnibus_commit::LogEnv::start`].
    #[must_use]
    pub fn on_log_failure(self: &Arc<Self>) -> OnFailure {
        let watch = Arc::clone(self);
        Box::new(move |reason| watch.log_failed(reason))
    }

    /// `binlog_error_action`. A failure that was ignored stays ignored.
    pub fn set_ignore_errors(&self, ignore: bool) {
        self.ignore_errors.store(ignore, Ordering::Relaxed);
    }

    /// Why the log takes no more writes, if it does not.
    #[must_use]
    pub fn log_failure(&self) -> Option<String> {
        self.state.lock().log.clone()
    }

    /// Why the server was asked to stop, if a failure did it: its exit code is then a failure's.
    #[must_use]
    pub fn stopped_because(&self) -> Option<String> {
        self.state.lock().stopped.clone()
    }

    /// The log takes nothing more. Called by the commit pipeline, once.
    pub fn log_failed(self: &Arc<Self>, reason: &str) {
        self.state.lock().log.get_or_insert_with(|| reason.to_owned());
        if self.ignore_errors.load(Ordering::Relaxed) {
            tracing::error!(
                "the binary log failed and binlog_error_action is IGNORE_ERROR: reads go on, writes are refused until \
                 the server is restarted: {reason}"
            );
            return;
        }
        self.stop(format!("the binary log failed and binlog_error_action is ABORT_SERVER: {reason}"));
    }

    /// The engine takes nothing more.
    pub fn engine_failed(self: &Arc<Self>, reason: &str) {
        self.stop(format!("the storage engine failed: {reason}"));
    }

    fn stop(self: &Arc<Self>, why: String) {
        {
            let mut state = self.state.lock();
            if state.stopped.is_some() {
                return;
            }
            state.stopped = Some(why.clone());
        }
        tracing::error!("stopping the server: {why}");
        // The caller holds locks of the pipeline, and the group it speaks for has yet to get its errors.
        let watch = Arc::clone(self);
        let text = why.clone();
        let spawned =
            std::thread::Builder::new().name("server-stop".into()).spawn(move || (watch.on_stop)(&text));
        if let Err(error) = spawned {
            tracing::error!(%error, "no thread for the shutdown; it begins on this one");
            (self.on_stop)(&why);
        }
    }
}

impl std::fmt::Debug for FailureWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FailureWatch").field("stopped", &self.stopped_because()).finish_non_exhaustive()
    }
}
