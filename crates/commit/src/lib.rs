//! The commit pipeline, the coordinator over log and engine, snapshots, and recovery.
mod cache;
mod coordinator;
mod deletes;
mod env;
mod log_env;
mod pipeline;
mod private;
mod published;
mod recovery;
mod request;
mod settings;
mod stats;
mod ticket;

pub use cache::{CacheError, CacheMark, CacheSettings, TrxCache};
pub use coordinator::Coordinator;
pub use deletes::DeletedFloor;
pub use env::{AppendError, Env};
pub use log_env::{Appender, LogEnv, LogIdentity, OnFailure};
pub use omnibus_log::LogPosition;
pub use pipeline::Pipeline;
pub use published::{Published, SnapshotReader};
pub use recovery::{RecoverError, Recovered, Replay, ReplayEvent, recover};
pub use request::{CommitError, CommitRequest, OnOrdered};
pub use settings::CommitSettings;
pub use stats::{CommitStats, Histogram};
pub use ticket::{CommitResult, Ticket};
