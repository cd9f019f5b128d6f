//! NEWDECIMAL: groups of nine digits in four bytes, big-endian, leading and trailing part groups in
//! as few bytes as they need, the sign bit inverted and negative values complemented. Bytes of one
//! (precision, scale) compare like the numbers.

use super::wide::{self, POW10};
use super::{Decimal, MAX_DIGITS, MAX_SCALE};

/// Bytes that are no decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecimalDecodeError {
    /// Fewer bytes than (precision, scale) takes.
    #[error("decimal cut short")]
    Short,
    /// A digit group beyond its digits, or an impossible precision or scale.
    #[error("decimal out of range")]
    Range,
}
use DecimalDecodeError::{Range, Short};

/// Bytes of a part group of 0-9 digits.
const GROUP_BYTES: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];

/// Bytes of DECIMAL(precision, scale).
pub const fn binlog_size(precision: u8, scale: u8) -> usize {
    let int = precision.saturating_sub(scale) as usize;
    let fraction = scale as usize;
    int / 9 * 4 + GROUP_BYTES[int % 9] + fraction / 9 * 4 + GROUP_BYTES[fraction % 9]
}

/// Digit counts of the groups, first to last.
fn groups(int: usize, fraction: usize) -> impl DoubleEndedIterator<Item = usize> {
    let lead = (!int.is_multiple_of(9)).then_some(int % 9);
    let tail = (!fraction.is_multiple_of(9)).then_some(fraction % 9);
    let whole = int / 9 + fraction / 9;
    lead.into_iter().chain(std::iter::repeat_n(9, whole)).chain(tail)
}

/// Digits that always fit 128 bits, which is what nearly all columns have.
const SMALL: u8 = 38;

/// As `from_binlog`, of bytes of the right number; `None` if a group is beyond its digits.
#[inline]
fn small(int: u8, scale: u8, bytes: &[u8]) -> Option<Decimal> {
    let flip = if bytes.first()? & 0x80 == 0 { u32::MAX } else { 0 };
    let (mut mag, mut at, mut sign_bit) = (0u128, 0, 0x80);
    let mut take = |digits: u8| {
        let len = GROUP_BYTES[usize::from(digits)];
        // Without a copy of so many bytes, which would be a call.
        let group = match *bytes.get(at..at + len)? {
            [a] => u32::from_be_bytes([0, 0, 0, a ^ sign_bit]),
            [a, b] => u32::from_be_bytes([0, 0, a ^ sign_bit, b]),
            [a, b, c] => u32::from_be_bytes([0, a ^ sign_bit, b, c]),
            [a, b, c, d] => u32::from_be_bytes([a ^ sign_bit, b, c, d]),
            _ => return None,
        };
        (at, sign_bit) = (at + len, 0);
        let group = (group ^ flip) & u32::MAX >> (32 - 8 * len);
        let limit = POW10[usize::from(digits)];
        mag = mag * u128::from(limit) + u128::from(group);
        (u64::from(group) < limit).then_some(())
    };
    if !int.is_multiple_of(9) {
        take(int % 9)?;
    }
    for _ in 0..int / 9 + scale / 9 {
        take(9)?;
    }
    if !scale.is_multiple_of(9) {
        take(scale % 9)?;
    }
    let negative = flip != 0 && mag != 0;
    Some(Decimal { low: [mag as u64, (mag >> 64) as u64, 0], top: 0, scale, shown: scale, negative })
}

impl Decimal {
    /// Appends DECIMAL(precision, scale). Rounds and clips what does not fit.
    pub fn to_binlog(&self, precision: u8, scale: u8, out: &mut Vec<u8>) {
        let (value, _) = self.fit(precision, scale).unwrap_or_else(|clipped| (clipped, true));
        let int = usize::from(precision.saturating_sub(scale));
        value.write_groups(int, usize::from(scale), out);
    }

    /// Appends a form whose bytes compare like the numbers whatever their scales (45 bytes).
    pub fn to_sort_key(&self, out: &mut Vec<u8>) {
        self.write_groups(MAX_DIGITS as usize, usize::from(MAX_SCALE), out);
    }

    /// The value must have at most `int` digits before the point.
    fn write_groups(&self, int: usize, fraction: usize, out: &mut Vec<u8>) {
        let start = out.len();
        let size = int / 9 * 4 + GROUP_BYTES[int % 9] + fraction / 9 * 4 + GROUP_BYTES[fraction % 9];
        out.resize(start + size, 0);
        let buf = &mut out[start..];
        let mut rest = wide::scale_up(&self.mag(), fraction as u32 - u32::from(self.scale));
        let mut end = size;
        for digits in groups(int, fraction).rev() {
            let bytes = GROUP_BYTES[digits];
            let group = wide::div_small(&mut rest, POW10[digits]) as u32;
            buf[end - bytes..end].copy_from_slice(&group.to_be_bytes()[4 - bytes..]);
            end -= bytes;
        }
        if self.negative {
            buf.iter_mut().for_each(|b| *b = !*b);
        }
        if let Some(first) = buf.first_mut() {
            *first ^= 0x80;
        }
    }

    /// Reads DECIMAL(precision, scale): the value and how many bytes it took.
    #[inline]
    pub fn from_binlog(
        precision: u8,
        scale: u8,
        bytes: &[u8],
    ) -> Result<(Decimal, usize), DecimalDecodeError> {
        let valid = (1..=MAX_DIGITS as u8).contains(&precision);
        if !valid || scale > MAX_SCALE || scale > precision {
            return Err(Range);
        }
        let size = binlog_size(precision, scale);
        let bytes = bytes.get(..size).ok_or(Short)?;
        if precision <= SMALL {
            return Ok((small(precision - scale, scale, bytes).ok_or(Range)?, size));
        }
        let negative = bytes[0] & 0x80 == 0;
        let flip = if negative { 0xff } else { 0 };
        let mut mag = wide::ZERO;
        let mut at = 0;
        for digits in groups(usize::from(precision - scale), usize::from(scale)) {
            let len = GROUP_BYTES[digits];
            let mut group = 0u64;
            for (i, &b) in bytes[at..at + len].iter().enumerate() {
                let sign_bit = if at + i == 0 { 0x80 } else { 0 };
                group = group << 8 | u64::from(b ^ flip ^ sign_bit);
            }
            if group >= POW10[digits] {
                return Err(Range);
            }
            mag = wide::mul_small(&mag, POW10[digits], group);
            at += len;
        }
        let value = Decimal::make(negative, mag, scale, scale).map_err(|_| Range)?;
        Ok((value, size))
    }
}
