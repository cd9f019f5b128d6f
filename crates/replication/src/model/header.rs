//! A transaction's identity, age and place among others.

use omnibus_format::events::AlterPhase;
use omnibus_format::{AnyGtid, Origin};

/// What is known about a transaction before its first change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrxHeader {
    /// `None` for anonymous ones.
    pub gtid: Option<AnyGtid>,
    /// The server that executed it first.
    pub server_id: u32,
    /// Seconds since 1970 when it began, as its first event says.
    pub timestamp: u32,
    /// Microseconds since 1970 of its commit where it was born; 0 when not known.
    pub original_commit_us: u64,
    /// The same of the server that it was read from.
    pub immediate_commit_us: u64,
    /// Version number (80400) of the server where it was born; 0 when not known.
    pub original_version: u32,
    /// MySQL's logical clock: it may run beside every transaction whose sequence number is greater than this. Both are
    /// counted within one log file of the source; 0 and 0 when not known.
    pub last_committed: u64,
    /// Its own number on that clock.
    pub sequence_number: u64,
    /// MariaDB: transactions of one group commit share it and may run in parallel.
    pub group_commit_id: Option<u64>,
    /// MariaDB's `skip_replication`: replicas may leave it out.
    pub skip: bool,
    /// It is one statement that commits by itself (a definition): no COMMIT follows.
    pub standalone: bool,
    /// MariaDB: its statement is one of the two of an ALTER.
    pub alter: Option<AlterPhase>,
}

impl TrxHeader {
    /// Whether its statement is only told of: an ALTER that has begun, or that failed. The identity is applied without it.
    #[must_use]
    pub fn leaves_statement_out(&self) -> bool {
        self.alter.is_some_and(|phase| !phase.is_executed())
    }

    /// What a log needs to write the transaction again under its own identity.
    #[must_use]
    pub fn origin(&self) -> Origin {
        Origin {
            gtid: self.gtid,
            server_id: self.server_id,
            original_commit_us: self.original_commit_us,
            original_version: self.original_version,
        }
    }
}
