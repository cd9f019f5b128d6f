//! Password hashing and the packets between login and OK. Not accounts, not RSA, not sockets.

pub mod caching_sha2;
pub mod native;
mod packets;
pub mod sha256_crypt;

pub use packets::{AuthSwitch, decode_auth_more, encode_auth_more};

/// Name of the SHA-1 plugin.
pub const NATIVE: &str = "mysql_native_password";
/// Name of the SHA-256 plugin with a cache.
pub const CACHING_SHA2: &str = "caching_sha2_password";

/// Returns whether two byte strings are equal, in time that depends only on their lengths.
#[must_use]
pub fn equal_constant_time(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && std::hint::black_box(a.iter().zip(b).fold(0u8, |acc, (x, y)| acc | (x ^ y))) == 0
}

/// `a ^ b`, byte by byte.
fn xor<const N: usize>(a: &[u8; N], b: &[u8; N]) -> [u8; N] {
    std::array::from_fn(|i| a[i] ^ b[i])
}
