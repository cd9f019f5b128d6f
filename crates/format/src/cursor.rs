//! A bounds-checked reader over a byte slice, and the matching length-encoded writers.
//!
//! Every decoder of this crate reads through it, so no byte from a file or a peer can index out
//! of bounds. All integers on disk are little-endian unless a method says otherwise.

use crate::error::DecodeError;

/// Reads forward through `bytes`; a failed read leaves the position unchanged.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    pos: usize,
}

impl<'a> Reader<'a> {
    /// Creates a reader at the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, pos: 0 }
    }

    /// Bytes read so far.
    pub fn position(&self) -> usize {
        self.pos
    }

    /// Bytes left.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.pos
    }

    /// Returns whether all bytes were read.
    pub fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    /// Builds an error at the current position.
    pub fn error(&self, what: &'static str) -> DecodeError {
        DecodeError::new(self.pos, what)
    }

    /// Reads the next `n` bytes; `what` names the element in the error.
    ///
    /// # Errors
    /// Fewer bytes are left.
    #[inline]
    pub fn take(&mut self, n: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let rest = &self.bytes[self.pos..];
        match rest.get(..n) {
            Some(taken) => {
                self.pos += n;
                Ok(taken)
            }
            None => Err(self.error(what)),
        }
    }

    /// Takes all bytes that are left.
    pub fn rest(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.pos..];
        self.pos = self.bytes.len();
        rest
    }

    /// Reads an array of `N` bytes.
    ///
    /// # Errors
    /// Fewer bytes are left.
    #[inline]
    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N, what)?);
        Ok(array)
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// Fewer bytes are left.
    #[inline]
    pub fn u8(&mut self, what: &'static str) -> Result<u8, DecodeError> {
        Ok(self.array::<1>(what)?[0])
    }

    /// Reads two bytes, little-endian.
    ///
    /// # Errors
    /// Fewer bytes are left.
    #[inline]
    pub fn u16(&mut self, what: &'static str) -> Result<u16, DecodeError> {
        Ok(u16::from_le_bytes(self.array(what)?))
    }

    /// Reads four bytes, little-endian.
    ///
    /// # Errors
    /// Fewer bytes are left.
    #[inline]
    pub fn u32(&mut self, what: &'static str) -> Result<u32, DecodeError> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    /// Reads eight bytes, little-endian.
    ///
    /// # Errors
    /// Fewer bytes are left.
    #[inline]
    pub fn u64(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    /// Reads `n` bytes (at most 8), little-endian.
    ///
    /// # Errors
    /// Fewer bytes are left.
    #[inline]
    pub fn uint(&mut self, n: usize, what: &'static str) -> Result<u64, DecodeError> {
        Ok(le_uint(self.take(n, what)?))
    }

    /// Reads a length-encoded integer: one byte below 251, else 0xfc/0xfd/0xfe and 2/3/8 bytes.
    ///
    /// # Errors
    /// Fewer bytes are left, or the first byte is not a length.
    pub fn lenenc(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        let start = self.pos;
        let value = match self.u8(what)? {
            first @ 0..=250 => Ok(u64::from(first)),
            0xfc => self.uint(2, what),
            0xfd => self.uint(3, what),
            0xfe => self.uint(8, what),
            _ => Err(DecodeError::new(start, what)),
        };
        if value.is_err() {
            self.pos = start;
        }
        value
    }

    /// Reads a length-encoded integer that counts bytes or items, so it must fit in `usize`.
    ///
    /// # Errors
    /// Fewer bytes are left, or the integer is too large.
    pub fn lenenc_len(&mut self, what: &'static str) -> Result<usize, DecodeError> {
        let start = self.pos;
        usize::try_from(self.lenenc(what)?).map_err(|_| DecodeError::new(start, what))
    }

    /// Reads a length-encoded byte string.
    ///
    /// # Errors
    /// Fewer bytes are left.
    pub fn lenenc_bytes(&mut self, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let len = self.lenenc_len(what)?;
        self.take(len, what)
    }

    /// Reads a byte string after a one-byte length.
    ///
    /// # Errors
    /// Fewer bytes are left.
    pub fn short_bytes(&mut self, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let len = usize::from(self.u8(what)?);
        self.take(len, what)
    }

    /// Reads bytes up to a NUL, which is consumed.
    ///
    /// # Errors
    /// Fewer bytes are left.
    pub fn until_nul(&mut self, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let rest = &self.bytes[self.pos..];
        let len = rest.iter().position(|&b| b == 0).ok_or_else(|| self.error(what))?;
        self.pos += len + 1;
        Ok(&rest[..len])
    }
}

/// Little-endian unsigned integer of at most 8 bytes.
#[inline]
pub fn le_uint(bytes: &[u8]) -> u64 {
    // Columns of every row come here: these are most of them.
    match *bytes {
        [a, b, c, d] => return u64::from(u32::from_le_bytes([a, b, c, d])),
        [a, b, c] => return u64::from(u32::from_le_bytes([a, b, c, 0])),
        _ => {}
    }
    bytes.iter().rev().fold(0, |value, &b| value << 8 | u64::from(b))
}

/// Big-endian unsigned integer of at most 8 bytes.
#[inline]
pub fn be_uint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |value, &b| value << 8 | u64::from(b))
}

/// Appends a length-encoded integer.
pub fn put_lenenc(out: &mut Vec<u8>, value: u64) {
    let bytes = value.to_le_bytes();
    match value {
        0..=250 => out.push(bytes[0]),
        251..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&bytes[..2]);
        }
        0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            out.extend_from_slice(&bytes[..3]);
        }
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&bytes);
        }
    }
}

/// Bytes that `put_lenenc` writes for `value`.
pub fn lenenc_size(value: u64) -> usize {
    match value {
        0..=250 => 1,
        251..=0xffff => 3,
        0x1_0000..=0xff_ffff => 4,
        _ => 9,
    }
}

/// Appends a length-encoded byte string.
pub fn put_lenenc_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_lenenc(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}
