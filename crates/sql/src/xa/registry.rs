//! Holders of XA branches: a session that works on one, or nobody, once it is prepared.
//!
//! In memory; after a restart filled from the records of the engine. One short mutex, never held across a commit. Used by
//! the statements of any session, on threads that may block.
//!
//! SESSION-1: a branch that a session is about to finish is prepared until that is durable. XA RECOVER shows it, and who
//! wants to finish it as well waits to hear what became of it: a coordinator that is told "unknown" forgets it.

use super::Xid;
use crate::api::{KillFlag, TrxSeen};
use crate::catalog::TableState;
use crate::error::{SqlError, SqlResult};
use crate::memory::{Account, ServerMemory, SessionMemory};
use omnibus_locks::{HeldLock, TrxLocks};
use omnibus_sync::{Condvar, Mutex};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

/// The holdings of a prepared branch while nobody works on it.
pub struct Held {
    /// The account that prepared it; nobody's after a restart, and where a replica's applier prepared it.
    pub(crate) owner: Option<Arc<str>>,
    /// Its locks.
    pub(crate) locks: Arc<TrxLocks>,
    /// Its transaction as it was when it was prepared, and will be until it is finished.
    pub(crate) seen: Box<TrxSeen>,
    /// Rows added and removed, per table; for estimates.
    pub(crate) deltas: Vec<(Arc<TableState>, i64)>,
    /// Its memory, which is no session's.
    pub(crate) _memory: Account,
}

/// A look at a prepared branch.
#[derive(Clone, Debug)]
pub struct PreparedSeen {
    /// Its name.
    pub xid: Xid,
    /// Its transaction, which is no session's.
    pub trx: TrxSeen,
    /// Locks that it holds.
    pub locks: Vec<HeldLock>,
}

enum Branch {
    /// A session is working on it, and may be preparing it.
    Taken,
    /// Prepared and durable.
    Prepared(Held),
    /// Prepared, and a session is on its way to finish it.
    Finishing,
}

/// All branches of the server.
#[derive(Default)]
pub struct Registry {
    branches: Mutex<HashMap<Xid, Branch>>,
    /// Signalled when a branch is finished, or was not.
    finished: Condvar,
    /// The memory of prepared branches.
    memory: Arc<SessionMemory>,
}

/// How long a wait for another session lasts before it looks for KILL.
const LOOK: Duration = Duration::from_millis(100);

impl Registry {
    /// Of a server.
    pub(crate) fn new(server: &Arc<ServerMemory>) -> Registry {
        Registry { memory: Arc::new(SessionMemory::of(server.clone())), ..Registry::default() }
    }

    /// An account for a branch.
    pub(crate) fn account(&self) -> Account {
        Account::new(&self.memory)
    }

    /// XA START.
    ///
    /// # Errors
    /// 1440 if the name is in use.
    pub(crate) fn start(&self, xid: &Xid) -> SqlResult<()> {
        match self.branches.lock().entry(xid.clone()) {
            Entry::Occupied(_) => Err(SqlError::xaer_dupid()),
            Entry::Vacant(place) => {
                place.insert(Branch::Taken);
                Ok(())
            }
        }
    }

    /// The branch is prepared and durable: anybody may finish it.
    pub(crate) fn prepared(&self, xid: &Xid, held: Held) {
        self.branches.lock().insert(xid.clone(), Branch::Prepared(held));
        self.finished.notify_all();
    }

    /// Takes a prepared branch, to finish it, if `allowed` says so of its owner. It keeps its name until `forget`. Waits for
    /// another session that is at it, which is for the log's device, at most until KILL.
    ///
    /// # Errors
    /// 1397 unless it is prepared; that of `allowed`; as `KillFlag::check`.
    pub(crate) fn take(
        &self,
        xid: &Xid,
        kill: &KillFlag,
        allowed: impl FnOnce(Option<&str>) -> SqlResult<()>,
    ) -> SqlResult<Held> {
        let mut branches = self.branches.lock();
        while let Some(Branch::Finishing) = branches.get(xid) {
            kill.check()?;
            self.finished.wait_for(&mut branches, LOOK);
        }
        let place = branches.get_mut(xid).ok_or_else(SqlError::xaer_nota)?;
        let Branch::Prepared(held) = place else { return Err(SqlError::xaer_nota()) };
        allowed(held.owner.as_deref())?;
        match std::mem::replace(place, Branch::Finishing) {
            Branch::Prepared(held) => Ok(held),
            Branch::Taken | Branch::Finishing => Err(SqlError::xaer_nota()),
        }
    }

    /// The branch is no more.
    pub(crate) fn forget(&self, xid: &Xid) {
        self.branches.lock().remove(xid);
        self.finished.notify_all();
    }

    /// The branches that are prepared and nobody is at, with its transaction and the locks of single records that it holds, so many of each.
    #[must_use]
    pub fn seen(&self, most: usize) -> Vec<PreparedSeen> {
        let branches = self.branches.lock();
        let held = branches.iter().filter_map(|(xid, branch)| match branch {
            Branch::Prepared(held) => Some((xid.clone(), (*held.seen).clone(), held.locks.clone())),
            Branch::Taken | Branch::Finishing => None,
        });
        let held: Vec<_> = held.collect();
        drop(branches);
        let seen = |(xid, trx, locks): (Xid, TrxSeen, Arc<TrxLocks>)| {
            let trx = TrxSeen { held: locks.held(), lock_bytes: locks.memory(), ..trx };
            PreparedSeen { xid, trx, locks: locks.held_in_spaces(most) }
        };
        held.into_iter().map(seen).collect()
    }

    /// XA RECOVER: what is prepared, ordered by name.
    pub(crate) fn list(&self) -> Vec<Xid> {
        let branches = self.branches.lock();
        let prepared = branches.iter().filter(|(_, branch)| !matches!(branch, Branch::Taken));
        let mut names: Vec<Xid> = prepared.map(|(xid, _)| xid.clone()).collect();
        names.sort();
        names
    }
}
