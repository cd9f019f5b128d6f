//! Sockets: streams, packets over them, TLS, listeners. Not the meaning of a packet.

mod arrival;
mod certificate;
mod client_host;
mod compressed;
mod driver;
mod hosts;
mod listen;
mod outbox;
mod packet_stream;
mod ring;
mod room;
mod socket_file;
mod stream;
mod tls;
mod turn;
#[cfg(test)]
mod turn_tests;

pub use arrival::{Arrival, Gate};
pub use client_host::ClientHost;
pub use compressed::broken_frame;
pub use driver::Driver;
pub use hosts::{Doors, HalfOpen, NotLetIn};
pub use listen::{Listeners, Places, Reserved};
pub use packet_stream::{NetError, PacketStream, Timeouts, send, send_rest};
pub use room::Room;
pub use stream::{Stream, Transport, Twin};
pub use tls::{TlsFiles, acceptor};
pub use turn::{begin as begin_turn, blocking, end as end_turn};

/// Writes a file that only its owner may read.
pub fn write_private(path: &std::path::Path, text: &str) -> std::io::Result<()> {
    tls::write(path, text, true)
}
