//! How much of the thread's stack is left: what bounds every recursion over a statement that a client or a source sent.
//!
//! The parser bounds the height of a tree by counting. What is made of one may be deeper, since a common table expression
//! is a tree of its own that is read inside another, so binding, planning and running ask here on their way down.

use crate::error::{SqlError, SqlResult};
use std::cell::Cell;

/// Stack of a thread that runs statements. Untouched pages of it cost nothing.
pub const STACK_BYTES: usize = 16 << 20;

/// What must be left below a check: enough for the tallest expression that the parser lets through to be walked, cloned and
/// dropped.
const RESERVE_BYTES: usize = 1 << 20;

thread_local! {
    /// The lowest address that may still be used; 0 before the first question.
    static FLOOR: Cell<usize> = const { Cell::new(0) };
}

/// Below which address of this thread's stack recursion ends.
pub(crate) fn floor() -> usize {
    FLOOR.with(|floor| {
        if floor.get() == 0 {
            floor.set(lowest().saturating_add(RESERVE_BYTES).max(1));
        }
        floor.get()
    })
}

/// An address in the caller's frame, or close to it.
#[inline]
pub(crate) fn here() -> usize {
    let place = 0u8;
    (&raw const place) as usize
}

/// Fails before the stack overflows.
///
/// # Errors
/// 1436.
#[inline]
pub(crate) fn check_above(floor: usize) -> SqlResult<()> {
    if here() > floor { Ok(()) } else { Err(overrun()) }
}

/// How deep a recursion has been. What was made by one and is used again counts as if it were made again, so that those
/// who run it and drop it find the room that it takes.
#[derive(Debug)]
pub(crate) struct Depth {
    lowest: usize,
}

impl Default for Depth {
    fn default() -> Depth {
        Depth { lowest: usize::MAX }
    }
}

impl Depth {
    /// One step down.
    ///
    /// # Errors
    /// 1436.
    pub(crate) fn descend(&mut self) -> SqlResult<()> {
        self.reuse(0)
    }

    /// As many bytes down as something took that is used again.
    ///
    /// # Errors
    /// 1436.
    pub(crate) fn reuse(&mut self, bytes: usize) -> SqlResult<()> {
        let reached = here().saturating_sub(bytes);
        self.lowest = self.lowest.min(reached);
        if reached > floor() { Ok(()) } else { Err(overrun()) }
    }

    /// Begins to measure how much is taken from here on; gives what `taken` needs.
    pub(crate) fn measure(&mut self) -> (usize, usize) {
        let from = here();
        (from, std::mem::replace(&mut self.lowest, from))
    }

    /// The bytes taken since `measure`.
    pub(crate) fn taken(&mut self, (from, before): (usize, usize)) -> usize {
        let bytes = from.saturating_sub(self.lowest);
        self.lowest = self.lowest.min(before);
        bytes
    }
}

#[cold]
fn overrun() -> SqlError {
    SqlError::new(1436, b"HY000", "Thread stack overrun: the statement is nested too deeply")
}

/// The lowest address of this thread's stack; 0 if the system does not say.
fn lowest() -> usize {
    let mut bottom = std::ptr::null_mut();
    let mut size = 0;
    // SAFETY: an all-zero `pthread_attr_t` is a valid place for `pthread_getattr_np` to write to; what it has written is read
    // and then destroyed once, and `bottom` and `size` outlive the calls.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes) != 0 {
            return 0;
        }
        libc::pthread_attr_getstack(&raw const attributes, &raw mut bottom, &raw mut size);
        libc::pthread_attr_destroy(&raw mut attributes);
    }
    bottom as usize
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_recursion_ends_before_the_stack_does() {
        fn descend(depth: u64) -> u64 {
            let room = std::hint::black_box([depth; 64]);
            if super::check_above(super::floor()).is_err() { depth } else { descend(depth + 1).max(room[0]) }
        }
        let deep = |bytes: usize| {
            let thread = std::thread::Builder::new().stack_size(bytes);
            thread.spawn(|| descend(0)).unwrap().join().unwrap()
        };
        assert!(deep(4 << 20) > 2 * deep(2 << 20));
    }
}
