//! Waits for space: a job's write, and a rotation's new file and name, are retried on a full disk until there is room,
//! or until waiting is ended. Syncs are not retried, because a failed sync leaves the content of the device unknown;
//! background writes are not retried either.
//!
//! Runs on the threads that run jobs or rotate. Everything behind a waiting job waits, too; readers do not.

use crate::error::IoFailure;
use omnibus_sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// Interval between two attempts.
const AGAIN: Duration = Duration::from_millis(500);
/// Interval between reminders in the error log that there still is no space.
const REMIND: Duration = Duration::from_secs(60);

/// Whether writes wait for space.
#[derive(Debug)]
pub(crate) struct Space {
    patient: Mutex<bool>,
    changed: Condvar,
}

impl Space {
    pub(crate) fn new(patient: bool) -> Space {
        Space { patient: Mutex::new(patient), changed: Condvar::new() }
    }

    /// Makes a full disk an error from now on, also for writes that wait already.
    pub(crate) fn give_up(&self) {
        *self.patient.lock() = false;
        self.changed.notify_all();
    }

    /// Repeats `operation` for as long as it fails because the disk is full.
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

    /// Waits a little; returns false if waiting was ended.
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
