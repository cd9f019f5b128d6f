//! Listening sockets: TCP addresses of `bind_address` and the unix socket with its lock file.

use std::io;
use std::path::{Path, PathBuf};
use tokio::net::{TcpListener, TcpSocket, UnixListener};

/// The longest name of a Unix socket on Linux.
const SOCKET_PATH_MAX: usize = 107;

/// What the server listens on.
#[derive(Debug)]
pub struct Listeners {
    /// TCP, one for each address.
    pub tcp: Vec<TcpListener>,
    /// The unix socket.
    pub unix: Option<UnixListener>,
    socket_path: Option<PathBuf>,
}

impl Drop for Listeners {
    fn drop(&mut self) {
        if let Some(path) = &self.socket_path {
            let _ = std::fs::remove_file(path);
            let _ = std::fs::remove_file(lock_path(path));
        }
    }
}

fn lock_path(socket: &Path) -> PathBuf {
    let mut name = socket.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

fn context(what: impl std::fmt::Display, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

/// Binds everything or nothing. Within the runtime, since the listeners register with it. An empty
/// `bind_address` means no TCP; `*` is every address of both families.
pub fn bind(bind_address: &str, port: u16, backlog: u32, socket: Option<&Path>) -> io::Result<Listeners> {
    let mut listeners = Listeners { tcp: Vec::new(), unix: None, socket_path: None };
    for address in bind_address.split(',').map(str::trim).filter(|a| !a.is_empty()) {
        listeners.tcp.push(bind_tcp(address, port, backlog)?);
    }
    if let Some(path) = socket {
        listeners.unix = Some(bind_unix(path)?);
        listeners.socket_path = Some(path.to_owned());
    }
    Ok(listeners)
}

fn bind_tcp(address: &str, port: u16, backlog: u32) -> io::Result<TcpListener> {
    let what = format!("can't listen on {address} port {port}");
    let listen = |ip: std::net::IpAddr| -> io::Result<TcpListener> {
        let socket = if ip.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_reuseaddr(true)?;
        socket.bind((ip, port).into())?;
        socket.listen(backlog)
    };
    if address == "*" {
        // A dual-stack socket first; a machine without IPv6 gets IPv4.
        return listen(std::net::Ipv6Addr::UNSPECIFIED.into())
            .or_else(|e| match e.kind() {
                io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied => Err(e),
                _ => listen(std::net::Ipv4Addr::UNSPECIFIED.into()),
            })
            .map_err(|e| listening(&what, e));
    }
    let ips: Vec<std::net::IpAddr> = match address.parse() {
        Ok(ip) => vec![ip],
        Err(_) => std::net::ToSocketAddrs::to_socket_addrs(&(address, port))
            .map_err(|e| context(format!("bind_address {address}"), e))?
            .map(|a| a.ip())
            .collect(),
    };
    let ip = ips.first().ok_or_else(|| io::Error::other(format!("bind_address {address}: no address")))?;
    listen(*ip).map_err(|e| listening(&what, e))
}

fn listening(what: &str, error: io::Error) -> io::Error {
    let hint = hint(&error);
    io::Error::new(error.kind(), format!("{what}: {error}{hint}"))
}

/// What to do about it, where the system's words do not say it.
fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "; stop who listens there, or choose another one with --port=N",
        io::ErrorKind::AddrNotAvailable => "; --bind-address has to be an address of this machine",
        io::ErrorKind::PermissionDenied => "; choose one above 1023 with --port=N",
        _ => "",
    }
}

/// A socket file of a server that is gone is replaced; one that answers is not.
fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    let what = format!("can't listen on unix socket {}", path.display());
    let len = path.as_os_str().len();
    if len > SOCKET_PATH_MAX {
        let why = format!(
            "{what}: its name has {len} bytes, at most {SOCKET_PATH_MAX} are possible; choose a shorter one with --socket=PATH"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    if path.exists() {
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(io::Error::new(
                io::ErrorKind::AddrInUse,
                format!("{what}: another server is listening there; choose another one with --socket=PATH"),
            ));
        }
        std::fs::remove_file(path).map_err(|e| context(&what, e))?;
    }
    let listener = UnixListener::bind(path).map_err(|e| context(&what, e))?;
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(path, everybody).map_err(|e| context(&what, e))?;
    // Clients and package scripts look at MySQL's lock file for the process id.
    let _ = std::fs::write(lock_path(path), format!("{}\n", std::process::id()));
    Ok(listener)
}
