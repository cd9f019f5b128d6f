//! Errors between a replica and its source, with the numbers of MySQL's clients.

use omnibus_wire::{DecodeError, ErrPacket, FrameError};
use std::io;

/// A conversation with a source failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// No connection could be made.
    #[error("cannot connect to '{address}' ({reason})")]
    Connect {
        /// Host and port.
        address: String,
        /// The operating system's error.
        reason: String,
    },
    /// The host's name has no address.
    #[error("unknown host '{0}'")]
    UnknownHost(String),
    /// The connection was lost, or the source was silent for too long.
    #[error("lost connection to the source: {0}")]
    Lost(String),
    /// The source closed the dump without an error.
    #[error("the source ended the dump")]
    Ended,
    /// The received bytes do not follow the protocol.
    #[error("malformed packet from the source: {0}")]
    Malformed(String),
    /// An event is longer than `replica_max_allowed_packet`.
    #[error("Got a packet bigger than 'replica_max_allowed_packet' bytes")]
    TooLong,
    /// TLS could not be set up.
    #[error("TLS with the source failed: {0}")]
    Tls(String),
    /// The source requires an authentication that is not possible.
    #[error("authentication plugin '{plugin}': {reason}")]
    Auth {
        /// The plugin's name.
        plugin: String,
        /// The reason and the remedy.
        reason: String,
    },
    /// The source's own error.
    #[error("{message}")]
    Server {
        /// Its number.
        code: u16,
        /// Its text.
        message: String,
    },
    /// Source and replica are not compatible.
    #[error("{0}")]
    Unfit(String),
}

impl ClientError {
    /// The number for Last_IO_Errno.
    #[must_use]
    pub fn code(&self) -> u16 {
        match self {
            ClientError::Connect { .. } => 2003,
            ClientError::UnknownHost(_) => 2005,
            ClientError::Lost(_) | ClientError::Ended => 2013,
            ClientError::Malformed(_) => 2027,
            ClientError::TooLong => 1153,
            ClientError::Tls(_) => 2026,
            ClientError::Auth { .. } => 2061,
            ClientError::Server { code, .. } => *code,
            ClientError::Unfit(_) => 1593,
        }
    }

    /// Returns whether a retry may succeed without an administrator's help.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            ClientError::Connect { .. }
            | ClientError::UnknownHost(_)
            | ClientError::Lost(_)
            | ClientError::Ended
            | ClientError::Tls(_)
            | ClientError::Auth { .. } => true,
            // Too many connections, shutting down, refused: the account may be made later, as MySQL's replicas hope.
            ClientError::Server { code, .. } => {
                matches!(
                    code,
                    1040 | 1042 | 1043 | 1044 | 1045 | 1053 | 1129 | 1130 | 1158..=1161 | 1203 | 1226 | 1927
                )
            }
            ClientError::Malformed(_) | ClientError::TooLong | ClientError::Unfit(_) => false,
        }
    }
}

impl From<DecodeError> for ClientError {
    fn from(error: DecodeError) -> ClientError {
        ClientError::Malformed(error.to_string())
    }
}

impl From<FrameError> for ClientError {
    fn from(error: FrameError) -> ClientError {
        ClientError::Malformed(error.to_string())
    }
}

impl From<io::Error> for ClientError {
    fn from(error: io::Error) -> ClientError {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                ClientError::Lost("nothing came within replica_net_timeout".into())
            }
            io::ErrorKind::InvalidData => ClientError::Tls(error.to_string()),
            _ => ClientError::Lost(error.to_string()),
        }
    }
}

impl From<ErrPacket<'_>> for ClientError {
    fn from(packet: ErrPacket<'_>) -> ClientError {
        ClientError::Server {
            code: packet.code,
            message: String::from_utf8_lossy(&packet.message).into_owned(),
        }
    }
}
