//! Locks by name (GET_LOCK and its kin): a session's own, held until it gives them back or ends, whatever its transactions
//! do. They are records of a space that no table has, so waiting, fairness and deadlocks, also those that go through the
//! session's transaction or a definition, are the lock manager's.

use crate::error::{ExecResult, SqlError, SqlResult};
use crate::memory::{Account, MemoryLimits, SessionMemory};
use bytes::Bytes;
use omnibus_locks::{LockManager, Request, RowMode, TrxLocks, WaitOutcome};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Not a space of an engine: those carry an engine's slot, of which there are fewer.
const SPACE: u32 = u32::MAX;
/// Characters of a name.
const LONGEST: usize = 64;
/// How often a waiting session looks whether it was killed.
const LOOK: Duration = Duration::from_millis(50);

/// A session's locks by name.
#[derive(Debug)]
pub struct NamedLocks {
    manager: Arc<LockManager>,
    locks: TrxLocks,
    /// Each name with how often it was taken.
    held: HashMap<Bytes, u64>,
    account: Account,
}

/// Bytes of a name with its lock, where names are long.
const NAME: usize = 1024;

impl NamedLocks {
    /// `transaction` are the session's other locks: who waits for one of a session's waits for all of it.
    pub(crate) fn new(
        manager: &Arc<LockManager>,
        transaction: &TrxLocks,
        memory: &Arc<SessionMemory>,
    ) -> NamedLocks {
        let locks = transaction.begin_another();
        locks.set_beside(transaction);
        NamedLocks { manager: manager.clone(), locks, held: HashMap::new(), account: Account::new(memory) }
    }

    /// Takes a lock; blocks up to `seconds`, or without limit if that is negative. False after that time.
    ///
    /// # Errors
    /// 3057 for a bad name, 3058 in a deadlock, 3170 without memory for it, and what `check_killed` says while waiting.
    pub fn get(
        &mut self,
        name: Option<&[u8]>,
        seconds: f64,
        limits: MemoryLimits,
        check_killed: &mut dyn FnMut() -> ExecResult<()>,
    ) -> ExecResult<bool> {
        let key = key_of(name)?;
        if let Some(times) = self.held.get_mut(&key) {
            *times += 1;
            return Ok(true);
        }
        self.account.grow_within(NAME, limits)?;
        let taken = self.take(&key, seconds, check_killed);
        match taken {
            Ok(true) => drop(self.held.insert(key, 1)),
            _ => self.account.shrink(NAME),
        }
        taken
    }

    fn take(
        &mut self,
        key: &Bytes,
        seconds: f64,
        check_killed: &mut dyn FnMut() -> ExecResult<()>,
    ) -> ExecResult<bool> {
        let forever = !(0.0..=1e9).contains(&seconds);
        let deadline = (!forever).then(|| Instant::now() + Duration::from_secs_f64(seconds.max(0.0)));
        if let Request::Wait(mut wait) = self.locks.lock_record(SPACE, key, RowMode::Exclusive) {
            let outcome = loop {
                let look = Instant::now() + LOOK;
                let next = deadline.map_or(look, |deadline| deadline.min(look));
                if let Some(outcome) = wait.park_until(Some(next)) {
                    break outcome;
                }
                check_killed()?;
                if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                    break wait.cancel();
                }
            };
            match outcome {
                WaitOutcome::Granted => {}
                WaitOutcome::Deadlock => return Err(deadlock().into()),
                WaitOutcome::Timeout | WaitOutcome::Killed => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Gives a lock back once. `None`: nobody has it; `Some(false)`: somebody else has.
    ///
    /// # Errors
    /// 3057 for a bad name.
    pub fn release(&mut self, name: Option<&[u8]>) -> SqlResult<Option<bool>> {
        let key = key_of(name)?;
        let Some(times) = self.held.get_mut(&key) else {
            return Ok(self.manager.record_holder(SPACE, &key).map(|_| false));
        };
        *times -= 1;
        if *times == 0 {
            self.held.remove(&key);
            self.account.shrink(NAME);
            self.locks.release_record(SPACE, &key);
        }
        Ok(Some(true))
    }

    /// Gives all back, and says how many they were.
    pub fn release_all(&mut self) -> u64 {
        self.locks.release_all();
        self.account.clear();
        std::mem::take(&mut self.held).into_values().sum()
    }

    /// The connection that has it.
    ///
    /// # Errors
    /// 3057 for a bad name.
    pub fn holder(&self, name: Option<&[u8]>) -> SqlResult<Option<u64>> {
        Ok(self.manager.record_holder(SPACE, &key_of(name)?))
    }
}

/// Names are equal whatever their case.
fn key_of(name: Option<&[u8]>) -> SqlResult<Bytes> {
    let text = name.map(|name| String::from_utf8_lossy(name).to_lowercase());
    match text {
        Some(text) if !text.is_empty() && text.chars().count() <= LONGEST => Ok(text.into_bytes().into()),
        other => {
            let shown = other.as_deref().unwrap_or("NULL");
            Err(SqlError::new(3057, b"42000", format!("Incorrect user-level lock name '{shown}'.")))
        }
    }
}

fn deadlock() -> SqlError {
    let message = "Deadlock found when trying to get user-level lock; try rolling back transaction/releasing locks and \
                   restarting lock acquisition.";
    SqlError::new(3058, b"HY000", message)
}
