//! Taking row and range locks: now, by an interrupt (inline mode), or by parking (blocking mode).

use super::statement::StatementScope;
use super::trx::TrxContext;
use super::watch::SessionWatch;
use crate::api::{Budget, Mode, SessionSettings};
use crate::error::{ExecResult, Interrupt, SqlError};
use crate::storage::WaitPolicy;
use bytes::Bytes;
use omnibus_locks::{LockTarget, Request, RowMode, TableMode, TrxLocks, WaitOutcome};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

/// The space of an encoded key.
pub(super) fn space_of(key: &[u8]) -> u32 {
    key.first_chunk::<4>().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

/// How long a session's lock waits last at most, by what is waited for.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// `innodb_lock_wait_timeout`: rows and gaps.
    pub rows: Duration,
    /// `lock_wait_timeout`: tables, and the gate in front of all writers.
    pub definitions: Duration,
}

impl Patience {
    /// As a session's settings say.
    #[must_use]
    pub fn new(settings: &SessionSettings) -> Patience {
        Patience {
            rows: Duration::from_millis(settings.lock_wait_timeout_ms),
            definitions: Duration::from_millis(settings.metadata_lock_wait_timeout_ms),
        }
    }

    /// For a wait for this.
    #[must_use]
    pub fn of(self, target: Option<&LockTarget>) -> Duration {
        match target {
            Some(LockTarget::Table { .. } | LockTarget::Gate) => self.definitions,
            Some(LockTarget::Record { .. } | LockTarget::Range { .. }) | None => self.rows,
        }
    }
}

/// How an attempt at a statement waits for locks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waits {
    /// Inline: it ends, and runs again when it has the lock. Blocking: its thread is parked.
    pub mode: Mode,
    /// How long a wait lasts at most.
    pub patience: Patience,
}

impl Default for Waits {
    fn default() -> Waits {
        let patience = Duration::from_secs(50);
        Waits { mode: Mode::Inline, patience: Patience { rows: patience, definitions: patience } }
    }
}

impl Waits {
    /// Asks for a thread that may block, if this is none.
    pub(super) fn may_block(self) -> ExecResult<()> {
        if self.mode == Mode::Inline { Err(Interrupt::NeedBlocking) } else { Ok(()) }
    }
}

/// The row and table locks that a session's transactions have asked for.
pub(crate) struct LockSet {
    /// Shared with commits on their way: a session that goes away early must not release them.
    pub(super) owned: Arc<TrxLocks>,
    /// The session as other threads see it.
    pub(super) watch: Arc<SessionWatch>,
    pub(super) budget: Arc<Budget>,
}

impl LockSet {
    pub(super) fn new(shared: &Arc<TrxContext>, session: u64, budget: Arc<Budget>) -> LockSet {
        let owned = Arc::new(shared.locks.begin(session));
        LockSet { watch: Arc::new(SessionWatch::new(owned.handle())), owned, budget }
    }

    /// A row was inserted, changed or deleted: who has changed fewer is the victim of a deadlock.
    #[inline]
    pub(super) fn changed_row(&self) {
        self.set_changed_rows(self.watch.changed_rows() + 1);
    }

    /// So many rows are changed, after a part of the transaction was undone.
    pub(super) fn set_changed_rows(&self, rows: u64) {
        self.watch.set_changed_rows(rows);
        self.owned.set_weight(rows);
    }

    /// As `lock_key`; tells whether nothing was held before the statement.
    pub(super) fn lock_waited(
        &self,
        statement: &mut StatementScope,
        key: &Bytes,
        mode: RowMode,
    ) -> ExecResult<bool> {
        let fresh = match self.owned.lock_record(space_of(key), key, mode) {
            Request::Granted { fresh } => fresh,
            Request::Wait(wait) => {
                let fresh = !wait.is_upgrade();
                if statement.is_inline() {
                    // Granted before the statement runs again, which then may not want it any more.
                    statement.awaited = fresh.then(|| key.clone());
                    return Err(Interrupt::LockWait(wait));
                }
                self.await_lock(statement.waits(), Request::Wait(wait))?;
                fresh
            }
        };
        let awaited = statement.awaited.take_if(|awaited| awaited == key).is_some();
        Ok(fresh || awaited)
    }

