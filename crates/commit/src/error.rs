//! Errors of a commit.

use omnibus_format::AnyGtid;
use omnibus_format::events::MariadbGtid;
use std::sync::Arc;

/// The reason why the log refuses a transaction with the global transaction id that it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A transaction with this id is in the log already.
    #[error("transaction {0} was committed by another session")]
    Executed(AnyGtid),
    /// It has no id, and `gtid_mode` requires one (MySQL error 1782).
    #[error("an anonymous transaction cannot be logged when @@GLOBAL.GTID_MODE = ON")]
    Anonymous,
    /// The id is out of order under `gtid_strict_mode` (MariaDB error 1950).
    #[error(
        "An attempt was made to binlog GTID {given} which would create an out-of-order sequence number with existing \
         GTID {newest}, and gtid strict mode is enabled"
    )]
    OutOfOrder {
        /// The id.
        given: MariadbGtid,
        /// The newest id of its domain.
        newest: MariadbGtid,
    },
}

/// The reason why a transaction was not committed. The whole group gets it; nothing is retried.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// A write or sync of the log failed: the log accepts nothing more until the server restarts.
    #[error("the binary log failed: {0}; restart the server after mending the cause")]
    LogFailed(Arc<str>),
    /// An engine could not prepare the transaction. It left no trace.
    #[error("the transaction could not be prepared: {0}")]
    Prepare(Arc<str>),
    /// The transaction's own events could not be read back; the log is unharmed.
    #[error("the transaction's events could not be copied into the binary log: {0}")]
    Cache(Arc<str>),
    /// The disk has no room for the transaction's own events; the log is unharmed.
    #[error("{0}")]
    DiskFull(Arc<str>),
    /// The log refuses the transaction because of its global transaction id. It left no trace.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The session took the transaction back before it had a place in the log. It left no trace.
    #[error("the transaction was withdrawn")]
    Withdrawn,
    /// The outcome is unknown, because the thread that would have reported it is gone. The transaction may be in the
    /// log or not.
    #[error("the outcome of the commit is not known")]
    Unknown,
    /// The pipeline is shutting down.
    #[error("the server is shutting down")]
    ShuttingDown,
}

/// Formats an error with its causes.
pub(crate) fn reason(error: &dyn std::error::Error) -> Arc<str> {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        source = inner.source();
    }
    text.into()
}
