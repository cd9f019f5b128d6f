//! The log's writer and what goes with it: whoever has it may append. The pipeline hands it from leader to leader.

use crate::CacheError;
use crate::identity::Group;
use crate::log_env::reason;
use omnibus_engine::CommitNo;
use omnibus_format::writer::{finish_cached, write_final};
use omnibus_format::{Checksum, DecodeError, EventContext, EventType};
use omnibus_log::LogWriter;
use std::sync::Arc;

/// A transaction that is larger than this goes to the file piece by piece, so that the log buffer
/// stays small. Its pieces count only once its last event is there (COMMIT-3).
pub(crate) const PIECE: usize = 1 << 20;

/// The log's append side and what numbering needs. Guarded by the flush lock.
pub struct Appender {
    pub(crate) writer: LogWriter,
    pub(crate) scratch: Vec<u8>,
    pub(crate) checksum: Checksum,
    /// The last commit number before the active file: GTID events count from it.
    pub(crate) base: CommitNo,
    pub(crate) last: CommitNo,
    /// The number of this server's next GTID, unless a session owns that one.
    pub(crate) next_gno: u64,
    /// MariaDB's dialect: the domain of the last transaction, and this server's next number in it.
    pub(crate) next_sequence: (u32, u64),
    pub(crate) group: Group,
}

impl Appender {
    /// Appends one final event.
    pub(crate) fn add(
        &mut self,
        context: EventContext,
        kind: EventType,
        flags: u16,
        body: impl FnOnce(&mut Vec<u8>),
    ) {
        self.scratch.clear();
        let position = self.writer.position().offset.0;
        write_final(&mut self.scratch, context, kind, flags, position, self.checksum, body);
        self.writer.buffer().extend_from_slice(&self.scratch);
    }

    /// Copies cached events, finished, behind the rest. Large ones go to the file on the way.
    pub(crate) fn add_cached(&mut self, cached: &[u8]) -> Result<(), CopyError> {
        self.scratch.clear();
        let position = self.writer.position().offset.0;
        finish_cached(&mut self.scratch, cached, position, self.checksum)?;
        self.writer.buffer().extend_from_slice(&self.scratch);
        if self.writer.buffer().len() >= PIECE {
            // Groups in flight may share a block with this piece: wait for them.
            self.writer.wait_idle();
            self.writer.seal().run_without_sync().map_err(|error| CopyError::Log(reason(&error)))?;
            self.scratch.shrink_to(PIECE);
        }
        Ok(())
    }
}

/// Why a cache was not copied.
pub(crate) enum CopyError {
    Cache(Arc<str>),
    Log(Arc<str>),
}

impl From<CacheError> for CopyError {
    fn from(error: CacheError) -> CopyError {
        CopyError::Cache(reason(&error))
    }
}

impl From<DecodeError> for CopyError {
    fn from(error: DecodeError) -> CopyError {
        CopyError::Cache(reason(&error))
    }
}
