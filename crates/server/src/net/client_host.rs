//! Where a client comes from.

use std::net::IpAddr;

/// Where a connection comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientHost {
    /// Its address; none on a unix socket.
    pub ip: Option<IpAddr>,
}

impl ClientHost {
    /// The host of a client at the unix socket.
    #[must_use]
    pub fn local() -> ClientHost {
        ClientHost { ip: None }
    }

    /// A TCP peer. IPv4 addresses inside IPv6 are IPv4 addresses.
    #[must_use]
    pub fn from_ip(ip: IpAddr) -> ClientHost {
        ClientHost { ip: Some(ip.to_canonical()) }
    }

    /// Whether it is this machine, which accounts call `localhost`.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.ip.is_none_or(|ip| ip.is_loopback())
    }

    /// As error messages and the process list name it.
    #[must_use]
    pub fn name(&self) -> String {
        match self.ip {
            Some(ip) if !ip.is_loopback() => ip.to_string(),
            _ => "localhost".into(),
        }
    }
}
