//! A file's password, what is made of it, and the key that it is kept under.

use aes::Aes256;
use aes::cipher::block_padding::NoPadding;
use aes::cipher::{BlockDecryptMut, BlockEncryptMut, KeyIvInit, StreamCipher, StreamCipherSeek};
use sha2::{Digest, Sha512};
use std::fmt::{self, Write as _};
use std::io;

/// AES's block.
pub(crate) const BLOCK: u64 = 16;

/// Returns unpredictable bytes.
pub(crate) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

/// The password from which a file's key is derived.
#[derive(Clone)]
pub struct Password(pub(crate) [u8; 32]);

impl Password {
    /// A new one.
    ///
    /// # Errors
    /// The operating system has no random numbers.
    pub fn random() -> io::Result<Password> {
        random().map(Password)
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

/// The key that encrypts the files' passwords.
#[derive(Clone, PartialEq, Eq)]
pub struct MasterKey(pub(crate) [u8; 32]);

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MasterKey")
    }
}

impl MasterKey {
    /// A new one.
    ///
    /// # Errors
    /// As [`Password::random`].
    pub fn random() -> io::Result<MasterKey> {
        random().map(MasterKey)
    }

    /// The password as a header has it, with what it was mixed with.
    ///
    /// # Errors
    /// As [`Password::random`].
    pub fn wrap(&self, password: &Password) -> io::Result<([u8; 32], [u8; 16])> {
        let iv: [u8; 16] = random()?;
        let mut bytes = password.0;
        cbc::Encryptor::<Aes256>::new(&self.0.into(), &iv.into())
            .encrypt_padded_mut::<NoPadding>(&mut bytes, 32)
            .map_err(|_| io::ErrorKind::InvalidData)?;
        Ok((bytes, iv))
    }

    /// The password that a header has. Something else, under another key.
    #[must_use]
    pub fn unwrap(&self, wrapped: &[u8; 32], iv: &[u8; 16]) -> Password {
        let mut bytes = *wrapped;
        // Two whole blocks without padding cannot be wrong.
        let _ = cbc::Decryptor::<Aes256>::new(&self.0.into(), iv.into())
            .decrypt_padded_mut::<NoPadding>(&mut bytes);
        Password(bytes)
    }
}

/// A file's key, ready to be used at any place of it.
#[derive(Clone)]
pub struct FileKey {
    key: [u8; 32],
    iv: [u8; 16],
}

impl fmt::Debug for FileKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FileKey")
    }
}

impl FileKey {
    /// MySQL takes the digest's first 32 bytes for the key, the next eight to begin the counter with, and counts in eight more from 0.
    #[must_use]
    pub fn of(password: &Password) -> FileKey {
        let digest = Sha512::digest(password.0);
        let (mut key, mut iv) = ([0; 32], [0; 16]);
        key.copy_from_slice(&digest[..32]);
        iv[..8].copy_from_slice(&digest[32..40]);
        FileKey { key, iv }
    }

    /// Turns what stands at `offset` of the clear text into what stands there encrypted, or back.
    pub fn apply(&self, bytes: &mut [u8], offset: u64) {
        let mut stream = ctr::Ctr128BE::<Aes256>::new(&self.key.into(), &self.iv.into());
        stream.seek(offset);
        stream.apply_keystream(bytes);
    }

    /// Decrypts the bytes at `offset`, a multiple of sixteen, of a file. Space that was never written stays zeros.
    /// Bytes behind the last whole sixteen are the end of the file.
    pub(crate) fn reveal(&self, bytes: &mut [u8], offset: u64) {
        let mut at = 0;
        while at < bytes.len() {
            let spare = blank(&bytes[at..]);
            at += spare;
            let end = at + written(&bytes[at..]);
            if at < end {
                self.apply(&mut bytes[at..end], offset + at as u64);
            }
            at = end;
        }
    }
}

/// The number of leading bytes that are whole blocks of zeros.
fn blank(bytes: &[u8]) -> usize {
    bytes.chunks_exact(BLOCK as usize).take_while(|block| is_blank(block)).count() * BLOCK as usize
}

/// The number of leading bytes in front of a whole block of zeros.
fn written(bytes: &[u8]) -> usize {
    bytes
        .chunks_exact(BLOCK as usize)
        .position(is_blank)
        .map_or(bytes.len(), |blocks| blocks * BLOCK as usize)
}

pub(crate) fn is_blank(block: &[u8]) -> bool {
    block.iter().all(|byte| *byte == 0)
}

/// Bytes as hexadecimal digits in lower case.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Bytes that are written in hexadecimal digits.
pub(crate) fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_password_comes_back_under_its_key_only() {
        let (key, other) = (MasterKey::random().unwrap(), MasterKey::random().unwrap());
        let password = Password::random().unwrap();
        let (wrapped, iv) = key.wrap(&password).unwrap();
        assert_eq!(key.unwrap(&wrapped, &iv).0, password.0);
        assert_ne!(other.unwrap(&wrapped, &iv).0, password.0);
        assert_ne!(wrapped, password.0);
    }

    /// Computed with Python's `hashlib` and `cryptography`.
    #[test]
    fn the_stream_is_the_one_of_mysqls_form() {
        let key = FileKey::of(&Password([7; 32]));
        let mut bytes = *b"\xfebin and what follows it";
        key.apply(&mut bytes, 0);
        assert_eq!(bytes, EXPECTED);
        let mut part = EXPECTED[5..].to_vec();
        key.apply(&mut part, 5);
        assert_eq!(part, b"and what follows it");
    }

    const EXPECTED: [u8; 24] = [
        0xb1, 0x69, 0xe6, 0xc8, 0xf5, 0x1f, 0x73, 0xb8, 0xac, 0xf8, 0x90, 0x44, 0x6c, 0x5f, 0xaf, 0x4c, 0x6d,
        0x02, 0xd5, 0x18, 0x84, 0x8b, 0x94, 0x26,
    ];

    #[test]
    fn space_that_nothing_was_written_to_is_zeros() {
        let key = FileKey::of(&Password([1; 32]));
        let mut bytes = vec![0; 16 * 5 + 3];
        key.apply(&mut bytes[16..40], 16);
        // A written zero is none of the spare ones, and neither is the end of a file.
        key.apply(&mut bytes[40..48], 40);
        key.apply(&mut bytes[80..], 80);
        key.reveal(&mut bytes, 0);
        assert_eq!(bytes, vec![0; 83]);
    }
}
