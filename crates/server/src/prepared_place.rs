//! Places among the prepared statements that a server takes from all of its connections (`max_prepared_stmt_count`).

use crate::errors;
use crate::server::Server;
use omnibus_sql::SqlResult;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A place, which is free again when this goes.
pub(crate) struct StatementPlace(Arc<Server>);

impl StatementPlace {
    /// A place for one more.
    ///
    /// # Errors
    /// 1461: there is none.
    pub(crate) fn take(server: &Arc<Server>) -> SqlResult<StatementPlace> {
        let max = server.globals.named("max_prepared_stmt_count").as_u64();
        if server.counters.prepared.load(Ordering::Relaxed) >= max {
            return Err(errors::max_prepared_stmts(max));
        }
        server.counters.prepared.fetch_add(1, Ordering::Relaxed);
        Ok(StatementPlace(server.clone()))
    }
}

impl Drop for StatementPlace {
    fn drop(&mut self) {
        self.0.counters.prepared.fetch_sub(1, Ordering::Relaxed);
    }
}
