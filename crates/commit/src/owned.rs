//! Who is committing a given global transaction id: two sessions never commit the same one.
//!
//! A session that was given an id (`gtid_next`, a replica's worker) owns it from then until its transaction is over. Another
//! one that wants it waits for that, and finds it executed, or takes it. Transactions that get an id of this server's in the
//! flush stage own nothing: they cost one atomic load here, so that they step around an owned id of this server.
//!
//! Any thread; the lock is held for a look-up only.

use crate::ticket::{Completer, Ticket, ticket};
use omnibus_engine::CommitNo;
use omnibus_format::AnyGtid;
use omnibus_sync::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Ids that sessions were given and have not committed.
#[derive(Debug, Default)]
pub(crate) struct OwnedGtids {
    /// With those who wait for each.
    waiting: Mutex<BTreeMap<AnyGtid, Vec<Completer>>>,
    count: AtomicU64,
    /// Sessions that may commit anonymously.
    anonymous: AtomicU64,
}

/// The right to commit without an id (`gtid_next=ANONYMOUS`). While there is one, `gtid_mode` does not become ON.
#[derive(Debug)]
#[must_use = "without it gtid_mode may become ON"]
pub struct AnonymousGuard(Arc<OwnedGtids>);

/// The right to commit one id. Dropped when the transaction is over, however it ended: whoever waits goes on.
#[derive(Debug)]
#[must_use = "without it another session may commit the same id"]
pub struct GtidGuard {
    gtid: AnyGtid,
    owned: Arc<OwnedGtids>,
}

/// What became of a wish to own an id.
#[derive(Debug)]
pub enum Ownership {
    /// It is the caller's.
    Owned(GtidGuard),
    /// The transaction is in the log: skip it. Before answering anybody, wait until this number is durable.
    Executed(CommitNo),
    /// Another session has it: ask again when the ticket is done.
    Busy(Ticket),
    /// `gtid_mode` is OFF: nothing may have one.
    Off,
}

impl OwnedGtids {
    /// Takes it, unless `executed` says when asked (under the lock, so that no owner can finish in between).
    pub(crate) fn own(
        self: &Arc<Self>,
        gtid: AnyGtid,
        executed: impl FnOnce() -> Option<CommitNo>,
    ) -> Ownership {
        let mut waiting = self.waiting.lock();
        if let Some(others) = waiting.get_mut(&gtid) {
            let (completer, ticket) = ticket();
            others.push(completer);
            return Ownership::Busy(ticket);
        }
        if let Some(no) = executed() {
            return Ownership::Executed(no);
        }
        waiting.insert(gtid, Vec::new());
        self.count.store(waiting.len() as u64, Ordering::SeqCst);
        Ownership::Owned(GtidGuard { gtid, owned: self.clone() })
    }

    /// Whether there may be any.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// Counts one that may commit anonymously.
    pub(crate) fn own_anonymity(self: &Arc<Self>) -> AnonymousGuard {
        self.anonymous.fetch_add(1, Ordering::SeqCst);
        AnonymousGuard(self.clone())
    }

    pub(crate) fn anonymous(&self) -> u64 {
        self.anonymous.load(Ordering::SeqCst)
    }

    pub(crate) fn list(&self) -> Vec<AnyGtid> {
        self.waiting.lock().keys().copied().collect()
    }
}

impl GtidGuard {
    /// What it is for.
    #[must_use]
    pub fn gtid(&self) -> AnyGtid {
        self.gtid
    }
}

impl Drop for AnonymousGuard {
    fn drop(&mut self) {
        self.0.anonymous.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for GtidGuard {
    fn drop(&mut self) {
        let mut waiting = self.owned.waiting.lock();
        let others = waiting.remove(&self.gtid).unwrap_or_default();
        self.owned.count.store(waiting.len() as u64, Ordering::SeqCst);
        drop(waiting);
        for other in others {
            other.complete(Ok(CommitNo::ZERO));
        }
    }
}
