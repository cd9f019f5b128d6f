//! MariaDB's own events: GTID, GTID_LIST, BINLOG_CHECKPOINT and ANNOTATE_ROWS (raw text).

use std::fmt;

use crate::cursor::Reader;
use crate::error::DecodeError;

/// `domain-server-sequence`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MariadbGtid {
    /// Replication domain.
    pub domain: u32,
    /// The server that executed the transaction first.
    pub server: u32,
    /// Number in the domain.
    pub sequence: u64,
}

impl fmt::Display for MariadbGtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.domain, self.server, self.sequence)
    }
}

/// GTID (type 162): begins a transaction, and stands for its BEGIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MariadbGtidEvent {
    /// Domain and sequence; the server id is in the common header.
    pub domain: u32,
    /// Number in the domain.
    pub sequence: u64,
    /// `FLAG_*` bits below.
    pub flags: u8,
    /// Transactions of one group commit share it.
    pub commit_id: Option<u64>,
}

/// An XA branch's format id, gtrid and bqual.
pub type BranchName<'b> = (u32, &'b [u8], &'b [u8]);

/// The phase of an ALTER that is logged twice (`binlog_alter_two_phase=1`), each time with its whole text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlterPhase {
    /// The ALTER has begun: replicas may begin as well, and must not finish.
    Start,
    /// The ALTER has succeeded.
    Commit {
        /// The sequence number of its start.
        start: u64,
    },
    /// The ALTER has failed.
    Rollback {
        /// The sequence number of its start.
        start: u64,
    },
}

impl AlterPhase {
    /// Returns whether a reader that executes the statement at once does so in this phase.
    #[must_use]
    pub fn is_executed(self) -> bool {
        matches!(self, AlterPhase::Commit { .. })
    }
}

impl MariadbGtidEvent {
    /// The group is one statement (DDL) and has no COMMIT or XID.
    pub const FLAG_STANDALONE: u8 = 1;
    /// A commit id follows.
    pub const FLAG_GROUP_COMMIT_ID: u8 = 2;
    /// The transaction can be rolled back.
    pub const FLAG_TRANSACTIONAL: u8 = 4;
    /// The transaction may run in parallel with the preceding ones.
    pub const FLAG_ALLOW_PARALLEL: u8 = 8;
    /// The transaction waited for a row lock.
    pub const FLAG_WAITED: u8 = 16;
    /// The statement is DDL.
    pub const FLAG_DDL: u8 = 32;
    /// The first phase of an XA transaction, whose xid follows.
    pub const FLAG_PREPARED_XA: u8 = 64;
    /// The second phase, whose xid follows.
    pub const FLAG_COMPLETED_XA: u8 = 128;

    /// Appends the body (always 19 bytes or more, as MariaDB pads it).
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.sequence.to_le_bytes());
        out.extend_from_slice(&self.domain.to_le_bytes());
        let has_id = if self.commit_id.is_some() { Self::FLAG_GROUP_COMMIT_ID } else { 0 };
        out.push(self.flags & !Self::FLAG_GROUP_COMMIT_ID | has_id);
        if let Some(id) = self.commit_id {
            out.extend_from_slice(&id.to_le_bytes());
        }
        while out.len() - start < 19 {
            out.push(0);
        }
    }

    /// Decodes the body.
    ///
    /// # Errors
    /// The bytes are truncated or malformed.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        Self::read(&mut Reader::new(body))
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let sequence = r.u64("GTID sequence")?;
        let domain = r.u32("GTID domain")?;
        let flags = r.u8("GTID flags")?;
        let commit_id = match flags & Self::FLAG_GROUP_COMMIT_ID {
            0 => None,
            _ => Some(r.u64("commit id")?),
        };
        Ok(Self { domain, sequence, flags, commit_id })
    }

    /// Returns the XA branch that the event names: format id, gtrid and bqual, behind the commit id.
    ///
    /// # Errors
    /// The body is shorter than its fields.
    pub fn branch(body: &[u8]) -> Result<Option<BranchName<'_>>, DecodeError> {
        let mut r = Reader::new(body);
        let event = Self::read(&mut r)?;
        event.read_branch(&mut r)
    }

    fn read_branch<'b>(&self, r: &mut Reader<'b>) -> Result<Option<BranchName<'b>>, DecodeError> {
        if self.flags & (Self::FLAG_PREPARED_XA | Self::FLAG_COMPLETED_XA) == 0 {
            return Ok(None);
        }
        let format = r.u32("XA format id")?;
        let (gtrid, bqual) = (usize::from(r.u8("gtrid length")?), usize::from(r.u8("bqual length")?));
        Ok(Some((format, r.take(gtrid, "gtrid")?, r.take(bqual, "bqual")?)))
    }

    /// Returns the phase if the statement is one of the two of an ALTER. The phase is in a byte of flags behind the
    /// branch, which older servers do not write, followed by the start's sequence number.
    ///
    /// # Errors
    /// The body is shorter than its fields.
    pub fn alter_phase(body: &[u8]) -> Result<Option<AlterPhase>, DecodeError> {
        const MULTI_ENGINE: u8 = 1;
        const START: u8 = 2;
        const COMMIT: u8 = 4;
        const ROLLBACK: u8 = 8;
        let mut r = Reader::new(body);
        Self::read(&mut r)?.read_branch(&mut r)?;
        if r.remaining() == 0 {
            return Ok(None);
        }
        let extra = r.u8("more GTID flags")?;
        if extra & MULTI_ENGINE != 0 {
            r.u8("number of engines")?;
        }
        Ok(match extra & (START | COMMIT | ROLLBACK) {
            START => Some(AlterPhase::Start),
            COMMIT => Some(AlterPhase::Commit { start: r.u64("ALTER's sequence")? }),
            ROLLBACK => Some(AlterPhase::Rollback { start: r.u64("ALTER's sequence")? }),
            _ => None,
        })
    }
}

/// GTID_LIST (type 163): the binlog state when the file was begun.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MariadbGtidList {
    /// The upper four bits of the count word.
    pub flags: u8,
    /// Last GTID per (domain, server).
    pub gtids: Vec<MariadbGtid>,
}

impl MariadbGtidList {
    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let count = self.gtids.len() as u32 & 0x0fff_ffff | u32::from(self.flags) << 28;
        out.extend_from_slice(&count.to_le_bytes());
        for gtid in &self.gtids {
            out.extend_from_slice(&gtid.domain.to_le_bytes());
            out.extend_from_slice(&gtid.server.to_le_bytes());
            out.extend_from_slice(&gtid.sequence.to_le_bytes());
        }
        if self.gtids.is_empty() {
            out.extend_from_slice(&[0, 0]); // MariaDB's reader wants six bytes at least.
        }
    }

    /// Decodes the body.
    ///
    /// # Errors
    /// The bytes are truncated or malformed.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        let word = r.u32("GTID count")?;
        let count = (word & 0x0fff_ffff) as usize;
        if count > r.remaining() / 16 {
            return Err(r.error("GTID list"));
        }
        let mut gtids = Vec::with_capacity(count);
        for _ in 0..count {
            let domain = r.u32("GTID domain")?;
            let server = r.u32("GTID server")?;
            gtids.push(MariadbGtid { domain, server, sequence: r.u64("GTID sequence")? });
        }
        Ok(Self { flags: (word >> 28) as u8, gtids })
    }
}
