//! The client at the other end: since the login, or since COM_CHANGE_USER.

use super::access::SessionAccess;
use super::admission::ConnectionPlace;
use crate::account::Account;
use crate::net::ClientHost;
use std::sync::Arc;

/// See the module.
pub(crate) struct Login {
    /// Where from.
    pub(crate) host: ClientHost,
    /// Name the client gave at login.
    pub(crate) user: String,
    /// The rights of the account.
    pub(crate) access: SessionAccess,
    /// Given back when the session goes.
    pub(crate) place: ConnectionPlace,
}

impl Login {
    /// The account, as it is in the present table; a dropped one keeps nothing.
    pub(crate) fn account(&self) -> &Arc<Account> {
        self.access.account()
    }
}
