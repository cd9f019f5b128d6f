//! The contract of a storage engine: the calls of the server, and their order.
//!
//! 1. `open` (each engine's own constructor) recovers the last checkpoint; `applied` is its commit number. The server
//!    replays the log from there with `prepare_ordered` + `commit_ordered`, then serves.
//! 2. For every committed transaction, in CommitNo order, from one thread at a time:
//!    `prepare_ordered(no, writes)`. Its versions are invisible to snapshots below `no`.
//! 3. Some time later, when the log is durable up to `no`: `commit_ordered(no)`. Only versions at
//!    or below the highest such number may be made persistent (ENGINE-1).
//! 4. A backup (`backup_to`) may run at any time after that; the log from its number on goes with it.
//! 5. Snapshots are taken at published numbers by any thread at any time. `gc_watermark` passes the oldest number still
//!    in use: older versions hidden by newer ones at or below it may be discarded.
//!
//! # Committing in two phases
//!
//! An engine may also have a redo log of its own and take part in a two-phase commit (`two_phase`). The server's log
//! decides: a transaction is committed if and only if it is in that log (RECOVER-1). For each transaction:
//!
//! 1. `prepare(trx, writes)`, from the session's thread, before the transaction has a number. It may block and may fail;
//!    then the transaction is rolled back. The engine can commit it from then on even after a crash, if step 2 was done.
//! 2. `flush_logs()`: one sync. Every `prepare` that returned before the call is durable on return. A leader calls it
//!    once for its group, *after* it took the queue, so that each member's prepare is covered.
//! 3. The server writes its log and syncs it.
//! 4. `prepare_ordered(no, writes)`, `commit_prepared(trx, no)`, later `commit_ordered(up_to)`, in this order, as in one phase.
//!    None of them does I/O. A protocol that also wants the commit record on disk calls `flush_logs` again.
//!    A transaction that is not committed after step 1: `rollback(trx)`.
//!
//! After a crash, once the log was replayed, `prepared()` names the transactions whose outcome the engine does not know
//! or whose commit is not persistent. The server decides about each from the log, and calls in commit order
//! `commit_prepared(trx, no)` and, after the last one, `commit_ordered`; or `rollback(trx)`. Writes that the replay has
//! installed are not installed again. After a crash in between, the list is the same again.

use crate::interruptible::GoOn;
use crate::{CommitNo, EngineError, Lent, SpaceId, TrxId, Write, WriteSet};
use bytes::Bytes;
use std::any::Any;
use std::ops::Bound;
use std::path::Path;

/// Returns the name of the table that a space belongs to.
pub type SpaceNames = Box<dyn Fn(SpaceId) -> Option<String> + Send + Sync>;

/// Writes of a large transaction, from files.
pub type SortedWrites<'a> = dyn Iterator<Item = std::io::Result<(Bytes, Write)>> + 'a;

/// Key-value pairs of a scan, in the direction asked for. An error ends the scan.
pub type SnapshotIter<'a> = Box<dyn Iterator<Item = Result<(Bytes, Bytes), EngineError>> + Send + 'a>;

/// A frozen view. Cheap to make (no lock, SNAP-1) and to drop.
pub trait Snapshot: Send + Sync {
    /// The value of `key`, if it is there. May read from disk.
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError>;

    /// The value of `key` and the commit number that wrote it. A locking read at `CommitNo::MAX`
    /// uses it to know what must be durable before its reply may leave (COMMIT-2).
    fn get_version(&self, key: &[u8]) -> Result<Option<(CommitNo, Bytes)>, EngineError>;

