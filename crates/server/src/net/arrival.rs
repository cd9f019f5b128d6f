//! A connection that has just come.

use super::{ClientHost, HalfOpen, Stream};

/// The address that a connection came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Anybody's.
    Public,
    /// `admin_address`: for accounts with SERVICE_CONNECTION_ADMIN, however many others are connected.
    Admin,
}

/// A connection that nobody has logged in on.
#[derive(Debug)]
pub struct Arrival {
    /// Its bytes.
    pub stream: Stream,
    /// Where it comes from.
    pub client: ClientHost,
    /// From which port; 0 on a unix socket.
    pub port: u16,
    /// Where it came to.
    pub gate: Gate,
    /// Its place among those that have not logged in.
    pub half_open: HalfOpen,
}
