//! The binlog checksum: none, or CRC-32 (the zlib polynomial) over header and body.

use crate::cursor::le_uint;
use crate::error::DecodeError;

/// Bytes a checksum takes at the end of an event.
pub const CHECKSUM_LEN: usize = 4;

/// A file's checksum algorithm, from its FORMAT_DESCRIPTION.
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

    /// Decodes the algorithm byte. 255 stands for a server that knew no checksums.
    ///
    /// # Errors
    /// The code is unknown.
    pub fn from_code(code: u8) -> Result<Self, DecodeError> {
        match code {
            0 | 255 => Ok(Checksum::None),
            1 => Ok(Checksum::Crc32),
            _ => Err(DecodeError::new(0, "checksum algorithm")),
        }
    }

    /// Bytes of the checksum at the end of each event.
    pub fn len(self) -> usize {
        match self {
            Checksum::None => 0,
            Checksum::Crc32 => CHECKSUM_LEN,
        }
    }

    /// Returns whether events carry no checksum.
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
