//! The binlog checksum: none, or CRC-32 (the zlib polynomial) over header and body.

use crate::cursor::le_uint;
use crate::error::DecodeError;

/// Bytes a checksum takes at the end of an event.
pub const CHECKSUM_LEN: usize = 4;

/// A file's checksum algorithm, as its FORMAT_DESCRIPTION says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksum {
    /// `binlog_checksum=NONE`.
    None,
    /// `binlog_checksum=CRC32`.
    #[default]
    Crc32,
}

impl Checksum {
    /// The algorithm byte in FORMAT_DESCRIPTION.
    pub fn code(self) -> u8 {
        match self {
            Checksum::None => 0,
            Checksum::Crc32 => 1,
        }
    }

    /// The algorithm of a code; 255 means a server that knew no checksums.
    pub fn from_code(code: u8) -> Result<Self, DecodeError> {
        match code {
            0 | 255 => Ok(Checksum::None),
            1 => Ok(Checksum::Crc32),
            _ => Err(DecodeError::new(0, "checksum algorithm")),
        }
    }

    /// Bytes at the end of each event.
    pub fn len(self) -> usize {
        match self {
            Checksum::None => 0,
            Checksum::Crc32 => CHECKSUM_LEN,
        }
    }

    /// Whether events carry no checksum.
    pub fn is_empty(self) -> bool {
        self == Checksum::None
    }
}

/// CRC-32 of `bytes`.
#[inline]
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// Splits a whole event into header + body and its stored checksum.
pub(crate) fn split_checksum(event: &[u8]) -> Option<(&[u8], u32)> {
    let (covered, stored) = event.split_at_checked(event.len().checked_sub(CHECKSUM_LEN)?)?;
    Some((covered, le_uint(stored) as u32))
}
