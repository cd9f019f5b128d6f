//! A session's transaction: its write set, events, locks and snapshot, and each statement's part in it. How it ends is in
//! `end`.
//!
//! COMMIT-2 for readers: what a reply may tell of only later is noted in `floor`.

use super::building::Builds;
use super::counters::Counters;
use super::events::StatementInfo;
use super::floor::Floor;
use super::log::TrxLog;
use super::memory::TrxMemory;
use super::port::CommitPort;
use super::snapshot::SnapshotView;
use super::statement::{Attempt, StatementScope};
use super::table_lock::SessionLocks;
use super::temp::TempStore;
use super::transaction::{Characteristics, Transaction};
use super::xa::SessionBranch;
use crate::api::{Budget, Isolation, KillFlag, Mode, Turns};
use crate::catalog::{Catalog, CatalogCell};
use crate::error::{ExecResult, SqlError, SqlResult, is_full};
use crate::memory::{ServerMemory, SessionMemory};
use omnibus_commit::{CacheError, CacheMark, LogPosition, Naming, TrxCache};
use omnibus_engine::{CommitNo, Mark};
use omnibus_locks::LockManager;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// The state that all transactions of a database share.
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
    /// The builds from tables while others write them.
    pub builds: Builds,
    /// Statements that compute.
    pub turns: Arc<Turns>,
    /// The memory of statements.
    pub memory: Arc<ServerMemory>,
}

impl TrxContext {
    /// Makes a catalog the current one, as commit `no` has it.
    pub(crate) fn store_catalog(&self, catalog: Arc<Catalog>, no: CommitNo) {
        self.memory.definitions_hold(catalog.memory);
        self.catalog.store(catalog, no);
    }

    /// Waits until snapshots have a commit, at most until KILL. On a thread that may block, whose session holds no snapshot.
    pub(crate) fn await_snapshot_of(&self, no: CommitNo, kill: &KillFlag) -> SqlResult<()> {
        kill.wait(self.port.wait_published(no)).map(drop)
    }
}

/// Where a statement or savepoint began.
#[derive(Clone, Copy, Debug)]
pub struct Marks {
    writes: Mark,
    cache: CacheMark,
    temp: Mark,
    rows: u64,
}

impl Marks {
    /// Whether rows were written since `before`.
    pub(crate) fn has_writes_since(&self, before: Marks) -> bool {
        (self.writes, self.temp) != (before.writes, before.temp)
    }
}

/// A transaction, or the absence of one: what its parts do together.
pub struct Trx {
    /// The state that all transactions share.
    pub(crate) shared: Arc<TrxContext>,
    /// The running statement's.
    pub(crate) statement: StatementScope,
    /// The open transaction's.
    pub(crate) transaction: Transaction,
    pub(crate) view: SnapshotView,
    pub(crate) locks: SessionLocks,
    pub(crate) log: TrxLog,
    pub(crate) counters: Counters,
    pub(crate) branch: SessionBranch,
    /// Temporary tables of the session.
    pub(crate) temp: TempStore,
    pub(crate) budget: Arc<Budget>,
}

/// Ticks of a row that is locked or changed in the statement's budget: some microseconds, with its lock, its indexes and
/// its event.
pub(super) const ROW_TICKS: u32 = 8;

impl Trx {
    /// No transaction yet. `memory`: what its session is counted by.
    #[must_use]
    pub fn new(
        shared: Arc<TrxContext>,
        session: u64,
        budget: Arc<Budget>,
        memory: &Arc<SessionMemory>,
    ) -> Trx {
        let locks = SessionLocks::new(&shared, session, budget.clone());
        let view = SnapshotView::new(&shared, locks.rows.owned.stamp().clone(), budget.clone());
        locks.rows.watch.set_snapshot(view.watch());
        Trx {
            statement: StatementScope::of(memory),
            transaction: Transaction::new(TrxMemory::new(memory), Isolation::RepeatableRead),
            view,
            locks,
            log: TrxLog::new(&shared.port),
            counters: Counters::new(&shared),
            branch: SessionBranch::default(),
            temp: TempStore::default(),
            budget,
            shared,
        }
    }

