//! Waiting for space: a job's write that found the disk full, and a rotation's new file and name, are tried again until there
//! is room, or until nobody wants to wait any more. Not for syncs, whose failure leaves unknown what the device holds, and not for what is written in the background.
//!
//! On the threads that run jobs or rotate. What is behind a job that waits, waits too; readers do not.

use crate::error::IoFailure;
use omnibus_sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// How often a write is tried again.
const AGAIN: Duration = Duration::from_millis(500);
/// How often the log of errors says that there still is no space.
const REMIND: Duration = Duration::from_secs(60);

/// Whether to wait.
#[derive(Debug)]
pub(crate) struct Space {
    patient: Mutex<bool>,
    changed: Condvar,
}

impl Space {
    pub(crate) fn new(patient: bool) -> Space {
        Space { patient: Mutex::new(patient), changed: Condvar::new() }
    }

    /// From now on a full disk is an error, also for those who wait already.
    pub(crate) fn give_up(&self) {
        *self.patient.lock() = false;
        self.changed.notify_all();
    }

    /// Repeats `operation` as long as nothing is wrong but that the disk is full.
    pub(crate) fn patiently<T>(&self, operation: impl Fn() -> Result<T, IoFailure>) -> Result<T, IoFailure> {
        let mut failure = match operation() {
            Err(failure) => failure,
            done => return done,
        };
        let started = Instant::now();
        let mut said: Option<Instant> = None;
        loop {
            if !failure.is_full_on_write() || !self.pause(&failure, &mut said) {
                return Err(failure);
            }
            match operation() {
                Ok(done) => {
                    tracing::info!(waited = ?started.elapsed(), "there is space again: the binary log goes on");
                    return Ok(done);
                }
                Err(again) => failure = again,
            }
        }
    }

    /// Waits a little; false if nobody wants to wait.
    fn pause(&self, failure: &IoFailure, said: &mut Option<Instant>) -> bool {
        let mut patient = self.patient.lock();
        if *patient && said.is_none_or(|at| at.elapsed() >= REMIND) {
            tracing::error!(
                "the disk is full: {failure}. Commits wait until there is space, and then go on; remove files, or stop the server"
            );
            *said = Some(Instant::now());
        }
        if *patient {
            self.changed.wait_for(&mut patient, AGAIN);
        }
        *patient
    }
}
