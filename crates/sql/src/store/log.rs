//! The log's part of a transaction: the events of its statements, and what is known of it that is no event.
//!
//! On the session's thread.

use super::applied::Applied;
use super::events::{StatementEvents, StatementInfo};
use super::port::CommitPort;
use super::statement::StatementScope;
use super::trx::set_cache_context;
use crate::error::SqlResult;
use omnibus_commit::TrxCache;
use omnibus_replication::model::StatementView;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// See the module's text.
pub(crate) struct TrxLog {
    pub(super) port: Arc<dyn CommitPort>,
    pub(super) cache: TrxCache,
    pub(super) events: StatementEvents,
    /// The identity and position that the transaction's commit takes along, if it comes from another server.
    pub(super) applied: Option<Box<Applied>>,
    /// Counts commits without a place yet, if somebody wants to know.
    pub(super) in_flight: Option<Arc<AtomicU64>>,
}

impl TrxLog {
    pub(super) fn new(port: &Arc<dyn CommitPort>) -> TrxLog {
        TrxLog {
            cache: port.new_cache(),
            events: StatementEvents::default(),
            applied: None,
            in_flight: None,
            port: port.clone(),
        }
    }

    /// A statement begins.
    pub(super) fn begin_statement(&mut self, info: &StatementInfo<'_>) {
        set_cache_context(&mut self.cache, info);
        self.events.begin(info);
    }

    /// Bytes of memory that the events take.
    pub(super) fn held(&self) -> u64 {
        self.cache.len() - self.cache.spilled()
    }

    /// The transaction is over.
    pub(super) fn end(&mut self) {
        self.cache.clear();
        self.events.end();
    }

    /// The filled cache, for a commit to take along; an empty one is in its place.
    pub(super) fn take_cache(&mut self) -> TrxCache {
        std::mem::replace(&mut self.cache, self.port.new_cache())
    }

    /// The statement wrote a row that is there already.
    pub(crate) fn wrote_equal_row(&mut self, statement: &mut StatementScope) {
        self.events.wrote_equal_row(&mut statement.attempt.logging);
    }

    /// The cache and the generator of events that a definition statement logs with.
    pub(crate) fn parts(&mut self) -> (&mut TrxCache, &mut StatementEvents) {
        (&mut self.cache, &mut self.events)
    }

    /// Logs a statement as text, if it was to be logged so and has changed something.
    ///
    /// # Errors
    /// The cache is full (1197) or its spill file failed: undo the statement.
    pub(crate) fn log_text(&mut self, statement: &StatementScope, view: &dyn StatementView) -> SqlResult<()> {
        self.events.text(&statement.attempt.logging, &mut self.cache, view)
    }
}
