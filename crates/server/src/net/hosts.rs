//! Connections before their login, bounded by themselves and for each address, so that whoever opens many and says nothing
//! takes places from nobody who logs in; and addresses that break off one handshake after the other.
//!
//! `back_log` is how many there may be from the network at once, half of them from one address. The unix socket has its own
//! bound of that size. Of an IPv6 address the first 64 bits count: whoever has one has as many as they like behind these.
//! `max_connect_errors` handshakes broken off without one that succeeds block an address until FLUSH HOSTS;
//! this machine is never blocked. One short mutex, twice a connection.

use super::ClientHost;
use super::driver::Driver;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

/// Addresses that are remembered for their errors alone.
const REMEMBERED: usize = 4096;

/// How clients come in: who waits at each address, and how they are answered.
#[derive(Debug, Default)]
pub struct Doors {
    /// Connections that have not logged in yet, by where they come from.
    pub public: Arc<Hosts>,
    /// The same of the administrators' own address.
    pub admin: Arc<Hosts>,
    /// How replies leave.
    pub driver: Arc<Driver>,
}

/// Half-open connections by address.
#[derive(Debug, Default)]
pub struct Hosts(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    /// The unix socket is `None`.
    hosts: HashMap<Option<IpAddr>, Host>,
    /// Half-open ones from the network.
    network: usize,
}

#[derive(Debug, Default)]
struct Host {
    half_open: usize,
    errors: u64,
}

/// Why a connection is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotLetIn {
    /// Too many have not logged in yet.
    TooMany,
    /// Too many of its address broke off.
    Blocked,
}

/// The part of an address that one client has.
fn network_of(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
        v4 => v4,
    }
}

/// A connection's place among those that have not logged in; given back when it goes.
#[derive(Debug)]
pub struct HalfOpen {
    hosts: Arc<Hosts>,
    ip: Option<IpAddr>,
    broken_off: bool,
}

impl HalfOpen {
    /// Its handshake was broken off, rather than ended by an account or by a refusal.
    pub fn broke_off(&mut self) {
        self.broken_off = true;
    }
}

impl Hosts {
    /// A place for one more.
    ///
    /// # Errors
    /// There is none.
    pub fn enter(
        self: &Arc<Self>,
        client: &ClientHost,
        limit: usize,
        max_errors: u64,
    ) -> Result<HalfOpen, NotLetIn> {
        let ip = client.ip.map(network_of);
        let mut table = self.0.lock();
        let full = ip.is_some() && table.network >= limit;
        let own = table.hosts.entry(ip).or_default();
        let own_limit = if ip.is_some() { limit.div_ceil(2) } else { limit };
        let refused = if own.errors >= max_errors && !client.is_local() {
            Some(NotLetIn::Blocked)
        } else {
            (full || own.half_open >= own_limit).then_some(NotLetIn::TooMany)
        };
        if let Some(why) = refused {
            table.tidy(ip);
            return Err(why);
        }
        own.half_open += 1;
        table.network += usize::from(ip.is_some());
        Ok(HalfOpen { hosts: self.clone(), ip, broken_off: false })
    }

    /// FLUSH HOSTS: no address is blocked any more.
    pub fn forgive(&self) {
        let mut table = self.0.lock();
        table.hosts.retain(|_, host| host.half_open > 0);
        table.hosts.values_mut().for_each(|host| host.errors = 0);
    }
}

impl Table {
    /// Forgets an address that there is nothing to know of, and all that are known for errors alone if they are many.
    fn tidy(&mut self, ip: Option<IpAddr>) {
        if self.hosts.get(&ip).is_some_and(|host| host.half_open == 0 && host.errors == 0) {
            self.hosts.remove(&ip);
        }
        if self.hosts.len() > REMEMBERED {
            self.hosts.retain(|_, host| host.half_open > 0);
        }
    }
}

impl Drop for HalfOpen {
    fn drop(&mut self) {
        let mut table = self.hosts.0.lock();
        if let Some(host) = table.hosts.get_mut(&self.ip) {
            host.half_open -= 1;
            host.errors = if self.broken_off { host.errors + 1 } else { 0 };
        }
        table.network -= usize::from(self.ip.is_some());
        table.tidy(self.ip);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn client(ip: &str) -> ClientHost {
        ClientHost::from_ip(ip.parse().unwrap())
    }

    #[test]
    fn one_address_leaves_places_for_others_and_the_network_for_the_socket() {
        let hosts = Arc::new(Hosts::default());
        let enter = |who: &ClientHost| hosts.enter(who, 6, 100);
        let mut held: Vec<_> = (0..3).map(|_| enter(&client("10.0.0.1")).unwrap()).collect();
        assert_eq!(enter(&client("10.0.0.1")).unwrap_err(), NotLetIn::TooMany);
        held.extend((0..3).map(|_| enter(&client("10.0.0.2")).unwrap()));
        assert_eq!(enter(&client("10.0.0.3")).unwrap_err(), NotLetIn::TooMany);
        held.extend((0..6).map(|_| enter(&ClientHost::local()).unwrap()));
        assert_eq!(enter(&ClientHost::local()).unwrap_err(), NotLetIn::TooMany);
        held.remove(0);
        held.push(enter(&client("10.0.0.3")).unwrap());
        drop(held);
        assert!(hosts.0.lock().hosts.is_empty() && hosts.0.lock().network == 0);
    }

    #[test]
    fn who_has_many_addresses_of_one_network_has_the_places_of_one() {
        let hosts = Arc::new(Hosts::default());
        let enter = |ip: &str| hosts.enter(&client(ip), 4, 100);
        let _held = (enter("2001:db8::1").unwrap(), enter("2001:db8::ffff:0:2").unwrap());
        assert_eq!(enter("2001:db8::3").unwrap_err(), NotLetIn::TooMany);
        let _others = (enter("2001:db8:0:1::1").unwrap(), enter("::ffff:10.0.0.1").unwrap());
        assert_eq!(enter("10.0.0.1").unwrap_err(), NotLetIn::TooMany, "the network is full");
    }

    #[test]
    fn an_address_that_keeps_breaking_off_is_blocked_until_it_is_forgiven() {
        let hosts = Arc::new(Hosts::default());
        let try_once = |ip: &str| hosts.enter(&client(ip), 10, 2);
        let break_off = |ip: &str| try_once(ip).unwrap().broke_off();
        break_off("10.0.0.1");
        drop(try_once("10.0.0.1").unwrap());
        break_off("10.0.0.1");
        break_off("10.0.0.1");
        assert_eq!(try_once("10.0.0.1").unwrap_err(), NotLetIn::Blocked);
        assert!(try_once("10.0.0.2").is_ok());
        (0..5).for_each(|_| break_off("127.0.0.1"));
        hosts.forgive();
        assert!(try_once("10.0.0.1").is_ok());
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let hosts = Arc::new(Hosts::default());
        for n in 0..10_000u32 {
            let client = ClientHost::from_ip(IpAddr::V4(n.into()));
            hosts.enter(&client, 10, 2).unwrap().broke_off();
        }
        assert!(hosts.0.lock().hosts.len() <= REMEMBERED + 1);
    }
}
