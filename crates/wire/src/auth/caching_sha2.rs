//! `caching_sha2_password`: SHA-256 challenge and response against a cached hash, and a salted slow
//! hash in the account.
//!
//! Answer to a scramble: SHA256(p) XOR SHA256(SHA256(SHA256(p)), scramble). Cached after a full
//! login: SHA256(SHA256(p)). Stored: `$A$005$`, 20 bytes of salt, 43 characters of sha256-crypt.

use super::{equal_constant_time, sha256_crypt, xor};
use sha2::{Digest, Sha256};

/// The server took the scramble.
pub const FAST_AUTH_OK: u8 = 3;
/// The server wants the password itself.
pub const FULL_AUTH: u8 = 4;
/// The client asks for the RSA key.
pub const REQUEST_PUBLIC_KEY: u8 = 2;
/// Rounds of the slow hash that new passwords get.
pub const ROUNDS: u32 = 5000;
/// Longest password taken: the digest's time grows with the square of the length.
pub const MAX_PASSWORD: usize = 256;
/// Length of the salt in a stored hash.
pub const SALT_LEN: usize = 20;

/// SHA256(SHA256(password)).
pub type FastHash = [u8; 32];

fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut h = Sha256::new();
    for part in parts {
        h.update(part);
    }
    h.finalize().into()
}

/// Returns the hash of a password that the cache keeps.
#[must_use]
pub fn fast_hash(password: &[u8]) -> FastHash {
    sha256(&[&sha256(&[password])])
}

/// The client's answer; empty for an empty password.
#[must_use]
pub fn answer(password: &[u8], scramble: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = sha256(&[password]);
    xor(&once, &sha256(&[&sha256(&[&once]), scramble])).to_vec()
}

/// Returns whether `answer` proves knowledge of the password behind the cached hash.
#[must_use]
pub fn check_fast(cached: &FastHash, scramble: &[u8], answer: &[u8]) -> bool {
    let Ok(answer) = <[u8; 32]>::try_from(answer) else { return false };
    let once = xor(&answer, &sha256(&[cached, scramble]));
    equal_constant_time(&sha256(&[&once]), cached)
}

/// `mysql.user.authentication_string`; empty for an empty password. Slow by design (milliseconds).
/// Bytes of `salt` are made printable, 7-bit and free of `$`.
#[must_use]
pub fn hash_text(password: &[u8], salt: &[u8; SALT_LEN]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let salt = salt.map(|b| sha256_crypt::ALPHABET[usize::from(b & 63)]);
    let mut out = format!("$A${:03X}$", ROUNDS / 1000).into_bytes();
    out.extend_from_slice(&salt);
    out.extend_from_slice(&sha256_crypt::digest(password, &salt, ROUNDS));
    out
}

/// Returns whether `stored` is a hash that [`check_full`] can read.
#[must_use]
pub fn is_hash(stored: &[u8]) -> bool {
    parse(stored).is_some()
}

fn parse(stored: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let rest = stored.strip_prefix(b"$A$")?;
    let (rounds, rest) = rest.split_at_checked(3)?;
    let rounds = u32::from_str_radix(std::str::from_utf8(rounds).ok()?, 16).ok()?;
    let rest = rest.strip_prefix(b"$")?;
    let (salt, digest) = rest.split_at_checked(SALT_LEN)?;
    (digest.len() == sha256_crypt::DIGEST_LEN && rounds > 0).then_some((rounds * 1000, salt, digest))
}

/// Returns whether `password` is the one behind the stored text. Slow by design (milliseconds).
#[must_use]
pub fn check_full(stored: &[u8], password: &[u8]) -> bool {
    let Some((rounds, salt, digest)) = parse(stored) else { return false };
    if password.len() > MAX_PASSWORD {
        return false;
    }
    equal_constant_time(&sha256_crypt::digest(password, salt, rounds), digest)
}

/// Undoes (or does) the masking of a password sent under RSA: XOR with the scramble, repeated.
pub fn mask(password: &mut [u8], scramble: &[u8]) {
    if scramble.is_empty() {
        return;
    }
    for (byte, mask) in password.iter_mut().zip(scramble.iter().cycle()) {
        *byte ^= mask;
    }
}
