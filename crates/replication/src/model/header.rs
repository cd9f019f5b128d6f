//! A transaction's identity, age and place among others.

use omnibus_format::events::AlterPhase;
use omnibus_format::{AnyGtid, Origin};

/// The properties of a transaction that are known before its first change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrxHeader {
    /// `None` for anonymous ones.
    pub gtid: Option<AnyGtid>,
    /// The server that executed it first.
    pub server_id: u32,
    /// Seconds since 1970 when it began, from its first event.
    pub timestamp: u32,
    /// Microseconds since 1970 of its commit on its first server; 0 if unknown.
    pub original_commit_us: u64,
    /// Microseconds since 1970 of its commit on the server that it was read from.
    pub immediate_commit_us: u64,
    /// Version number (80400) of its first server; 0 if unknown.
    pub original_version: u32,
    /// MySQL's logical clock: the transaction may run in parallel with every transaction whose sequence number is
    /// greater than this. Both are counted within one log file of the source; 0 and 0 if unknown.
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
    /// Returns whether its statement is only informational: an ALTER that has begun, or that failed. Only the identity
    /// is applied.
    #[must_use]
    pub fn leaves_statement_out(&self) -> bool {
        self.alter.is_some_and(|phase| !phase.is_executed())
    }

    /// The origin with which a log writes the transaction again under its own identity.
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
