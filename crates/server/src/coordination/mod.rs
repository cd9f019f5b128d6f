//! The server's side of the log and the commit pipeline: administration, housekeeping, failures.
//!
//! - `log_admin` answers SHOW, FLUSH, PURGE and RESET on the log; `events`, `variables` and `counters` are its parts
//! - `purge` is what a statement and the housekeeping share: what may go, and why not more
//! - `backup` copies the running server's data directory
//! - `housekeeping` is one thread: it expires old files, keeps recovery short, and watches the engine
//! - `keys` is the log's encryption
//! - `verify` reads finished files again before somebody needs them
//! - `failure` decides what a failed log means (`binlog_error_action`)
//!
//! Not here: how the log is written (`omnibus_commit`), nor the statements' syntax and privileges (`admin`).
//! Everything may block on a file unless it says otherwise.

mod backup;
mod counters;
mod events;
mod failure;
mod housekeeping;
mod keys;
mod log_admin;
mod purge;
mod variables;
mod verify;

#[cfg(test)]
mod tests;

pub use failure::{FailureWatch, OnStop};
pub use housekeeping::{Housekeeping, HousekeepingSettings};
pub(crate) use keys::end_key_rotation;
pub use log_admin::CoordinatorAdmin;
pub use variables::{LOG_VARIABLES, LogLimits};
