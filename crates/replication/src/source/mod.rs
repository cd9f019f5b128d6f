//! The source's side of a replication stream: the requests of replicas and change-stream clients, and the packets sent
//! to them.
//!
//! Pure but for reading the log: no sockets, no async runtime. `server::dump` carries the bytes.
//!
//! | file | content |
//! |---|---|
//! | `request` | COM_REGISTER_SLAVE, COM_BINLOG_DUMP and COM_BINLOG_DUMP_GTID as bytes |
//! | `peer` | the client's properties, from user variables |
//! | `block` | runs of whole events, read once and shared |
//! | `hub` | the newest blocks in memory, for all who follow the log's end |
//! | `stream` | events to packets: what is skipped, changed, added |
//! | `parts` | packets to send, with long events straight from their block |
//! | `find` | the file in which a stream by GTID begins |
//! | `filter` | the transactions that a client by GTID has already |
//! | `acks` | the positions that semi-synchronous replicas acknowledged |
//! | `error` | the reason why a stream ends, as error 1236 |
//!
//! COMMIT-2: nothing is sent before it is durable, because nothing beyond the durable end is read.

pub mod acks;
pub mod block;
pub mod error;
pub mod filter;
pub mod find;
pub mod hub;
pub mod parts;
pub mod peer;
pub mod request;
pub mod stream;

pub use block::{Block, BlockReader, BlockStep};
pub use error::SourceError;
pub use filter::{Filter, MariadbFilter};
pub use hub::{Found, Hub};
pub use parts::{Parts, Unsent};
pub use peer::{Peer, WantedChecksum};
pub use request::{DumpRequest, Registration};
pub use stream::Stream;

#[cfg(test)]
mod stream_tests;
#[cfg(test)]
mod tests;
