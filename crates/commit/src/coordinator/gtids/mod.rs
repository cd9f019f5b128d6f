//! Global transaction ids for the rest of the server: the sets of executed and purged ids, and the right to commit an
//! id. Any thread; nothing here is on the path of a plain commit.

mod mode;
mod positions;

pub use mode::{GtidModeError, GtidWait};

use super::Coordinator;
use crate::env::Env;
use crate::error::CommitError;
use crate::owned::Ownership;
use omnibus_engine::CommitNo;
use omnibus_format::{AnyGtid, BinlogState, Dialect, GtidMode, GtidSet, GtidState};
use omnibus_log::ReadError;

/// The reason why `gtid_purged` or `gtid_binlog_state` was not changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetGtidsError {
    /// The log has failed, now or before.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The oldest file could not be read. Nothing was changed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Some of the added ids have been executed (MySQL error 3546).
    #[error("the added gtid set must not overlap with @@GLOBAL.GTID_EXECUTED")]
    Overlaps,
    /// The new value lacks some of the old one (MySQL error 3546).
    #[error("the new value must be a superset of the old value")]
    NotSuperset,
    /// A session owns one of them (MySQL error 3546).
    #[error("the added gtid set must not overlap with @@GLOBAL.GTID_OWNED")]
    Owned,
    /// The log has transactions already (MariaDB error 1960).
    #[error("something has been logged")]
    NotEmpty,
    /// The log is of the other dialect.
    #[error("the log is of the other dialect")]
    Dialect,
}

/// The ids of a coordinator's log.
#[derive(Clone, Copy)]
pub struct Gtids<'c>(&'c Coordinator);

impl Coordinator {
    /// The ids of its log.
    #[must_use]
    pub fn gtids(&self) -> Gtids<'_> {
        Gtids(self)
    }
}

