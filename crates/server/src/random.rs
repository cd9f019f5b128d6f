//! Random numbers that nobody can guess.

use rsa::rand_core::{OsRng, RngCore};

/// Fills a buffer from the operating system's random numbers.
pub fn random_bytes(buffer: &mut [u8]) {
    OsRng.fill_bytes(buffer);
}
