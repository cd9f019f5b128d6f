//! What a channel is made of, without SQL: its settings, the thread that receives, the queue behind it, what filters and
//! orders transactions, and what it tells of itself.
//!
//! There are no relay logs. The applied position is part of each transaction's data, so after whatever happens the
//! source is asked again from there; what was received and not applied is only in memory, bounded, and TCP keeps a
//! source waiting whose replica cannot follow. Executing is `crate::apply`'s and the server's.

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
