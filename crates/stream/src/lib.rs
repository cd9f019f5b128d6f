//! Changes of a running server into a distributed log that others read: Kafka, or NATS JetStream.
//!
//! Delivery is at least once: a position is kept at the target behind the messages before it, and a restarted stream
//! begins there. Messages of a transaction have its name, their number in it, and the last one their count; each topic
//! has them in commit order, even if some are repeated. The form of messages is in `omnibus_replication::consume`.
//!
//! Reading is blocking, on the caller's thread; what is sent is waited for there, so at most one batch is in memory and the
//! server's log is what buffers.

mod error;
mod kafka;
mod login;
mod message;
mod nats;
mod place;
mod run;
mod target;

pub use error::StreamError;
pub use login::{Login, Mechanism, secret};
pub use message::Form;
pub use place::{Start, StreamPosition};
pub use run::{Note, StreamOptions, run};
pub use target::Target;
