//! FORMAT_DESCRIPTION, the first event of every file: the writing server's version, and the format of the events that
//! follow.

use crate::checksum::{CHECKSUM_LEN, Checksum};
use crate::cursor::Reader;
use crate::error::DecodeError;
use crate::event_type::EventType;
use crate::header::HEADER_LEN;

const VERSION_LEN: usize = 50;
const FIXED_LEN: usize = 2 + VERSION_LEN + 4 + 1;

/// Post-header lengths of the event types that MySQL and MariaDB share; 0 for all others.
const fn shared_lengths<const TYPES: usize>() -> [u8; TYPES] {
    let mut lengths = [0; TYPES];
    lengths[2 - 1] = 13; // QUERY
    lengths[4 - 1] = 8; // ROTATE
    lengths[9 - 1] = 4; // APPEND_BLOCK
    lengths[11 - 1] = 4; // DELETE_FILE
    lengths[15 - 1] = (FIXED_LEN + TYPES) as u8; // FORMAT_DESCRIPTION
    lengths[17 - 1] = 4; // BEGIN_LOAD_QUERY
    lengths[18 - 1] = 26; // EXECUTE_LOAD_QUERY
    lengths[19 - 1] = 8; // TABLE_MAP
    lengths[23 - 1] = 8; // rows version 1
    lengths[24 - 1] = 8;
    lengths[25 - 1] = 8;
    lengths[26 - 1] = 2; // INCIDENT
    lengths[30 - 1] = 10; // rows version 2
    lengths[31 - 1] = 10;
    lengths[32 - 1] = 10;
    lengths[39 - 1] = 10; // PARTIAL_UPDATE_ROWS
    lengths
}

/// Post-header lengths of MySQL 8.4 for event types 1 to 42; obsolete types have 0.
const POST_HEADER_LENGTHS: [u8; 42] = {
    let mut lengths = shared_lengths::<42>();
    lengths[33 - 1] = 42; // GTID
    lengths[34 - 1] = 42; // ANONYMOUS_GTID
    lengths[36 - 1] = 18; // TRANSACTION_CONTEXT
    lengths[37 - 1] = 52; // VIEW_CHANGE
    lengths[40 - 1] = 40; // TRANSACTION_PAYLOAD
    lengths
};

/// Post-header lengths of MariaDB 10.11 for event types 1 to 171.
const MARIADB_LENGTHS: [u8; 171] = {
    let mut lengths = shared_lengths::<171>();
    lengths[0] = 56; // START_V3
    lengths[6 - 1] = 18; // LOAD
    lengths[8 - 1] = 4; // CREATE_FILE
    lengths[10 - 1] = 4; // EXEC_LOAD
    lengths[12 - 1] = 18; // NEW_LOAD
    lengths[40 - 1] = 10;
    lengths[41 - 1] = 10;
    lengths[161 - 1] = 4; // BINLOG_CHECKPOINT
    lengths[162 - 1] = 19; // GTID
    lengths[163 - 1] = 4; // GTID_LIST
    lengths[165 - 1] = 13; // QUERY_COMPRESSED
    lengths[166 - 1] = 8; // compressed rows, version 1
    lengths[167 - 1] = 8;
    lengths[168 - 1] = 8;
    lengths[169 - 1] = 10; // compressed rows, version 2
    lengths[170 - 1] = 10;
    lengths[171 - 1] = 10;
    lengths
};

/// The suffix of this server's version string, in either dialect.
const OWN_VERSION_SUFFIX: &str = "-omnibus";

/// The decoded event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatDescription {
    /// Binlog version; always 4 here.
    pub binlog_version: u16,
    /// Version string of the writing server.
    pub server_version: String,
    /// Seconds since 1970 when the file was begun after a server start; 0 after a rotation.
    pub create_timestamp: u32,
    /// Post-header length of event type `i + 1`.
    pub post_header_lengths: Vec<u8>,
    /// Algorithm of the events that follow; `None` from a server that knew no checksums.
    pub checksum: Option<Checksum>,
}

impl FormatDescription {
    /// Creates the event of this server in MySQL 8.4's form.
    pub fn new(server_version: &str, create_timestamp: u32, checksum: Checksum) -> Self {
        Self {
            binlog_version: 4,
            server_version: server_version.to_owned(),
            create_timestamp,
            post_header_lengths: POST_HEADER_LENGTHS.to_vec(),
            checksum: Some(checksum),
        }
    }

