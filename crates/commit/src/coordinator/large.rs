//! Large transactions: the work that is proportional to the transaction's size happens before it enrols, on its
//! session's thread, so that nobody else waits for it.
//!
//! - *Events* go to a file beside the logs, in their final form, as they come (`cache::large_file`), once the cache
//!   exceeds `binlog_large_commit_threshold`. The flush stage makes that file the log's next one (`log_env::promote`;
//!   `omnibus_log::LogWriter::promote` describes the states that a crash leaves): COMMIT-3, LOG-1.
//! - *Versions* are built into a form that the engine attaches at once (`Engine::stage`).
//! - *Row locks* and memory are released on a thread of their own, by the SQL layer.
//!
//! If the file cannot become a log file (the log's checksum algorithm has changed, or the head does not fit), its
//! events are copied like those of any other transaction.

use crate::cache::CacheError;
use crate::error::{CommitError, reason};
use crate::request::{CommitRequest, StagedWrites};
use omnibus_engine::Engine;
use std::io::ErrorKind;

/// Does the size-dependent work for a large transaction. Afterwards the writes belong to the engine: any other use
/// of them must come before this.
pub(super) fn make_ready(request: &mut CommitRequest, engine: &dyn Engine) -> Result<(), CommitError> {
    request.cache.settle().map_err(|error| match &error {
        CacheError::Spill { source, .. }
            if matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) =>
        {
            CommitError::DiskFull(reason(&error))
        }
        _ => CommitError::Cache(reason(&error)),
    })?;
    let writes = std::mem::take(&mut request.writes);
    let deletes = writes.may_delete();
    request.staged = Some(Box::new(StagedWrites { staged: engine.stage(writes), deletes }));
    Ok(())
}
