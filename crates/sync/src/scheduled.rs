//! The same names for a simulation of a whole process: real locks, where a thread that has to wait reports it to a
//! scheduler ([`Seat`]). So the scheduler need not ask the operating system which threads sleep, and chooses among
//! waiting threads.
//!
//! A thread without a seat waits as in production, and so does one whose seat is free: the same locks serve both, so a
//! simulation may let go of its threads at any moment. Waking tells both kinds.

use crate::seat::{Seat, seat};
use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

type Line = Vec<Arc<dyn Seat>>;

/// The waiting threads by the address that they wait for, first come first.
static WAITING: parking_lot::Mutex<Option<HashMap<usize, Line>>> = parking_lot::const_mutex(None);

/// The threads that wait for one address.
#[derive(Debug)]
struct Queue(AtomicUsize);

impl Queue {
    const fn new() -> Queue {
        Queue(AtomicUsize::new(0))
    }

    fn place(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn join(&self, seat: &Arc<dyn Seat>) {
        let mut waiting = WAITING.lock();
        let all = waiting.get_or_insert_default();
        all.entry(self.place()).or_default().push(Arc::clone(seat));
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    /// Leaves the queue; has no effect if the thread was woken.
    fn leave(&self, seat: &Arc<dyn Seat>) {
        self.take(|line| line.iter().position(|other| Arc::ptr_eq(other, seat)));
    }

    fn wake_one(&self) {
        if self.0.load(Ordering::SeqCst) > 0
            && let Some(seat) = self.take(|_| Some(0))
        {
            seat.wake();
        }
    }

    fn wake_all(&self) {
        while self.0.load(Ordering::SeqCst) > 0
            && let Some(seat) = self.take(|_| Some(0))
        {
            seat.wake();
        }
    }

    fn take(&self, which: impl FnOnce(&[Arc<dyn Seat>]) -> Option<usize>) -> Option<Arc<dyn Seat>> {
        let mut waiting = WAITING.lock();
        let all = waiting.as_mut()?;
        let line = all.get_mut(&self.place())?;
        let seat = line.remove(which(line)?);
        self.0.fetch_sub(1, Ordering::SeqCst);
        if line.is_empty() {
            all.remove(&self.place());
        }
        Some(seat)
    }
}

/// As `parking_lot::Mutex`.
pub struct Mutex<T> {
    queue: Queue,
    inner: parking_lot::Mutex<T>,
}

/// As `parking_lot::MutexGuard`. Empty only while its thread waits.
pub struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    inner: Option<parking_lot::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    /// Unlocked.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex { queue: Queue::new(), inner: parking_lot::Mutex::new(value) }
    }

    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard { mutex: self, inner: Some(self.wait_for_it()) }
    }

    fn wait_for_it(&self) -> parking_lot::MutexGuard<'_, T> {
        let Some(seat) = seat() else { return self.inner.lock() };
        seat.pass();
        if let Some(guard) = self.inner.try_lock() {
            return guard;
        }
        while seat.begin() {
            self.queue.join(&seat);
            // Whoever had it may have given it back before this one joined.
            let guard = self.inner.try_lock();
            if guard.is_none() {
                seat.wait(false);
            }
            self.queue.leave(&seat);
            if let Some(guard) = guard.or_else(|| self.inner.try_lock()) {
                return guard;
            }
        }
        self.inner.lock()
    }

    /// Returns the protected value to its only owner.
    pub fn get_mut(&mut self) -> &mut T {
        self.inner.get_mut()
    }

    /// The lock, if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.inner.try_lock().map(|guard| MutexGuard { mutex: self, inner: Some(guard) })
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Mutex<T> {
        Mutex::new(T::default())
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.fmt(f)
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        if self.inner.take().is_some() {
            self.mutex.queue.wake_one();
        }
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.inner.as_ref().expect("the guard is lent to a condition variable only while its thread waits")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.inner.as_mut().expect("the guard is lent to a condition variable only while its thread waits")
    }
}

/// As `parking_lot::Condvar`.
#[derive(Debug)]
pub struct Condvar {
    queue: Queue,
    inner: parking_lot::Condvar,
}

impl Default for Condvar {
    fn default() -> Condvar {
        Condvar::new()
    }
}

/// As `parking_lot::WaitTimeoutResult`.
#[derive(Clone, Copy, Debug)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Returns whether the time passed first.
    #[must_use]
    pub fn timed_out(self) -> bool {
        self.0
    }
}

impl Condvar {
    /// Creates a condition without waiters.
    pub const fn new() -> Condvar {
        Condvar { queue: Queue::new(), inner: parking_lot::Condvar::new() }
    }

    /// Releases the lock, waits, and takes the lock again.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        if self.wait_in_turn(guard, false).is_none()
            && let Some(inner) = &mut guard.inner
        {
            self.inner.wait(inner);
        }
    }

    /// As `wait`, until `deadline` at most.
    pub fn wait_until<T>(&self, guard: &mut MutexGuard<'_, T>, deadline: Instant) -> WaitTimeoutResult {
        let woken = self.wait_in_turn(guard, true).unwrap_or_else(|| match &mut guard.inner {
            Some(inner) => !self.inner.wait_until(inner, deadline).timed_out(),
            None => false,
        });
        WaitTimeoutResult(!woken)
    }

    /// As `wait`, for `time` at most.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, time: Duration) -> WaitTimeoutResult {
        self.wait_until(guard, Instant::now() + time)
    }

    /// Returns whether the thread was woken before the time passed; `None` for a thread that waits as in production.
    fn wait_in_turn<T>(&self, guard: &mut MutexGuard<'_, T>, timed: bool) -> Option<bool> {
        let seat = seat().filter(|seat| seat.begin())?;
        self.queue.join(&seat);
        drop(guard.inner.take());
        guard.mutex.queue.wake_one();
        let woken = seat.wait(timed);
        self.queue.leave(&seat);
        guard.inner = Some(guard.mutex.wait_for_it());
        Some(woken)
    }

    /// Wakes one.
    pub fn notify_one(&self) {
        self.queue.wake_one();
        self.inner.notify_one();
    }

    /// Wakes all.
    pub fn notify_all(&self) {
        self.queue.wake_all();
        self.inner.notify_all();
    }
}
