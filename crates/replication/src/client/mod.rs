//! The client side of the protocol, as far as a replica and a reader of logs need it: connect, authenticate, ask, and
//! read a dump.
//!
//! Blocking sockets, because a receiver has a thread of its own; packets are `wire`'s. Not here: what the events mean
//! and when to connect again (`crate::replica`). Nothing a source sends makes this panic, loop, or allocate more than
//! it sent (WIRE-1).
//!
//! Called by receiver threads and by `omnibus binlog`; a [`Remote`] is the one thing that another thread may touch.

mod auth;
mod compressing;
mod connection;
mod dump;
mod error;
mod introduce;
mod log_stream;
mod secrets;
mod tls;
mod transport;

pub use compressing::{CompressionChoice, NoAlgorithm};
pub use connection::{Connection, Endpoint, Row};
pub use dump::{DumpPacket, DumpRequest, DumpStart};
pub use error::ClientError;
pub use introduce::{Introduction, Reader, SourceFacts};
pub use log_stream::{LogSource, LogStream, Said, StreamError};
pub use secrets::without_secrets;
pub use tls::TlsSettings;
pub use transport::Remote;
