//! Ends the process when code in the pipeline panics.
//!
//! Under the flush lock a transaction may be in the log and in no engine, or in some; behind it, in flight, others wait
//! for a turn that would never come. To continue would show states that no recovery from the log produces (COMMIT-1,
//! RECOVER-2). The next start repairs such states.

use super::sync::thread;

/// A guard around work that must not be interrupted by a panic.
pub(super) struct AbortOnPanic {
    stage: &'static str,
    /// The thread was already panicking when the guard was made. Destructors that run during another panic may use the
    /// pipeline and must be able to leave it.
    before: bool,
}

impl AbortOnPanic {
    pub(super) fn new(stage: &'static str) -> AbortOnPanic {
        AbortOnPanic { stage, before: thread::panicking() }
    }
}

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if !self.before && thread::panicking() {
            tracing::error!(stage = self.stage, "a panic in the commit pipeline");
            // Also where nobody listens to the log; a failure to say it changes nothing.
            let _ = std::io::Write::write_all(
                &mut std::io::stderr(),
                format!(
                    "a panic in the commit pipeline ({}) ends the process, since a transaction may be half done: \
                     start the server again, it recovers from the binary log\n",
                    self.stage
                )
                .as_bytes(),
            );
            std::process::abort();
        }
    }
}
