//! What a panic in the pipeline means: the end of the process.
//!
//! Under the flush lock a transaction may be in the log and in no engine, or in some; behind it, in flight, others wait
//! for a turn that never comes. Going on would show what no recovery from the log would make (COMMIT-1, RECOVER-2), and
//! the next start repairs exactly this.

use super::sync::thread;

/// Lives as long as work that nobody may break off.
pub(super) struct AbortOnPanic {
    stage: &'static str,
    /// Something that is being dropped by a panic elsewhere may pass through here, and come out.
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
