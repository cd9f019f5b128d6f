//! Waits for space: a job's write, and a rotation's new file and name, are retried on a full disk until there is room,
//! or until waiting is ended. Syncs are not retried, because a failed sync leaves the content of the device unknown;
//! background writes are not retried either.
//!
//! SPACE-2: while somebody makes room on a full disk, nothing is tried: what becomes free is for the engines' checkpoints.
//!
//! On the threads that run jobs or rotate. What is behind a job that waits, waits too; readers do not.

use crate::error::IoFailure;
use omnibus_disk::FullDisk;
use omnibus_sync::{Condvar, Mutex};
use std::sync::Arc;
use std::time::Duration;

/// Interval between two attempts.
const AGAIN: Duration = Duration::from_millis(500);
/// The name under which the log waits (SPACE-1).
pub(crate) const WHO: &str = "the binary log";

/// Whether to wait, and how many do.
#[derive(Debug)]
pub(crate) struct DiskRoom {
    disk: Arc<FullDisk>,
    waiting: Mutex<usize>,
    changed: Condvar,
    /// Gives a little room back, while a start goes on; false if there is none left.
    spare: Mutex<Option<Spare>>,
}

/// See [`DiskRoom::start_with`].
pub(crate) struct Spare(Box<dyn Fn() -> bool + Send>);

impl std::fmt::Debug for Spare {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Spare")
    }
}

impl DiskRoom {
    pub(crate) fn new(disk: Arc<FullDisk>) -> DiskRoom {
        DiskRoom { disk, waiting: Mutex::new(0), changed: Condvar::new(), spare: Mutex::new(None) }
    }

    /// Makes a full disk an error from now on, also for writes that wait already.
    pub(crate) fn give_up(&self) {
        let _waiting = self.waiting.lock();
        self.disk.give_up();
        self.changed.notify_all();
    }

    /// Until `started`, what finds no room asks for some before it waits: who starts beside engines that wait for room, too, must
    /// get on.
    pub(crate) fn start_with(&self, spare: impl Fn() -> bool + Send + 'static) {
        *self.spare.lock() = Some(Spare(Box::new(spare)));
    }

    pub(crate) fn started(&self) {
        *self.spare.lock() = None;
    }

    /// Repeats `operation` as long as nothing is wrong but that the disk is full.
    pub(crate) fn patiently<T>(&self, operation: impl Fn() -> Result<T, IoFailure>) -> Result<T, IoFailure> {
        if self.disk.is_full() {
            self.keep_off();
        }
        match operation() {
            Err(failure) if failure.is_full_on_write() && self.disk.is_patient() => {
                *self.waiting.lock() += 1;
                let done = self.again(failure, operation);
                let mut waiting = self.waiting.lock();
                *waiting -= 1;
                if *waiting == 0 {
                    self.disk.goes_on(WHO, done.is_ok());
                }
                done
            }
            done => done,
        }
    }

    fn again<T>(
        &self,
        mut failure: IoFailure,
        operation: impl Fn() -> Result<T, IoFailure>,
    ) -> Result<T, IoFailure> {
        let spare = || self.spare.lock().as_ref().is_some_and(|spare| spare.0());
        while failure.is_full_on_write() && (spare() || self.pause(&failure)) {
            match operation() {
                Err(again) => failure = again,
                done => return done,
            }
        }
        Err(failure)
    }

    /// Waits a little; false if nobody wants to wait.
    fn pause(&self, failure: &IoFailure) -> bool {
        let mut waiting = self.waiting.lock();
        if self.disk.is_patient() {
            self.disk.waits(WHO, failure);
            self.changed.wait_for(&mut waiting, AGAIN);
        }
        drop(waiting);
        self.keep_off();
        self.disk.is_patient()
    }

    fn keep_off(&self) {
        // Asserts SPACE-2: what somebody makes room with is not the log's.
        let mut waiting = self.waiting.lock();
        while self.disk.is_patient() && self.disk.is_full() && self.disk.is_making_room() {
            self.changed.wait_for(&mut waiting, AGAIN / 10);
        }
    }
}
