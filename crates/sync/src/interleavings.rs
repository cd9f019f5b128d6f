//! The same names over `shuttle`, whose scheduler runs one thread at a time and chooses at each step.
//!
//! Waiting with a timeout never times out here: what only a timeout mends is found as a deadlock.

pub use crate::now;
pub use shuttle::sync::atomic;

/// As `std::thread`.
pub mod thread {
    pub use shuttle::thread::*;

    /// Never: a test that failed takes its threads back in the middle of what they do.
    #[must_use]
    pub fn panicking() -> bool {
        false
    }
}

use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;
use std::time::Duration;

/// As `parking_lot::Mutex`.
#[derive(Debug, Default)]
pub struct Mutex<T>(shuttle::sync::Mutex<T>);

/// As `parking_lot::MutexGuard`. Empty only while its thread waits.
pub struct MutexGuard<'a, T>(Option<shuttle::sync::MutexGuard<'a, T>>);

impl<T> Mutex<T> {
    /// Unlocked.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(shuttle::sync::Mutex::new(value))
    }

    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(Some(self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Returns the protected value to its only owner.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lock, if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok().map(|guard| MutexGuard(Some(guard)))
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("the guard is lent to a condition variable only while its thread waits")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("the guard is lent to a condition variable only while its thread waits")
    }
}

/// As `parking_lot::Condvar`.
#[derive(Debug, Default)]
pub struct Condvar(shuttle::sync::Condvar);

impl Condvar {
    /// Creates a condition without waiters.
    pub const fn new() -> Condvar {
        Condvar(shuttle::sync::Condvar::new())
    }

    /// Releases the lock, waits, and takes the lock again.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        if let Some(lent) = guard.0.take() {
            guard.0 = Some(self.0.wait(lent).unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// As `wait`: time does not pass.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _: Duration) {
        self.wait(guard);
    }

    /// Wakes one.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// Runs `test` under a number of schedules, chosen at random but the same each time. Half of them switch threads at few
/// places only (`depth`), which finds errors that need a long run of one thread between two steps of another.
///
/// # Panics
/// As `test` does, or where all its threads wait for each other; the schedule is printed, for [`shuttle::replay`].
pub fn explore(schedules: usize, test: impl Fn() + Send + Sync + Clone + 'static) {
    use shuttle::scheduler::{PctScheduler, RandomScheduler};
    let config = || {
        let mut config = shuttle::Config::new();
        // A schedule in which nobody gets anywhere is no schedule of a fair machine.
        config.max_steps = shuttle::MaxSteps::ContinueAfter(200_000);
        config
    };
    const SEED: u64 = 0x6f6d_6e69;
    const DEPTH: usize = 3;
    let random = RandomScheduler::new_from_seed(SEED, schedules / 2);
    shuttle::Runner::new(random, config()).run(test.clone());
    let few = PctScheduler::new_from_seed(SEED, DEPTH, schedules.div_ceil(2));
    shuttle::Runner::new(few, config()).run(test);
}
