//! How far commits have come, to be read without a lock.

use super::sync::atomic::{AtomicU64, AtomicUsize};
use omnibus_engine::CommitNo;

/// The numbers up to which commits have passed a stage, each at most the one before it.
pub(super) struct Progress {
    /// The newest number assigned; at most a group ahead of the published one.
    pub numbered: AtomicU64,
    /// The number up to which all commits are in the engines.
    pub installed: AtomicU64,
    /// The number up to which all commits are durable (COMMIT-2).
    pub durable: AtomicU64,
    /// The number of transactions that are appended and not sealed.
    pub pending: AtomicUsize,
}

impl Progress {
    /// All stages have passed `last`.
    pub(super) fn new(last: CommitNo) -> Progress {
        Progress {
            numbered: AtomicU64::new(last.0),
            installed: AtomicU64::new(last.0),
            durable: AtomicU64::new(last.0),
            pending: AtomicUsize::new(0),
        }
    }
}
