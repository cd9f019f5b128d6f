//! What a session hands over to be committed, and what can go wrong with it.

use crate::TrxCache;
use omnibus_engine::{CommitNo, WriteSet};
use std::sync::Arc;

/// Called in the flush stage, in commit order, right after the transaction's versions are
/// installed: the place for early lock release and for publishing a catalog. Fast, infallible, no I/O.
pub type OnOrdered = Box<dyn FnOnce(CommitNo) + Send>;

/// Called in the commit stage, once the transaction is durable and published, before its session is woken: the place for
/// releasing row locks without `release_locks_early`. Not called if the log fails first.
pub type OnDurable = Box<dyn FnOnce() + Send>;

/// One finished transaction: its events, its writes, and what to do when it has its place.
pub struct CommitRequest {
    /// Its events: BEGIN ... XID, or a DDL's private event and QUERY. Not the GTID event, which the
    /// flush stage makes. May hold only private events (see `logged`).
    pub cache: TrxCache,
    /// Its writes, installed in the engine at its commit number.
    pub writes: WriteSet,
    /// Whether it gets a GTID event in front (true), or is a private group that only recovery reads
    /// (`sql_log_bin=0`, housekeeping): its cache then holds exactly one private event.
    pub logged: bool,
    /// Microseconds since 1970 at which the session committed.
    pub commit_timestamp_us: u64,
    /// The number in the transaction's XID event. `None` if it ends otherwise (a definition, an unlogged write): then it
    /// takes no part in two phases.
    pub xid: Option<u64>,
    /// Whether engines hold its prepared redo under `xid`. Set by [`crate::Coordinator::commit`].
    pub prepared: bool,
    /// A large transaction's writes, instead of `writes`. Made by [`crate::Coordinator::commit`].
    pub staged: Option<Box<crate::StagedWrites>>,
    /// See [`OnOrdered`].
    pub on_ordered: Option<OnOrdered>,
    /// See [`OnDurable`].
    pub on_durable: Option<OnDurable>,
}

impl CommitRequest {
    /// A transaction that takes no part in two phases and has nothing to do on the way.
    #[must_use]
    pub fn new(cache: TrxCache, writes: WriteSet, logged: bool, commit_timestamp_us: u64) -> CommitRequest {
        CommitRequest {
            cache,
            writes,
            logged,
            commit_timestamp_us,
            xid: None,
            prepared: false,
            staged: None,
            on_ordered: None,
            on_durable: None,
        }
    }

    /// What engines hold it prepared under, if they do.
    pub(crate) fn prepared_xid(&self) -> Option<u64> {
        self.xid.filter(|_| self.prepared)
    }
}

impl std::fmt::Debug for CommitRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommitRequest")
            .field("bytes", &self.cache.len())
            .field("keys", &self.writes.len())
            .field("logged", &self.logged)
            .finish_non_exhaustive()
    }
}

/// Why a transaction was not committed. The whole group gets it; nothing is retried.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// A write or sync of the log failed: the log takes nothing more until the server restarts.
    #[error("the binary log failed: {0}; restart the server after mending the cause")]
    LogFailed(Arc<str>),
    /// An engine could not prepare it. Nothing of it is anywhere.
    #[error("the transaction could not be prepared: {0}")]
    Prepare(Arc<str>),
    /// This transaction's own events could not be read back; the log is unharmed.
    #[error("the transaction's events could not be copied into the binary log: {0}")]
    Cache(Arc<str>),
    /// There was no room for this transaction's own events; the log is unharmed.
    #[error("{0}")]
    DiskFull(Arc<str>),
    /// The log does not take it with the global transaction id that it was given. Nothing of it is anywhere.
    #[error(transparent)]
    Refused(#[from] crate::Refusal),
    /// Nobody will tell what became of it: whoever was to is gone. It may be in the log, or not.
    #[error("the outcome of the commit is not known")]
    Unknown,
    /// The pipeline is shutting down.
    #[error("the server is shutting down")]
    ShuttingDown,
}
