//! DECIMAL: up to 65 digits, up to 30 of them behind the point, exact.
//!
//! A sign, a 224-bit magnitude and a scale; `Copy`, 32 bytes, never allocates. It also remembers
//! how many fraction digits MySQL would *show*: a quotient is kept with whole groups of nine
//! digits and shown with four more than its dividend, so `1/3*3` prints 1.0000 and not 0.9999.

mod arith;
mod binlog;
mod raw;
mod text;
mod wide;

#[cfg(test)]
mod tables;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use wide::Wide;

pub use binlog::{DecimalDecodeError, binlog_size};
pub use text::ParsedDecimal;

/// Most digits of a DECIMAL.
pub const MAX_DIGITS: u32 = 65;
/// Most digits behind the point.
pub const MAX_SCALE: u8 = 30;
/// An exact decimal number.
#[derive(Clone, Copy, Debug, Default)]
pub struct Decimal {
    low: [u64; 3],
    top: u32,
    scale: u8,
    shown: u8,
    negative: bool,
}

/// More than 65 digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("DECIMAL value is out of range")]
pub struct DecimalOverflow {
    /// The exact result is below zero.
    pub negative: bool,
}

impl Decimal {
    /// 0.
    pub const ZERO: Decimal = Decimal { low: [0; 3], top: 0, scale: 0, shown: 0, negative: false };

    /// From a magnitude; rounds the fraction away that does not fit 65 digits.
    fn make(negative: bool, mag: Wide, scale: u8, shown: u8) -> Result<Decimal, DecimalOverflow> {
        let mut mag = mag;
        let mut scale = scale;
        if mag[3..] != [0; 5] || scale > MAX_SCALE {
            let extra = wide::digits(&mag).saturating_sub(MAX_DIGITS);
            let cut = extra.max(u32::from(scale.saturating_sub(MAX_SCALE)));
            if cut > u32::from(scale) {
                return Err(DecimalOverflow { negative });
            }
            let (kept, half) = wide::scale_down(&mag, cut);
            mag = wide::add(&kept, &wide::from_u128(u128::from(half)));
            scale -= cut as u8;
            if wide::digits(&mag) > MAX_DIGITS {
                return Err(DecimalOverflow { negative });
            }
        }
        let negative = negative && !wide::is_zero(&mag);
        let low = [mag[0], mag[1], mag[2]];
        Ok(Decimal { low, top: mag[3] as u32, scale, shown: shown.min(scale), negative })
    }

    fn mag(&self) -> Wide {
        let [a, b, c] = self.low;
        [a, b, c, u64::from(self.top), 0, 0, 0, 0]
    }

    /// The magnitude if it fits 128 bits, which nearly all do.
    #[inline]
    fn small(&self) -> Option<u128> {
        let [a, b, c] = self.low;
        (c == 0 && self.top == 0).then_some(u128::from(b) << 64 | u128::from(a))
    }

    /// `n / 10^scale`; `scale` at most 30.
    #[inline]
    pub fn from_i128(n: i128, scale: u8) -> Decimal {
        let scale = scale.min(MAX_SCALE);
        let mag = n.unsigned_abs();
        let low = [mag as u64, (mag >> 64) as u64, 0];
        Decimal { low, top: 0, scale, shown: scale, negative: n < 0 }
    }

    /// The largest value of DECIMAL(precision, scale): all nines.
    pub fn max_value(precision: u8, scale: u8, negative: bool) -> Decimal {
        let precision = u32::from(precision).min(MAX_DIGITS);
        let one = wide::from_u128(1);
        let mag = wide::sub(&wide::scale_up(&one, precision), &one);
        Decimal::make(negative, mag, scale.min(MAX_SCALE), scale).unwrap_or(Decimal::ZERO)
    }

