//! One connection's byte stream: TCP or unix socket, plain or in TLS, compressed or not.
//!
//! The TLS state is boxed, so that a plain connection stays small. A [`Twin`] is for a thread that sends much and may block.

use super::compressed::Compressed;
use super::outbox::Plain;
use super::room::Room;
use omnibus_wire::compressed::Compression;
use std::io::{self, IoSlice, Write};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A byte stream.
#[derive(Debug)]
pub enum Stream {
    /// TCP.
    Tcp(Plain<TcpStream>),
    /// Unix socket.
    Unix(Plain<UnixStream>),
    /// TLS over either.
    Tls(Box<TlsStream<Rewound>>),
    /// Any of them, compressed.
    Compressed(Box<Compressed>),
    /// Between two states, and after a failed upgrade.
    Gone,
}

/// A plain stream with bytes that were read from it too early: a client may send its TLS hello
/// together with the SSLRequest before it.
#[derive(Debug)]
pub struct Rewound {
    early: Vec<u8>,
    at: usize,
    stream: Stream,
}

/// The properties of a connection that accounts may require.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transport {
    /// Its cipher suite as OpenSSL names it, if it is encrypted.
    pub cipher: Option<String>,
    /// Subject and issuer of the client's certificate, which has been verified.
    pub certificate: Option<(String, String)>,
}

impl From<TcpStream> for Stream {
    fn from(socket: TcpStream) -> Stream {
        Stream::Tcp(Plain::new(socket))
    }
}

impl From<UnixStream> for Stream {
    fn from(socket: UnixStream) -> Stream {
        Stream::Unix(Plain::new(socket))
    }
}

impl Stream {
    /// Leaves a short reply to the end of the thread's turn, where replies of many sockets leave together; false if it has to be
    /// written now.
    pub(super) fn post(&mut self, cx: &Context<'_>, bytes: &[u8]) -> bool {
        match self {
            Stream::Tcp(s) => s.post(cx, bytes),
            Stream::Unix(s) => s.post(cx, bytes),
            Stream::Tls(_) | Stream::Compressed(_) | Stream::Gone => false,
        }
    }

    /// Whether the peer did not take a reply that was left to the end of a turn.
    #[must_use]
    pub fn is_stuck(&self) -> bool {
        match self {
            Stream::Tcp(s) => s.is_stuck(),
            Stream::Unix(s) => s.is_stuck(),
            Stream::Tls(_) | Stream::Compressed(_) | Stream::Gone => false,
        }
    }

    /// Below compression.
    fn under(&self) -> &Stream {
        match self {
            Stream::Compressed(compressed) => compressed.under(),
            other => other,
        }
    }

    /// The number of the socket below it all.
    #[must_use]
    pub fn socket(&self) -> Option<RawFd> {
        match self.under() {
            Stream::Tcp(stream) => Some(stream.socket().as_raw_fd()),
            Stream::Unix(stream) => Some(stream.socket().as_raw_fd()),
            Stream::Tls(tls) => tls.get_ref().0.stream.socket(),
            Stream::Compressed(_) | Stream::Gone => None,
        }
    }

    /// Whether what was written may still be here, and has to be flushed.
    #[must_use]
    pub fn keeps_back(&self) -> bool {
        matches!(self, Stream::Tls(_) | Stream::Compressed(_))
    }

    /// Everything from now on is compressed. `early` are bytes already read.
    pub fn compress(&mut self, compression: Compression, early: Vec<u8>, room: Option<Room>) {
        let stream = std::mem::replace(self, Stream::Gone);
        *self = Stream::Compressed(Box::new(Compressed::new(stream, compression, early, room)));
    }

    /// The compression, if there is one.
    pub fn compressed(&mut self) -> Option<&mut Compressed> {
        match self {
            Stream::Compressed(compressed) => Some(compressed),
            _ => None,
        }
    }

    /// Whether a clear-text password may travel: in TLS, or within this machine's kernel.
    #[must_use]
    pub fn is_private(&self) -> bool {
        matches!(self.under(), Stream::Tls(_) | Stream::Unix(_))
    }

    /// Its properties that accounts may require.
    #[must_use]
    pub fn transport(&self) -> Transport {
        let Stream::Tls(tls) = self.under() else { return Transport::default() };
        let (_, session) = tls.get_ref();
        let shown = session.peer_certificates().and_then(|chain| super::certificate::names(chain.first()?));
        Transport { cipher: self.tls_names().map(|(_, cipher)| cipher), certificate: shown }
    }

    /// TLS version and cipher suite names, if any, as OpenSSL has them.
    #[must_use]
    pub fn tls_names(&self) -> Option<(String, String)> {
        let Stream::Tls(tls) = self.under() else { return None };
        let (_, session) = tls.get_ref();
        let version = match session.protocol_version() {
            Some(tokio_rustls::rustls::ProtocolVersion::TLSv1_2) => "TLSv1.2",
            _ => "TLSv1.3",
        };
        let cipher = session.negotiated_cipher_suite().and_then(|s| s.suite().as_str()).unwrap_or("");
        Some((version.into(), openssl_name(cipher)))
    }

    /// Turns a plain stream into a TLS one. `early` are bytes already read past the SSLRequest.
    pub async fn upgrade(&mut self, acceptor: &Arc<TlsAcceptor>, early: Vec<u8>) -> io::Result<()> {
        let plain = std::mem::replace(self, Stream::Gone);
        let tls = acceptor.accept(Rewound { early, at: 0, stream: plain }).await?;
        *self = Stream::Tls(Box::new(tls));
        Ok(())
    }
}