    /// Creates the event of this server in MariaDB's form.
    pub fn mariadb(server_version: &str, create_timestamp: u32, checksum: Checksum) -> Self {
        let post_header_lengths = MARIADB_LENGTHS.to_vec();
        Self { post_header_lengths, ..Self::new(server_version, create_timestamp, checksum) }
    }

    /// Appends the body, up to and including the algorithm byte.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.binlog_version.to_le_bytes());
        let mut version = [0; VERSION_LEN];
        let bytes = self.server_version.as_bytes();
        // One byte stays NUL: readers take it for a C string.
        let len = bytes.len().min(VERSION_LEN - 1);
        version[..len].copy_from_slice(&bytes[..len]);
        out.extend_from_slice(&version);
        out.extend_from_slice(&self.create_timestamp.to_le_bytes());
        out.push(HEADER_LEN as u8);
        out.extend_from_slice(&self.post_header_lengths);
        if let Some(checksum) = self.checksum {
            out.push(checksum.code());
        }
    }

    /// Decodes a body whose trailing checksum, if any, was cut off (`scan` does that).
    ///
    /// # Errors
    /// The bytes are truncated or malformed.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        let binlog_version = r.u16("binlog version")?;
        if binlog_version != 4 {
            return Err(DecodeError::new(0, "binlog version other than 4"));
        }
        let version = r.take(VERSION_LEN, "server version")?;
        // As long as what `encode` writes, whatever is there: versions are ASCII, and end in a NUL.
        let version = version.iter().take(VERSION_LEN - 1).take_while(|&&byte| byte != 0);
        let server_version =
            version.map(|&byte| if byte.is_ascii() { char::from(byte) } else { '?' }).collect();
        let create_timestamp = r.u32("creation time")?;
        if usize::from(r.u8("header length")?) != HEADER_LEN {
            return Err(DecodeError::new(FIXED_LEN - 1, "header length other than 19"));
        }
        let mut lengths = r.rest();
        let checksum = match body.len().checked_sub(own_length(body)?) {
            Some(0) => None,
            Some(1) => {
                let (&code, rest) = lengths.split_last().ok_or_else(|| r.error("checksum algorithm"))?;
                lengths = rest;
                Some(Checksum::from_code(code)?)
            }
            _ => return Err(DecodeError::new(FIXED_LEN, "post-header lengths")),
        };
        Ok(Self {
            binlog_version,
            server_version,
            create_timestamp,
            post_header_lengths: lengths.to_vec(),
            checksum,
        })
    }

    /// Returns the checksum algorithm that a whole FORMAT_DESCRIPTION event (header and checksum included) announces.
    /// `Ok(None)`: the writing server knew no checksums, so the event has none itself.
    ///
    /// # Errors
    /// The event is truncated or malformed.
    pub fn checksum_of_event(event: &[u8]) -> Result<Option<Checksum>, DecodeError> {
        let body = event.get(HEADER_LEN..).ok_or(DecodeError::new(0, "event header"))?;
        let own = own_length(body)?;
        if body.len() == own {
            return Ok(None);
        }
        if body.len() != own + 1 + CHECKSUM_LEN {
            return Err(DecodeError::new(FIXED_LEN, "post-header lengths"));
        }
        Checksum::from_code(body[own]).map(Some)
    }

    /// Returns whether events inside transactions may have 0 as their end position. That is so for MariaDB's servers
    /// from 11 on, and not for this server.
    pub fn leaves_out_positions(&self) -> bool {
        self.is_mariadb() && !self.server_version.ends_with(OWN_VERSION_SUFFIX)
    }

    /// Returns whether the writer is a MariaDB server (its GTID events and flags differ).
    pub fn is_mariadb(&self) -> bool {
        self.server_version.contains("MariaDB")
    }
}

/// Returns the number of body bytes up to the checksum algorithm, from the event's own entry in the list of lengths.
/// That distinguishes writers with checksums from older ones more reliably than the version string: a damaged version
/// would make a reader skip the very checksum that reveals the damage.
fn own_length(body: &[u8]) -> Result<usize, DecodeError> {
    let at = FIXED_LEN + usize::from(EventType::FORMAT_DESCRIPTION.0) - 1;
    let own = body.get(at).ok_or(DecodeError::new(at, "post-header lengths"))?;
    Ok(usize::from(*own))
}
