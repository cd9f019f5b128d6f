//! The reason why a stream ends. The client gets error 1236 with a text that names the cause and the position, because
//! a replica shows that text as its own error and its administrator sees nothing else.

use omnibus_log::{LogPosition, ReadError};

/// ER_SOURCE_FATAL_ERROR_READING_BINLOG: a replica stops and does not try again.
pub const FATAL: u16 = 1236;

/// The errors of a stream; see the module. Tools look for the texts of the first ones.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// No such file, or it was purged.
    #[error("Could not find first log file name in binary log index file{}", in_quotes(.0))]
    NoSuchFile(String),
    /// The position is inside a file's magic number.
    #[error("Client requested source to start replication from position < 4")]
    PositionTooSmall,
    /// The position is behind the end of the file.
    #[error(
        "Client requested source to start replication from position > file size; '{file}' ends at {size}, position {position} was requested"
    )]
    PositionTooLarge {
        /// The file.
        file: String,
        /// The file's size in bytes.
        size: u64,
        /// The requested position.
        position: u64,
    },
    /// The client does not know checksums and the log has them.
    #[error(
        "Replica can not handle replication events with the checksum that source is configured to log; set @source_binlog_checksum before the dump"
    )]
    ChecksumUnknown,
    /// The client's packet was cut or its GTID set is malformed.
    #[error("Malformed request for the binary log: {0}")]
    Malformed(String),
    /// An event is larger than any packet.
    #[error(
        "log event entry exceeded max_allowed_packet; '{file}' at {position} has an event of {size} bytes"
    )]
    TooLarge {
        /// The file.
        file: String,
        /// The offset of the event in its file, in bytes.
        position: u64,
        /// Its size.
        size: u64,
    },
    /// The file is damaged, or the position is not where an event starts.
    #[error(
        "bogus data in log event; '{file}' at {position}: {reason}; the position is not the start of an event, or the file is damaged"
    )]
    Damaged {
        /// The file.
        file: String,
        /// The position.
        position: u64,
        /// The kind of damage.
        reason: String,
    },
    /// The log that the client needs was purged.
    #[error(
        "Cannot replicate because the source purged required binary logs. The client has '{client}' and the missing transactions are '{missing}'; provision it anew, or get them from elsewhere"
    )]
    Purged {
        /// The transactions that the client has.
        client: String,
        /// The missing transactions that this server no longer has.
        missing: String,
    },
    /// The client has transactions with this server's UUID that this server does not have.
    #[error(
        "Replica has more GTIDs than the source has, using the source's SERVER_UUID: '{unknown}'; the end of the source's binary log may have been lost"
    )]
    ClientIsAhead {
        /// Those transactions.
        unknown: String,
    },
    /// In MariaDB's dialect: the client's position names a transaction that never was in this log.
    #[error(
        "Error: connecting slave requested to start from GTID {gtid}, which is not in the master's binlog"
    )]
    NotInLog {
        /// That transaction.
        gtid: String,
    },
    /// In MariaDB's dialect: the log that the client needs was purged.
    #[error(
        "Could not find GTID state requested by slave in any binlog files. Probably the slave state is too old and required binlog files have been purged. The client is at '{client}'"
    )]
    PositionPurged {
        /// The client's position.
        client: String,
    },
    /// The client asked by GTID, and the server has none, or none of this kind.
    #[error("The replication sender thread cannot start in AUTO_POSITION mode: {0}")]
    NoGtids(String),
    /// The client asked by GTID, and the log has a transaction without one.
    #[error(
        "Cannot replicate anonymous transaction when AUTO_POSITION = 1, at file {file}, position {position}"
    )]
    Anonymous {
        /// The file.
        file: String,
        /// Where it starts.
        position: u64,
    },
    /// A MariaDB server asks for a transaction in MySQL's compressed form.
    #[error(
        "a MariaDB server can not read the compressed transaction at file {file}, position {position}: set binlog_transaction_compression=OFF at the source, and begin behind it"
    )]
    Compressed {
        /// The file.
        file: String,
        /// Where it starts.
        position: u64,
    },
    /// The log can not be read.
    #[error("could not read the binary log: {0}")]
    Io(String),
    /// The log was reset.
    #[error("Could not find next log; the binary log was reset while '{0}' was being sent")]
    Reset(String),
    /// Another client connected with this client's identity.
    #[error(
        "A replica with the same server_uuid/server_id as this replica has connected to the source; the first event '{file}' at {position}"
    )]
    Replaced {
        /// The file that the stream had reached.
        file: String,
        /// Offset in it.
        position: u64,
    },
}

fn in_quotes(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(": '{name}'") }
}

impl SourceError {
    /// Converts an error of reading; `name` names positions.
    #[must_use]
    pub fn of_read(error: &ReadError, name: impl Fn(LogPosition) -> String) -> SourceError {
        match error {
            ReadError::NoSuchFile(seq) => SourceError::NoSuchFile(name(LogPosition::new(*seq, 0))),
            ReadError::BehindEnd { position, end } => SourceError::PositionTooLarge {
                file: name(*position),
                size: if position.file == end.file { end.offset.0 } else { 0 },
                position: position.offset.0,
            },
            ReadError::Damaged { position, reason } => SourceError::Damaged {
                file: name(*position),
                position: position.offset.0,
                reason: reason.to_string(),
            },
            other => SourceError::Io(other.to_string()),
        }
    }
}
