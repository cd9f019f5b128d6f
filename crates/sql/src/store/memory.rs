//! The memory of an open transaction: its writes, and the locks of the rows it has read or changed.
//!
//! Both stay until it ends. Writes beyond `tmp_table_size`, or for which a limit has no room, go to files in `tmpdir`, and the engine
//! reads them there until it has them in its own. Locks stay in memory: those of a transaction that has so many that they do not fit
//! the limits become locks of whole indexes, and it fails where it grows if they can not. Its events count, too, as far as they are in
//! memory. Small ones, which nearly all are, are not counted: thousands of them may be open.
//!
//! Under a protocol of two phases, and where the log has all writes as one private event (`sql_log_bin=0`), writes stay in memory.

use crate::api::SessionSettings;
use crate::error::{SqlError, SqlResult};
use crate::memory::{Account, MemoryLimits, SessionMemory};
use omnibus_engine::WriteSet;
use omnibus_locks::TrxLocks;
use omnibus_temporary::TempFolder;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes that a transaction has without asking.
const FREE: u64 = 16 << 10;
/// Bytes that are asked for at once by a transaction that has as many; a smaller one doubles.
const STEP: u64 = 256 << 10;
/// Most bytes of a row's lock: its key, its entry in the lock table, and its place among the transaction's own.
const LOCK: u64 = 256;
/// Bytes of writes that `tmp_table_size` leaves in memory at least: a file has so many.
const LEAST: u64 = 256 << 10;
/// Bytes of writes that go to a file where a limit has no room for more.
const LEAST_WITHOUT_ROOM: u64 = LEAST / 4;

/// How much a statement may have its transaction keep, as the session's variables say.
pub(super) struct Room {
    pub limits: MemoryLimits,
    /// Bytes of rows in temporary tables.
    pub temporary: u64,
    /// Writes beyond so many bytes go to a file; `u64::MAX` if they may not.
    writes_max: u64,
    /// Where files are.
    tmpdir: Option<TempFolder>,
}

impl Default for Room {
    /// As much as there is, without files.
    fn default() -> Room {
        Room { limits: MemoryLimits::default(), temporary: u64::MAX, writes_max: u64::MAX, tmpdir: None }
    }
}

impl Room {
    /// Of a statement. `files`: writes may go to files.
    pub(super) fn of(settings: &SessionSettings, files: bool) -> Room {
        Room {
            limits: MemoryLimits::of(settings),
            temporary: settings.temporary_tables_max,
            writes_max: if files { settings.tmp_table_size.max(LEAST) } else { u64::MAX },
            tmpdir: files.then(|| settings.tmpdir.clone()),
        }
    }

    /// Whether writes are to go to a file.
    #[inline]
    pub(super) fn is_full(&self, writes: &WriteSet) -> bool {
        writes.held() as u64 > self.writes_max
    }

    /// Whether so many bytes of writes may go to a file.
    pub(super) fn may_spill(&self, held: u64) -> bool {
        self.tmpdir.is_some() && held >= LEAST_WITHOUT_ROOM
    }
}

/// A transaction's part of its session's memory.
pub(super) struct TrxMemory {
    account: Account,
    /// Up to so many bytes need no asking.
    counted: u64,
    /// Bytes of locks, at most: a row that is read again is counted again.
    locked: u64,
    /// Bytes of events.
    events: u64,
}

impl TrxMemory {
    pub(super) fn new(session: &Arc<SessionMemory>) -> TrxMemory {
        TrxMemory { account: Account::new(session), counted: FREE, locked: 0, events: 0 }
    }

    /// Another transaction's, of the same session.
    pub(super) fn another(&self) -> TrxMemory {
        TrxMemory { account: self.account.like(), counted: FREE, locked: 0, events: 0 }
    }

    /// An account of something else that belongs to the session.
    pub(super) fn account(&self) -> Account {
        self.account.like()
    }

    /// Moves writes to a file, if they are many.
    pub(super) fn relieve(&self, room: &Room, writes: &mut WriteSet) -> SqlResult<()> {
        if room.is_full(writes) { self.spill(room, writes) } else { Ok(()) }
    }

    #[cold]
    pub(super) fn spill(&self, room: &Room, writes: &mut WriteSet) -> SqlResult<()> {
        let Some(dir) = &room.tmpdir else { return Ok(()) };
        let server = self.account.server();
        writes.spill(&|| {
            server.tmp_files.fetch_add(1, Ordering::Relaxed);
            dir.file()
        })?;
        Ok(())
    }

    /// Its events take so many bytes of memory.
    #[inline]
    pub(super) fn logged(&mut self, bytes: u64) {
        self.events = bytes;
    }

    /// A row was locked or changed.
    #[inline]
    pub(super) fn touched(&mut self) {
        self.locked += LOCK;
    }

    /// Asks for what it holds now.
    #[inline]
    pub(super) fn count(&mut self, room: &Room, writes: &WriteSet, locks: &TrxLocks) -> SqlResult<()> {
        let bytes = self.bytes(writes);
        if bytes <= self.counted { Ok(()) } else { self.ask(room, writes, locks) }
    }

    fn bytes(&self, writes: &WriteSet) -> u64 {
        writes.memory() as u64 + self.locked + self.events
    }

    #[cold]
    fn ask(&mut self, room: &Room, writes: &WriteSet, locks: &TrxLocks) -> SqlResult<()> {
        self.locked = locks.memory() as u64;
        let bytes = self.bytes(writes);
        if bytes <= self.counted {
            return Ok(());
        }
        let wanted = stepped(bytes);
        let limit = room.limits.connection.min(room.limits.server);
        let more = wanted.saturating_sub(self.account.used()) as usize;
        self.account.grow_exactly(more, room.limits).map_err(|_| too_large(limit))?;
        self.counted = wanted;
        Ok(())
    }

    /// A statement was undone: its locks stay.
    pub(super) fn undone(&mut self, writes: &WriteSet) {
        let bytes = self.bytes(writes);
        self.counted = stepped(bytes).clamp(FREE, self.counted);
        if self.counted > FREE {
            self.account.shrink_to(self.counted);
        } else {
            self.account.clear();
        }
    }
}

/// The bytes that a transaction asks for that has so many.
fn stepped(bytes: u64) -> u64 {
    if bytes < STEP { bytes.next_power_of_two().max(FREE) } else { bytes.next_multiple_of(STEP) }
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
