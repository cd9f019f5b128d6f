//! Transports bytes to and from the source over TCP, with or without TLS, or over a socket of the machine.
//!
//! One thread reads; another may write (acknowledgements) or end the connection through a [`Remote`]. The state of TLS
//! is under a lock that is never held while waiting for the network.

use super::compressing::{Frames, framed};
use super::connection::Endpoint;
use super::error::ClientError;
use omnibus_wire::compressed::Compression;
use parking_lot::Mutex;
use rustls::ClientConnection;
use socket2::{Domain, Socket as Socket2, Type};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

const TLS_CHUNK: usize = 32 * 1024;

/// A socket of either kind.
#[derive(Debug)]
enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Calls the same method of either kind.
macro_rules! either {
    ($socket:expr, $inner:ident => $call:expr) => {
        match $socket {
            Socket::Tcp($inner) => $call,
            Socket::Unix($inner) => $call,
        }
    };
}

impl Socket {
    fn try_clone(&self) -> io::Result<Socket> {
        Ok(match self {
            Socket::Tcp(socket) => Socket::Tcp(socket.try_clone()?),
            Socket::Unix(socket) => Socket::Unix(socket.try_clone()?),
        })
    }
}

impl Read for &Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        either!(self, socket => (&mut &*socket).read(into))
    }
}

impl Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        either!(self, socket => (&mut &*socket).write(bytes))
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An open connection's socket.
pub(super) struct Transport {
    socket: Socket,
    tls: Option<Arc<Mutex<ClientConnection>>>,
    /// Bytes from the socket that TLS has not taken yet.
    chunk: Vec<u8>,
    /// The number of bytes of `chunk` that TLS has taken, and the number of bytes in it.
    taken: usize,
    filled: usize,
    /// The compressed protocol, above TLS.
    frames: Option<Frames>,
}

/// A handle to a connection for another thread than its reader's.
#[derive(Debug)]
pub struct Remote {
    socket: Socket,
    tls: Option<Arc<Mutex<ClientConnection>>>,
    compression: Option<Compression>,
}

impl Remote {
    /// Ends the connection: its reader gets an error at once.
    pub fn stop(&self) {
        let _ = either!(&self.socket, socket => socket.shutdown(Shutdown::Both));
    }

    /// Sends bytes. The reader must not send at the same time, which in a dump it does not.
    pub(super) fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        write_all(&self.socket, self.tls.as_deref(), self.compression, bytes)
    }
}

impl Transport {
    /// Connects to the first address that answers in time, unless `given_up` returns true. Neither finding addresses
    /// nor connecting can be interrupted, so a thread of its own does that.
    pub(super) fn connect(
        endpoint: &Endpoint,
        given_up: &dyn Fn() -> bool,
    ) -> Result<Transport, ClientError> {
        let (sender, connected) = sync_channel(1);
        let wanted = endpoint.clone();
        std::thread::Builder::new()
            .name("replica-connect".into())
            .spawn(move || drop(sender.send(connect_any(&wanted))))
            .map_err(|error| ClientError::Lost(error.to_string()))?;
        loop {
            match connected.recv_timeout(Duration::from_millis(20)) {
                Ok(socket) => return socket.map(|socket| Transport::of(Socket::Tcp(socket))),
                Err(RecvTimeoutError::Timeout) if !given_up() => {}
                Err(_) => return Err(ClientError::Ended),
            }
        }
    }

    /// Connects to a server of this machine.
    pub(super) fn connect_local(path: &Path) -> Result<Transport, ClientError> {
        let failed = |error: io::Error| ClientError::Connect {
            address: path.display().to_string(),
            reason: error.to_string(),
        };
        Ok(Transport::of_local(UnixStream::connect(path).map_err(failed)?))
    }

    /// Creates the transport of a stream within this machine.
    pub(super) fn of_local(stream: UnixStream) -> Transport {
        Transport::of(Socket::Unix(stream))
    }

    fn of(socket: Socket) -> Transport {
        Transport { socket, tls: None, chunk: Vec::new(), taken: 0, filled: 0, frames: None }
    }

