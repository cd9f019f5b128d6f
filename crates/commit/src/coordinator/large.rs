//! Large transactions: whatever of a commit is proportional to the transaction is done before it enrols, on its
//! session's thread, so that nobody else waits for it.
//!
//! - *Events* go to a file beside the logs, in their final form, as they come (`cache::large_file`), once the cache is past
//!   `binlog_large_commit_threshold`. The flush stage makes that file the log's next one (`log_env::promote`, and
//!   `omnibus_log::LogWriter::promote` for what a crash leaves): COMMIT-3, LOG-1.
//! - *Versions* are built into a form that the engine attaches at once (`Engine::stage`).
//! - *Row locks* go on a thread of their own, and so does memory: the SQL layer's part.
//!
//! If the file can not become a log file (its checksum algorithm is not the log's any more, or the head does not fit),
//! its events are copied like those of any other transaction.

use super::Coordinator;
use crate::cache::CacheError;
use crate::error::{CommitError, reason};
use crate::request::{CommitRequest, StagedWrites};
use std::io::ErrorKind;

impl Coordinator {
    /// Does for a large transaction what would be in others' way later. Afterwards the writes are the engine's:
    /// whatever else needs them comes before this.
    pub(crate) fn make_ready(&self, request: &mut CommitRequest) -> Result<(), CommitError> {
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
        request.staged = Some(Box::new(StagedWrites { staged: self.engine().stage(writes), deletes }));
        Ok(())
    }
}
