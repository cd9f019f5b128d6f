//! The memory of a connection's buffers: asked for before they grow, given back when they go.
//!
//! A buffer of the size that a connection keeps between commands is not counted.

use omnibus_sql::SqlResult;
use omnibus_sql::memory::{Account, MemoryLimits, SessionMemory};
use std::sync::Arc;

/// The bytes that a buffer has without asking.
const FREE: usize = 16 << 10;

/// The account of one buffer.
#[derive(Debug)]
pub struct Room {
    account: Account,
    /// The session's, as they are now.
    pub limits: MemoryLimits,
}

impl Room {
    /// Of nothing yet.
    #[must_use]
    pub fn new(memory: &Arc<SessionMemory>, limits: MemoryLimits) -> Room {
        Room { account: Account::new(memory), limits }
    }

    /// One more of the same session.
    #[must_use]
    pub fn another(&self) -> Room {
        Room { account: self.account.like(), limits: self.limits }
    }

    /// The buffer is to have so many bytes.
    ///
    /// # Errors
    /// 3170: a limit says no.
    #[inline]
    pub fn grow_to(&mut self, bytes: usize) -> SqlResult<()> {
        if bytes <= FREE || bytes as u64 <= self.account.used() {
            return Ok(());
        }
        self.account.resize(bytes, self.limits)
    }

    /// Whether it has anything to give back.
    #[inline]
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.account.used() > 0
    }

    /// The buffer is gone.
    #[inline]
    pub fn clear(&mut self) {
        self.account.clear();
    }
}
