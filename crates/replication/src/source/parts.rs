//! Packets to send: their own bytes, and between them long events, which are sent from their block without a copy.
//! Short events are copied, because that costs less than passing each to the system by itself.
//!
//! Pure. A dump session keeps one [`Parts`] in its stream and asks [`Unsent`] for the next bytes to write.

use std::io::IoSlice;
use std::ops::Range;

/// The length in bytes from which an event is sent from its block.
pub(super) const LONG: usize = 16 << 10;
/// The maximum number of slices per system call; more gain nothing.
const SLICES: usize = 64;

/// A piece of a block, and its place among the packets' own bytes.
#[derive(Clone, Debug)]
struct Part {
    after: usize,
    range: Range<usize>,
}

/// The pieces of one block that belong between a buffer's bytes.
#[derive(Debug, Default)]
pub struct Parts(Vec<Part>);

impl Parts {
    /// Returns whether there is no piece, so that only the buffer has to be sent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a piece of the block behind `after` own bytes.
    pub(super) fn push(&mut self, after: usize, range: Range<usize>) {
        if !range.is_empty() {
            self.0.push(Part { after, range });
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// The bytes to be sent, and the progress.
#[derive(Debug)]
pub struct Unsent<'a> {
    /// The packets' own bytes.
    pub own: &'a [u8],
    /// The pieces that go between them.
    pub parts: &'a Parts,
    /// The block of the pieces.
    pub block: &'a [u8],
    /// The number of bytes sent.
    pub done: usize,
}

impl<'a> Unsent<'a> {
    /// Returns the next slices to write; empty when everything is sent.
    #[must_use]
    pub fn slices(&self) -> Vec<IoSlice<'a>> {
        let (mut skip, mut at) = (self.done, 0);
        let mut slices = Vec::with_capacity(SLICES.min(2 * self.parts.0.len() + 1));
        let mut add = |bytes: &'a [u8]| {
            let skipped = skip.min(bytes.len());
            skip -= skipped;
            if skipped < bytes.len() && slices.len() < SLICES {
                slices.push(IoSlice::new(&bytes[skipped..]));
            }
        };
        for part in &self.parts.0 {
            add(self.own.get(at..part.after).unwrap_or(&[]));
            add(self.block.get(part.range.clone()).unwrap_or(&[]));
            at = part.after;
        }
        add(self.own.get(at..).unwrap_or(&[]));
        slices
    }

    /// The total number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.own.len() + self.parts.0.iter().map(|part| part.range.len()).sum::<usize>()
    }

    /// Returns whether there is nothing to send at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_one_write_takes_the_bytes_are_those_and_in_order() {
        let block: Vec<u8> = (0..200).collect();
        let own = b"abcdefgh";
        let mut parts = Parts::default();
        parts.push(3, 10..90);
        parts.push(3, 100..101);
        parts.push(8, 150..200);
        parts.push(8, 7..7);
        let whole = [&own[..3], &block[10..90], &block[100..101], &own[3..], &block[150..]].concat();
        for step in 1..=whole.len() {
            let mut unsent = Unsent { own, parts: &parts, block: &block, done: 0 };
            assert_eq!(unsent.len(), whole.len());
            let mut sent = Vec::new();
            loop {
                let slices = unsent.slices();
                let taken: Vec<u8> =
                    slices.iter().flat_map(|slice| slice.iter().copied()).take(step).collect();
                if taken.is_empty() {
                    break;
                }
                unsent.done += taken.len();
                sent.extend(taken);
            }
            assert_eq!(sent, whole, "{step} bytes at a time");
        }
    }

    #[test]
    fn more_pieces_than_one_call_takes_are_sent_by_several() {
        let block = vec![7; 1000];
        let own = vec![1; 200];
        let mut parts = Parts::default();
        (0..200).for_each(|n| parts.push(n, n * 5..n * 5 + 5));
        let mut unsent = Unsent { own: &own, parts: &parts, block: &block, done: 0 };
        let mut calls = 0;
        while let slices = unsent.slices()
            && !slices.is_empty()
        {
            unsent.done += slices.iter().map(|slice| slice.len()).sum::<usize>();
            calls += 1;
        }
        assert_eq!((unsent.done, calls), (1200, 7));
    }
}
