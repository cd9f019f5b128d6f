//! A transaction's identity in either dialect, for code that works with both.

use crate::events::MariadbGtid;
use crate::gtid::{GNO_MAX, ServerUuid};
use crate::tsid::{Tag, Tsid};
use std::fmt;

/// A GTID: `uuid:number`, `uuid:tag:number` or `domain-server-sequence`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AnyGtid {
    /// A GTID of MySQL.
    Mysql {
        /// The server that executed it first, with its tag.
        source: Tsid,
        /// Its number within that source.
        gno: u64,
    },
    /// A GTID of MariaDB.
    Mariadb(MariadbGtid),
}

impl fmt::Display for AnyGtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnyGtid::Mysql { source, gno } => write!(f, "{source}:{gno}"),
            AnyGtid::Mariadb(gtid) => write!(f, "{gtid}"),
        }
    }
}

impl AnyGtid {
    /// Creates a GTID of MySQL without a tag.
    #[must_use]
    pub fn mysql(uuid: ServerUuid, gno: u64) -> AnyGtid {
        AnyGtid::Mysql { source: uuid.into(), gno }
    }

    /// Parses a GTID of MySQL, with or without a tag.
    #[must_use]
    pub fn parse_mysql(text: &str) -> Option<AnyGtid> {
        let (source, digits) = text.rsplit_once(':')?;
        let (uuid, tag) = match source.split_once(':') {
            Some((uuid, tag)) => (uuid, tag.trim().parse().ok()?),
            None => (source, Tag::NONE),
        };
        let (uuid, digits) = (uuid.trim().parse().ok()?, digits.trim());
        let gno: u64 = digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
        let source = Tsid::new(uuid, tag);
        (1..=GNO_MAX).contains(&gno).then_some(AnyGtid::Mysql { source, gno })
    }
}

/// The origin of a transaction that was first executed on another server. Its events keep that server's id in their
/// headers; the log gives it the same GTID again, if that is of the log's dialect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// `None` for an anonymous transaction, whose treatment the log decides ([`crate::Unnamed`]).
    pub gtid: Option<AnyGtid>,
    /// The server that executed it first.
    pub server_id: u32,
    /// Microseconds since 1970 of its commit there; 0 if unknown.
    pub original_commit_us: u64,
    /// Version number (such as 80400) of that server; 0 if unknown.
    pub original_version: u32,
}
