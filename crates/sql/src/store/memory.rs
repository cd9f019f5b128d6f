//! What an open transaction keeps in memory: its writes, and the locks of the rows it has read or changed.
//!
//! Both stay until it ends, and the engine keeps the writes as they are until they are in its files. So a transaction that does
//! not fit the limits fails where it grows. Small ones, which nearly all are, are not counted.

use super::trx::Trx;
use crate::error::{SqlError, SqlResult};
use crate::memory::{Account, MemoryLimits, SessionMemory};
use omnibus_engine::WriteSet;
use omnibus_locks::TrxLocks;
use std::sync::Arc;

/// Bytes that a transaction has without asking.
const FREE: u64 = 256 << 10;
/// Bytes that are asked for at once.
const STEP: u64 = 256 << 10;
/// What a row's lock takes at most: its key, its entry in the lock table, and its place among the transaction's own.
const LOCK: u64 = 256;

/// A transaction's part of its session's memory.
pub(super) struct TrxMemory {
    session: Arc<SessionMemory>,
    pub(super) limits: MemoryLimits,
    account: Account,
    /// Up to so many bytes need no asking.
    counted: u64,
    /// Bytes of locks, at most: a row that is read again is counted again.
    locked: u64,
}

impl TrxMemory {
    pub(super) fn new(session: &Arc<SessionMemory>) -> TrxMemory {
        TrxMemory {
            session: session.clone(),
            limits: MemoryLimits::default(),
            account: Account::new(session),
            counted: FREE,
            locked: 0,
        }
    }

    /// An account of something else that belongs to the session.
    pub(super) fn account(&self) -> Account {
        Account::new(&self.session)
    }

    /// A row was locked or changed.
    #[inline]
    pub(super) fn touched(&mut self, writes: &WriteSet, locks: &TrxLocks) -> SqlResult<()> {
        self.locked += LOCK;
        let bytes = self.bytes(writes);
        if bytes <= self.counted { Ok(()) } else { self.ask(writes, locks) }
    }

    fn bytes(&self, writes: &WriteSet) -> u64 {
        writes.memory() as u64 + self.locked
    }

    #[cold]
    fn ask(&mut self, writes: &WriteSet, locks: &TrxLocks) -> SqlResult<()> {
        self.locked = locks.memory() as u64;
        let bytes = self.bytes(writes);
        if bytes <= self.counted {
            return Ok(());
        }
        let wanted = bytes.next_multiple_of(STEP);
        let limit = self.limits.connection.min(self.limits.server);
        self.account.resize(wanted as usize, self.limits).map_err(|_| too_large(limit))?;
        self.counted = wanted;
        Ok(())
    }

    /// A statement was undone: its locks stay.
    pub(super) fn undone(&mut self, writes: &WriteSet) {
        let bytes = self.bytes(writes);
        self.counted = bytes.next_multiple_of(STEP).clamp(FREE, self.counted.max(FREE));
        if self.counted > FREE {
            // Less than before.
            let _ = self.account.resize(self.counted as usize, self.limits);
        } else {
            self.account.clear();
        }
    }

    /// The transaction is over.
    pub(super) fn ended(&mut self) {
        self.locked = 0;
        if self.counted > FREE {
            self.counted = FREE;
            self.account.clear();
        }
    }
}

fn too_large(limit: u64) -> SqlError {
    SqlError::new(
        1197,
        b"HY000",
        format!(
            "Multi-statement transaction required more memory than 'global_connection_memory_limit' or \
             'connection_memory_limit' allows ({limit} bytes); make it smaller, or increase these variables"
        ),
    )
}

impl Trx {
    /// Counts what the transaction keeps with this session's.
    pub(crate) fn count_with(&mut self, session: &Arc<SessionMemory>) {
        self.memory = TrxMemory::new(session);
    }
}
