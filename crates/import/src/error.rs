//! The reasons why an import ends early.

use omnibus_replication::client::ClientError;

/// An import ended before its work was done. Each says what to do next, where that is known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// An option or an address that cannot be.
    #[error("{0}")]
    Usage(String),
    /// One of the two servers, or the connection to it.
    #[error("{server}: {} ({doing})", words(error))]
    Server {
        /// The server, as the user named it.
        server: &'static str,
        /// The statement, shortened, or the step.
        doing: String,
        /// Its words.
        #[source]
        error: ClientError,
    },
    /// The servers, or what is in them, do not allow it.
    #[error("{0}")]
    Refused(String),
    /// Target and source differ.
    #[error("{0} tables or definitions differ")]
    Differs(usize),
}

/// The client's words, which are a replica's, where this is none.
fn words(error: &ClientError) -> String {
    match error {
        ClientError::Lost(reason) => format!("lost connection: {reason}"),
        other => other.to_string(),
    }
}

impl ImportError {
    /// The program's exit code: 1 for failures, 2 for options, 3 for refusals before anything is done, 4 for
    /// differences.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            ImportError::Usage(_) => 2,
            ImportError::Refused(_) => 3,
            ImportError::Differs(_) => 4,
            ImportError::Server { .. } => 1,
        }
    }

    /// The server's error number, if a server said it.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        match self {
            ImportError::Server { error: ClientError::Server { code, .. }, .. } => Some(*code),
            _ => None,
        }
    }

    /// Returns whether the connection is gone, or its server is, so that a new one may do better.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        match self {
            // A server that ends says so in a packet first: killed, shutting down.
            ImportError::Server { error: ClientError::Server { code, .. }, .. } => {
                matches!(
                    code,
                    1053 | 1077 | 1078 | 1079 | 1152 | 1158..=1161 | 1184 | 1317 | 1927 | 3168 | 4031
                )
            }
            ImportError::Server { error, .. } => error.may_pass(),
            _ => false,
        }
    }
}
