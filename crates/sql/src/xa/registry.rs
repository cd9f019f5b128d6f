//! Who has which XA branch: a session that works on it, or nobody, once it is prepared.
//!
//! In memory; after a restart filled from the records of the engine. One short mutex, never held across a commit or a
//! wait. Used by the statements of any session, on threads that may block.

use super::Xid;
use crate::catalog::TableState;
use crate::error::{SqlError, SqlResult};
use omnibus_locks::TrxLocks;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// What a prepared branch holds while nobody works on it.
pub struct Held {
    /// The account that prepared it; nobody's after a restart, and where a replica's applier prepared it.
    pub(crate) owner: Option<Arc<str>>,
    /// Its locks.
    pub(crate) locks: Arc<TrxLocks>,
    /// Rows added and removed, per table; for estimates.
    pub(crate) deltas: Vec<(Arc<TableState>, i64)>,
}

enum Branch {
    /// A session is working on it, or on its way to finish it.
    Taken,
    /// Prepared and durable.
    Prepared(Held),
}

/// All branches of the server.
#[derive(Default)]
pub struct Registry(Mutex<HashMap<Xid, Branch>>);

impl Registry {
    /// XA START.
    ///
    /// # Errors
    /// 1440 if the name is in use.
    pub(crate) fn start(&self, xid: &Xid) -> SqlResult<()> {
        match self.0.lock().entry(xid.clone()) {
            Entry::Occupied(_) => Err(SqlError::xaer_dupid()),
            Entry::Vacant(place) => {
                place.insert(Branch::Taken);
                Ok(())
            }
        }
    }

    /// The branch is prepared and durable: anybody may finish it.
    pub(crate) fn prepared(&self, xid: &Xid, held: Held) {
        self.0.lock().insert(xid.clone(), Branch::Prepared(held));
    }

    /// Takes a prepared branch, to finish it, if `allowed` says so of its owner. It keeps its name until `forget`.
    ///
    /// # Errors
    /// 1397 unless it is prepared and nobody else has taken it; that of `allowed`.
    pub(crate) fn take(
        &self,
        xid: &Xid,
        allowed: impl FnOnce(Option<&str>) -> SqlResult<()>,
    ) -> SqlResult<Held> {
        let mut branches = self.0.lock();
        let place = branches.get_mut(xid).ok_or_else(SqlError::xaer_nota)?;
        if let Branch::Prepared(held) = place {
            allowed(held.owner.as_deref())?;
        }
        match std::mem::replace(place, Branch::Taken) {
            Branch::Prepared(held) => Ok(held),
            Branch::Taken => Err(SqlError::xaer_nota()),
        }
    }

    /// The branch is no more.
    pub(crate) fn forget(&self, xid: &Xid) {
        self.0.lock().remove(xid);
    }

    /// XA RECOVER: what is prepared, ordered by name.
    pub(crate) fn list(&self) -> Vec<Xid> {
        let branches = self.0.lock();
        let prepared = branches.iter().filter(|(_, branch)| matches!(branch, Branch::Prepared(_)));
        let mut names: Vec<Xid> = prepared.map(|(xid, _)| xid.clone()).collect();
        names.sort();
        names
    }
}
