//! The request by which a session commits a transaction.

use crate::cache::TrxCache;
use omnibus_engine::{CommitNo, Staged, WriteSet};

/// A callback in the flush stage, in commit order, right after the transaction's versions are installed. It releases
/// row locks early and publishes a catalog. It must be fast and infallible and do no I/O.
pub type OnOrdered = Box<dyn FnOnce(CommitNo) + Send>;

/// A callback in the commit stage, once the transaction is durable and published, before its session is woken. It
/// releases row locks without `release_locks_early`. Not called if the log fails first.
pub type OnDurable = Box<dyn FnOnce() + Send>;

/// The number of written keys from which a transaction is staged, whatever its events take: installing them one by one
/// would hold up the flush stage for about 20 ms.
pub const STAGED_KEYS: usize = 20_000;

/// A large transaction's writes, ready to be installed at once.
#[derive(Debug)]
pub struct StagedWrites {
    /// The writes in the engine's form.
    pub staged: Staged,
    /// Whether any of them is a deletion.
    pub deletes: bool,
}

/// A finished transaction: its events, its writes, and its callbacks.
pub struct CommitRequest {
    /// Its events: BEGIN ... XID, or a DDL's private event and QUERY. Not the GTID event, which the
    /// flush stage makes. May hold only private events (see `logged`).
    pub cache: TrxCache,
    /// Its writes, installed in the engine at its commit number.
    pub writes: WriteSet,
    /// Whether it gets a GTID event in front. Otherwise it is a private group that only recovery reads
    /// (`sql_log_bin=0`, internal writes), and its cache holds exactly one private event.
    pub logged: bool,
    /// Microseconds since 1970 at which the session committed.
    pub commit_timestamp_us: u64,
    /// The number in the transaction's XID event. `None` if it ends otherwise (a definition, an unlogged write): then it
    /// takes no part in two phases.
    pub xid: Option<u64>,
    /// Whether engines hold its prepared redo under `xid`. Set by [`crate::Coordinator::commit`].
    pub prepared: bool,
    /// A large transaction's writes, instead of `writes`. Made by [`crate::Coordinator::commit`].
    pub staged: Option<Box<StagedWrites>>,
    /// Another session may wait for its locks, which are released once it has its place in the log: it gets that at
    /// once, even while no write can start.
    pub awaited: bool,
    /// The committing thread may do the work of its group itself, if nobody else is committing and the device is fast; see
    /// [`CommitRequest::inline`].
    pub inline: bool,
    /// See [`OnOrdered`].
    pub on_ordered: Option<OnOrdered>,
    /// See [`OnDurable`].
    pub on_durable: Option<OnDurable>,
}

impl CommitRequest {
    /// Creates a request that takes no part in two phases and has no callbacks.
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
            awaited: false,
            inline: false,
            on_ordered: None,
            on_durable: None,
        }
    }

    /// For a caller that waits for its commit anyway: it may do the work of its group itself, which saves two thread switches, and then blocks
    /// for about one device sync. Without this a commit never waits for the device.
    #[must_use]
    pub fn inline(self) -> CommitRequest {
        CommitRequest { inline: true, ..self }
    }

    /// Returns whether [`crate::Coordinator::commit`] will take long and block.
    #[must_use]
    pub fn is_large(&self) -> bool {
        self.writes.is_spilled() || self.writes.len() >= STAGED_KEYS || self.cache.is_large()
    }

    /// The number under which engines hold it prepared, if they do.
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