    /// The pairs within the bounds, ascending, or descending if `reverse`.
    fn scan<'a>(&'a self, from: Bound<&[u8]>, to: Bound<&[u8]>, reverse: bool) -> SnapshotIter<'a>;

    /// Passes the pairs within the bounds to `each`, ascending, until it returns false; then the answer
    /// is false too. As `scan`, for reads that are over when the call is.
    ///
    /// # Errors
    /// As `scan`'s.
    fn visit(
        &self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        each: &mut dyn FnMut(Lent<'_>, Lent<'_>) -> bool,
    ) -> Result<bool, EngineError> {
        for pair in self.scan(from, to, false) {
            let (key, value) = pair?;
            if !each(Lent::Shared(&key), Lent::Shared(&value)) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Figures for SHOW STATUS. Counters since start unless said otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub struct EngineStats {
    /// Bytes in memory not yet in a table file (a gauge).
    pub memtable_bytes: u64,
    /// Memtables written out.
    pub flushes: u64,
    /// Compactions run.
    pub compactions: u64,
    /// Times a writer was slowed or stopped because flushing or compaction lagged.
    pub write_stalls: u64,
    /// Bytes on disk (a gauge).
    pub disk_bytes: u64,
    /// Syncs of the redo log, for two-phase commits.
    pub redo_syncs: u64,
}

/// Old versions that a snapshot keeps: an estimate from above, because each version that was written after the snapshot counts, and not all
/// of them are of rows that it sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Bytes of versions that are newer than the snapshot, or of the files that have them.
    pub bytes: u64,
    /// Those files.
    pub files: u64,
}

impl Kept {
    /// Of `whole` bytes with versions of the commits behind `from`, up to `to`, the part of those behind `at`: as if all commits had written
    /// alike.
    #[must_use]
    pub fn part(whole: u64, from: u64, to: u64, at: u64) -> u64 {
        let (all, newer) = (to.saturating_sub(from).max(1), to.saturating_sub(at.max(from)));
        u64::try_from(u128::from(whole) * u128::from(newer) / u128::from(all)).unwrap_or(whole)
    }
}

impl std::ops::Add for Kept {
    type Output = Kept;

    fn add(self, other: Kept) -> Kept {
        Kept { bytes: self.bytes + other.bytes, files: self.files + other.files }
    }
}

/// A large transaction's writes, brought into the form in which an engine takes them over at once.
pub enum Staged {
    /// The unchanged writes, for an engine that has no other form.
    Writes(WriteSet),
    /// The engine's own.
    Built(Box<dyn Any + Send>),
}

impl std::fmt::Debug for Staged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Staged::Writes(_) => "Staged::Writes",
            Staged::Built(_) => "Staged::Built",
        })
    }
}

/// An engine as users see it, in `ENGINE=` and SHOW ENGINES.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineInfo {
    /// The engine's name, as of `Engine::name`.
    pub name: &'static str,
    /// A description in a sentence.
    pub comment: &'static str,
    /// Its spaces' slot.
    pub slot: u8,
}

