//! The client side of the protocol, for replicas and readers of logs: connect, authenticate, query, and read a dump.
//!
//! It uses blocking sockets, because a receiver has a thread of its own; packets are `wire`'s. The meaning of events
//! and the decision to reconnect are in `crate::replica`. Nothing that a source sends makes this code panic, loop, or
//! allocate more than was sent (WIRE-1).
//!
//! Called by receiver threads, by `omnibus binlog` and by `omnibus import`; a [`Remote`] is the only part that another thread may use.

mod auth;
mod back_off;
mod compressing;
mod connection;
mod dump;
mod error;
mod introduce;
mod log_stream;
pub mod rows;
mod secrets;
mod tls;
mod transport;

pub use back_off::{BackOff, Pause};
pub use compressing::{CompressionChoice, NoAlgorithm};
pub use connection::{Connection, Endpoint, Row};
pub use dump::{DumpOptions, DumpPacket, DumpStart};
pub use error::ClientError;
pub use introduce::{Introduction, Reader, SourceFacts};
pub use log_stream::{LogSource, LogStream, Said, StreamError};
pub use secrets::{percent_decoded, without_secrets};
pub use tls::TlsSettings;
pub use transport::Remote;
