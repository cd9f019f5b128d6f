//! SET GLOBAL gtid_mode: from one mode to its neighbour while the server runs.
//!
//! The mode is what the flush stage reads for each transaction that has no GTID of its own. A change happens under the flush
//! lock with everything enrolled before it written, and begins a new log file, so that a file whose head was written in one
//! mode has nothing of another. Whoever was given an id, or may commit anonymously, is asked for *after* the mode is stored,
//! and those who want either look at the mode after they are counted: so neither misses the other.
//!
//! Any thread; blocks for a few writes.

use super::Coordinator;
use crate::env::Env;
use crate::error::CommitError;
use crate::log_env::LogEnv;
use crate::owned::AnonymousGuard;
use omnibus_format::{Dialect, GtidMode};
use std::sync::atomic::{AtomicU64, Ordering};

/// Why `gtid_mode` was not changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GtidModeError {
    /// Not the present mode's neighbour (MySQL error 1788).
    #[error("gtid_mode can only be changed one step at a time")]
    NotAStep,
    /// To ON while sessions may commit anonymously (MySQL error 3111).
    #[error("there are ongoing anonymous transactions")]
    Anonymous,
    /// To OFF while sessions own GTIDs (MySQL error 3111).
    #[error("there are ongoing transactions that have a GTID")]
    Owned,
    /// To OFF while somebody waits for GTIDs (MySQL error 3111).
    #[error("there are clients waiting for GTIDs")]
    Awaited,
    /// The log has failed, now or before.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// One who waits for GTIDs; counted until dropped.
#[derive(Debug)]
pub struct GtidWait<'a>(&'a AtomicU64);

impl Drop for GtidWait<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Coordinator {
    /// `gtid_mode`. ON in MariaDB's dialect.
    #[must_use]
    pub fn gtid_mode(&self) -> GtidMode {
        self.log().gtid_mode()
    }

    /// Changes it by one step and begins a new log file. Blocks.
    ///
    /// # Errors
    /// See [`GtidModeError`]; it is as it was then.
    pub fn change_gtid_mode(&self, new: GtidMode) -> Result<(), GtidModeError> {
        if self.dialect() != Dialect::Mysql {
            return Ok(());
        }
        self.pipeline().change_file(|env, appender| {
            let old = env.gtid_mode();
            if new == old {
                return Ok(Ok(()));
            }
            if !new.is_a_step_from(old) {
                return Ok(Err(GtidModeError::NotAStep));
            }
            env.set_gtid_mode(new);
            match hindrance(env, new) {
                Some(error) => {
                    env.set_gtid_mode(old);
                    Ok(Err(error))
                }
                None => env.rotate(appender).map(Ok),
            }
        })?
    }

    /// Asks for the right to commit without an id; `None` while `gtid_mode` is ON. Kept as long as the session may do it.
    #[must_use]
    pub fn own_anonymity(&self) -> Option<AnonymousGuard> {
        let guard = self.log().gtids.owned.own_anonymity();
        (self.gtid_mode() != GtidMode::On).then_some(guard)
    }

    /// `Ongoing_anonymous_transaction_count`: sessions that may commit without an id.
    #[must_use]
    pub fn anonymous_count(&self) -> u64 {
        self.log().gtids.owned.anonymous()
    }

    /// Counts one who waits for GTIDs; `None` if there are none to wait for because `gtid_mode` is OFF.
    #[must_use]
    pub fn await_gtids(&self) -> Option<GtidWait<'_>> {
        let waits = &self.log().gtids.waits;
        waits.fetch_add(1, Ordering::SeqCst);
        let wait = GtidWait(waits);
        (self.gtid_mode() != GtidMode::Off).then_some(wait)
    }
}

fn hindrance(env: &LogEnv, new: GtidMode) -> Option<GtidModeError> {
    match new {
        GtidMode::On if env.gtids.owned.anonymous() > 0 => Some(GtidModeError::Anonymous),
        GtidMode::Off if env.gtids.owned.any() => Some(GtidModeError::Owned),
        GtidMode::Off if env.gtids.waits.load(Ordering::SeqCst) > 0 => Some(GtidModeError::Awaited),
        _ => None,
    }
}
