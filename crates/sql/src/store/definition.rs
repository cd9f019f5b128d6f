//! A table's definition that is part of an open transaction: CREATE TABLE ... SELECT, and what other servers log for it.
//!
//! The transaction keeps the lock that definitions take, and sees the catalog that it will make; others see it when the
//! commit has its place. Rolled back, nothing was ever there. On the session's thread, but for the effect.

use super::events::StatementInfo;
use super::log::TrxLog;
use super::private_events::{private_event, write_set_event};
use super::trx::Trx;
use crate::catalog::{Catalog, Table};
use crate::error::SqlResult;
use omnibus_engine::{CommitNo, WriteSet};
use omnibus_format::Dialect;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Run when a commit has its place.
pub(crate) type Effect = Box<dyn FnOnce(CommitNo) + Send>;

/// The clause by which MySQL's servers know a table whose rows follow; as a comment that MariaDB's do not read.
const ROWS_FOLLOW: &[u8] = b" /*!80021 START TRANSACTION */";

/// See the module's text. Dropped without its effect, nobody may use its tables.
pub(crate) struct OpenDefinition {
    catalog: Arc<Catalog>,
    tables: Vec<Arc<Table>>,
    effect: Option<Effect>,
}

impl OpenDefinition {
    pub(crate) fn new(catalog: Arc<Catalog>, tables: Vec<Arc<Table>>, effect: Effect) -> OpenDefinition {
        OpenDefinition { catalog, tables, effect: Some(effect) }
    }

    /// The catalog that the commit makes.
    pub(super) fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// Its transaction commits.
    pub(super) fn commit(mut self) -> Option<Effect> {
        self.effect.take()
    }
}

impl Drop for OpenDefinition {
    fn drop(&mut self) {
        if self.effect.is_some() {
            for table in &self.tables {
                table.stale.store(true, Ordering::Release);
            }
        }
    }
}

impl Trx {
    /// The catalog now, or as the open transaction makes it.
    pub(crate) fn stored_catalog(&self) -> Arc<Catalog> {
        self.transaction.open_catalog().cloned().unwrap_or_else(|| self.catalog())
    }
}

impl TrxLog {
    /// Writes the events of an open definition: BEGIN, what recovery needs, and the statement.
    ///
    /// # Errors
    /// The trx cache could not take them.
    pub(crate) fn open_definition(
        &mut self,
        info: &StatementInfo<'_>,
        writes: &WriteSet,
        bodies: &[Vec<u8>],
        xid: u64,
    ) -> SqlResult<()> {
        self.cache.set_context(info.timestamp, info.settings.server_id);
        self.events.begin_definition(&mut self.cache, info)?;
        write_set_event(&mut self.cache, writes)?;
        for body in bodies {
            private_event(&mut self.cache, body)?;
        }
        let mut text = info.sql.to_vec();
        if self.cache.dialect() == Dialect::Mysql && !info.sql.ends_with(b"START TRANSACTION") {
            text.extend_from_slice(ROWS_FOLLOW);
        }
        self.events.ddl(&mut self.cache, &StatementInfo { sql: &text, ..*info }, xid)
    }
}
