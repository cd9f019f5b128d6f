//! The parts of a channel, without SQL: its settings, the receiver thread, the queue behind it, filters, the order of
//! transactions, and its status.
//!
//! There are no relay logs. The applied position is part of each transaction's data, so after any failure the source is
//! asked again from there. Received transactions that are not applied are only in memory, which is bounded; TCP makes a
//! source wait whose replica cannot follow. Execution is in `crate::changes` and in the server.

mod config;
mod filter;
mod filtered;
mod group;
mod position;
mod queue;
mod receiver;
mod schedule;
mod status;
mod until;
mod writeset;

pub use config::{AssignGtids, ChannelConfig, GtidUse};
pub use filter::{Filters, wild_match};
pub use filtered::{Changed, Filtered, StatementTables};
pub use group::{EventBuf, Feed, Grouper, Item, Received};
pub use position::{ChannelPosition, SourcePosition};
pub use queue::Queue;
pub use receiver::{Receiver, ReceiverSettings, Refusal, Refuses, Resume, ResumeFrom};
pub use schedule::{Schedule, Turn, Turns};
pub use status::{ChannelStatus, ErrorAt, IoRunning, StatusData, TrxTimes};
pub use until::Until;
pub use writeset::{KeySource, TableKeys, WriteSet, WriteSets};

#[cfg(test)]
mod tests;
