//! The account that a session's questions to the server come from.

use super::SessionAccess;
use crate::account::{Account, AccountName};
use omnibus_sql::AccessCheck;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An account and its roles in force.
type InForce = (Arc<Account>, Vec<AccountName>);

/// The account whose rights count. Shared by the session's host, which asks it, and by the rights that act in it.
#[derive(Debug)]
pub struct ActingAccount {
    /// The client's, or for some time the definer's of a program.
    acting: Mutex<InForce>,
    /// `proxy_user` of the client.
    proxy: Mutex<Option<Arc<str>>>,
    /// The version of the client's rights.
    version: AtomicU64,
}

impl ActingAccount {
    /// The client's.
    pub(super) fn new(access: &SessionAccess) -> ActingAccount {
        ActingAccount {
            acting: Mutex::new(of(access)),
            proxy: Mutex::new(access.proxy()),
            version: AtomicU64::new(access.version()),
        }
    }

    /// The account.
    pub(super) fn account(&self) -> Arc<Account> {
        self.acting.lock().0.clone()
    }

    /// The roles in force.
    pub(super) fn roles(&self) -> Vec<AccountName> {
        self.acting.lock().1.clone()
    }

    /// `proxy_user`.
    pub(super) fn proxy(&self) -> Option<Arc<str>> {
        self.proxy.lock().clone()
    }

    /// The version of the client's rights.
    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }

    /// The client has another account, or other rights, from now on.
    pub(super) fn set(&self, access: &SessionAccess) {
        *self.proxy.lock() = access.proxy();
        self.version.store(access.version(), Ordering::Relaxed);
        *self.acting.lock() = of(access);
    }

    /// Another account while `work` is done.
    pub(super) fn during(&self, access: &SessionAccess, work: &mut dyn FnMut()) {
        let before = std::mem::replace(&mut *self.acting.lock(), of(access));
        work();
        *self.acting.lock() = before;
    }
}

fn of(access: &SessionAccess) -> InForce {
    (access.account().clone(), access.roles().to_vec())
}
