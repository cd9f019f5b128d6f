//! What administration does to the log: rotation, reset, and what a purge may take.
//!
//! Any thread that may block. Not the SQL: statements and their errors are the server's.

use super::Coordinator;
use crate::error::CommitError;
use crate::head::read_head;
use omnibus_engine::{CommitNo, EngineError};
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
}
