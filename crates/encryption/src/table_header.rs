//! The 4096 bytes in front of an encrypted table file, so that its own blocks stay at multiples of the device's.
//!
//! | bytes | |
//! |---|---|
//! | 8 | `fd 6f 6d 6e 69 74 61 62` |
//! | 1 | version 1 |
//! | 1 | how it is written: 1 in order (AES-256 in counter mode), 2 in place (AES-256-XTS) |
//! | 32 | what its password is made of, with the data directory's table key |
//! | 16 | a digest of the table key |
//! | 4 | CRC-32 of the bytes before, little-endian |
//! | | zeros |
//!
//! It is written once, before anything else of the file, and never changes: a file that is linked into a backup stays as it is.

use crate::key::{Password, random};
use crate::table_key::{CHECK, check};
use std::io;

/// Bytes in front of the contents.
pub const TABLE_HEADER: usize = 4096;
/// The first bytes of an encrypted table file.
pub const TABLE_MAGIC: [u8; 8] = *b"\xfdomnitab";
const VERSION: u8 = 1;
const FIELDS: usize = 8 + 1 + 1 + 32 + CHECK;

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Each byte once, from the beginning to the end.
    InOrder = 1,
    /// Written at any offset, and overwritten.
    InPlace = 2,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableHeader {
    pub(crate) way: Way,
    pub(crate) salt: [u8; 32],
    check: [u8; CHECK],
}

impl TableHeader {
    /// That of a new file.
    pub(crate) fn new(way: Way, key: &Password) -> io::Result<TableHeader> {
        Ok(TableHeader { way, salt: random()?, check: check(key) })
    }

    /// Returns whether the file was made with this table key.
    pub(crate) fn is_under(&self, key: &Password) -> bool {
        self.check == check(key)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = [&TABLE_MAGIC[..], &[VERSION, self.way as u8], &self.salt, &self.check].concat();
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes.resize(TABLE_HEADER, 0);
        bytes
    }

    /// Decodes the beginning of a file; `None` if it is not encrypted, and an error in words if its header is malformed.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Option<TableHeader>, &'static str> {
        if !bytes.starts_with(&TABLE_MAGIC) {
            return Ok(None);
        }
        let bytes = bytes.get(..TABLE_HEADER).ok_or("its encryption header is cut short")?;
        let (fields, rest) = bytes.split_at(FIELDS);
        let (sum, zeros) = rest.split_at(4);
        if sum != crc32fast::hash(fields).to_le_bytes() || zeros.iter().any(|byte| *byte != 0) {
            return Err("its encryption header is damaged");
        }
        if fields[8] != VERSION {
            return Err("its encryption header is of a later version");
        }
        let way = match fields[9] {
            1 => Way::InOrder,
            2 => Way::InPlace,
            _ => return Err("its encryption header is of a later version"),
        };
        let mut header = TableHeader { way, salt: [0; 32], check: [0; CHECK] };
        header.salt.copy_from_slice(&fields[10..42]);
        header.check.copy_from_slice(&fields[42..]);
        Ok(Some(header))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_header_is_read_as_written_and_every_flipped_bit_is_found() {
        let key = Password([1; 32]);
        for way in [Way::InOrder, Way::InPlace] {
            let header = TableHeader::new(way, &key).unwrap();
            let whole = header.encode();
            assert_eq!(TableHeader::decode(&whole).unwrap().unwrap(), header);
            assert!(header.is_under(&key) && !header.is_under(&Password([2; 32])));
            for bit in TABLE_MAGIC.len() * 8..whole.len() * 8 {
                let mut bytes = whole.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert!(TableHeader::decode(&bytes).is_err(), "bit {bit}");
            }
            for len in TABLE_MAGIC.len()..whole.len() {
                assert!(TableHeader::decode(&whole[..len]).is_err(), "{len}");
            }
        }
        assert_eq!(TableHeader::decode(b"redb\x1a\x0a\xa9\x0d").unwrap(), None);
        assert_eq!(TableHeader::decode(b"").unwrap(), None);
    }
}
