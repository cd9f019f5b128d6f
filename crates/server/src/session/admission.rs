//! A place among the connections, for an account that has proved who it is. Whoever has not logged in has none.

use crate::account::{Account, Privileges};
use crate::arrival::Gate;
use crate::errors;
use crate::server::Server;
use omnibus_sql::SqlResult;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// One of the places that `max_connections` counts, given back when it goes; or one at the administrators' own address.
pub struct Place {
    server: Arc<Server>,
    gate: Gate,
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.gate == Gate::Public {
            self.server.counters.connected.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Server {
    /// Gives an account's connection a place. One more than `max_connections` is for administrators.
    ///
    /// # Errors
    /// 1040 if there is none, 1227 if the account has no business at the administrators' address.
    pub(crate) fn admit(self: &Arc<Self>, account: &Account, gate: Gate) -> SqlResult<Place> {
        if gate == Gate::Admin {
            if !account.privileges.has(Privileges::SERVICE_CONNECTION_ADMIN) {
                return Err(errors::specific_access_denied("SERVICE_CONNECTION_ADMIN"));
            }
            return Ok(Place { server: self.clone(), gate });
        }
        let now = self.counters.connect();
        let place = Place { server: self.clone(), gate };
        let admin = Privileges::SUPER.with(Privileges::CONNECTION_ADMIN);
        let extra = u64::from(account.privileges.any(admin));
        if now > self.max_connections() + extra {
            self.counters.refused_max.fetch_add(1, Ordering::Relaxed);
            return Err(errors::too_many_connections());
        }
        Ok(place)
    }
}