    /// Digits behind the point that are kept.
    pub fn scale(&self) -> u8 {
        self.scale
    }
    /// Digits behind the point that are shown.
    pub fn shown_scale(&self) -> u8 {
        self.shown
    }
    /// Returns the number with only the digits that are shown, which is the value for comparing, sorting and grouping;
    /// arithmetic uses all digits.
    pub fn as_shown(&self) -> Decimal {
        if self.scale > self.shown { self.round(i32::from(self.shown)) } else { *self }
    }
    /// The same number, all digits shown: what a variable or a text column gets of it.
    pub fn in_full(&self) -> Decimal {
        Decimal { shown: self.scale, ..*self }
    }
    /// The same number, shown with `scale` digits.
    pub fn show(&self, scale: u8) -> Decimal {
        if self.scale > scale { Decimal { shown: scale, ..*self } } else { self.rescale(scale) }
    }
    /// Digits before the point; 0 for 0.5.
    pub fn int_digits(&self) -> u32 {
        wide::digits(&self.mag()).saturating_sub(u32::from(self.scale))
    }
    /// Precision of the DECIMAL(p, shown scale) that holds it.
    pub fn precision(&self) -> u8 {
        (self.int_digits() + u32::from(self.shown)).clamp(1, MAX_DIGITS) as u8
    }
    /// Below zero.
    pub fn is_negative(&self) -> bool {
        self.negative
    }
    /// Equal to zero.
    pub fn is_zero(&self) -> bool {
        self.low == [0; 3] && self.top == 0
    }

    /// Nearest integer, half away from zero; an overflow carries the clipped value.
    pub fn to_i64(&self) -> Result<i64, i64> {
        let n = self.round(0).small();
        let clipped = if self.negative { i64::MIN } else { i64::MAX };
        let signed = n.and_then(|n| i128::try_from(n).ok());
        let signed = signed.map(|n| if self.negative { -n } else { n });
        signed.and_then(|n| i64::try_from(n).ok()).ok_or(clipped)
    }

    /// Nearest unsigned integer, half away from zero; out of range carries the clipped value.
    pub fn to_u64(&self) -> Result<u64, u64> {
        let rounded = self.round(0);
        if rounded.negative {
            return Err(0);
        }
        rounded.small().and_then(|n| u64::try_from(n).ok()).ok_or(u64::MAX)
    }

    /// Nearest double.
    pub fn to_f64(&self) -> f64 {
        if let Some(n) = self.small()
            && n < 1 << 53
            && self.scale <= 22
        {
            // Both are exact doubles, so one division rounds correctly.
            let abs = n as f64 / 10f64.powi(i32::from(self.scale));
            return if self.negative { -abs } else { abs };
        }
        self.to_text_full().parse().unwrap_or(0.0)
    }

    /// From a double by its shortest decimal form, as MySQL converts.
    pub fn from_f64(n: f64) -> Result<Decimal, DecimalOverflow> {
        if !n.is_finite() {
            return Err(DecimalOverflow { negative: n < 0.0 });
        }
        let parsed = Decimal::parse(format!("{n:e}").as_bytes());
        if parsed.overflow { Err(DecimalOverflow { negative: n < 0.0 }) } else { Ok(parsed.value) }
    }

    /// Fits it into DECIMAL(precision, scale): rounds half away from zero; an overflow carries the
    /// clipped value. The flag says that the fraction lost digits.
    pub fn fit(&self, precision: u8, scale: u8) -> Result<(Decimal, bool), Decimal> {
        let rounded = self.round(i32::from(scale));
        let limit = u32::from(precision.saturating_sub(scale));
        if rounded.int_digits() > limit {
            return Err(Decimal::max_value(precision, scale, self.negative));
        }
        let lost = self.scale > scale && rounded != *self;
        Ok((rounded.rescale(scale), lost))
    }

    /// The same value shown with `scale` digits; widens, and rounds if it must narrow.
    pub fn rescale(&self, scale: u8) -> Decimal {
        let scale = scale.min(MAX_SCALE);
        if self.scale >= scale {
            return self.round(i32::from(scale));
        }
        let mag = wide::scale_up(&self.mag(), u32::from(scale - self.scale));
        Decimal::make(self.negative, mag, scale, scale).unwrap_or(*self)
    }
}

impl From<i64> for Decimal {
    fn from(n: i64) -> Decimal {
        Decimal::from_i128(i128::from(n), 0)
    }
}

impl From<u64> for Decimal {
    fn from(n: u64) -> Decimal {
        Decimal::from_i128(i128::from(n), 0)
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => arith::cmp_magnitude(self, other),
            (true, true) => arith::cmp_magnitude(other, self),
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Equality of numbers: 1.0 = 1.00.
impl PartialEq for Decimal {
    fn eq(&self, other: &Decimal) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

impl Hash for Decimal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (mag, scale) = arith::normalized(self);
        (mag, scale, self.negative).hash(state);
    }
}
