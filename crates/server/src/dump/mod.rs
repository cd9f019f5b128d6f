//! Sending the log to replicas and change-stream clients: the async half of `omnibus_replication::source`.
//!
//! - `registry`: who is registered, who dumps, how a dump is woken. - `session`: COM_REGISTER_SLAVE, how a dump begins and
//!   ends. - `sending`: the dump itself. - `semi_sync`: commits that wait for replicas.
//!
//! A dump is its connection's task. Behind the shared tail it reads files and may block its thread; within it, it takes
//! blocks from memory and waits without a thread. One thread feeds the tail for all, while there is a dump: a commit
//! wakes that one and nobody else.
//! - COMMIT-2: only what is durable is read. - PURGE-1: a dump pins the file that it is in.

mod registry;
mod semi_sync;
mod sending;
mod session;

pub use registry::{Dumps, RegisteredGuard, Replica};
pub use semi_sync::SemiSyncSettings;
