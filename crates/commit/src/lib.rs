//! The commit pipeline, the coordinator over log and engine, snapshots, and recovery.
mod cache;
mod env;
mod pipeline;
mod published;
mod request;
mod settings;
mod stats;
mod ticket;

pub use cache::{CacheError, CacheMark, CacheSettings, TrxCache};
pub use env::{AppendError, Env};
pub use omnibus_log::LogPosition;
pub use pipeline::Pipeline;
pub use published::{Published, SnapshotReader};
pub use request::{CommitError, CommitRequest, OnOrdered};
pub use settings::CommitSettings;
pub use stats::{CommitStats, Histogram};
pub use ticket::{CommitResult, Ticket};