/// A storage engine. All methods may be called from any thread unless stated.
pub trait Engine: Send + Sync + 'static {
    /// The name in `ENGINE=` and SHOW ENGINES, written as they show it. That of the default engine is `InnoDB`, whatever its kind: programs
    /// look for tables of that name and mean transactions, row locks and foreign keys by it.
    fn name(&self) -> &'static str;

    /// The highest commit number that survived the last stop: replay starts after it.
    fn applied(&self) -> CommitNo;

    /// Installs a transaction's versions at `no`. In CommitNo order, one thread at a time, fast, no
    /// I/O; infallible. Not durable on return, invisible to snapshots below `no`.
    fn prepare_ordered(&self, no: CommitNo, writes: WriteSet);

    /// Does ahead of time what installing a large transaction costs, before its number is known; its row
    /// locks are held. Called on the committing session's thread, by any number of them at once; may
    /// take long, infallible. Nothing of it is visible, and dropping the result forgets it.
    fn stage(&self, writes: WriteSet) -> Staged {
        Staged::Writes(writes)
    }

    /// As `prepare_ordered`, for a result of this engine's `stage`. Fast whatever its size, if the engine has a form of
    /// its own.
    fn prepare_staged(&self, no: CommitNo, staged: Staged) {
        if let Staged::Writes(writes) = staged {
            self.prepare_ordered(no, writes);
        }
    }

    /// Installs a large transaction during replay, in memory that does not grow with it. Everything before it was
    /// installed and is durable in the log, and so is it; `writes` are in key order, each key once. Blocks. Persistent on
    /// return, as a whole or, after an error or a crash, not at all.
    ///
    /// # Errors
    /// Those of `writes`, the operating system, or damage.
    fn install_sorted(&self, no: CommitNo, writes: &mut SortedWrites<'_>) -> Result<(), EngineError> {
        let mut set = WriteSet::default();
        for write in writes {
            match write.map_err(|source| EngineError::Io { engine: self.name(), source })? {
                (key, Some(value)) => set.put(key, value),
                (key, None) => set.delete(key),
            }
        }
        self.prepare_ordered(no, set);
        Ok(())
    }

    /// Declares everything up to and including `up_to` durable in the log (ENGINE-1), so that it may be persisted. In
    /// order, one thread at a time, fast, no I/O on this thread; infallible. Numbers that were never prepared here (no
    /// writes, or another engine's) count as applied.
    fn commit_ordered(&self, up_to: CommitNo);

    /// A view of everything at or below `at`; `CommitNo::MAX` reads the newest installed versions.
    fn snapshot(&self, at: CommitNo) -> Box<dyn Snapshot>;

    /// Writes pairs, in any order, into a space that no committed catalog refers to yet (an index
    /// being built). They carry the commit number `at`, which must be published. Blocks until the
    /// pairs, and everything up to `at`, are persistent: the log does not have them.
    fn load(&self, at: CommitNo, pairs: &mut dyn Iterator<Item = (Bytes, Bytes)>) -> Result<(), EngineError>;

    /// The space is gone from the catalog since `at`; its storage may be reclaimed once no
    /// snapshot below `at` is left. Returns at once. Forgotten at restart: the server names the
    /// dead spaces again.
    fn drop_space(&self, space: SpaceId, at: CommitNo);

    /// No snapshot older than this will be used again. Never goes back; at start it is `applied`. Called
    /// during replay as well, or every replayed version of a hot row is kept.
    fn gc_watermark(&self, oldest: CommitNo);

    /// The time that a writer should wait now because flushing or compaction lags; usually zero. Sessions ask before
    /// they commit; the commit path itself never does.
    fn write_stall(&self) -> std::time::Duration;

    /// The reason why a transaction with these writes must not commit now: damage keeps the engine from ever writing
    /// them to its files. Earlier commits stay in memory and in the log; reads and other engines continue. Sessions ask
    /// before they commit; replay does not. Cheap.
    fn refuses(&self, _writes: &WriteSet) -> Option<EngineError> {
        None
    }

    /// From now on errors about damage name the table that a space belongs to. Once.
    fn name_spaces(&self, _names: SpaceNames) {}

    /// The log has been replayed, and nothing refuses the start any more: files of an older form may get that of new ones
    /// (`FileSystem::has_other_form`). Once. Blocks while it copies; commits and reads continue.
    ///
    /// # Errors
    /// The operating system.
    fn recovered(&self) -> Result<(), EngineError> {
        Ok(())
    }

    /// Makes everything up to the last `commit_ordered` persistent and returns its number, so
    /// that older log files may be purged. Blocks, also while a disk is full; called from a background or shutdown thread.
    ///
    /// # Errors
    /// The engine has failed; or damage keeps it from getting on, which is no failure.
    fn checkpoint(&self) -> Result<CommitNo, EngineError>;

    /// As [`Engine::checkpoint`] for a caller that needs to free disk space: a full disk is an error at once
    /// ([`EngineError::is_full`]).
    ///
    /// # Errors
    /// As [`Engine::checkpoint`], and a full disk.
    fn checkpoint_if_room(&self) -> Result<CommitNo, EngineError> {
        self.checkpoint()
    }

    /// The highest commit number that is persistent now (what `applied` would say after a crash).
    fn persisted(&self) -> CommitNo;

    /// A background failure (full disk, I/O error) that the server must report and stop for.
    fn failure(&self) -> Option<String>;

    /// Copies the persistent state into another data directory, `root`, which exists: as a folder named like the
    /// engine's own, which must not exist. Opened there, the engine has exactly everything up to the number returned as
    /// `applied`. Blocks while it copies; commits, reads and checkpoints continue. One at a time. The copy is durable
    /// on return, and shares no file with the original that either of them would change in place. It has no prepared
    /// transactions: the server's log is copied with it and decides which were committed. After a failure or a crash
    /// `root` may hold a part of it; the original is unharmed. `go_on` is asked many times a second.
    ///
    /// # Errors
    /// The operating system, that of `go_on`, or damage; or the engine keeps nothing in files.
    fn backup_to(&self, _root: &Path, _go_on: GoOn<'_>) -> Result<CommitNo, EngineError> {
        Err(EngineError::Io { engine: self.name(), source: std::io::ErrorKind::Unsupported.into() })
    }

    /// Figures for SHOW STATUS.
    fn stats(&self) -> EngineStats;

    /// Estimates what the engine can not let go while somebody reads a snapshot at `at`. Cheap.
    fn kept_since(&self, _at: CommitNo) -> Kept {
        Kept::default()
    }

    /// Returns whether the engine takes part in two-phase commits.
    fn two_phase(&self) -> bool {
        false
    }

    /// Writes the transaction's redo record. Any thread; may block. Not durable on return, nothing is visible.
    ///
    /// # Errors
    /// It could not be written, or this engine is no participant. The transaction is not prepared.
    fn prepare(&self, _trx: TrxId, _writes: &WriteSet) -> Result<(), EngineError> {
        Err(EngineError::NotTwoPhase { engine: self.name() })
    }

    /// Makes every prepare, commit and rollback that returned before the call durable, with one sync, shared by all
    /// who call at once. Any thread; blocks.
    ///
    /// # Errors
    /// The sync failed, so what is durable is unknown: nothing may be acknowledged, and every later prepare and flush
    /// fails, too.
    fn flush_logs(&self) -> Result<(), EngineError> {
        Ok(())
    }

    /// Transactions that were prepared before the engine was opened and are not decided since, in no order.
    fn prepared(&self) -> Vec<TrxId> {
        Vec::new()
    }

    /// The prepared transaction is committed as `no`; one that was never prepared here is ignored. Installs its writes
    /// if `no` is above every number installed so far, which is only so after a crash. In CommitNo order with
    /// `prepare_ordered`, one thread at a time, no I/O; infallible.
    fn commit_prepared(&self, _trx: TrxId, _no: CommitNo) {}

    /// The prepared transaction is rolled back; one that was never prepared here is ignored. Any thread, no I/O; infallible.
    fn rollback(&self, _trx: TrxId) {}

    /// A description in a sentence, for SHOW ENGINES.
    fn comment(&self) -> &'static str {
        ""
    }

    /// Every engine there is: of a set its members, by slot.
    fn members(&self) -> Vec<EngineInfo> {
        vec![EngineInfo { name: self.name(), comment: self.comment(), slot: 0 }]
    }

    /// `applied` of the engine that holds `key`. In a set that is more than `applied` where another engine is
    /// further behind: replay must not work out again what is there already, because it would read newer rows
    /// than the transaction did.
    fn applied_to(&self, _key: &[u8]) -> CommitNo {
        self.applied()
    }

    /// The highest number of which anything survived: the log must reach as far.
    fn newest(&self) -> CommitNo {
        self.applied()
    }

    /// The catalog's definitions exactly as of `applied`, for replay to begin with. Other keys may be missing.
    fn definitions(&self) -> Box<dyn Snapshot> {
        self.snapshot(CommitNo::MAX)
    }
}

/// An engine whose snapshots are nothing but a number: it can read at one without an object for it. The
/// first engine of a set must, so that being in a set costs its reads nothing.
pub trait ReadAt: Engine {
    /// As [`Snapshot::get`] of `snapshot(at)`.
    ///
    /// # Errors
    /// The same.
    fn get_at(&self, at: CommitNo, key: &[u8]) -> Result<Option<Bytes>, EngineError>;

    /// As [`Snapshot::get_version`] of `snapshot(at)`.
    ///
    /// # Errors
    /// The same.
    fn get_version_at(&self, at: CommitNo, key: &[u8]) -> Result<Option<(CommitNo, Bytes)>, EngineError>;

    /// As [`Snapshot::scan`] of `snapshot(at)`.
    fn scan_at(
        &self,
        at: CommitNo,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        reverse: bool,
    ) -> SnapshotIter<'static>;

    /// As [`Snapshot::visit`] of `snapshot(at)`.
    ///
    /// # Errors
    /// The same.
    fn visit_at(
        &self,
        at: CommitNo,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        each: &mut dyn FnMut(Lent<'_>, Lent<'_>) -> bool,
    ) -> Result<bool, EngineError>;
}
