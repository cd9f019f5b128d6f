//! Transactions that were born on another server: what their commit takes along, and waiting for others of their kind.
//!
//! Set by whoever applies them before the commit; a definition's commit takes it along by itself. On the session's thread.

use super::log::TrxLog;
use super::statement::StatementScope;
use super::transaction::Transaction;
use crate::error::SqlResult;
use bytes::Bytes;
use omnibus_commit::GtidGuard;
use omnibus_format::Origin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The identity and the position of a transaction that was born on another server.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    /// Its identity there.
    pub origin: Option<Origin>,
    /// The right to commit that identity.
    pub guard: Option<GtidGuard>,
    /// A pair that is written with it.
    pub position: Option<(Bytes, Bytes)>,
    /// It gets its events even if nothing changed: its GTID must not be asked for again.
    pub even_empty: bool,
}

/// A commit that is counted until it has its place, or is dropped without one.
pub(super) struct CountedCommit(Arc<AtomicU64>);

impl CountedCommit {
    fn new(counter: Arc<AtomicU64>) -> CountedCommit {
        counter.fetch_add(1, Ordering::AcqRel);
        CountedCommit(counter)
    }
}

impl Drop for CountedCommit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl TrxLog {
    /// Whether anything of the transaction is in its trx cache.
    pub(crate) fn has_events(&self) -> bool {
        !self.cache.is_empty()
    }

    /// Commits are counted in `counter` from when they are handed over until they have their place.
    pub(crate) fn count_commits(&mut self, counter: Arc<AtomicU64>) {
        self.in_flight = Some(counter);
    }

    /// Counts a commit that is handed over.
    pub(super) fn count_commit(&self) -> Option<CountedCommit> {
        self.in_flight.clone().map(CountedCommit::new)
    }

    /// Waits until every counted commit may be seen by snapshots. Blocks.
    pub(crate) fn await_published(&mut self) {
        let Some(counter) = self.in_flight.clone() else { return };
        // They have their place within the time of one write of the log; a log that fails says so below.
        let patience = std::time::Instant::now() + Duration::from_secs(10);
        while counter.load(Ordering::Acquire) > 0 && std::time::Instant::now() < patience {
            std::thread::sleep(Duration::from_micros(20));
        }
        let port = &self.port;
        let _ = port.wait_published(port.numbered()).wait();
    }

    /// The commit that follows is the end of a transaction of another server.
    pub(crate) fn set_applied(&mut self, applied: Applied) {
        self.applied = Some(Box::new(applied));
    }

    /// Takes back what `set_applied` gave, if no commit has taken it along yet.
    pub(crate) fn take_applied(&mut self) -> Option<Applied> {
        self.applied.take().map(|applied| *applied)
    }

    /// Takes along what `set_applied` said: the commit follows.
    ///
    /// # Errors
    /// The trx cache could not take BEGIN.
    pub(crate) fn finish_applied(
        &mut self,
        statement: &StatementScope,
        transaction: &mut Transaction,
    ) -> SqlResult<()> {
        let Some(applied) = self.applied.take() else { return Ok(()) };
        if let Some((key, value)) = applied.position {
            transaction.writes.put(key.clone(), value);
            transaction.position = Some(key);
        }
        if let Some(origin) = applied.origin {
            self.cache.set_given(origin, applied.guard);
        }
        transaction.keeps_id = applied.even_empty;
        if applied.even_empty {
            self.events.begin_empty(&statement.attempt.logging, &mut self.cache)
        } else {
            Ok(())
        }
    }

    /// As `finish_applied`, for a definition, whose events follow.
    pub(crate) fn take_along_applied(
        &mut self,
        statement: &StatementScope,
        transaction: &mut Transaction,
    ) -> SqlResult<()> {
        if let Some(applied) = &mut self.applied {
            applied.even_empty = false;
        }
        self.finish_applied(statement, transaction)
    }

    /// Whether a commit has yet to take along what `set_applied` said.
    pub(crate) fn has_applied(&self) -> bool {
        self.applied.is_some()
    }
}
