//! Sending the log to replicas and change-stream clients: the async half of `omnibus_replication::source`.
//!
//! - `registry`: who is registered, who dumps, how a dump is woken. - `session`: COM_REGISTER_SLAVE and the dump itself.
//!
//! A dump is its connection's task. It reads the log on the blocking pool and waits without a thread; a commit
//! wakes it only if it is there (`omnibus_log::DurableEnd::listen`).
//! - COMMIT-2: only what is durable is read. - PURGE-1: the reader pins the file that it is in.

mod registry;
mod session;

pub use registry::{Dumps, RegisteredGuard, Replica};
