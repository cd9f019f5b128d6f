//! Memory that is handed out element by element, never moved, and given back all at once.
//!
//! Elements are named by number, 32 bits instead of a pointer's 64, and live in chunks that are allocated when their
//! first element is needed. A thread that knows a number reads without a lock; only one thread at a time allocates.
//! There is no `unsafe`: fields that change after an element was made are atomic or written once.

use std::sync::OnceLock;

/// Elements in a chunk, and chunks before they grow.
const BITS: u32 = super::ARENA_BITS;
const CHUNK: usize = 1 << BITS;
const NEAR: usize = 1024;
const FAR_BITS: u32 = BITS + NEAR.ilog2();

pub(crate) struct Arena<T> {
    near: Box<[OnceLock<Box<[T; CHUNK]>>]>,
    /// Each twice as large as all before it together: all 32 bits of numbers have a place.
    far: [OnceLock<Box<[T]>>; (u32::BITS - FAR_BITS) as usize],
}

impl<T: Default> Arena<T> {
    pub(crate) fn new() -> Arena<T> {
        Arena { near: (0..NEAR).map(|_| OnceLock::new()).collect(), far: Default::default() }
    }

    /// The element with this number, which there is room for.
    #[inline]
    pub(crate) fn get(&self, at: u32) -> &T {
        match self.near.get((at >> BITS) as usize).and_then(OnceLock::get) {
            Some(chunk) => &chunk[at as usize % CHUNK],
            None => self.far(at),
        }
    }

    #[cold]
    fn far(&self, at: u32) -> &T {
        let chunk =
            self.far[far_chunk(at)].get().expect("an element is asked for after room was made for it");
        &chunk[at as usize - (1 << far_bits(at))]
    }

    /// Sees to it that there is such an element, and gives it.
    #[inline]
    pub(crate) fn make(&self, at: u32) -> &T {
        if (at as usize).is_multiple_of(CHUNK) {
            self.grow(at);
        }
        self.get(at)
    }

    /// Called with the first number of each chunk of the usual size, so that larger ones exist by then, too.
    #[cold]
    fn grow(&self, at: u32) {
        match self.near.get((at >> BITS) as usize) {
            Some(chunk) => {
                chunk.get_or_init(|| {
                    let elements: Box<[T]> = (0..CHUNK).map(|_| T::default()).collect();
                    elements.try_into().unwrap_or_else(|_| unreachable!("it was made with this length"))
                });
            }
            None => {
                self.far[far_chunk(at)]
                    .get_or_init(|| (0..1usize << far_bits(at)).map(|_| T::default()).collect());
            }
        }
    }
}

/// The power of two at or below a number past the near chunks: where its chunk begins, and how long that is.
fn far_bits(at: u32) -> u32 {
    at.ilog2()
}

fn far_chunk(at: u32) -> usize {
    (far_bits(at) - FAR_BITS) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU8, Ordering};

    #[test]
    fn every_number_has_a_place_of_its_own() {
        let arena = Arena::<AtomicU8>::new();
        let last = (NEAR * CHUNK * 2 + 10) as u32;
        for at in 0..=last {
            let before = arena.make(at).fetch_add(1, Ordering::Relaxed);
            assert_eq!(before, 0, "{at}");
        }
        assert!((0..=last).all(|at| arena.get(at).load(Ordering::Relaxed) == 1));
    }
}
