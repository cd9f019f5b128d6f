//! Short bytes that several owners keep: one allocation, where a buffer and the count of its owners would be two.

use bytes::Bytes;

/// Bytes inside the allocation that counts their owners.
struct Inline<const N: usize> {
    len: u16,
    bytes: [u8; N],
}

impl<const N: usize> AsRef<[u8]> for Inline<N> {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

fn inline<const N: usize>(bytes: &[u8]) -> Bytes {
    let mut inline = Inline { len: bytes.len() as u16, bytes: [0; N] };
    inline.bytes[..bytes.len()].copy_from_slice(bytes);
    Bytes::from_owner(inline)
}

/// Returns a copy of the bytes that is cheap to clone. Up to 502 bytes it is one allocation; longer ones have a second, made by the first clone.
#[must_use]
pub fn shared(bytes: &[u8]) -> Bytes {
    match bytes.len() {
        0 => Bytes::new(),
        // With ten bytes of its own an allocation has 40, 64, 128, 192, 256, 384 or 512: sizes that allocators keep ready.
        1..=30 => inline::<30>(bytes),
        31..=54 => inline::<54>(bytes),
        55..=118 => inline::<118>(bytes),
        119..=182 => inline::<182>(bytes),
        183..=246 => inline::<246>(bytes),
        247..=374 => inline::<374>(bytes),
        375..=502 => inline::<502>(bytes),
        _ => Bytes::copy_from_slice(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_every_length_are_what_was_copied() {
        for len in 0..1200 {
            let bytes: Vec<u8> = (0..len).map(|at| (at * 7) as u8).collect();
            let kept = shared(&bytes);
            assert_eq!(kept.clone().slice(len / 2..), bytes[len / 2..]);
            assert_eq!(kept, bytes);
        }
    }
}
