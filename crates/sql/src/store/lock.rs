//! Taking row and range locks: now, by an interrupt (inline mode), or by parking (blocking mode).

use super::trx::Trx;
use crate::api::Mode;
use crate::error::{ExecResult, Interrupt, SqlError};
use crate::storage::WaitPolicy;
use bytes::Bytes;
use omnibus_locks::{Request, RowMode, WaitOutcome};
use std::ops::Bound;

/// The space of an encoded key.
pub(super) fn space_of(key: &[u8]) -> u32 {
    key.first_chunk::<4>().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

impl Trx {
    /// Waits for a request as the mode allows. Returns whether the lock is new.
    pub(super) fn await_lock(&mut self, request: Request) -> ExecResult<bool> {
        match request {
            Request::Granted { fresh } => Ok(fresh),
            Request::Wait(wait) if self.mode == Mode::Inline => Err(Interrupt::LockWait(wait)),
            Request::Wait(wait) => {
                self.budget.end();
                let since = wait.since();
                let outcome = wait.wait(self.budget.kill().time_left(self.lock_wait));
                self.budget.tally.waited(since.elapsed());
                match outcome {
                    WaitOutcome::Granted => Ok(true),
                    other => Err(wait_failure(other, self.budget.kill()).into()),
                }
            }
        }
    }

    /// Locks a key; `false` if `policy` says to skip it.
    pub(super) fn lock_key(&mut self, key: &Bytes, mode: RowMode, policy: WaitPolicy) -> ExecResult<bool> {
        let space = space_of(key);
        if policy != WaitPolicy::Wait {
            return match (self.locks.try_lock_record(space, key, mode), policy) {
                (Some(_), _) => Ok(true),
                (None, WaitPolicy::NoWait) => Err(SqlError::lock_nowait().into()),
                (None, _) => Ok(false),
            };
        }
        let request = self.locks.lock_record(space, key, mode);
        self.await_lock(request)?;
        Ok(true)
    }

    /// Locks a key that is about to appear, against range locks too.
    pub(super) fn lock_new_key(&mut self, key: &Bytes) -> ExecResult<()> {
        let request = self.locks.lock_insert(space_of(key), key);
        self.await_lock(request)?;
        Ok(())
    }

    /// Keeps other transactions from inserting between two keys.
    pub(super) fn lock_gap(&mut self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> ExecResult<()> {
        let space = match (&from, &to) {
            (Bound::Included(key) | Bound::Excluded(key), _)
            | (_, Bound::Included(key) | Bound::Excluded(key)) => space_of(key),
            _ => return Ok(()),
        };
        let request = self.locks.lock_range(space, from, to);
        self.await_lock(request)?;
        Ok(())
    }
}

/// The error that a lock wait without a grant ends a statement with.
pub(crate) fn wait_failure(outcome: WaitOutcome, kill: &crate::api::KillFlag) -> SqlError {
    match outcome {
        WaitOutcome::Deadlock => SqlError::lock_deadlock(),
        WaitOutcome::Killed => kill.check().err().unwrap_or_else(SqlError::query_interrupted),
        // The statement's own time may be over before the lock's.
        WaitOutcome::Timeout | WaitOutcome::Granted => {
            kill.check().err().unwrap_or_else(SqlError::lock_wait_timeout)
        }
    }
}
