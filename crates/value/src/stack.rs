//! The remaining stack of the thread, which bounds every recursion over a statement from a client or a source.
//!
//! A fixed count would have to fit the largest frames on the smallest stack; this asks the thread. The parser asks
//! while it descends. Binding, planning and execution ask as well: their structures may be deeper than the syntax tree,
//! because a common table expression is a tree of its own that is read inside another.

use std::cell::Cell;

/// Stack of a thread that runs statements. Untouched pages of it cost nothing.
pub const STACK_BYTES: usize = 16 << 20;

/// The bytes that must be left below a check: enough to traverse, clone and drop the tallest expression that the parser
/// permits. Of a small stack it is a quarter.
const RESERVE_BYTES: usize = 1 << 20;

thread_local! {
    /// The lowest address that may still be used; 0 before the first question.
    static FLOOR: Cell<usize> = const { Cell::new(0) };
}

/// Below which address of this thread's stack recursion ends.
#[must_use]
pub fn floor() -> usize {
    FLOOR.with(|floor| {
        if floor.get() == 0 {
            let (lowest, size) = bounds();
            floor.set(lowest.saturating_add(RESERVE_BYTES.min(size / 4)).max(1));
        }
        floor.get()
    })
}

/// An address in the caller's frame, or close to it.
#[inline]
#[must_use]
pub fn here() -> usize {
    let place = 0u8;
    (&raw const place) as usize
}

/// Returns whether there is room to continue.
#[must_use]
pub fn has_room() -> bool {
    here() > floor()
}

/// The depth of a recursion. A structure that was made by one recursion and is reused counts as if it were made again,
/// so that running and dropping it find enough room.
#[derive(Debug)]
pub struct Depth {
    lowest: usize,
}

impl Default for Depth {
    fn default() -> Depth {
        Depth { lowest: usize::MAX }
    }
}

impl Depth {
    /// Descends one step; returns whether there is room.
    #[must_use]
    pub fn descend(&mut self) -> bool {
        self.reuse(0)
    }

    /// Descends by the bytes that a reused structure took; returns whether there is room.
    #[must_use]
    pub fn reuse(&mut self, bytes: usize) -> bool {
        let reached = here().saturating_sub(bytes);
        self.lowest = self.lowest.min(reached);
        reached > floor()
    }

    /// Begins to measure how much is taken from here on; gives what `taken` needs.
    pub fn measure(&mut self) -> (usize, usize) {
        let from = here();
        (from, std::mem::replace(&mut self.lowest, from))
    }

    /// The bytes taken since `measure`.
    pub fn taken(&mut self, (from, before): (usize, usize)) -> usize {
        let bytes = from.saturating_sub(self.lowest);
        self.lowest = self.lowest.min(before);
        bytes
    }
}

/// The lowest address of this thread's stack and its size; 0 if the system does not say.
#[cfg(windows)]
fn bounds() -> (usize, usize) {
    // There is no crate here that knows the system's calls; `windows-sys` would be one for this call alone.
    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn GetCurrentThreadStackLimits(lowest: *mut usize, end: *mut usize);
    }
    let (mut lowest, mut end) = (0, 0);
    // SAFETY: the call writes two addresses into places that outlive it, and cannot fail.
    unsafe { GetCurrentThreadStackLimits(&raw mut lowest, &raw mut end) };
    (lowest, end - lowest)
}

/// The lowest address of this thread's stack and its size; 0 if the system does not say.
#[cfg(unix)]
fn bounds() -> (usize, usize) {
    let mut bottom = std::ptr::null_mut();
    let mut size = 0;
    // SAFETY: an all-zero `pthread_attr_t` is a valid place for `pthread_getattr_np` to write to; what it has written is read
    // and then destroyed once, and `bottom` and `size` outlive the calls.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes) != 0 {
            return (0, 0);
        }
        libc::pthread_attr_getstack(&raw const attributes, &raw mut bottom, &raw mut size);
        libc::pthread_attr_destroy(&raw mut attributes);
    }
    (bottom as usize, size)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_recursion_ends_before_the_stack_does() {
        fn descend(depth: u64) -> u64 {
            let room = std::hint::black_box([depth; 64]);
            if super::has_room() { descend(depth + 1).max(room[0]) } else { depth }
        }
        let deep = |bytes: usize| {
            let thread = std::thread::Builder::new().stack_size(bytes);
            thread.spawn(|| descend(0)).expect("a thread").join().expect("no overflow")
        };
        let (small, large) = (deep(2 << 20), deep(4 << 20));
        assert!(large > small && small > 100, "{small} steps in 2 MiB, {large} in 4");
    }
}
