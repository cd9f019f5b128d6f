//! A session's transaction: its write set, events, locks and snapshot, and each statement's part in it. How it ends is in
//! `end`.
//!
//! COMMIT-2 for readers: what a reply may tell of only later is noted in `floor`.

use super::applied::Applied;
use super::building::Builds;
use super::definition::OpenDefinition;
use super::events::{StatementEvents, StatementInfo};
use super::floor::Floor;
use super::foreign_keys::ForeignKeys;
use super::memory::TrxMemory;
use super::near::Near;
use super::port::{CommitPort, SnapshotHold};
use super::savepoint::Savepoint;
use super::temp::TempStore;
use super::xa::{Branch, LockWaiter};
use crate::api::{Budget, Isolation, Mode, Turns};
use crate::catalog::{Catalog, CatalogCell, TableState};
use crate::error::{ExecResult, SqlError, SqlResult, is_full};
use crate::memory::{ServerMemory, SessionMemory};
use bytes::Bytes;
use omnibus_commit::{CacheError, CacheMark, LogPosition, TrxCache};
use omnibus_engine::{CommitNo, Mark, Snapshot, WriteSet};
use omnibus_locks::{LockManager, TableMode, TrxLocks};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

/// What all transactions of a database share.
pub struct TrxContext {
    /// Commits and snapshots.
    pub port: Arc<dyn CommitPort>,
    /// Row, range and table locks.
    pub locks: Arc<LockManager>,
    /// The catalog.
    pub catalog: CatalogCell,
    /// Changes when a table has been counted: plans are made anew.
    pub statistics: AtomicU64,
    /// Numbers for XID events.
    pub xid: AtomicU64,
    /// XA branches.
    pub branches: crate::xa::Registry,
    /// Sessions that have LOCK INSTANCE FOR BACKUP.
    pub backups: AtomicU32,
    /// What is made of tables while others write them.
    pub builds: Builds,
    /// Statements that compute.
    pub turns: Arc<Turns>,
    /// What statements keep in memory.
    pub memory: Arc<ServerMemory>,
}

/// Where a statement or savepoint began.
#[derive(Clone, Copy, Debug)]
pub struct Marks {
    writes: Mark,
    cache: CacheMark,
    temp: Mark,
}

/// A committed AUTO_INCREMENT counter row that a table will be able to rely on.
pub(super) struct Covers {
    pub state: Arc<TableState>,
    pub value: u64,
    /// The counter row, and the older one it replaces: no row event tells of them.
    pub keys: [Option<Bytes>; 2],
}

