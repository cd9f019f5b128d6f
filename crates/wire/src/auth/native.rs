//! `mysql_native_password`: SHA-1 challenge and response.
//!
//! Stored: SHA1(SHA1(password)) as `*` and 40 hexadecimal digits. Answer to a scramble:
//! SHA1(password) XOR SHA1(scramble, SHA1(SHA1(password))).

use super::{equal_constant_time, xor};
use sha1::{Digest, Sha1};

/// SHA1(SHA1(password)).
pub type Hash = [u8; 20];

fn sha1(parts: &[&[u8]]) -> Hash {
    let mut h = Sha1::new();
    for part in parts {
        h.update(part);
    }
    h.finalize().into()
}

/// Returns the hash of a password that the server stores.
#[must_use]
pub fn hash(password: &[u8]) -> Hash {
    sha1(&[&sha1(&[password])])
}

/// `mysql.user.authentication_string`; empty for an empty password.
#[must_use]
pub fn hash_text(password: &[u8]) -> String {
    if password.is_empty() {
        return String::new();
    }
    let mut s = String::with_capacity(41);
    s.push('*');
    for byte in hash(password) {
        s.push_str(&format!("{byte:02X}"));
    }
    s
}

/// Reads `*` and 40 hexadecimal digits.
#[must_use]
pub fn parse_hash(text: &[u8]) -> Option<Hash> {
    let hex = text.strip_prefix(b"*")?;
    if hex.len() != 40 {
        return None;
    }
    let mut out = [0; 20];
    for (byte, pair) in out.iter_mut().zip(hex.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(out)
}

/// The client's answer; empty for an empty password.
#[must_use]
pub fn answer(password: &[u8], scramble: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = sha1(&[password]);
    xor(&once, &sha1(&[scramble, &sha1(&[&once])])).to_vec()
}

/// Returns whether `answer` proves knowledge of the password behind `stored`.
#[must_use]
pub fn check(stored: &Hash, scramble: &[u8], answer: &[u8]) -> bool {
    let Ok(answer) = <[u8; 20]>::try_from(answer) else { return false };
    let once = xor(&answer, &sha1(&[scramble, stored]));
    equal_constant_time(&sha1(&[&once]), stored)
}
