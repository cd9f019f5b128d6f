//! Errors of an archive, and remedies.

use omnibus_log::ReadError;
use omnibus_replication::client::{ClientError, StreamError};
use omnibus_server::backup::RestoreError;
use std::path::{Path, PathBuf};

/// See the module.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The address makes no sense.
    #[error("{url}: {what}")]
    Address {
        /// The address as given.
        url: String,
        /// The reason.
        what: String,
    },
    /// The store refuses, or cannot be reached.
    #[error("{name}: {source}")]
    Store {
        /// The object or folder.
        name: String,
        /// The store's words.
        #[source]
        source: object_store::Error,
    },
    /// A file of this machine.
    #[error("{path}: {source}")]
    Io {
        /// The path.
        path: PathBuf,
        /// The system's words.
        #[source]
        source: std::io::Error,
    },
    /// The server, or the way to it.
    #[error("{0}")]
    Server(ClientError),
    /// An event from the server is damaged.
    #[error("{0}")]
    Stream(StreamError),
    /// The server is of no use here.
    #[error("{0}")]
    Unfit(String),
    /// The archive has other contents than the server's log.
    #[error(
        "{file} of the server is not the one that is archived: it differs {place}. The log was reset, or is another server's: \
         archive it to another place"
    )]
    Diverged {
        /// The file.
        file: String,
        /// The position, in words.
        place: String,
    },
    /// The server has purged what comes next.
    #[error(
        "the server has no {file} any more, which the archive needs next ({why}). Begin again with a base backup: --backup-in"
    )]
    Purged {
        /// The file.
        file: String,
        /// The server's words.
        why: String,
    },
    /// An object is not what its name or list says.
    #[error("{name} is damaged: {what}")]
    Damaged {
        /// The object.
        name: String,
        /// The kind of damage.
        what: String,
    },
    /// Part of the log is not in the archive.
    #[error("the archive's log has a gap: {0}")]
    Gap(String),
    /// The archive cannot give what was asked for.
    #[error("{0}")]
    Missing(String),
    /// The data directory.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// A log file that was brought back.
    #[error(transparent)]
    Log(#[from] ReadError),
}

impl From<ClientError> for ArchiveError {
    fn from(error: ClientError) -> ArchiveError {
        ArchiveError::Server(error)
    }
}

impl From<StreamError> for ArchiveError {
    fn from(error: StreamError) -> ArchiveError {
        match error {
            StreamError::Source(error) => ArchiveError::Server(error),
            other => ArchiveError::Stream(other),
        }
    }
}

impl ArchiveError {
    /// Returns whether a retry may succeed without an administrator's help.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            ArchiveError::Server(error) => error.may_pass(),
            ArchiveError::Store { source, .. } => {
                use object_store::Error as E;
                !matches!(source, E::NotFound { .. } | E::PermissionDenied { .. } | E::Unauthenticated { .. })
            }
            // A full disk under a folder.
            ArchiveError::Io { .. } => true,
            _ => false,
        }
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> ArchiveError + '_ {
        move |source| ArchiveError::Io { path: path.to_owned(), source }
    }
}
