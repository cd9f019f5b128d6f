//! How KILL reaches the statement that runs.
//!
//! Set on other threads, read on the session's.

use crate::error::{SqlError, SqlResult};
use std::sync::atomic::{AtomicU8, Ordering};

/// Set by KILL from another session, read by the running statement now and then.
#[derive(Debug, Default)]
pub struct KillFlag(AtomicU8);

impl KillFlag {
    /// KILL QUERY: the statement ends with error 1317.
    pub fn kill_query(&self) {
        self.0.fetch_max(1, Ordering::Relaxed);
    }

    /// KILL CONNECTION: as above, and the session ends.
    pub fn kill_connection(&self) {
        self.0.store(2, Ordering::Relaxed);
    }

    /// Whether the connection itself must end.
    #[must_use]
    pub fn connection_killed(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 2
    }

    /// Forgets KILL QUERY; called when a statement begins.
    pub fn reset(&self) {
        if self.0.load(Ordering::Relaxed) != 2 {
            self.0.store(0, Ordering::Relaxed);
        }
    }

    /// Fails if the statement must stop.
    pub fn check(&self) -> SqlResult<()> {
        match self.0.load(Ordering::Relaxed) {
            0 => Ok(()),
            _ => Err(SqlError::query_interrupted()),
        }
    }
}