/// A transaction, or the absence of one.
pub struct Trx {
    pub(super) shared: Arc<TrxContext>,
    /// Shared with commits on their way: a session that goes away early must not release them.
    pub(super) locks: Arc<TrxLocks>,
    pub(super) writes: WriteSet,
    /// A table that its commit makes.
    pub(super) definition: Option<Box<OpenDefinition>>,
    /// Temporary tables of the session.
    pub(super) temp: TempStore,
    pub(super) cache: TrxCache,
    pub(super) events: StatementEvents,
    pub(super) foreign_keys: ForeignKeys,
    pub(super) hold: Box<dyn SnapshotHold>,
    pub(super) snapshot: Option<(CommitNo, Box<dyn Snapshot>)>,
    /// What the running statement has read ahead of the snapshot.
    pub(super) near: Near,
    /// The snapshot is older than the running statement.
    pub(super) kept_snapshot: bool,
    pub(super) budget: Arc<Budget>,
    pub(super) memory: TrxMemory,
    pub(super) covers: Vec<Covers>,
    /// Sequences whose rows it writes.
    pub(super) sequences: Vec<Arc<TableState>>,
    /// AUTO_INCREMENT values that the running statement took: table, how many, first. If it is
    /// run again it takes the same ones again.
    pub(super) auto_taken: Vec<(u64, u64, u64)>,
    pub(super) auto_reused: usize,
    /// The same of numbers out of sequences: table, number.
    pub(super) numbers_taken: Vec<(u64, i64)>,
    pub(super) numbers_reused: usize,
    /// Rows added and removed, per table, for estimates only: a rolled back statement's stay in.
    pub(super) deltas: Vec<(Arc<TableState>, i64)>,
    pub(super) savepoints: Vec<Savepoint>,
    /// Tables locked by this transaction, and how.
    pub(super) tables: Vec<(u64, TableMode)>,
    /// Held by LOCK TABLES, kept across transactions.
    pub(super) locked_tables: bool,
    /// FLUSH TABLES WITH READ LOCK is in force; then so is `locked_tables`.
    pub(super) read_lock: bool,
    /// The session has LOCK INSTANCE FOR BACKUP.
    pub(super) backup_lock: bool,
    /// The table that a definition statement lets others use meanwhile, and what it holds of it.
    pub(super) aside: Option<(u64, TableMode)>,
    /// The XA branch that the transaction is, or was until it was rolled back.
    pub(super) branch: Option<Branch>,
    pub(super) waiter: Arc<LockWaiter>,
    /// A commit is on its way, which will release the locks when its versions are installed.
    /// Whoever released them sooner would let others read what it is about to replace.
    pub(super) handed_over: bool,
    /// START TRANSACTION or the first statement under autocommit=0 has opened it.
    pub(super) open: bool,
    /// START TRANSACTION READ ONLY.
    pub(super) read_only: bool,
    /// Of this transaction.
    pub(super) isolation: Isolation,
    pub(super) mode: Mode,
    pub(super) lock_wait: Duration,
    /// What replies wait for.
    pub(super) floor: Arc<Floor>,
    /// The lock that an attempt of the running statement ended for, if it may be given back (`matches`).
    pub(super) awaited: Option<Bytes>,
    pub(super) snapshot_position: Option<LogPosition>,
    /// What the transaction's commit takes along, if it comes from another server.
    pub(super) applied: Option<Box<Applied>>,
    /// The commit that follows has an id that must not be forgotten, whatever else it has.
    pub(super) keeps_id: bool,
    /// Counts commits without a place yet, if somebody wants to know.
    pub(super) in_flight: Option<Arc<AtomicU64>>,
    /// The keys of a position and its kin among the writes: no row event tells of them.
    pub(super) position: Vec<Bytes>,
}

/// What a row that is locked or changed counts in the statement's budget: some microseconds, with its lock, its indexes and
/// its event.
const ROW_TICKS: u32 = 8;

impl Trx {
    /// No transaction yet.
    #[must_use]
    pub fn new(shared: Arc<TrxContext>, session: u64, budget: Arc<Budget>) -> Trx {
        let port = &shared.port;
        let locks = Arc::new(shared.locks.begin(session));
        Trx {
            waiter: Arc::new(LockWaiter::new(locks.handle())),
            locks,
            cache: port.new_cache(),
            hold: port.hold(),
            writes: WriteSet::default(),
            definition: None,
            temp: TempStore::default(),
            events: StatementEvents::default(),
            foreign_keys: ForeignKeys::default(),
            snapshot: None,
            near: Near::default(),
            kept_snapshot: false,
            memory: TrxMemory::new(&Arc::new(SessionMemory::of(shared.memory.clone()))),
            budget,
            covers: Vec::new(),
            sequences: Vec::new(),
            auto_taken: Vec::new(),
            auto_reused: 0,
            numbers_taken: Vec::new(),
            numbers_reused: 0,
            deltas: Vec::new(),
            savepoints: Vec::new(),
            tables: Vec::new(),
            locked_tables: false,
            read_lock: false,
            backup_lock: false,
            aside: None,
            branch: None,
            handed_over: false,
            open: false,
            read_only: false,
            isolation: Isolation::RepeatableRead,
            mode: Mode::Inline,
            lock_wait: Duration::from_secs(50),
            floor: Arc::new(Floor::new(shared.clone())),
            awaited: None,
            snapshot_position: None,
            applied: None,
            keeps_id: false,
            in_flight: None,
            position: Vec::new(),
            shared,
        }
    }

    /// The session's lock waits, for KILL from other threads.
    #[must_use]
    pub fn lock_waiter(&self) -> Arc<LockWaiter> {
        self.waiter.clone()
    }

    /// What all transactions share.
    #[must_use]
    pub fn shared(&self) -> &Arc<TrxContext> {
        &self.shared
    }

