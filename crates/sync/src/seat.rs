//! A thread's connection to a scheduler. Used only with the feature `scheduled`.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;

/// See the module.
pub trait Seat: Send + Sync {
    /// The calling thread is about to take a lock: a place where another one may go first.
    fn pass(&self) {}

    /// The time, if the seat decides it.
    fn now(&self) -> Option<Instant> {
        None
    }

    /// The calling thread is about to wait: from here on [`Seat::wake`] counts. False if it should wait as in production.
    fn begin(&self) -> bool;

    /// Returns when the thread was woken and may continue; false if only time has passed, which `timed` permits.
    fn wait(&self, timed: bool) -> bool;

    /// Permits the thread to continue. Any thread.
    fn wake(&self);
}

thread_local! {
    static SEAT: RefCell<Option<Arc<dyn Seat>>> = const { RefCell::new(None) };
}

/// The calling thread has this seat from now on, or none.
pub fn take_seat(seat: Option<Arc<dyn Seat>>) {
    let _ = SEAT.try_with(|mine| *mine.borrow_mut() = seat);
}

/// The time, where something is decided by how long it took.
#[cfg(not(feature = "scheduled"))]
#[inline]
#[must_use]
pub fn now() -> Instant {
    Instant::now()
}

/// The time, where something is decided by how long it took.
#[cfg(feature = "scheduled")]
#[must_use]
pub fn now() -> Instant {
    seat().and_then(|seat| seat.now()).unwrap_or_else(Instant::now)
}

#[cfg(feature = "scheduled")]
pub(crate) fn seat() -> Option<Arc<dyn Seat>> {
    SEAT.try_with(|mine| mine.borrow().clone()).ok().flatten()
}
