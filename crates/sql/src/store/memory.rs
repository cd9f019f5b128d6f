//! What an open transaction keeps in memory: its writes, and the locks of the rows it has read or changed.
//!
//! Both stay until it ends. Writes beyond `tmp_table_size`, or for which a limit has no room, go to files in `tmpdir`, and the engine
//! reads them there until it has them in its own. Locks stay in memory: those of a transaction that has so many that they do not fit
//! the limits become locks of whole indexes, and it fails where it grows if they can not. Small ones, which nearly all are, are not
//! counted.
//!
//! Under a protocol of two phases, and where the log has all writes as one private event (`sql_log_bin=0`), writes stay in memory.

use super::trx::Trx;
use crate::api::SessionSettings;
use crate::error::{SqlError, SqlResult};
use crate::memory::{Account, MemoryLimits, SessionMemory};
use omnibus_engine::WriteSet;
use omnibus_locks::TrxLocks;
use omnibus_temporary::TempFolder;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes that a transaction has without asking.
const FREE: u64 = 256 << 10;
/// Bytes that are asked for at once.
const STEP: u64 = 256 << 10;
/// What a row's lock takes at most: its key, its entry in the lock table, and its place among the transaction's own.
const LOCK: u64 = 256;
/// Bytes of writes that are in memory whatever the limits say: a file has at least so many.
const LEAST: u64 = 256 << 10;

/// A transaction's part of its session's memory.
pub(super) struct TrxMemory {
    session: Arc<SessionMemory>,
    pub(super) limits: MemoryLimits,
    /// Writes beyond so many bytes go to a file; `u64::MAX` if they may not.
    writes_max: u64,
    /// Where files are.
    tmpdir: Option<TempFolder>,
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
            writes_max: u64::MAX,
            tmpdir: None,
            account: Account::new(session),
            counted: FREE,
            locked: 0,
        }
    }

    /// An account of something else that belongs to the session.
    pub(super) fn account(&self) -> Account {
        Account::new(&self.session)
    }

    /// What a statement with these settings may have. `files`: writes may go to files.
    pub(super) fn begin(&mut self, settings: &SessionSettings, files: bool) {
        self.limits = MemoryLimits::of(settings);
        self.writes_max = if files { settings.tmp_table_size.max(LEAST) } else { u64::MAX };
        self.tmpdir = files.then(|| settings.tmpdir.clone());
    }

    /// Whether writes are to go to a file.
    #[inline]
    pub(super) fn is_full(&self, writes: &WriteSet) -> bool {
        writes.held() as u64 > self.writes_max
    }

    /// Whether so many bytes of writes may go to a file.
    pub(super) fn may_spill(&self, held: u64) -> bool {
        self.tmpdir.is_some() && held >= LEAST
    }

    /// Moves writes to a file, if they are many.
    pub(super) fn relieve(&self, writes: &mut WriteSet) -> SqlResult<()> {
        if self.is_full(writes) { self.spill(writes) } else { Ok(()) }
    }

    #[cold]
    pub(super) fn spill(&self, writes: &mut WriteSet) -> SqlResult<()> {
        let Some(dir) = &self.tmpdir else { return Ok(()) };
        let server = self.session.server();
        writes.spill(&|| {
            server.tmp_files.fetch_add(1, Ordering::Relaxed);
            dir.file()
        })?;
        Ok(())
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
        self.changes.memory = TrxMemory::new(session);
    }
}
