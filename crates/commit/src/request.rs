//! What a session hands over to be committed.

use crate::cache::TrxCache;
use omnibus_engine::{CommitNo, Staged, WriteSet};

/// Called in the flush stage, in commit order, right after the transaction's versions are
/// installed: the place for early lock release and for publishing a catalog. Fast, infallible, no I/O.
pub type OnOrdered = Box<dyn FnOnce(CommitNo) + Send>;

/// Called in the commit stage, once the transaction is durable and published, before its session is woken: the place for
/// releasing row locks without `release_locks_early`. Not called if the log fails first.
pub type OnDurable = Box<dyn FnOnce() + Send>;

/// A transaction that writes so many keys is staged, whatever its events take: installing them one by one would
/// hold up the flush stage for about 20 ms.
pub const STAGED_KEYS: usize = 20_000;

/// A large transaction's writes, ready to be installed at once.
#[derive(Debug)]
pub struct StagedWrites {
    /// The engine's form of them.
    pub staged: Staged,
    /// Whether any of them is a deletion.
    pub deletes: bool,
}

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
    pub staged: Option<Box<StagedWrites>>,
    /// Somebody may wait for its locks, which go once it has its place in the log: it is given that at once, also while no
    /// write can start.
    pub awaited: bool,
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
            awaited: false,
            on_ordered: None,
            on_durable: None,
        }
    }

    /// Whether [`crate::Coordinator::commit`] will take long and block.
    #[must_use]
    pub fn is_large(&self) -> bool {
        self.writes.is_spilled() || self.writes.len() >= STAGED_KEYS || self.cache.is_large()
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