impl Gtids<'_> {
    /// `gtid_executed`: the ids of all published transactions. A transaction that is still on its way to the device is
    /// in the log's own set already, and could be gone after a crash (COMMIT-2).
    #[must_use]
    pub fn executed(self) -> GtidSet {
        self.executed_at(self.0.published().number())
    }

    /// The value of `gtid_executed` when `number` was the newest published commit: the ids in a snapshot at that
    /// number. Exact for a number that a [`crate::SnapshotReader`] holds, and for the newest.
    #[must_use]
    pub fn executed_at(self, number: CommitNo) -> GtidSet {
        match self.state_at(number) {
            GtidState::Mysql(set) => set,
            GtidState::Mariadb(_) => GtidSet::new(),
        }
    }

    /// As [`Gtids::executed`], in the log's dialect.
    #[must_use]
    pub fn state(self) -> GtidState {
        self.state_at(self.0.published().number())
    }

    /// As [`Gtids::executed_at`], in the log's dialect.
    #[must_use]
    pub fn state_at(self, number: CommitNo) -> GtidState {
        self.0.log().gtids.executed.lock().at(number)
    }

    /// The ids of all transactions in the log, published or not. A commit that waits for a replica's acknowledgement is
    /// sent before it is published; by this set a replica that reconnects with it is not ahead.
    #[must_use]
    pub fn logged(self) -> GtidState {
        self.0.log().gtids.executed.lock().all().clone()
    }

    /// `gtid_binlog_state` of the mariadb dialect.
    #[must_use]
    pub fn binlog_state(self) -> BinlogState {
        match self.state() {
            GtidState::Mariadb(state) => state,
            GtidState::Mysql(_) => BinlogState::default(),
        }
    }

    /// Returns whether a transaction is in the log, durable or on its way.
    #[must_use]
    pub fn contains(self, gtid: AnyGtid) -> bool {
        self.0.log().gtids.executed.lock().all().contains(gtid)
    }

    /// Returns whether everything in `set` is published.
    #[must_use]
    pub fn has_published(self, set: &GtidSet) -> bool {
        let published = self.0.published().number();
        let executed = self.0.log().gtids.executed.lock();
        executed.all().set().is_some_and(|all| all.contains_set(set))
            && executed.at(published).set().is_some_and(|now| now.contains_set(set))
    }

    /// The id of transaction `no`; `None` if it has none, or if it is thousands of transactions ago.
    #[must_use]
    pub fn of(self, no: CommitNo) -> Option<AnyGtid> {
        self.0.log().gtids.executed.lock().of(no)
    }

    /// Requests the exclusive right to commit `gtid`. With it, set the id as the origin of the cache
    /// ([`crate::TrxCache::set_origin`]), and keep the guard until the commit is acknowledged or rolled back. Does not
    /// block.
    #[must_use]
    pub fn own(self, gtid: AnyGtid) -> Ownership {
        // Asserts GTID-1: an id that is in the log, or another session's, is not given.
        let owned = self.0.log().gtids.owned.own(gtid, || {
            let executed = self.0.log().gtids.executed.lock();
            executed.all().contains(gtid).then(|| executed.newest().unwrap_or(CommitNo::ZERO))
        });
        // Owned first, and then looked: who sets the mode does it the other way round.
        match gtid.dialect() == Dialect::Mysql && self.mode() == GtidMode::Off {
            true => Ownership::Off,
            false => owned,
        }
    }

    /// `gtid_owned`: the ids that sessions own and have not committed.
    #[must_use]
    pub fn owned(self) -> Vec<AnyGtid> {
        self.0.log().gtids.owned.list()
    }

    /// `gtid_purged`: the ids that were executed before the oldest file began, or that no file ever had.
    ///
    /// # Errors
    /// The oldest file could not be read.
    pub fn purged(self) -> Result<GtidSet, ReadError> {
        let mut purged = GtidSet::new();
        if let Some(oldest) = self.0.log().files().list().into_iter().next()
            && let Some(GtidState::Mysql(previous)) = self.before_file(oldest.file)?
        {
            purged = previous;
        }
        let executed = self.0.log().gtids.executed.lock();
        purged.union(executed.elsewhere());
        // A reset that a crash cut short leaves files from before it.
        let mut foreign = purged.clone();
        if let Some(all) = executed.all().set() {
            foreign.subtract(all);
        }
        purged.subtract(&foreign);
        Ok(purged)
    }

    /// SET GLOBAL gtid_purged: counts the ids of `set` as executed from now on. With `add`, `set` is added; otherwise
    /// it is the whole new value. Continues in a new file, whose head has the new value. Blocks.
    ///
    /// # Errors
    /// See [`SetGtidsError`]; nothing is then changed.
    pub fn set_purged(self, set: &GtidSet, add: bool) -> Result<(), SetGtidsError> {
        if self.0.log().dialect() != Dialect::Mysql {
            return Err(SetGtidsError::Dialect);
        }
        let purged = self.purged()?;
        if !add && !set.contains_set(&purged) {
            return Err(SetGtidsError::NotSuperset);
        }
        let mut new = set.clone();
        if !add {
            new.subtract(&purged);
        }
        self.0.pipeline().change_file(|env, appender| {
            let owned = env.gtids.owned.list();
            let mut executed = env.gtids.executed.lock();
            if executed.all().set().is_some_and(|all| all.intersects(&new)) {
                return Ok(Err(SetGtidsError::Overlaps));
            }
            let wanted = GtidState::Mysql(new.clone());
            if owned.iter().any(|gtid| wanted.contains(*gtid)) {
                return Ok(Err(SetGtidsError::Owned));
            }
            executed.add_elsewhere(&new);
            drop(executed);
            env.gtids.count_anew(&mut appender.next);
            env.rotate(appender).map(Ok)
        })?
    }

    /// SET GLOBAL gtid_binlog_state on a log without any GTID. Continues in a new file. Blocks.
    ///
    /// # Errors
    /// See [`SetGtidsError`]; nothing is then changed.
    pub fn set_binlog_state(self, state: BinlogState) -> Result<(), SetGtidsError> {
        if self.0.log().dialect() != Dialect::Mariadb {
            return Err(SetGtidsError::Dialect);
        }
        self.0.pipeline().change_file(|env, appender| {
            let mut executed = env.gtids.executed.lock();
            if !executed.all().is_empty() {
                return Ok(Err(SetGtidsError::NotEmpty));
            }
            executed.replace(GtidState::Mariadb(state));
            drop(executed);
            env.gtids.count_anew(&mut appender.next);
            env.rotate(appender).map(Ok)
        })?
    }
}
