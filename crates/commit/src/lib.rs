//! The commit path: the pipeline, the coordinator over log and engine, snapshots, and recovery.
//!
//! Not here: SQL, locks, sockets. It knows no runtime: a commit returns a [`Ticket`] that a thread can
//! park on and a future can await, and `Env` lets a test run it with nothing behind it.
//!
//! # The naive version
//!
//! ```text
//! lock; number; append events to the log file; fdatasync; install in the engine; unlock; reply
//! ```
//!
//! It is right, and each commit waits for every sync before it. Everything below is about sharing the
//! sync without losing the order.
//!
//! # Outline
//!
//! ```text
//! session      enrol in the flush queue (lock-free)           first in: call a leader, or lead
//! leader       [flush lock
//!   flush        take the queue; for each transaction, in order:
//!                  number, append finished events, install versions, release row locks
//!                file full? settle and rotate
//!                a place in flight free? seal the group       else: leave it to the next leader
//!              ]
//!   sync         ONE write-through write (or write + fdatasync), no lock held
//!   commit     [order lock
//!                in the order of sealing: engine learns what is durable, publish
//!              ]
//!   wake         each waiter by itself
//! ```
//! A thread that finds the places in flight taken becomes a follower: the thread whose write is in flight takes over
//! the transactions that it left. The lock order is flush before order; no lock is held across a write, except in
//! [`Pipeline::with_quiet_log`] and at rotation.
//!
//! # Invariants
//! - COMMIT-1: numbering, appending and installing are one loop under the flush lock.
//! - COMMIT-2: publishing and waking are behind the sync, in `pipeline::in_flight`, and nowhere else. A
//!   locking read may see installed versions before; its reply waits ([`Pipeline::wait_published`]).
//!   What is published only grows: one function publishes, under the order lock, and nothing passes what the gate holds.
//! - COMMIT-3: a group's events become part of the log only as whole transactions; recovery cuts at the
//!   last whole one.
//! - COMMIT-4: a session can withdraw its transaction until the flush stage takes it up, and not from then on
//!   ([`Ticket::withdraw`]). What is withdrawn holds nothing any more, though no leader may come to the queue for hours.
//! - ENGINE-1: the engine learns `durable` only from written, synced groups.
//! - A failed write or sync poisons the pipeline: the group and everything behind it gets the error, and nothing is
//!   retried, because the content of the device is unknown after a failed sync.
//!
//! # Rejected
//!
//! - *A dedicated flush thread and a dedicated sync thread*: two more thread switches per group.
//! - *One condition for all waiters*: every wake-up wakes the whole group, each to find the mutex taken.
//! - *Sessions installing their own versions in parallel*: on two cores it only adds switches; to be
//!   measured again on many.
//! - *Copying a large transaction in pieces, giving the flush lock up in between*: its events would no longer stand
//!   together, and it would be written twice. See `coordinator::large`.
//! - *Writing while appending*: one buffer that both sides touch needs a lock across the device write;
//!   the writer copies at most one partial block instead.
//!
//! # Example
//!
//! One transaction through the pipeline. `examples/store.rs` is a whole program, with an engine and recovery.
//!
//! ```no_run
//! use omnibus_commit::{CommitRequest, Coordinator, now_us};
//! use omnibus_engine::WriteSet;
//! use omnibus_format::events::{Query, Xid};
//! use omnibus_format::EventType;
//!
//! fn put(coordinator: &Coordinator, key: &'static [u8], value: &'static [u8]) -> Result<(), Box<dyn std::error::Error>> {
//!     let mut cache = coordinator.new_cache();
//!     let query = Query { thread_id: 1, exec_time: 0, error_code: 0, status: &[], database: b"d", sql: b"BEGIN" };
//!     let mut body = Vec::new();
//!     query.encode(&mut body);
//!     cache.append_event(EventType::QUERY.0, 0, &body)?;
//!     body.clear();
//!     Xid(coordinator.first_xid()).encode(&mut body);
//!     cache.append_event(EventType::XID.0, 0, &body)?;
//!
//!     let mut writes = WriteSet::default();
//!     writes.put(key.into(), value.into());
//!     let ticket = coordinator.commit(CommitRequest::new(cache, writes, true, now_us()));
//!     let number = ticket.wait()?; // durable, and visible to snapshots
//!     println!("commit {}", number.0);
//!     Ok(())
//! }
//! ```

mod background_drop;
mod cache;
mod coordinator;
mod deletes;
mod env;
mod error;
mod executed;
mod head;
#[cfg(test)]
mod interleavings;
mod log_env;
mod owned;
mod pipeline;
#[cfg(test)]
mod pipeline_tests;
mod protocol;
mod published;
#[cfg(test)]
mod published_tests;
mod recovery;
mod request;
mod settings;
mod stats;
mod ticket;

use omnibus_sync as sync;

pub use background_drop::drop_elsewhere;
pub use cache::{CacheError, CacheMark, CacheSettings, CompressionStats, LargeSettings, Naming, TrxCache};
pub use coordinator::{
    Blocking, Coordinator, GtidModeError, GtidWait, Gtids, ResetLogError, SetGtidsError, just_block,
};
pub use deletes::DeletedFloor;
pub use env::{AppendError, Env};
pub use error::{CommitError, Refusal};
pub use head::LogIdentity;
pub use log_env::{Appender, LogEnv, OnFailure};
#[cfg(feature = "mutants")]
pub use omnibus_log::mutant::{Mutant, set_mutant};
pub use omnibus_log::now_us;
pub use omnibus_log::{LogPosition, ResetError};
pub use owned::{AnonymousGuard, GtidGuard, Ownership};
pub use pipeline::{Gate, Pipeline, Released};
pub use protocol::CommitProtocol;
pub use published::{Published, SnapshotReader, SnapshotWatch};
pub use recovery::{
    Decision, Progress, RecoverError, Recovered, Replay, ReplayEvent, Replayed, decide, recover,
};
pub use request::{CommitRequest, OnDurable, OnOrdered, STAGED_KEYS, StagedWrites};
pub use settings::CommitSettings;
pub use stats::{CommitStats, Histogram};
pub use ticket::{CommitResult, Ticket, ticket_to_complete};