    /// Whether a transaction is open (SERVER_STATUS_IN_TRANS).
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.transaction.characteristics.open
    }

    /// Opens a transaction that lasts beyond the statement.
    pub fn open(&mut self, isolation: Isolation, read_only: bool) {
        self.transaction.characteristics = Characteristics { open: true, read_only, isolation };
        self.locks.rows.watch.opened(&self.transaction.characteristics);
    }

    /// The number and log position of the snapshot, if it was taken with one (Binlog_snapshot_position).
    #[must_use]
    pub fn snapshot_place(&self) -> Option<(CommitNo, LogPosition)> {
        self.view.place()
    }

    /// Prepares for an attempt at a statement, the first one or `again` one, and returns the point to undo it to.
    pub fn begin_statement(&mut self, mode: Mode, again: bool, info: &StatementInfo<'_>) -> Marks {
        let settings = info.settings;
        if again && !self.statement.snapshot_is_older {
            self.view.release();
        }
        self.locks.begin_statement();
        // A commit that failed has been told of (`commit_is_over`).
        self.commit_is_over(true);
        let characteristics = &mut self.transaction.characteristics;
        if !characteristics.open {
            characteristics.isolation = settings.isolation;
            characteristics.read_only = settings.read_only;
        }
        let reads = self.view.taken.is_some();
        let begun = !self.transaction.writes.is_empty() || !self.locks.tables.is_empty();
        self.locks.rows.watch.begin_statement(characteristics, (begun, reads), info);
        // Every statement has a snapshot of its own.
        if characteristics.isolation <= Isolation::ReadCommitted {
            self.view.release();
        }
        let older = self.view.taken.is_some() && (!again || self.statement.snapshot_is_older);
        let files = settings.sql_log_bin && self.shared.port.takes_files();
        let attempt = Attempt::new(mode, settings, files);
        self.statement = std::mem::take(&mut self.statement).next(attempt, again, older);
        self.log.begin_statement(info);
        self.marks()
    }

    pub(crate) fn marks(&self) -> Marks {
        Marks {
            writes: self.transaction.writes.mark(),
            cache: self.log.cache.mark(),
            temp: self.temp.mark(),
            rows: self.locks.rows.watch.changed_rows(),
        }
    }

    /// Undoes what a statement did. Its locks stay.
    ///
    /// # Errors
    /// The spill file failed; the transaction must be rolled back.
    pub fn rollback_statement(&mut self, marks: Marks) -> SqlResult<()> {
        self.log.events.discard();
        self.transaction.writes.rollback_to(marks.writes);
        self.locks.rows.set_changed_rows(marks.rows);
        self.temp.undo(marks.temp);
        self.transaction.memory.undone(&self.transaction.writes);
        self.log.cache.rollback_to(marks.cache).map_err(cache_error)
    }

    /// Writes the statement's remaining events to the trx cache.
    ///
    /// # Errors
    /// The cache is full (1197) or its spill file failed: undo the statement.
    pub fn end_statement(&mut self) -> SqlResult<()> {
        self.log.events.finish(&mut self.log.cache)
    }

    /// Ends a statement that has done what it does: the lock that it waited for and did not ask for when it ran again is given back, and its
    /// remaining events are written. Asks for a thread that may block, if the transaction is large.
    ///
    /// # Errors
    /// As `end_statement`.
    pub(crate) fn complete_statement(&mut self) -> ExecResult<()> {
        self.locking().give_back_awaited()?;
        self.end_statement()?;
        // Its last row is not counted yet, however large that is.
        self.transaction.memory.logged(self.log.held());
        self.transaction.count(&self.statement, &self.locks.rows)?;
        self.may_run_here()
    }

    /// The floor that the session's replies wait for.
    #[must_use]
    pub fn floor(&self) -> &Arc<Floor> {
        &self.view.floor
    }

    /// The catalog now, which the reply may tell of.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        let catalog = self.shared.catalog.load();
        self.view.floor.see_definitions();
        catalog
    }

    /// SET TRANSACTION's values for a statement that is its own transaction.
    pub(crate) fn use_characteristics(&mut self, isolation: Option<Isolation>, read_only: Option<bool>) {
        let characteristics = &mut self.transaction.characteristics;
        characteristics.isolation = isolation.unwrap_or(characteristics.isolation);
        characteristics.read_only = read_only.unwrap_or(characteristics.read_only);
        self.locks.rows.watch.changed(characteristics);
    }
}

/// Tells the cache what the log says of the statement's events, and how it names their transaction.
pub(crate) fn set_cache_context(cache: &mut TrxCache, info: &StatementInfo<'_>) {
    cache.set_context(info.timestamp, info.settings.server_id);
    cache.naming = Naming {
        domain: info.settings.gtid_domain_id,
        unnamed: info.settings.gtid_unnamed,
        skip_replication: info.settings.skip_replication,
    };
}

/// The error that makes a session plan a statement again.
pub(crate) fn need_replan() -> SqlError {
    SqlError::new(1615, b"HY000", "Prepared statement needs to be re-prepared")
}

/// The error that a client gets of a trx cache that failed.
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
