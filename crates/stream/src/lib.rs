//! Changes of a running server into a distributed log that others read: Kafka, or NATS JetStream.
//!
//! At least once: a position is kept at the target behind everything that is in front of it, and whoever begins again begins
//! there. Messages of a transaction are marked with its name, their number in it, and behind the last one their count; each
//! topic has them in commit order, also when some come twice. Not here: what messages look like (`omnibus_replication::consume`).
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