    /// Sets the maximum duration of a read or write.
    pub(super) fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        let timeout = Some(timeout.max(Duration::from_millis(1)));
        either!(&self.socket, socket => socket.set_read_timeout(timeout))?;
        either!(&self.socket, socket => socket.set_write_timeout(timeout))
    }

    /// Returns a handle for another thread. Get a new one after [`Transport::start_tls`] and [`Transport::compress`].
    pub(super) fn remote(&self) -> io::Result<Remote> {
        let compression = self.compression();
        Ok(Remote { socket: self.socket.try_clone()?, tls: self.tls.clone(), compression })
    }

    /// Compresses both directions from now on. No byte may have arrived since the login.
    pub(super) fn compress(&mut self, compression: Compression) {
        self.frames = Some(Frames::new(compression));
    }

    /// Returns whether [`Transport::compress`] was called.
    pub(super) fn is_compressed(&self) -> bool {
        self.frames.is_some()
    }

    fn compression(&self) -> Option<Compression> {
        self.frames.as_ref().map(|frames| frames.compression)
    }

    /// Puts TLS around a plain connection.
    pub(super) fn start_tls(&mut self, mut client: ClientConnection) -> io::Result<()> {
        while client.is_handshaking() {
            client.complete_io(&mut &self.socket)?;
        }
        self.tls = Some(Arc::new(Mutex::new(client)));
        self.chunk = vec![0; TLS_CHUNK];
        Ok(())
    }

    /// Returns whether the connection is encrypted.
    pub(super) fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Returns whether the connection stays within this machine's kernel.
    pub(super) fn is_local(&self) -> bool {
        matches!(self.socket, Socket::Unix(_))
    }

    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(mut frames) = self.frames.take() else { return self.read_plain(into) };
        let read = frames.read(into, &mut |chunk| self.read_plain(chunk));
        self.frames = Some(frames);
        read
    }

    fn read_plain(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &self.tls else { return read_some(&self.socket, into) };
        loop {
            match tls.lock().reader().read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
            // Outside of the lock: a thread that acknowledges must not wait for the source to say something.
            if self.taken == self.filled {
                (self.taken, self.filled) = (0, read_some(&self.socket, &mut self.chunk)?);
                if self.filled == 0 {
                    return Ok(0);
                }
            }
            let mut client = tls.lock();
            // TLS takes a part where its own buffer is full; the plaintext is read then, and the rest taken.
            self.taken += client.read_tls(&mut &self.chunk[self.taken..self.filled])?;
            client.process_new_packets().map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
            while client.wants_write() {
                client.write_tls(&mut (&self.socket))?;
            }
        }
    }

    pub(super) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        write_all(&self.socket, self.tls.as_deref(), self.compression(), bytes)
    }
}

fn connect_any(endpoint: &Endpoint) -> Result<TcpStream, ClientError> {
    let (host, port) = (&*endpoint.host, endpoint.port);
    let from = endpoint.bind.as_deref().map(|bind| addresses(bind, 0)).transpose()?;
    let mut reason = "no address".to_owned();
    for address in addresses(host, port)? {
        let connected = match &from {
            None => TcpStream::connect_timeout(&address, endpoint.connect_timeout),
            Some(from) => connect_from(from, address, endpoint.connect_timeout),
        };
        match connected {
            Ok(socket) => {
                let _ = socket.set_nodelay(true);
                return Ok(socket);
            }
            Err(error) => reason = error.to_string(),
        }
    }
    Err(ClientError::Connect { address: format!("{host}:{port}"), reason })
}

fn addresses(host: &str, port: u16) -> Result<Vec<SocketAddr>, ClientError> {
    let found = (host, port).to_socket_addrs();
    found.map(Iterator::collect).map_err(|_| ClientError::UnknownHost(host.to_owned()))
}

/// Connects from the first local address of the same family.
fn connect_from(from: &[SocketAddr], to: SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
    let mine = from.iter().find(|mine| mine.is_ipv4() == to.is_ipv4());
    let mine = mine.ok_or_else(|| io::Error::other("SOURCE_BIND is an address of another family"))?;
    let socket = Socket2::new(Domain::for_address(to), Type::STREAM, None)?;
    socket
        .bind(&(*mine).into())
        .map_err(|error| io::Error::new(error.kind(), format!("SOURCE_BIND: {}: {error}", mine.ip())))?;
    socket.connect_timeout(&to.into(), timeout)?;
    Ok(socket.into())
}

fn read_some(mut socket: &Socket, into: &mut [u8]) -> io::Result<usize> {
    loop {
        match socket.read(into) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

fn write_all(
    mut socket: &Socket,
    tls: Option<&Mutex<ClientConnection>>,
    compression: Option<Compression>,
    bytes: &[u8],
) -> io::Result<()> {
    let frames = compression.map(|compression| framed(bytes, compression));
    let bytes = frames.as_deref().unwrap_or(bytes);
    let Some(tls) = tls else { return socket.write_all(bytes) };
    let mut client = tls.lock();
    client.writer().write_all(bytes)?;
    while client.wants_write() {
        client.write_tls(&mut socket)?;
    }
    Ok(())
}
