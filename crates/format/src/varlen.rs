//! Integers of variable length in the form of MySQL's serialization library, for GTID sets and events with tags.
//!
//! The first byte ends in one 1 bit per byte that follows it, then a 0 bit. Its upper bits and the following bytes are
//! the value, little-endian: one byte has 7 bits of it, eight have 56. `0xff` is followed by all 64 bits. Signed
//! integers have their sign in the lowest bit.

use crate::cursor::Reader;
use crate::error::DecodeError;

/// Appends `value`.
pub fn put(out: &mut Vec<u8>, value: u64) {
    let bits = (64 - value.leading_zeros()).max(1);
    let len = bits.div_ceil(7) as usize;
    if len > 8 {
        out.push(0xff);
        out.extend_from_slice(&value.to_le_bytes());
        return;
    }
    let marked = value << len | ((1 << (len - 1)) - 1);
    out.extend_from_slice(&marked.to_le_bytes()[..len]);
}

/// Appends a signed value.
pub fn put_signed(out: &mut Vec<u8>, value: i64) {
    put(out, (value << 1 ^ value >> 63) as u64);
}

/// Reads an integer in the form of `put`.
///
/// # Errors
/// There are fewer bytes than the first one announces.
pub fn read(r: &mut Reader<'_>, what: &'static str) -> Result<u64, DecodeError> {
    let first = r.u8(what)?;
    let more = first.trailing_ones() as usize;
    if more == 8 {
        return r.u64(what);
    }
    let rest = r.uint(more, what)?;
    Ok(u64::from(u16::from(first) >> (more + 1)) | rest << (7 - more))
}

/// Reads an integer in the form of `put_signed`.
///
/// # Errors
/// As [`read`].
pub fn read_signed(r: &mut Reader<'_>, what: &'static str) -> Result<i64, DecodeError> {
    let value = read(r, what)?;
    Ok((value >> 1) as i64 ^ -((value & 1) as i64))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn bytes_are_those_of_a_mysql_server() {
        for (value, bytes) in [
            (0x77, &[0xee][..]),
            (0xd1, &[0x45, 0x03]),
            (0x90, &[0x41, 0x02]),
            (337, &[0x45, 0x05]),
            (80_411, &[0xdb, 0xd0, 0x09]),
            (0x0006_5bfa_0089_3e00, &[0x7f, 0x00, 0x3e, 0x89, 0x00, 0xfa, 0x5b, 0x06]),
            (u64::MAX, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
        ] {
            let mut out = Vec::new();
            put(&mut out, value);
            assert_eq!(out, bytes, "{value}");
        }
    }

    #[test]
    fn every_length_comes_back_and_a_cut_one_is_an_error() {
        for shift in 0..64 {
            for value in [1 << shift, (1 << shift) - 1, u64::MAX >> shift] {
                let mut out = Vec::new();
                put(&mut out, value);
                assert_eq!(read(&mut Reader::new(&out), "value").unwrap(), value);
                assert!(read(&mut Reader::new(&out[..out.len() - 1]), "value").is_err());
                for signed in [value as i64, (value as i64).wrapping_neg()] {
                    let mut out = Vec::new();
                    put_signed(&mut out, signed);
                    assert_eq!(read_signed(&mut Reader::new(&out), "value").unwrap(), signed);
                }
            }
        }
    }
}
