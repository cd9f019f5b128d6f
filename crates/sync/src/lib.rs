//! The seam under locks, condition variables, atomics and threads.
//!
//! By default these are the names that production uses: nothing is wrapped, and there is no cost. A module whose
//! threads are to be explored takes these names from its parent (`use super::sync::..`). Its crate's tests include its
//! file a second time, in a module whose `sync` is `interleavings`. There the scheduler of a test decides after each
//! step which thread continues, so that thousands of interleavings are tried, a lost wake-up is a deadlock, and a
//! failure can be repeated.
//!
//! With the feature `scheduled`, which `crates/sim` enables, the names stand for locks that report to a scheduler when
//! a thread has to wait (`scheduled`).
//!
//! Not explored are memory orders weaker than sequential consistency, which `interleavings` does not weaken.

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
