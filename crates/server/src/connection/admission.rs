//! A place among the connections, for an account that has proved who it is. Whoever has not logged in has none.

use crate::account::{Account, OwnConnection, Privileges};
use crate::errors;
use crate::net::Gate;
use crate::server::Server;
use omnibus_sql::SqlResult;
use omnibus_wire::Capability;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The privileges that give one place more than there are, and keep a connection in `offline_mode`.
const ADMIN: Privileges = Privileges::SUPER.with(Privileges::CONNECTION_ADMIN);

/// One of the places that `max_connections` counts, given back when it goes; or one at the administrators' own address.
pub struct ConnectionPlace {
    server: Arc<Server>,
    gate: Gate,
    _own: OwnConnection,
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        if self.gate == Gate::Public {
            self.server.counters.connected.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl ConnectionPlace {
    /// Gives an account's connection a place. One more than `max_connections` is for administrators.
    ///
    /// # Errors
    /// 1040 if there is none, 1227 if the account has no business at the administrators' address.
    pub(crate) fn admit(server: &Arc<Server>, account: &Account, gate: Gate) -> SqlResult<ConnectionPlace> {
        let own = own_connection(server, account, gate)?;
        let place = ConnectionPlace { server: server.clone(), gate, _own: own };
        if gate == Gate::Admin {
            return Ok(place);
        }
        let now = server.counters.connect();
        let extra = u64::from(account.grants.privileges.any(ADMIN));
        if now > server.max_connections() + extra {
            server.counters.refused_max.fetch_add(1, Ordering::Relaxed);
            return Err(errors::too_many_connections());
        }
        Ok(place)
    }

    /// Beside those of clients: an event's, for its account.
    pub(crate) fn aside(server: &Arc<Server>, account: &Account) -> SqlResult<ConnectionPlace> {
        let own = server.usage.connect(account, 0, crate::clock::now_us())?;
        Ok(ConnectionPlace { server: server.clone(), gate: Gate::Admin, _own: own })
    }

    /// COM_CHANGE_USER: the same place, for another account.
    pub(crate) fn hand_over(&mut self, account: &Account) -> SqlResult<()> {
        self._own = own_connection(&self.server, account, self.gate)?;
        Ok(())
    }
}

/// Counts a connection more of an account, wherever it has a place: also after COM_CHANGE_USER.
fn own_connection(server: &Server, account: &Account, gate: Gate) -> SqlResult<OwnConnection> {
    if gate == Gate::Admin && !account.grants.privileges.has(Privileges::SERVICE_CONNECTION_ADMIN) {
        return Err(errors::specific_access_denied("SERVICE_CONNECTION_ADMIN"));
    }
    if server.globals.named("offline_mode").as_bool() && !account.grants.privileges.any(ADMIN) {
        return Err(errors::offline());
    }
    let max = server.globals.named("max_user_connections").as_u64();
    server.usage.connect(account, max, crate::clock::now_us())
}

/// Whether the session may do nothing but give itself another password.
///
/// # Errors
/// 1862 for clients that could not do that either.
pub(crate) fn has_to_change_password(
    server: &Server,
    account: &Account,
    caps: Capability,
) -> SqlResult<bool> {
    let days = server.globals.named("default_password_lifetime").as_u64();
    if !account.options.password_is_over(crate::clock::now_us() / 1_000_000, days) {
        return Ok(false);
    }
    let disconnects = server.globals.named("disconnect_on_expired_password").as_bool();
    match disconnects && !caps.has(Capability::EXPIRED_PASSWORDS) {
        true => Err(errors::password_expired()),
        false => Ok(true),
    }
}
