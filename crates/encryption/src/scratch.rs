//! Memory that what is written is encrypted in: aligned for writes past the page cache, and used again.

use std::sync::{Mutex, PoisonError};

/// The alignment of a direct write's address and length.
const ALIGN: usize = 4096;
/// Bytes that are encrypted and written at once.
pub(crate) const PIECE: usize = 1 << 20;
/// The maximum number of concurrent writes that have a buffer.
const KEPT: usize = 4;

#[derive(Debug, Default)]
pub(crate) struct Pool(Mutex<Vec<Vec<u8>>>);

impl Pool {
    /// Calls `work` with `len` bytes of an aligned buffer, whatever is in them.
    pub(crate) fn with<T>(&self, len: usize, work: impl FnOnce(&mut [u8]) -> T) -> T {
        let mut memory = self.kept().pop().unwrap_or_default();
        if memory.len() < len + ALIGN {
            memory = vec![0; (len + ALIGN).next_multiple_of(64 << 10)];
        }
        let address = memory.as_ptr().addr();
        let start = address.next_multiple_of(ALIGN) - address;
        let done = work(&mut memory[start..start + len]);
        let mut kept = self.kept();
        if kept.len() < KEPT {
            kept.push(memory);
        }
        done
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
