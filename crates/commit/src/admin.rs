//! What administration does to the log: rotation, reset, and what a purge may take.
//!
//! Any thread that may block. Not the SQL: statements and their errors are the server's.

use crate::recovery::read_head;
use crate::{CommitError, Coordinator};
use omnibus_engine::{CommitNo, EngineError};
use omnibus_format::GtidSet;
use omnibus_format::gtid::Interval;
use omnibus_log::{FileSeq, ReadError, ResetError};

/// Why the log was not reset.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResetLogError {
    /// The log has failed, now or before.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The engine could not take over what only the log has. Nothing was changed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The engine says that it has less than the log, after a checkpoint. Nothing was changed.
    #[error("the storage engine has persisted transaction {persisted} of {last}")]
    Behind {
        /// What it has.
        persisted: CommitNo,
        /// What the log has.
        last: CommitNo,
    },
    /// The files could not be replaced; the log works on.
    #[error(transparent)]
    Files(#[from] ResetError),
}

impl Coordinator {
    /// FLUSH BINARY LOGS: ends the active file and goes on in the next one.
    ///
    /// # Errors
    /// The log has failed, now or before.
    pub fn rotate(&self) -> Result<(), CommitError> {
        self.pipeline().rotate()
    }

    /// RESET BINARY LOGS AND GTIDS: the engine takes over everything, then all files go, the next one
    /// is `first`, and GTIDs count from 1 again. Commit numbers go on. Commits wait meanwhile.
    ///
    /// A crash leaves the old log whole, or a log with the new GTIDs and no older file that matters.
    ///
    /// # Errors
    /// See [`ResetLogError`].
    pub fn reset_log(&self, first: FileSeq) -> Result<(), ResetLogError> {
        // Most of the work while commits still go on.
        self.engine().checkpoint()?;
        self.pipeline().change_file(|env, appender| {
            // RECOVER-2: from here on only the engine has these transactions.
            if let Err(error) = self.engine().checkpoint() {
                return Ok(Err(error.into()));
            }
            let (persisted, last) = (self.engine().persisted(), appender.last);
            if persisted < last {
                return Ok(Err(ResetLogError::Behind { persisted, last }));
            }
            Ok(env.reset(appender, first)?.map_err(ResetLogError::from))
        })?
    }

    /// The first file that recovery would read if the server stopped now (PURGE-1). What this says stays
    /// safe: engines only get further.
    ///
    /// # Errors
    /// A file could not be read.
    pub fn recovery_start(&self) -> Result<FileSeq, ReadError> {
        let wanted = self.engine().persisted().next();
        let files = self.log().files().list();
        for entry in files.iter().rev() {
            // A head that can not be read yet, or is not ours, proves nothing: an older file decides.
            let head = read_head(&mut self.log().files().read(entry.file)?)?;
            if head.first.is_some_and(|first| first <= wanted) {
                return Ok(entry.file);
            }
        }
        Ok(files.first().map_or(FileSeq::FIRST, |entry| entry.file))
    }

    /// `gtid_executed`: every transaction that is published. One that is still on its way to the device
    /// is in the log's own set already, and could be gone after a crash (COMMIT-2).
    #[must_use]
    pub fn gtid_executed(&self) -> GtidSet {
        self.gtid_executed_at(self.published().number())
    }

    /// What `gtid_executed` was when `number` was the newest one published: what a snapshot there contains.
    #[must_use]
    pub fn gtid_executed_at(&self, number: CommitNo) -> GtidSet {
        let mut set = self.log().executed();
        let published = number.0;
        let uuid = self.log().identity().uuid;
        let after = (published + 1).saturating_sub(self.log().gtid_base()).max(1);
        let last = set.last(uuid);
        if last >= after {
            let mut ahead = GtidSet::new();
            ahead.add_interval(uuid, Interval { start: after, end: last + 1 });
            set.subtract(&ahead);
        }
        set
    }

    /// `gtid_purged`: what was executed before the oldest file began.
    ///
    /// # Errors
    /// The file could not be read.
    pub fn gtid_purged(&self) -> Result<GtidSet, ReadError> {
        let Some(oldest) = self.log().files().list().into_iter().next() else { return Ok(GtidSet::new()) };
        let head = read_head(&mut self.log().files().read(oldest.file)?)?;
        let mut purged = head.previous.unwrap_or_default();
        // A reset that a crash cut short leaves files from before it.
        let mut foreign = purged.clone();
        foreign.subtract(&self.log().executed());
        purged.subtract(&foreign);
        Ok(purged)
    }
}