    /// Whether a transaction is open (SERVER_STATUS_IN_TRANS).
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Opens a transaction that lasts beyond the statement.
    pub fn open(&mut self, isolation: Isolation, read_only: bool) {
        self.open = true;
        self.isolation = isolation;
        self.read_only = read_only;
    }

    /// Takes the snapshot now (WITH CONSISTENT SNAPSHOT) and tells its log position.
    pub fn open_snapshot(&mut self) -> (CommitNo, LogPosition) {
        let (no, position) = self.hold.take_with_position();
        self.snapshot = Some((no, self.shared.port.engine().snapshot(no)));
        self.snapshot_position = Some(position);
        (no, position)
    }

    /// The number and log position of the snapshot, if it was taken with one (Binlog_snapshot_position).
    #[must_use]
    pub fn snapshot_place(&self) -> Option<(CommitNo, LogPosition)> {
        Some((self.snapshot.as_ref()?.0, self.snapshot_position?))
    }

    /// Prepares for a statement and returns the point to undo it to.
    pub fn begin_statement(&mut self, mode: Mode, info: &StatementInfo<'_>) -> Marks {
        let settings = info.settings;
        // The ticket of the statement before should have been waited for. If it was not, the commit
        // keeps its locks to itself, and this statement waits for them like anybody.
        if self.handed_over && !self.locked_tables && Arc::strong_count(&self.locks) > 1 {
            self.replace_locks();
        }
        self.handed_over = false;
        self.mode = mode;
        self.near.forget();
        self.lock_wait = Duration::from_millis(settings.lock_wait_timeout_ms);
        self.temp.limit = settings.temporary_tables_max;
        self.memory.begin(settings, settings.sql_log_bin && self.shared.port.takes_files());
        if !self.open {
            self.isolation = settings.isolation;
            self.read_only = settings.read_only;
        }
        if self.isolation <= Isolation::ReadCommitted {
            self.drop_snapshot();
        }
        self.kept_snapshot &= self.snapshot.is_some();
        set_cache_context(&mut self.cache, info);
        self.events.begin(info);
        self.foreign_keys.begin(settings.foreign_key_checks);
        self.marks()
    }

    /// Whether the statement is a new one, or the last one again after an interrupt.
    pub(crate) fn again(&mut self, again: bool) {
        self.auto_reused = 0;
        self.numbers_reused = 0;
        if again && !self.kept_snapshot {
            self.drop_snapshot();
        }
        if !again {
            self.kept_snapshot = self.snapshot.is_some();
            self.awaited = None;
            self.auto_taken.clear();
            self.numbers_taken.clear();
        }
    }

    /// Whether it may not block.
    pub(crate) fn is_inline(&self) -> bool {
        self.mode == Mode::Inline
    }

    /// Undoes a part of a statement. One that was not to change rows (`whole` is false) may have done so through others:
    /// then the whole statement must fail.
    ///
    /// # Errors
    /// The spill file failed.
    pub(crate) fn undo_part(&mut self, marks: Marks, whole: bool) -> SqlResult<()> {
        if whole {
            return self.rollback_statement(marks);
        }
        Ok(())
    }

    /// Whether rows were written since.
    pub(crate) fn has_written_since(&self, marks: Marks) -> bool {
        self.writes.mark() != marks.writes || self.temp.mark() != marks.temp
    }

    pub(crate) fn marks(&self) -> Marks {
        Marks { writes: self.writes.mark(), cache: self.cache.mark(), temp: self.temp.mark() }
    }

    /// Undoes what a statement did. Its locks stay.
    ///
    /// # Errors
    /// The spill file failed; the transaction must be rolled back.
    pub fn rollback_statement(&mut self, marks: Marks) -> SqlResult<()> {
        self.events.discard();
        self.undo(marks)
    }

    pub(super) fn undo(&mut self, marks: Marks) -> SqlResult<()> {
        self.writes.rollback_to(marks.writes);
        self.temp.undo(marks.temp);
        self.memory.undone(&self.writes);
        self.cache.rollback_to(marks.cache).map_err(cache_error)
    }

    /// Writes the statement's remaining events to the trx cache.
    ///
    /// # Errors
    /// The cache is full (1197) or its spill file failed: undo the statement.
    pub fn end_statement(&mut self) -> SqlResult<()> {
        self.drop_awaited();
        self.events.finish(&mut self.cache)
    }

