//! Errors of a stream, and whether they are temporary.

use omnibus_replication::client::{ClientError, StreamError as LogError};

/// See the module.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The server, or the way to it.
    #[error("{0}")]
    Server(ClientError),
    /// An event is damaged.
    #[error("{0}")]
    Log(LogError),
    /// A change that cannot be put into a message.
    #[error("{file} at {position}: {what}")]
    Change {
        /// The server's file.
        file: String,
        /// The position in it.
        position: u64,
        /// Why not.
        what: String,
    },
    /// The target cannot be reached, or not now.
    #[error("{0}")]
    Unreachable(String),
    /// The target refuses.
    #[error("{0}")]
    Refused(String),
}

impl From<ClientError> for StreamError {
    fn from(error: ClientError) -> StreamError {
        StreamError::Server(error)
    }
}

impl From<LogError> for StreamError {
    fn from(error: LogError) -> StreamError {
        match error {
            LogError::Source(error) => StreamError::Server(error),
            other => StreamError::Log(other),
        }
    }
}

impl StreamError {
    /// Returns whether a retry may succeed without an administrator's help.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            StreamError::Server(error) => error.may_pass(),
            StreamError::Unreachable(_) => true,
            _ => false,
        }
    }
}
