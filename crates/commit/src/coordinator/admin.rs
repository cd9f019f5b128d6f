//! Administration of the log: rotation, reset, and the first file that a purge must keep.
//!
//! Any thread that may block. The SQL statements and their errors are the server's.

use super::Coordinator;
use crate::error::CommitError;
use crate::head::read_head;
use omnibus_engine::{CommitNo, EngineError};
use omnibus_log::{FileSeq, ReadError, ResetError};

/// The reason why the log was not reset.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResetLogError {
    /// The log has failed, now or before.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The engine could not make all commits persistent. Nothing was changed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The engine reports fewer commits than the log, after a checkpoint. Nothing was changed.
    #[error("the storage engine has persisted transaction {persisted} of {last}")]
    Behind {
        /// The last commit number that the engine has persisted.
        persisted: CommitNo,
        /// The last commit number in the log.
        last: CommitNo,
    },
    /// The files could not be replaced; the log continues to work.
    #[error(transparent)]
    Files(#[from] ResetError),
}

impl Coordinator {
    /// FLUSH BINARY LOGS: ends the active file and continues in the next one.
    ///
    /// # Errors
    /// The log has failed, now or before.
    pub fn rotate(&self) -> Result<(), CommitError> {
        self.pipeline().rotate()
    }

    /// RESET BINARY LOGS AND GTIDS: makes all commits persistent in the engine, then removes all files. The next file
    /// is `first`, and GTIDs count from 1 again. Commit numbers continue. Commits wait meanwhile.
    ///
    /// A crash leaves the old log complete, or a log with the new GTIDs and no older file that is needed.
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

    /// Returns the first file that recovery would read if the server stopped now (PURGE-1). The answer stays safe,
    /// because the engines only advance.
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
