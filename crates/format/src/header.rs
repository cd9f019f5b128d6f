//! The common header: 19 bytes before every event's body, and its flags.

use crate::cursor::Reader;
use crate::error::DecodeError;
use crate::event_type::EventType;

/// The first four bytes of a binlog file.
pub const MAGIC: [u8; 4] = [0xfe, b'b', b'i', b'n'];

/// First bytes of every private body.
pub const PRIVATE_MAGIC: [u8; 4] = *b"OMNI";
/// Bytes of a version 4 header.
pub const HEADER_LEN: usize = 19;
/// Offset of the size field.
pub const SIZE_OFFSET: usize = 9;
/// Offset of the end position field.
pub const LOG_POS_OFFSET: usize = 13;
/// Offset of the flags field.
pub const FLAGS_OFFSET: usize = 17;

/// The file was not closed properly, or is open (only in FORMAT_DESCRIPTION).
pub const FLAG_IN_USE: u16 = 0x0001;
/// The statement uses temporary tables: its thread id matters.
pub const FLAG_THREAD_SPECIFIC: u16 = 0x0004;
/// No `USE db` is needed before the statement.
pub const FLAG_SUPPRESS_USE: u16 = 0x0008;
/// The event was made for a stream and is not in a file.
pub const FLAG_ARTIFICIAL: u16 = 0x0020;
/// Written by a replica's relay log.
pub const FLAG_RELAY_LOG: u16 = 0x0040;
/// A reader that does not know the type may skip the event.
pub const FLAG_IGNORABLE: u16 = 0x0080;
/// MariaDB: written under `skip_replication`; replicas may leave the event out.
pub const FLAG_SKIP_REPLICATION: u16 = 0x8000;

/// The decoded common header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventHeader {
    /// Seconds since 1970 of the statement's start.
    pub timestamp: u32,
    /// The type of the event.
    pub event_type: EventType,
    /// The id of the server that executed the event's statement first.
    pub server_id: u32,
    /// Bytes of the whole event: header, body and checksum.
    pub size: u32,
    /// File position of the event's end, low 32 bits; 0 in a trx cache and in artificial events.
    pub log_pos: u32,
    /// `FLAG_*` bits.
    pub flags: u16,
}

impl EventHeader {
    /// Reads the first 19 bytes of `bytes`.
    ///
    /// # Errors
    /// The bytes are truncated or malformed.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(bytes);
        Ok(Self {
            timestamp: r.u32("event header")?,
            event_type: EventType(r.u8("event header")?),
            server_id: r.u32("event header")?,
            size: r.u32("event header")?,
            log_pos: r.u32("event header")?,
            flags: r.u16("event header")?,
        })
    }

    /// Returns the header's 19 bytes.
    pub fn encode(&self) -> [u8; HEADER_LEN] {
        let mut out = [0; HEADER_LEN];
        out[0..4].copy_from_slice(&self.timestamp.to_le_bytes());
        out[4] = self.event_type.0;
        out[5..9].copy_from_slice(&self.server_id.to_le_bytes());
        out[9..13].copy_from_slice(&self.size.to_le_bytes());
        out[13..17].copy_from_slice(&self.log_pos.to_le_bytes());
        out[17..19].copy_from_slice(&self.flags.to_le_bytes());
        out
    }
}
