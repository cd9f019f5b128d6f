//! The 512 bytes in front of an encrypted file, as MySQL 8 writes them: magic number, version, the fields that follow, zeros.
//!
//! | bytes | |
//! |---|---|
//! | 4, 1 | `fd 62 69 6e`, version 1 |
//! | 1, 1, n | type 1, length, name of the master key |
//! | 1, 32 | type 2, the file's password, AES-256 in CBC mode under that key |
//! | 1, 16 | type 3, its initialisation vector |
//!
//! It has no checksum. Each of its bits is either checked, or changes the password, which shows in the file's first
//! bytes. It is one sector, so a write of it happens completely or not at all.

/// The length of the header in bytes.
pub const HEADER: usize = 512;
/// The first bytes of an encrypted file.
pub const MAGIC: [u8; 4] = [0xfd, b'b', b'i', b'n'];

const VERSION: u8 = 1;
const KEY_NAME: u8 = 1;
const PASSWORD: u8 = 2;
const IV: u8 = 3;

/// Why a header cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The file ends in it.
    #[error("the encryption header is cut short")]
    Short,
    /// The version is that of a later server.
    #[error("the encryption header is of version {0}, and only version 1 is known")]
    Version(u8),
    /// Fields that are none, or are missing.
    #[error("the encryption header is damaged")]
    Damaged,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The master key's name.
    pub key: String,
    /// The password under it.
    pub password: [u8; 32],
    /// The initialisation vector.
    pub iv: [u8; 16],
}

impl Header {
    /// Its bytes. A name is at most 255 bytes; one that is longer is cut, and then not found.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER] {
        let name = &self.key.as_bytes()[..self.key.len().min(255)];
        let mut fields = [&MAGIC[..], &[VERSION, KEY_NAME, name.len() as u8], name].concat();
        fields.push(PASSWORD);
        fields.extend(self.password);
        fields.push(IV);
        fields.extend(self.iv);
        let mut bytes = [0; HEADER];
        bytes[..fields.len()].copy_from_slice(&fields);
        bytes
    }

    /// Decodes the beginning of a file; `None` if it is not encrypted.
    ///
    /// # Errors
    /// The file is encrypted, and its header is malformed.
    pub fn decode(bytes: &[u8]) -> Result<Option<Header>, HeaderError> {
        if !bytes.starts_with(&MAGIC) {
            return Ok(None);
        }
        let bytes = bytes.get(..HEADER).ok_or(HeaderError::Short)?;
        if bytes[4] != VERSION {
            return Err(HeaderError::Version(bytes[4]));
        }
        let mut rest = &bytes[5..];
        let mut header = Header { key: String::new(), password: [0; 32], iv: [0; 16] };
        let mut seen = [false; 4];
        while rest[0] != 0 {
            let kind = rest[0];
            rest = &rest[1..];
            let value = match kind {
                KEY_NAME => {
                    let len = usize::from(*rest.first().ok_or(HeaderError::Damaged)?);
                    rest = &rest[1..];
                    take(&mut rest, len)?
                }
                PASSWORD => take(&mut rest, 32)?,
                IV => take(&mut rest, 16)?,
                _ => return Err(HeaderError::Damaged),
            };
            if std::mem::replace(&mut seen[usize::from(kind)], true) {
                return Err(HeaderError::Damaged);
            }
            match kind {
                KEY_NAME => {
                    header.key = String::from_utf8(value.to_vec()).map_err(|_| HeaderError::Damaged)?;
                }
                PASSWORD => header.password.copy_from_slice(value),
                _ => header.iv.copy_from_slice(value),
            }
        }
        let whole = seen == [false, true, true, true] && !header.key.is_empty();
        if whole && rest.iter().all(|byte| *byte == 0) { Ok(Some(header)) } else { Err(HeaderError::Damaged) }
    }
}

/// Takes `len` bytes. At least one byte must remain, because the fields end with a zero.
fn take<'b>(rest: &mut &'b [u8], len: usize) -> Result<&'b [u8], HeaderError> {
    if len >= rest.len() {
        return Err(HeaderError::Damaged);
    }
    let (value, behind) = rest.split_at(len);
    *rest = behind;
    Ok(value)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn header() -> Header {
        let key = "MySQLReplicationKey_0b5c8f8e-0000-11ef-9000-000000000001_1".to_owned();
        Header { key, password: [0x11; 32], iv: [0x22; 16] }
    }

    #[test]
    fn it_comes_back_and_says_what_it_is() {
        let bytes = header().encode();
        assert_eq!(bytes[..7], [0xfd, 0x62, 0x69, 0x6e, 1, 1, 58]);
        assert_eq!(bytes[65..67], [2, 0x11]);
        assert_eq!(bytes[98..100], [3, 0x22]);
        assert_eq!(Header::decode(&bytes), Ok(Some(header())));
        assert_eq!(Header::decode(b"\xfebin"), Ok(None));
        assert_eq!(Header::decode(&bytes[..100]), Err(HeaderError::Short));
    }

    /// LOG-1: every bit counts, and none makes it panic.
    #[test]
    fn a_flipped_bit_is_an_error_or_another_header() {
        let whole = header().encode();
        for bit in 0..HEADER * 8 {
            let mut bytes = whole;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(Header::decode(&bytes), Ok(Some(header())), "bit {bit}");
        }
        for len in 0..=255 {
            let mut bytes = [0xff; HEADER];
            bytes[..7].copy_from_slice(&[0xfd, 0x62, 0x69, 0x6e, 1, 1, len]);
            assert!(Header::decode(&bytes).is_err());
        }
    }
}