    /// Waits for a request as the mode allows. Returns whether the lock is new.
    pub(super) fn await_lock(&self, waits: Waits, request: Request) -> ExecResult<bool> {
        match request {
            Request::Granted { fresh } => Ok(fresh),
            Request::Wait(wait) if waits.mode == Mode::Inline => Err(Interrupt::LockWait(wait)),
            Request::Wait(wait) => {
                self.budget.end();
                let since = wait.since();
                let patience = waits.patience.of(wait.target().as_ref());
                let outcome = wait.wait(self.budget.kill().time_left(patience));
                self.budget.tally.waited(since.elapsed());
                match outcome {
                    WaitOutcome::Granted => Ok(true),
                    other => Err(wait_failure(other, self.budget.kill()).into()),
                }
            }
        }
    }

    /// Locks a key; `false` if `policy` says to skip it.
    pub(super) fn lock_key(
        &self,
        statement: &mut StatementScope,
        key: &Bytes,
        mode: RowMode,
        policy: WaitPolicy,
    ) -> ExecResult<bool> {
        statement.keep(key);
        let space = space_of(key);
        if policy != WaitPolicy::Wait {
            return match (self.owned.try_lock_record(space, key, mode), policy) {
                (Some(_), _) => Ok(true),
                (None, WaitPolicy::NoWait) => Err(SqlError::lock_nowait().into()),
                (None, _) => Ok(false),
            };
        }
        let request = self.owned.lock_record(space, key, mode);
        self.await_lock(statement.waits(), request)?;
        Ok(true)
    }

    /// Locks a key that is about to appear, against range locks too.
    pub(super) fn lock_new_key(&self, statement: &mut StatementScope, key: &Bytes) -> ExecResult<()> {
        statement.keep(key);
        let request = self.owned.lock_insert(space_of(key), key);
        self.await_lock(statement.waits(), request)?;
        Ok(())
    }

    /// Keeps other transactions from inserting between two keys.
    pub(super) fn lock_gap(&self, waits: Waits, from: Bound<&[u8]>, to: Bound<&[u8]>) -> ExecResult<()> {
        let space = match (&from, &to) {
            (Bound::Included(key) | Bound::Excluded(key), _)
            | (_, Bound::Included(key) | Bound::Excluded(key)) => space_of(key),
            _ => return Ok(()),
        };
        let request = self.owned.lock_range(space, from, to);
        self.await_lock(waits, request)?;
        Ok(())
    }

    /// Locks a table by its number, whatever it is. What is waited for first may be the gate in front of all writers.
    pub(crate) fn lock_table_id(&self, waits: Waits, id: u64, mode: TableMode) -> ExecResult<()> {
        loop {
            match self.owned.lock_table(id, mode) {
                Request::Granted { .. } => return Ok(()),
                wait => self.await_lock(waits, wait)?,
            };
        }
    }

    /// The locks themselves, for those that the session has beside its transactions.
    pub(crate) fn owner(&self) -> &TrxLocks {
        &self.owned
    }

    /// Whether some transaction writes.
    pub(crate) fn others_write(&self) -> bool {
        self.owned.others_write()
    }

    /// Gives the session locks of its own; the ones before belong to whoever else has them.
    pub(super) fn replace(&mut self) {
        let locks = self.owned.begin_another();
        locks.replace_beside(&self.owned);
        self.owned = Arc::new(locks);
        self.watch.replace(self.owned.handle());
    }

    /// The session's transaction and lock waits, for other threads.
    #[must_use]
    pub fn watch(&self) -> Arc<SessionWatch> {
        self.watch.clone()
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
