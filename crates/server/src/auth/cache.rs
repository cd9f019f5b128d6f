//! The memory of `caching_sha2_password`: SHA256(SHA256(password)) of accounts that logged in fully.
//!
//! An entry names the stored hash it was checked against, so a changed password forgets it by itself.

use omnibus_wire::auth::caching_sha2::{FastHash, check_fast, fast_hash};
use parking_lot::RwLock;
use std::collections::HashMap;

/// The remembered secrets of an account: the stored text and the fast hash, of two passwords at most.
type Remembered = Vec<(Vec<u8>, FastHash)>;

/// Accounts by `user@host`.
#[derive(Debug, Default)]
pub struct FastCache(RwLock<HashMap<String, Remembered>>);

impl FastCache {
    /// Whether the answer is right, as far as the cache knows.
    #[must_use]
    pub fn check(&self, account: &str, stored: &[u8], scramble: &[u8], answer: &[u8]) -> bool {
        let entries = self.0.read();
        entries.get(account).is_some_and(|all| {
            all.iter().any(|(known, hash)| known == stored && check_fast(hash, scramble, answer))
        })
    }

    /// Remembers a password that was checked against `stored`.
    pub fn remember(&self, account: &str, stored: &[u8], password: &[u8]) {
        let mut entries = self.0.write();
        let entry = entries.entry(account.to_owned()).or_default();
        entry.retain(|(known, _)| known != stored);
        entry.insert(0, (stored.to_vec(), fast_hash(password)));
        entry.truncate(2);
    }

    /// FLUSH PRIVILEGES forgets everything.
    pub fn clear(&self) {
        self.0.write().clear();
    }
}
