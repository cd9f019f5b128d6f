//! Byte strings behind one another in chunks of memory: an allocation for each, and the handle to it, would take more than a
//! short one has bytes.

use bytes::Bytes;
use std::num::NonZeroU32;

/// Bytes of a chunk.
const CHUNK: usize = 256 << 10;
/// The number of bytes from which a string is a chunk of its own, without a copy.
const ALONE: usize = CHUNK / 8;

/// Strings that are added, and taken off again in the opposite order.
#[derive(Debug, Default)]
pub struct Chunks(Vec<Chunk>);

#[derive(Debug)]
enum Chunk {
    /// The last one, if there is room in it.
    Open(Vec<u8>),
    Sealed(Bytes),
}

/// The place of a string.
#[derive(Clone, Copy, Debug)]
pub struct ChunkRef {
    /// From one.
    chunk: NonZeroU32,
    offset: u32,
    len: u32,
}

impl ChunkRef {
    /// Bytes of the string.
    #[must_use]
    #[allow(
        clippy::len_without_is_empty,
        reason = "a place is never empty; a string of no bytes has a length of 0"
    )]
    pub fn len(self) -> usize {
        self.len as usize
    }
}

impl Chunks {
    /// Adds a string.
    pub fn push(&mut self, bytes: Bytes) -> ChunkRef {
        if bytes.len() < ALONE {
            return self.push_copy(&bytes);
        }
        let len = bytes.len() as u32;
        self.seal();
        self.0.push(Chunk::Sealed(bytes));
        ChunkRef { chunk: self.last(), offset: 0, len }
    }

    /// Adds a copy.
    pub fn push_copy(&mut self, bytes: &[u8]) -> ChunkRef {
        if !matches!(self.0.last(), Some(Chunk::Open(open)) if open.len() + bytes.len() <= CHUNK) {
            self.seal();
            self.0.push(Chunk::Open(Vec::with_capacity(if self.0.is_empty() { 0 } else { CHUNK })));
        }
        let chunk = self.last();
        let Some(Chunk::Open(open)) = self.0.last_mut() else {
            unreachable!("a chunk was opened if none was")
        };
        let offset = open.len() as u32;
        open.extend_from_slice(bytes);
        ChunkRef { chunk, offset, len: bytes.len() as u32 }
    }

    /// The number of the last chunk.
    fn last(&self) -> NonZeroU32 {
        NonZeroU32::new(self.0.len() as u32).unwrap_or(NonZeroU32::MIN)
    }

    fn chunk(&self, place: ChunkRef) -> &Chunk {
        &self.0[place.chunk.get() as usize - 1]
    }

    /// Takes off what was added last.
    pub fn pop(&mut self, place: ChunkRef) {
        self.0.truncate(place.chunk.get() as usize);
        match self.0.last_mut() {
            Some(Chunk::Open(open)) => open.truncate(place.offset as usize),
            Some(Chunk::Sealed(_)) if place.offset == 0 => {
                self.0.pop();
            }
            _ => {}
        }
    }

    /// Declares the end of additions: values read from now on share the chunks' memory, and later additions go into
    /// other chunks.
    pub fn seal(&mut self) {
        if let Some(Chunk::Open(open)) = self.0.last_mut() {
            open.shrink_to_fit();
            let sealed = Bytes::from(std::mem::take(open));
            if let Some(last) = self.0.last_mut() {
                *last = Chunk::Sealed(sealed);
            }
        }
    }

    /// The string.
    #[inline]
    #[must_use]
    pub fn slice(&self, place: ChunkRef) -> &[u8] {
        let chunk: &[u8] = match self.chunk(place) {
            Chunk::Open(open) => open,
            Chunk::Sealed(sealed) => sealed,
        };
        &chunk[place.offset as usize..][..place.len as usize]
    }

    /// The string, to keep: of a sealed chunk, it shares its memory.
    #[must_use]
    pub fn bytes(&self, place: ChunkRef) -> Bytes {
        match self.chunk(place) {
            Chunk::Open(_) => Bytes::copy_from_slice(self.slice(place)),
            Chunk::Sealed(sealed) => {
                sealed.slice(place.offset as usize..place.offset as usize + place.len as usize)
            }
        }
    }
}
