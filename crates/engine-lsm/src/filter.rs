//! A Bloom filter beside each memtable: one cache miss tells that a key is not there.
//!
//! Each key sets three bits of one word, so both sides are one atomic operation. At the 16 bits a
//! key it is made for, about one search in a hundred is let through in vain.

use lsm_tree::table::filter::standard_bloom::Builder as Bloom;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) struct Filter {
    words: Box<[AtomicU64]>,
}

impl Filter {
    /// Creates a filter for a number of keys; more keys reduce its precision only.
    pub(crate) fn for_keys(keys: u64) -> Filter {
        let words = (keys / 4).clamp(64, 1 << 24).next_power_of_two();
        Filter { words: (0..words).map(|_| AtomicU64::new(0)).collect() }
    }

    /// The hash that the tables' filters use, so that a read computes it once.
    pub(crate) fn hash(key: &[u8]) -> u64 {
        Bloom::get_hash(key)
    }

    fn place(&self, hash: u64) -> (&AtomicU64, u64) {
        let bits = 1 << (hash & 63) | 1 << (hash >> 6 & 63) | 1 << (hash >> 12 & 63);
        let at = (hash >> 32) as usize & (self.words.len() - 1);
        (&self.words[at], bits)
    }

    /// Before the key becomes visible; what makes it visible orders this as well.
    pub(crate) fn insert(&self, hash: u64) {
        let (word, bits) = self.place(hash);
        if word.load(Ordering::Relaxed) & bits != bits {
            word.fetch_or(bits, Ordering::Release);
        }
    }

    pub(crate) fn may_hold(&self, hash: u64) -> bool {
        let (word, bits) = self.place(hash);
        word.load(Ordering::Acquire) & bits == bits
    }
}
