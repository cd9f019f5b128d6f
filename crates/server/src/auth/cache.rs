//! The memory of `caching_sha2_password`: SHA256(SHA256(password)) of accounts that logged in fully.
//!
//! An entry names the stored hash it was checked against, so a changed password forgets it by itself.

use omnibus_wire::auth::caching_sha2::{FastHash, check_fast, fast_hash};
use parking_lot::RwLock;
use std::collections::HashMap;

/// Accounts by `user@host`, and what is remembered of each: the stored text and the fast hash.
#[derive(Debug, Default)]
pub struct FastCache(RwLock<HashMap<String, (Vec<u8>, FastHash)>>);

impl FastCache {
    /// Whether the answer is right, as far as the cache knows.
    #[must_use]
    pub fn check(&self, account: &str, stored: &[u8], scramble: &[u8], answer: &[u8]) -> bool {
        let entries = self.0.read();
        entries
            .get(account)
            .is_some_and(|(known, hash)| known == stored && check_fast(hash, scramble, answer))
    }

    /// Remembers a password that was checked against `stored`.
    pub fn remember(&self, account: &str, stored: &[u8], password: &[u8]) {
        self.0.write().insert(account.to_owned(), (stored.to_vec(), fast_hash(password)));
    }

    /// FLUSH PRIVILEGES forgets everything.
    pub fn clear(&self) {
        self.0.write().clear();
    }
}
