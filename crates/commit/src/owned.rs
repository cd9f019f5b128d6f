//! Ownership of given global transaction ids: two sessions never commit the same one.
//!
//! A session that was given an id (`gtid_next`, a replica's worker) owns it from then until its transaction is over.
//! Another session that wants it waits for that, and then finds it executed or takes it. Transactions that get one of
//! this server's ids in the flush stage own nothing; they read one atomic to see whether they must avoid owned ids.
//!
//! Any thread; the lock is held for a look-up only.

use crate::ticket::{Completer, Ticket, ticket};
use omnibus_engine::CommitNo;
use omnibus_format::AnyGtid;
use omnibus_sync::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The ids that sessions own.
#[derive(Debug, Default)]
pub(crate) struct OwnedGtids {
    /// The owned ids, each with the sessions that wait for it.
    waiting: Mutex<BTreeMap<AnyGtid, Vec<Completer>>>,
    count: AtomicU64,
    /// The number of sessions that may commit anonymously.
    anonymous: AtomicU64,
}

/// The right to commit without an id (`gtid_next=ANONYMOUS`). While one exists, `gtid_mode` cannot become ON.
#[derive(Debug)]
#[must_use = "without it gtid_mode may become ON"]
pub struct AnonymousGuard(Arc<OwnedGtids>);

/// The right to commit one id. Drop it when the transaction is over, however it ended; waiting sessions then continue.
#[derive(Debug)]
#[must_use = "without it another session may commit the same id"]
pub struct GtidGuard {
    gtid: AnyGtid,
    owned: Arc<OwnedGtids>,
}

/// The result of a request to own an id.
#[derive(Debug)]
pub enum Ownership {
    /// The caller owns it.
    Owned(GtidGuard),
    /// The transaction is in the log: skip it. Wait until this number is durable before answering a client.
    Executed(CommitNo),
    /// Another session owns it: ask again when the ticket is done.
    Busy(Ticket),
    /// `gtid_mode` is OFF: no transaction may have an id.
    Off,
}

impl OwnedGtids {
    /// Takes ownership, unless `executed` returns that the transaction is in the log. It is called under the lock, so
    /// that no owner can finish in between.
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

    /// Returns whether there may be owned ids.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// Counts a session that may commit anonymously.
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
    /// The id that may be committed.
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
