//! A version's key in the file: the key, then the commit number inverted, so that a key's newest version comes
//! first. Compared in two steps, because one key may be the beginning of another.

use redb::{Key, TypeName, Value};
use std::cmp::Ordering;

/// Bytes of the number.
const NUMBER: usize = 8;

/// The key type of the file's table of versions.
#[derive(Debug)]
pub(crate) struct VersionKey;

/// The key and the number of a version.
#[inline]
pub(crate) fn split(encoded: &[u8]) -> (&[u8], u64) {
    match encoded.split_last_chunk::<NUMBER>() {
        Some((key, number)) => (key, !u64::from_be_bytes(*number)),
        None => (encoded, 0),
    }
}

/// A version's key.
pub(crate) fn join(key: &[u8], number: u64) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(key.len() + NUMBER);
    encoded.extend_from_slice(key);
    encoded.extend_from_slice(&(!number).to_be_bytes());
    encoded
}

impl Value for VersionKey {
    type SelfType<'a> = &'a [u8];
    type AsBytes<'a> = &'a [u8];

    fn fixed_width() -> Option<usize> {
        None
    }

    fn from_bytes<'a>(data: &'a [u8]) -> &'a [u8]
    where
        Self: 'a,
    {
        data
    }

    fn as_bytes<'a, 'b: 'a>(value: &'a Self::SelfType<'b>) -> &'a [u8]
    where
        Self: 'b,
    {
        value
    }

    fn type_name() -> TypeName {
        TypeName::new("omnibus::VersionKey")
    }
}

impl Key for VersionKey {
    fn compare(a: &[u8], b: &[u8]) -> Ordering {
        let ((a, a_number), (b, b_number)) = (split(a), split(b));
        a.cmp(b).then(b_number.cmp(&a_number))
    }
}
