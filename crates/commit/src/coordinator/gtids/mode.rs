//! SET GLOBAL gtid_mode: changes from one mode to its neighbour while the server runs.
//!
//! The flush stage reads the mode for each transaction that has no GTID of its own. A change happens under the flush
//! lock, with everything enrolled before it written, and begins a new log file, so that a file has transactions of one
//! mode only. Sessions that own an id, or may commit anonymously, are looked for *after* the new mode is stored, and a
//! session that wants either is counted before it reads the mode; so neither side misses the other.
//!
//! Any thread; blocks for a few writes.

use super::Gtids;
use crate::env::Env;
use crate::error::CommitError;
use crate::log_env::LogEnv;
use crate::owned::AnonymousGuard;
use omnibus_format::{Dialect, GtidMode};
use std::sync::atomic::{AtomicU64, Ordering};

/// The reason why `gtid_mode` was not changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GtidModeError {
    /// The new mode is not the present mode's neighbour (MySQL error 1788).
    #[error("gtid_mode can only be changed one step at a time")]
    NotAStep,
    /// The new mode is ON and sessions may commit anonymously (MySQL error 3111).
    #[error("there are ongoing anonymous transactions")]
    Anonymous,
    /// The new mode is OFF and sessions own GTIDs (MySQL error 3111).
    #[error("there are ongoing transactions that have a GTID")]
    Owned,
    /// The new mode is OFF and sessions wait for GTIDs (MySQL error 3111).
    #[error("there are clients waiting for GTIDs")]
    Awaited,
    /// The log has failed, now or before.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// A session that waits for GTIDs; counted until dropped.
#[derive(Debug)]
pub struct GtidWait<'a>(&'a AtomicU64);

impl Drop for GtidWait<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl<'c> Gtids<'c> {
    /// The present `gtid_mode`; always ON in MariaDB's dialect.
    #[must_use]
    pub fn mode(self) -> GtidMode {
        self.0.log().gtid_mode()
    }

    /// Changes the mode by one step and begins a new log file. Blocks.
    ///
    /// # Errors
    /// See [`GtidModeError`]; the mode is then unchanged.
    pub fn change_mode(self, new: GtidMode) -> Result<(), GtidModeError> {
        if self.0.log().dialect() != Dialect::Mysql {
            return Ok(());
        }
        self.0.pipeline().change_file(|env, appender| {
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

    /// Requests the right to commit without an id; `None` while `gtid_mode` is ON. Keep the guard for as long as the
    /// session may do so.
    #[must_use]
    pub fn own_anonymity(self) -> Option<AnonymousGuard> {
        let guard = self.0.log().gtids.owned.own_anonymity();
        (self.mode() != GtidMode::On).then_some(guard)
    }

    /// `Ongoing_anonymous_transaction_count`: the number of sessions that may commit without an id.
    #[must_use]
    pub fn anonymous_count(self) -> u64 {
        self.0.log().gtids.owned.anonymous()
    }

    /// Counts a session that waits for GTIDs; `None` if `gtid_mode` is OFF, so that none will come.
    #[must_use]
    pub fn count_wait(self) -> Option<GtidWait<'c>> {
        let waits = &self.0.log().gtids.waits;
        waits.fetch_add(1, Ordering::SeqCst);
        let wait = GtidWait(waits);
        (self.mode() != GtidMode::Off).then_some(wait)
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
