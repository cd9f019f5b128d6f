//! Page-aligned byte buffers, and the pool that recycles them.
//!
//! A buffer grows at its end only; what was appended is never moved by its user. Direct I/O wants an aligned address,
//! which an ordinary vector gives when it is allocated one block larger and used from its first aligned byte on: no
//! `unsafe` needed. An encoder may be handed the vector itself; when its growth moves the bytes to another address, they
//! are aligned again by one copy before they are written. In steady state the pool hands out what it got back, and no group allocates.

use omnibus_disk::File;
use omnibus_sync::Mutex;
use std::io;
use std::ops::{Deref, DerefMut};

/// The unit of direct I/O: address, offset and length are multiples of it.
pub const BLOCK: usize = 4096;

/// Smallest capacity of a buffer; most groups fit.
const INITIAL: usize = 64 << 10;
/// A buffer that has grown past this is given back to the allocator: one huge transaction must not pin its size.
const KEEP_MAX: usize = 16 << 20;
/// Two writes under way, one buffer being filled, one spare.
const POOL_MAX: usize = 4;

/// Rounds up to a whole number of blocks.
pub(crate) fn round_up(len: u64) -> u64 {
    len.next_multiple_of(BLOCK as u64)
}

/// The write unit of a file. Arguments and results are offsets as callers know them; offset 0 may be in the middle of
/// the first block of the device's file ([`omnibus_disk::OpenFile::front`]).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocks {
    front: u64,
    unit: u64,
}

impl Blocks {
    /// Blocks of `unit` bytes, a multiple of the file's own.
    pub(crate) fn of(file: &File, unit: u64) -> Blocks {
        Blocks { front: file.front(), unit: unit.max(file.unit()) }
    }

    /// Returns the start of the block that contains `offset`.
    pub(crate) fn floor(self, offset: u64) -> u64 {
        let at = offset + self.front;
        (at - at % self.unit).saturating_sub(self.front)
    }

    /// Returns the end of the block that contains `offset`, or `offset` if it is a block boundary.
    pub(crate) fn ceil(self, offset: u64) -> u64 {
        (offset + self.front).next_multiple_of(self.unit) - self.front
    }

    pub(crate) fn is_border(self, offset: u64) -> bool {
        (offset + self.front).is_multiple_of(self.unit)
    }
}

/// A byte buffer whose first byte is page-aligned when it is written. Append with [`AlignedBuf::extend_from_slice`] or,
/// for an encoder, through [`AlignedBuf::vec`]; existing bytes can be changed in place through the slice it
/// dereferences to.
#[derive(Debug)]
pub struct AlignedBuf {
    raw: Vec<u8>,
    start: usize,
}

impl AlignedBuf {
    /// Creates an empty buffer with room for `capacity` bytes.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> AlignedBuf {
        let capacity = capacity.max(BLOCK).next_multiple_of(BLOCK);
        let mut raw: Vec<u8> = Vec::with_capacity(capacity + BLOCK);
        let address = raw.as_ptr().addr();
        let start = address.next_multiple_of(BLOCK) - address;
        raw.resize(start, 0);
        AlignedBuf { raw, start }
    }

    /// Creates a buffer without memory. A job leaves one in its place when it gives its buffer back.
    pub(crate) fn none() -> AlignedBuf {
        AlignedBuf { raw: Vec::new(), start: 0 }
    }

    /// The number of bytes that the buffer can hold without growing.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.raw.capacity() - self.start
    }

    /// Makes room for `additional` more bytes.
    #[inline]
    pub fn reserve(&mut self, additional: usize) {
        if self.raw.capacity() - self.raw.len() < additional {
            self.grow(additional);
        }
    }

    #[cold]
    fn grow(&mut self, additional: usize) {
        let wanted = self.len().saturating_add(additional).max(self.capacity().saturating_mul(2));
        let mut larger = AlignedBuf::with_capacity(wanted);
        larger.raw.extend_from_slice(self);
        *self = larger;
    }

    /// Appends bytes.
    #[inline]
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len());
        self.raw.extend_from_slice(bytes);
    }

    /// The vector behind the buffer, for encoders that append to one. Append only: bytes in front of its present end
    /// belong to the log, and an encoder that gives up truncates to the length it found.
    #[inline]
    pub fn vec(&mut self) -> &mut Vec<u8> {
        &mut self.raw
    }

    /// Moves the bytes to an aligned address if an encoder's growth has moved them away from one.
    pub(crate) fn align(&mut self) {
        if !(self.raw.as_ptr().addr() + self.start).is_multiple_of(BLOCK) {
            let mut aligned = AlignedBuf::with_capacity(self.len());
            aligned.raw.extend_from_slice(self);
            *self = aligned;
        }
    }

    /// Appends zeros.
    pub(crate) fn pad(&mut self, padding: u64) {
        let padding = usize::try_from(padding).unwrap_or(usize::MAX);
        self.reserve(padding);
        self.raw.resize(self.raw.len() + padding, 0);
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.raw.truncate(self.start + len);
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.raw[self.start..]
    }
}

impl DerefMut for AlignedBuf {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.raw[self.start..]
    }
}

impl io::Write for AlignedBuf {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Buffers waiting to be used again.
#[derive(Debug, Default)]
pub(crate) struct BufferPool {
    free: Mutex<Vec<AlignedBuf>>,
}

impl BufferPool {
    /// An empty buffer, recycled if there is one.
    pub(crate) fn take(&self) -> AlignedBuf {
        self.free.lock().pop().unwrap_or_else(|| AlignedBuf::with_capacity(INITIAL))
    }

    /// Takes a buffer back.
    pub(crate) fn give(&self, mut buffer: AlignedBuf) {
        if buffer.capacity() == 0 || buffer.capacity() > KEEP_MAX {
            return;
        }
        buffer.truncate(0);
        let mut free = self.free.lock();
        if free.len() < POOL_MAX {
            free.push(buffer);
        }
    }
}