    /// What the session's replies wait for.
    #[must_use]
    pub fn floor(&self) -> &Arc<Floor> {
        &self.floor
    }

    /// The catalog now, which the reply may tell of.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        let catalog = self.shared.catalog.load();
        self.floor.see_definitions();
        catalog
    }

    /// Whether a commit has yet to take along what `set_applied` said.
    pub(crate) fn has_applied(&self) -> bool {
        self.applied.is_some()
    }

    /// The locks themselves, for definition statements.
    pub(crate) fn lock_handle_owner(&self) -> &TrxLocks {
        &self.locks
    }

    /// How long lock waits of the running statement last at most.
    pub(crate) fn set_lock_wait(&mut self, ms: u64) {
        self.lock_wait = Duration::from_millis(ms);
    }

    /// The running statement's rows are logged by other means.
    pub(crate) fn without_row_events(&mut self) {
        self.events.stop_logging();
    }

    /// Fails if the session was killed; for those who wait.
    pub(crate) fn check_killed(&self) -> SqlResult<()> {
        self.check_kill()
    }

    /// Looks whether the statement must end or wait for its turn, once for some hundred rows.
    pub(crate) fn look(&self) -> ExecResult<()> {
        self.budget.look(0)
    }

    /// Isolation and access mode of the open transaction.
    #[must_use]
    pub fn characteristics(&self) -> (Isolation, bool) {
        (self.isolation, self.read_only)
    }

    /// SET TRANSACTION's values for a statement that is its own transaction.
    pub(crate) fn use_characteristics(&mut self, isolation: Option<Isolation>, read_only: Option<bool>) {
        self.isolation = isolation.unwrap_or(self.isolation);
        self.read_only = read_only.unwrap_or(self.read_only);
    }

    /// The pending writes.
    pub(crate) fn writes_mut(&mut self) -> &mut WriteSet {
        &mut self.writes
    }

    /// What a definition statement logs with.
    pub(crate) fn logging_parts(&mut self) -> (&mut TrxCache, &WriteSet, &mut StatementEvents) {
        (&mut self.cache, &self.writes, &mut self.events)
    }

    pub(super) fn drop_snapshot(&mut self) {
        self.near.forget();
        if self.snapshot.take().is_some() {
            self.hold.release();
        }
    }

    /// Fails if the session was killed.
    pub(super) fn check_kill(&self) -> SqlResult<()> {
        self.budget.kill().check()
    }

    /// Notes that a table gained or lost a row.
    pub(super) fn count_row(&mut self, state: &Arc<TableState>, delta: i64) {
        match self.deltas.iter_mut().find(|(of, _)| Arc::ptr_eq(of, state)) {
            Some((_, sum)) => *sum += delta,
            None => self.deltas.push((state.clone(), delta)),
        }
    }

    /// Counts a row of a temporary table: it has no lock, and is counted where it is kept.
    pub(super) fn tick_row(&self) -> ExecResult<()> {
        self.budget.spend(ROW_TICKS)
    }
}

/// What the log says of the statement's events, and how it names their transaction.
pub(crate) fn set_cache_context(cache: &mut TrxCache, info: &StatementInfo<'_>) {
    cache.set_context(info.timestamp, info.settings.server_id);
    cache.set_domain(info.settings.gtid_domain_id);
    cache.set_unnamed(info.settings.gtid_unnamed);
    cache.set_skip_replication(info.settings.skip_replication);
}

/// The error that makes a session plan a statement again.
pub(crate) fn need_replan() -> SqlError {
    SqlError::new(1615, b"HY000", "Prepared statement needs to be re-prepared")
}

/// What a failing trx cache means to a client.
pub(crate) fn cache_error(error: CacheError) -> SqlError {
    match error {
        CacheError::TooLarge => SqlError::new(1197, b"HY000", error.to_string()),
        other => {
            tracing::error!(error = %other, "the trx cache failed");
            if let CacheError::Spill { source, .. } = &other
                && is_full(source)
            {
                return SqlError::disk_full(other);
            }
            SqlError::new(1026, b"HY000", format!("Error writing file 'binlog cache': {other}"))
        }
    }
}
