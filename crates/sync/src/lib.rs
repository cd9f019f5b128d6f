//! The seam under what threads wait for each other with: locks, condition variables, atomics, threads.
//!
//! Here are the names that production uses, as they are: nothing is wrapped and nothing is paid. A module whose threads are
//! to be explored takes these names from its parent (`use super::sync::..`). Its crate's tests include its file a second time, in a
//! module whose `sync` is `interleavings`: there the scheduler of a test decides after each step which thread goes on, so that
//! thousands of interleavings are tried, a wake-up that is lost is a deadlock, and what fails can be run again.
//!
//! With the feature `scheduled`, which `crates/sim` has on, the names stand for locks that tell whoever decides which thread goes on
//! when one has to wait (`scheduled`).
//!
//! What is not reached by this: memory orders weaker than sequential consistency, which `interleavings` does not weaken.

#[cfg(not(feature = "scheduled"))]
pub use parking_lot::{Condvar, Mutex, MutexGuard};
#[cfg(feature = "scheduled")]
pub use scheduled::{Condvar, Mutex, MutexGuard};
pub use seat::{Seat, now, take_seat};
pub use std::sync::atomic;
pub use std::thread;

mod seat;

#[cfg(feature = "scheduled")]
mod scheduled;

#[cfg(feature = "explore")]
pub mod interleavings;
