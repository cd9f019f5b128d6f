//! The floor of a session's replies: the highest commit number whose effect, presence or absence, they could tell of.
//!
//! With early lock release a locking read finds versions whose log record is still on its way, and a definition is
//! everybody's when its commit has its place. So whatever looks at either notes a number here, and who answers a client
//! waits for [`Floor::ticket`] before the first byte of the reply leaves, rows, OK or error (COMMIT-2, SESSION-1). What a
//! snapshot shows is published already and notes nothing.
//!
//! It only grows: what a session was told before stays true. One per session, written on the session's thread only; the
//! thread that sends rows while the statement still runs reads it.

use super::trx::TrxContext;
use crate::api::KillFlag;
use crate::error::SqlResult;
use omnibus_commit::Ticket;
use omnibus_engine::CommitNo;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// See the module's text.
pub struct Floor {
    shared: Arc<TrxContext>,
    seen: AtomicU64,
    /// Known to be published: spares the look at what all sessions share.
    settled: AtomicU64,
}

impl Floor {
    pub(super) fn new(shared: Arc<TrxContext>) -> Floor {
        Floor { shared, seen: AtomicU64::new(0), settled: AtomicU64::new(0) }
    }

    /// The session may have seen what `no` did.
    pub fn see(&self, no: CommitNo) {
        if no.0 > self.seen.load(Ordering::Relaxed) {
            self.seen.store(no.0, Ordering::Relaxed);
        }
    }

    /// The session may have seen any effect of what has a place in the commit order.
    pub fn see_everything(&self) {
        self.see(self.shared.port.numbered());
    }

    /// The session has looked at the catalog: at what is there, or is not.
    pub fn see_definitions(&self) {
        self.see(self.shared.catalog.changed());
    }

    /// The highest number that was noted.
    pub(super) fn seen(&self) -> CommitNo {
        CommitNo(self.seen.load(Ordering::Relaxed))
    }

    /// Waits until what was noted may be told, at most until KILL. Blocks.
    ///
    /// # Errors
    /// The log has failed; 1317, 3024.
    pub fn wait(&self, kill: &KillFlag) -> SqlResult<()> {
        match self.ticket() {
            Some(ticket) => kill.wait(ticket).map(drop),
            None => Ok(()),
        }
    }

    /// The commit that must complete before anything may be told; `None` if none must, which costs two loads of the session's own.
    #[must_use]
    pub fn ticket(&self) -> Option<Ticket> {
        let seen = self.seen.load(Ordering::Relaxed);
        if seen <= self.settled.load(Ordering::Relaxed) {
            return None;
        }
        let published = self.shared.port.published();
        if seen > published.0 {
            return Some(self.shared.port.wait_published(CommitNo(seen)));
        }
        self.settled.store(published.0, Ordering::Relaxed);
        None
    }
}

impl std::fmt::Debug for Floor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Floor").field("seen", &self.seen).finish_non_exhaustive()
    }
}
