//! Primitive fields of the protocol: fixed little-endian integers, length-encoded ones, strings.
//!
//! `Reader` is the only way any decoder of this crate looks at a peer's bytes (WIRE-1).

/// A peer's packet does not say what it must say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The packet ends inside a field.
    #[error("packet ends inside {0}")]
    Truncated(&'static str),
    /// A field has a value that the protocol does not know.
    #[error("packet has an impossible {0}")]
    Malformed(&'static str),
}

/// A bounds-checked cursor over one packet's payload.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the front of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes }
    }

    /// The bytes that have not been read yet.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns whether all bytes were read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Number of unread bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rest.len()
    }

    /// The next `n` bytes; `what` names the field in the error.
    pub fn take(&mut self, n: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        // Asserts WIRE-1: a length that a peer gives is compared with what is there.
        let (head, tail) = self.rest.split_at_checked(n).ok_or(DecodeError::Truncated(what))?;
        self.rest = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], DecodeError> {
        let (head, tail) = self.rest.split_first_chunk::<N>().ok_or(DecodeError::Truncated(what))?;
        self.rest = tail;
        Ok(*head)
    }

    /// Reads one byte.
    pub fn u8(&mut self, what: &'static str) -> Result<u8, DecodeError> {
        Ok(self.array::<1>(what)?[0])
    }

    /// Two bytes, little-endian.
    pub fn u16(&mut self, what: &'static str) -> Result<u16, DecodeError> {
        Ok(u16::from_le_bytes(self.array(what)?))
    }

    /// Three bytes, little-endian.
    pub fn u24(&mut self, what: &'static str) -> Result<u32, DecodeError> {
        let [a, b, c] = self.array::<3>(what)?;
        Ok(u32::from_le_bytes([a, b, c, 0]))
    }

    /// Four bytes, little-endian.
    pub fn u32(&mut self, what: &'static str) -> Result<u32, DecodeError> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    /// Eight bytes, little-endian.
    pub fn u64(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    /// A length-encoded integer. 0xFB (NULL) and 0xFF (error) are not integers.
    pub fn lenenc(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        match self.u8(what)? {
            n @ 0..=0xFA => Ok(u64::from(n)),
            0xFC => Ok(u64::from(self.u16(what)?)),
            0xFD => Ok(u64::from(self.u24(what)?)),
            0xFE => self.u64(what),
            _ => Err(DecodeError::Malformed(what)),
        }
    }

    /// A length-encoded string.
    pub fn lenenc_bytes(&mut self, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let n = usize::try_from(self.lenenc(what)?).map_err(|_| DecodeError::Truncated(what))?;
        self.take(n, what)
    }

    /// A string up to and without a NUL byte, which must be there.
    pub fn nul_bytes(&mut self, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let n = self.rest.iter().position(|&b| b == 0).ok_or(DecodeError::Truncated(what))?;
        let s = self.take(n, what)?;
        self.rest = &self.rest[1..];
        Ok(s)
    }

    /// A string up to a NUL byte, or to the end of the packet (old clients leave the NUL out).
    pub fn nul_or_rest(&mut self) -> &'a [u8] {
        let n = self.rest.iter().position(|&b| b == 0).unwrap_or(self.rest.len());
        let s = &self.rest[..n];
        self.rest = self.rest.get(n + 1..).unwrap_or(&[]);
        s
    }

    /// Takes all bytes that are left.
    pub fn take_rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }
}

/// Appends a length-encoded integer.
pub fn put_lenenc(out: &mut Vec<u8>, n: u64) {
    let b = n.to_le_bytes();
    match n {
        0..=0xFA => out.push(b[0]),
        0xFB..=0xFFFF => out.extend_from_slice(&[0xFC, b[0], b[1]]),
        0x1_0000..=0xFF_FFFF => out.extend_from_slice(&[0xFD, b[0], b[1], b[2]]),
        _ => {
            out.push(0xFE);
            out.extend_from_slice(&b);
        }
    }
}

/// Appends a length-encoded string.
pub fn put_lenenc_bytes(out: &mut Vec<u8>, s: &[u8]) {
    put_lenenc(out, s.len() as u64);
    out.extend_from_slice(s);
}

/// Appends a NUL-terminated string; bytes from an embedded NUL on are left out.
pub fn put_nul_bytes(out: &mut Vec<u8>, s: &[u8]) {
    let n = s.iter().position(|&b| b == 0).unwrap_or(s.len());
    out.extend_from_slice(&s[..n]);
    out.push(0);
}

/// Makes room for a one-byte length before a short value whose text is written by `f`, then fills
/// it in. Values of 251 bytes or more are moved to fit a longer prefix.
pub fn put_lenenc_with(out: &mut Vec<u8>, f: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.push(0);
    f(out);
    let len = out.len() - at - 1;
    if len <= 0xFA {
        out[at] = len as u8;
    } else {
        let mut prefix = Vec::with_capacity(9);
        put_lenenc(&mut prefix, len as u64);
        out.splice(at..=at, prefix);
    }
}
