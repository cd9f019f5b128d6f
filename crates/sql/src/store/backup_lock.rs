//! LOCK INSTANCE FOR BACKUP: while sessions hold it, no other session's definition begins, and rows are written as ever.
//!
//! A number that definitions look at once they have the lock that makes them wait for each other; who raises it goes through
//! that lock, so no definition is under way afterwards. It belongs to the session, not to a transaction. On a thread that may
//! block.

use super::lock::{Patience, Waits};
use super::table_lock::SessionLocks;
use super::trx::TrxContext;
use crate::api::KillFlag;
use crate::error::{ExecResult, SqlError};
use omnibus_locks::TableMode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The lock that makes definitions wait for each other; no table has this id.
pub(super) const DDL_LOCK: u64 = 0;
/// How often a definition looks whether the backups have ended.
const LOOK: Duration = Duration::from_millis(2);

/// A session's LOCK INSTANCE FOR BACKUP, whatever becomes of its transactions.
pub(crate) struct InstanceLock {
    shared: Arc<TrxContext>,
    held: bool,
}

impl InstanceLock {
    pub(super) fn new(shared: &Arc<TrxContext>) -> InstanceLock {
        InstanceLock { shared: shared.clone(), held: false }
    }

    fn take(&mut self) {
        self.held = true;
        self.shared.backups.fetch_add(1, Ordering::SeqCst);
    }

    /// UNLOCK INSTANCE.
    pub(crate) fn release(&mut self) {
        if std::mem::take(&mut self.held) {
            self.shared.backups.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Whether another session has it.
    #[must_use]
    pub(crate) fn is_others(&self) -> bool {
        self.shared.backups.load(Ordering::SeqCst) > u32::from(self.held)
    }

    /// Waits until no other session has it.
    pub(super) fn wait_for_others(&self, patience: Patience, kill: &KillFlag) -> ExecResult<()> {
        let begun = Instant::now();
        while self.is_others() {
            kill.check()?;
            if begun.elapsed() >= patience.definitions {
                return Err(SqlError::lock_wait_timeout().into());
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}

impl SessionLocks {
    /// Takes the lock that makes definitions wait for each other, or says that there is a backup: it is not kept then, for
    /// the next backup goes through it.
    pub(super) fn lock_definitions(&self, waits: Waits) -> ExecResult<bool> {
        self.rows.lock_table_id(waits, DDL_LOCK, TableMode::Exclusive)?;
        if self.backup.is_others() {
            self.rows.owned.release_table(DDL_LOCK);
            return Ok(false);
        }
        Ok(true)
    }

    /// The definition has ended, and the session's other locks stay.
    pub(super) fn unlock_definitions(&self) {
        self.rows.owned.release_table(DDL_LOCK);
    }

    /// LOCK INSTANCE FOR BACKUP. In force when it returns. `defines`: the transaction has an open definition.
    pub(crate) fn lock_instance(&mut self, waits: Waits, defines: bool) -> ExecResult<()> {
        if self.backup.held {
            return Ok(());
        }
        self.backup.take();
        // An own open definition has the lock, and is nobody's concern here.
        if defines {
            return Ok(());
        }
        match self.rows.lock_table_id(waits, DDL_LOCK, TableMode::Shared) {
            Ok(()) => self.rows.owned.release_table(DDL_LOCK),
            Err(error) => {
                self.backup.release();
                return Err(error);
            }
        }
        Ok(())
    }
}
