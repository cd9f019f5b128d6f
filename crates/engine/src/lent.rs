//! Keys and values as a scan shows them: engines need not keep short ones as buffers of their own, and who takes none shares none.

use bytes::Bytes;
use std::ops::Deref;

/// A key or a value on loan. Dereferences to its bytes.
#[derive(Clone, Copy, Debug)]
pub enum Lent<'a> {
    /// A buffer that can be shared.
    Shared(&'a Bytes),
    /// A part of such a buffer: where it begins, and where it ends.
    Part(&'a Bytes, usize, usize),
    /// Bytes that are gone after the call.
    Short(&'a [u8]),
}

impl Lent<'_> {
    /// The bytes to keep.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        match *self {
            Lent::Shared(bytes) => bytes.clone(),
            Lent::Part(buffer, from, to) => buffer.slice(from..to),
            Lent::Short(bytes) => Bytes::copy_from_slice(bytes),
        }
    }
}

impl Deref for Lent<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Lent::Shared(bytes) => bytes,
            Lent::Part(buffer, from, to) => &buffer[*from..*to],
            Lent::Short(bytes) => bytes,
        }
    }
}
