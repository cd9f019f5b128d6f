//! A key as a scan shows it: engines need not keep short ones as buffers of their own.

use bytes::Bytes;
use std::ops::Deref;

/// A key on loan. Dereferences to its bytes.
#[derive(Clone, Copy, Debug)]
pub enum KeyRef<'a> {
    /// A buffer that can be shared.
    Shared(&'a Bytes),
    /// Bytes that are gone after the call.
    Short(&'a [u8]),
}

impl KeyRef<'_> {
    /// The key to keep.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        match self {
            KeyRef::Shared(key) => (*key).clone(),
            KeyRef::Short(key) => Bytes::copy_from_slice(key),
        }
    }
}

impl Deref for KeyRef<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            KeyRef::Shared(key) => key,
            KeyRef::Short(key) => key,
        }
    }
}
