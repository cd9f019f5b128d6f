//! The receivers of the log, replicas and change-stream clients, and the waits of commits for them. Sessions send it.
//!
//! - `registry`: who is registered, who dumps, how a dump is woken. - `semi_sync`: commits that wait for replicas.
//!
//! One thread feeds the tail for all, while there is a dump: a commit wakes that one and nobody else.

mod registry;
mod semi_sync;

pub(crate) use registry::{DumpGuard, Tail};
pub use registry::{Dumps, RegisteredGuard, Replica};
pub(crate) use semi_sync::SemiSyncGuard;
pub use semi_sync::SemiSyncSettings;
