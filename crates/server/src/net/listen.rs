//! Listening sockets: TCP addresses of `bind_address`, the administrators' own of `admin_address`, and the unix socket.
//!
//! Addresses are taken before the server makes or changes anything on disk, so that a start that somebody else's port refuses
//! leaves nothing behind; nobody is let in before it is ready.

use super::socket_file::{self, SocketFile};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use tokio::net::{TcpListener, TcpSocket, UnixListener};

/// The sockets that the server listens on.
#[derive(Debug)]
pub struct Listeners {
    /// TCP, one for each address.
    pub tcp: Vec<TcpListener>,
    /// For administrators.
    pub admin: Option<TcpListener>,
    /// The unix socket.
    pub unix: Option<UnixListener>,
    _socket: Option<SocketFile>,
}

/// Where the server is to listen.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Separated by commas. Empty means no TCP; `*` is every address of both families.
    pub bind_address: String,
    /// Of each of these.
    pub port: u16,
    /// One address for administrators; empty for none.
    pub admin_address: String,
    /// Of that.
    pub admin_port: u16,
    /// The unix socket.
    pub socket: Option<PathBuf>,
}

/// Addresses that are this process's, where nobody is let in yet.
#[derive(Debug)]
pub struct Reserved {
    tcp: Vec<Bound>,
    admin: Option<Bound>,
    socket: Option<PathBuf>,
}

#[derive(Debug)]
struct Bound {
    socket: TcpSocket,
    what: String,
}

fn context(what: impl std::fmt::Display, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

impl Places {
    /// Takes all of them or none, and changes no file.
    ///
    /// # Errors
    /// One is taken, or is no address of this machine.
    pub fn reserve(&self) -> io::Result<Reserved> {
        let addresses = self.bind_address.split(',').map(str::trim).filter(|address| !address.is_empty());
        let tcp = addresses.map(|address| bind(address, self.port)).collect::<io::Result<_>>()?;
        let admin = match self.admin_address.trim() {
            "" => None,
            address => Some(bind(address, self.admin_port)?),
        };
        if let Some(path) = &self.socket {
            socket_file::is_left_behind(path)?;
        }
        Ok(Reserved { tcp, admin, socket: self.socket.clone() })
    }
}

impl Reserved {
    /// Lets clients in. Within the runtime, since the listeners register with it.
    ///
    /// # Errors
    /// As `reserve`, where somebody else was quicker.
    pub fn listen(self, backlog: u32) -> io::Result<Listeners> {
        let listen = |bound: Bound| bound.socket.listen(backlog).map_err(|e| listening(&bound.what, e));
        let tcp = self.tcp.into_iter().map(listen).collect::<io::Result<_>>()?;
        let admin = self.admin.map(listen).transpose()?;
        let (unix, socket) = match self.socket.as_deref().map(socket_file::listen).transpose()? {
            Some((listener, file)) => (Some(listener), Some(file)),
            None => (None, None),
        };
        Ok(Listeners { tcp, admin, unix, _socket: socket })
    }
}

fn bind(address: &str, port: u16) -> io::Result<Bound> {
    let what = format!("can't listen on {address} port {port}");
    let bind_ip = |ip: IpAddr| -> io::Result<TcpSocket> {
        let socket = if ip.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_reuseaddr(true)?;
        socket.bind((ip, port).into())?;
        Ok(socket)
    };
    let socket = if address == "*" {
        // A dual-stack socket first; a machine without IPv6 gets IPv4.
        bind_ip(Ipv6Addr::UNSPECIFIED.into()).or_else(|e| match e.kind() {
            io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied => Err(e),
            _ => bind_ip(Ipv4Addr::UNSPECIFIED.into()),
        })
    } else {
        bind_ip(resolve(address, port)?)
    };
    match socket {
        Ok(socket) => Ok(Bound { socket, what }),
        Err(error) => Err(listening(&what, error)),
    }
}

fn resolve(address: &str, port: u16) -> io::Result<IpAddr> {
    if let Ok(ip) = address.parse() {
        return Ok(ip);
    }
    let found = std::net::ToSocketAddrs::to_socket_addrs(&(address, port))
        .map_err(|e| context(format!("bind_address {address}"), e))?
        .next();
    found
        .map(|found| found.ip())
        .ok_or_else(|| io::Error::other(format!("bind_address {address}: no address")))
}

fn listening(what: &str, error: io::Error) -> io::Error {
    let hint = hint(&error);
    io::Error::new(error.kind(), format!("{what}: {error}{hint}"))
}

/// A hint on what to do, where the system's words do not say it.
fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "; stop who listens there, or choose another one with --port=N",
        io::ErrorKind::AddrNotAvailable => "; --bind-address has to be an address of this machine",
        io::ErrorKind::PermissionDenied => "; choose one above 1023 with --port=N",
        _ => "",
    }
}
