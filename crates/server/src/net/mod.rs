//! Sockets: streams, packets over them, TLS, listeners. Not the meaning of a packet.

mod arrival;
mod certificate;
mod channel;
mod client_host;
mod compressed;
mod hosts;
mod listen;
mod room;
mod socket_file;
mod stream;
mod tls;

pub use arrival::{Arrival, Gate};
pub use channel::{Channel, NetError, send};
pub use client_host::ClientHost;
pub use compressed::broken_frame;
pub use hosts::{HalfOpen, Hosts, NotLetIn};
pub use listen::{Listeners, Places, Reserved};
pub use room::Room;
pub use stream::{Stream, Transport, Twin};
pub use tls::{TlsFiles, acceptor};

/// Writes a file that only its owner may read.
pub fn write_private(path: &std::path::Path, text: &str) -> std::io::Result<()> {
    tls::write(path, text, true)
}