/// `TLS13_AES_256_GCM_SHA384` is `TLS_AES_256_GCM_SHA384` there, `TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384` of older versions
/// `ECDHE-RSA-AES256-GCM-SHA384`.
fn openssl_name(name: &str) -> String {
    if let Some(rest) = name.strip_prefix("TLS13_") {
        return format!("TLS_{rest}");
    }
    let rest = name.strip_prefix("TLS_").unwrap_or(name).replace("_WITH_", "_");
    let rest = rest.replace("AES_", "AES").replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305");
    rest.replace('_', "-")
}

/// A second handle of a plain stream's socket whose writes block, for the time that it lives. Nothing else may use the
/// stream meanwhile: whoever holds the stream makes it, and drops it on the same thread.
#[derive(Debug)]
pub enum Twin {
    /// TCP.
    Tcp(std::net::TcpStream),
    /// Unix socket.
    Unix(std::os::unix::net::UnixStream),
}

impl Twin {
    /// Of a stream that is not encrypted; a write that gets nowhere for `patience` gives up.
    ///
    /// # Errors
    /// The operating system refused.
    pub fn of(stream: &mut Stream, patience: Duration) -> io::Result<Option<Twin>> {
        let twin = match stream {
            Stream::Tcp(s) => Twin::Tcp(s.socket().as_fd().try_clone_to_owned()?.into()),
            Stream::Unix(s) => Twin::Unix(s.socket().as_fd().try_clone_to_owned()?.into()),
            Stream::Tls(_) | Stream::Compressed(_) | Stream::Gone => return Ok(None),
        };
        match &twin {
            Twin::Tcp(s) => s.set_write_timeout(Some(patience))?,
            Twin::Unix(s) => s.set_write_timeout(Some(patience))?,
        }
        twin.set_nonblocking(false)?;
        Ok(Some(twin))
    }

    fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        match self {
            Twin::Tcp(s) => s.set_nonblocking(nonblocking),
            Twin::Unix(s) => s.set_nonblocking(nonblocking),
        }
    }

    /// Writes as much of `slices` as goes. `None` if nothing did for as long as the twin is patient.
    ///
    /// # Errors
    /// The connection failed.
    pub fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
        loop {
            let written = match self {
                Twin::Tcp(s) => s.write_vectored(slices),
                Twin::Unix(s) => s.write_vectored(slices),
            };
            return match written {
                Ok(0) => Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => Ok(Some(count)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    Ok(None)
                }
                Err(error) => Err(error),
            };
        }
    }
}

impl Drop for Twin {
    fn drop(&mut self) {
        // The flag belongs to the socket that both have.
        let _ = self.set_nonblocking(true);
    }
}

fn gone() -> io::Error {
    io::Error::from(io::ErrorKind::NotConnected)
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(s) => Pin::new(s).poll_read(cx, buf),
            Stream::Unix(s) => Pin::new(s).poll_read(cx, buf),
            Stream::Tls(s) => Pin::new(s.as_mut()).poll_read(cx, buf),
            Stream::Compressed(s) => Pin::new(s.as_mut()).poll_read(cx, buf),
            Stream::Gone => Poll::Ready(Err(gone())),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Tcp(s) => Pin::new(s).poll_write(cx, buf),
            Stream::Unix(s) => Pin::new(s).poll_write(cx, buf),
            Stream::Tls(s) => Pin::new(s.as_mut()).poll_write(cx, buf),
            Stream::Compressed(s) => Pin::new(s.as_mut()).poll_write(cx, buf),
            Stream::Gone => Poll::Ready(Err(gone())),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Tcp(s) => Pin::new(s).poll_write_vectored(cx, slices),
            Stream::Unix(s) => Pin::new(s).poll_write_vectored(cx, slices),
            Stream::Tls(s) => Pin::new(s.as_mut()).poll_write_vectored(cx, slices),
            Stream::Compressed(s) => Pin::new(s.as_mut()).poll_write_vectored(cx, slices),
            Stream::Gone => Poll::Ready(Err(gone())),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(s) => Pin::new(s).poll_flush(cx),
            Stream::Unix(s) => Pin::new(s).poll_flush(cx),
            Stream::Tls(s) => Pin::new(s.as_mut()).poll_flush(cx),
            Stream::Compressed(s) => Pin::new(s.as_mut()).poll_flush(cx),
            Stream::Gone => Poll::Ready(Err(gone())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(s) => Pin::new(s).poll_shutdown(cx),
            Stream::Unix(s) => Pin::new(s).poll_shutdown(cx),
            Stream::Tls(s) => Pin::new(s.as_mut()).poll_shutdown(cx),
            Stream::Compressed(s) => Pin::new(s.as_mut()).poll_shutdown(cx),
            Stream::Gone => Poll::Ready(Ok(())),
        }
    }
}

impl AsyncRead for Rewound {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let left = this.early.get(this.at..).unwrap_or(&[]);
        if left.is_empty() {
            this.early = Vec::new();
            return Pin::new(&mut this.stream).poll_read(cx, buf);
        }
        let n = left.len().min(buf.remaining());
        buf.put_slice(&left[..n]);
        this.at += n;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Rewound {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, buf)
    }
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
