//! Why a stream ends. To the client each is error 1236, with a text that says what is wrong and where, because a replica
//! shows that text as its own error and nothing else reaches its administrator.

use omnibus_log::{LogPosition, ReadError};

/// ER_SOURCE_FATAL_ERROR_READING_BINLOG: a replica stops and does not try again.
pub const FATAL: u16 = 1236;

/// See the module. The texts of the first ones are those that tools look for.
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
        /// Where it ends.
        size: u64,
        /// What the client asked for.
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
        /// Where it starts.
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
        /// Where.
        position: u64,
        /// What is there.
        reason: String,
    },
    /// What the client lacks is gone.
    #[error(
        "Cannot replicate because the source purged required binary logs. The client has '{client}' and the missing transactions are '{missing}'; provision it anew, or get them from elsewhere"
    )]
    Purged {
        /// What it has.
        client: String,
        /// What it lacks and cannot get here.
        missing: String,
    },
    /// The client has transactions of this server that this server has not.
    #[error(
        "Replica has more GTIDs than the source has, using the source's SERVER_UUID: '{unknown}'; the end of the source's binary log may have been lost"
    )]
    ClientIsAhead {
        /// Those transactions.
        unknown: String,
    },
    /// MariaDB's way: the client names a transaction that never was in this log.
    #[error(
        "Error: connecting slave requested to start from GTID {gtid}, which is not in the master's binlog"
    )]
    NotInLog {
        /// That transaction.
        gtid: String,
    },
    /// MariaDB's way: what the client lacks is gone.
    #[error(
        "Could not find GTID state requested by slave in any binlog files. Probably the slave state is too old and required binlog files have been purged. The client is at '{client}'"
    )]
    PositionPurged {
        /// Where it is.
        client: String,
    },
    /// Asked by GTID where there are none, or none of this kind.
    #[error("The replication sender thread cannot start in AUTO_POSITION mode: {0}")]
    NoGtids(String),
    /// Asked by GTID, and there is a transaction without one.
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
    /// The log began anew.
    #[error("Could not find next log; the binary log was reset while '{0}' was being sent")]
    Reset(String),
    /// Someone else connected with this client's identity.
    #[error(
        "A replica with the same server_uuid/server_id as this replica has connected to the source; the first event '{file}' at {position}"
    )]
    Replaced {
        /// Where the stream had got to.
        file: String,
        /// Offset in it.
        position: u64,
    },
}

fn in_quotes(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(": '{name}'") }
}

impl SourceError {
    /// An error of reading at `position`, with names for its places.
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
