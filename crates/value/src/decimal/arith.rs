//! Decimal arithmetic with MySQL's result scales.

use std::cmp::Ordering;

use super::wide::{self, POW10, Wide};
use super::{Decimal, DecimalOverflow, MAX_SCALE};

/// Both magnitudes at the larger of the two scales.
fn aligned(a: &Decimal, b: &Decimal) -> (Wide, Wide, u8) {
    let scale = a.scale.max(b.scale);
    let up = |d: &Decimal| wide::scale_up(&d.mag(), u32::from(scale - d.scale));
    (up(a), up(b), scale)
}

pub(super) fn cmp_magnitude(a: &Decimal, b: &Decimal) -> Ordering {
    if let (Some(x), Some(y)) = (small_at(a, b.scale), small_at(b, a.scale)) {
        return x.cmp(&y);
    }
    let (x, y, _) = aligned(a, b);
    wide::cmp(&x, &y)
}

/// The magnitude widened to at least `scale` digits, if that fits 128 bits.
#[inline]
fn small_at(d: &Decimal, scale: u8) -> Option<u128> {
    let n = d.small()?;
    match scale.checked_sub(d.scale) {
        None | Some(0) => Some(n),
        Some(up) => n.checked_mul(u128::from(*POW10.get(usize::from(up))?)),
    }
}

/// Magnitude and scale without trailing zeros behind the point.
pub(super) fn normalized(d: &Decimal) -> (Wide, u8) {
    let mut mag = d.mag();
    let mut scale = d.scale;
    while scale > 0 {
        let mut next = mag;
        if wide::div_small(&mut next, 10) != 0 {
            break;
        }
        mag = next;
        scale -= 1;
    }
    (mag, scale)
}

/// Rounds a count of digits up to whole groups of nine, MySQL's unit of storage.
fn whole_groups(digits: u8) -> u8 {
    digits.div_ceil(9) * 9
}

impl std::ops::Neg for Decimal {
    type Output = Decimal;
    #[inline]
    fn neg(self) -> Decimal {
        Decimal { negative: !self.negative && !self.is_zero(), ..self }
    }
}

impl Decimal {
    /// The absolute value.
    pub fn abs(self) -> Decimal {
        Decimal { negative: false, ..self }
    }

    /// Sum; shows the larger of the two scales.
    #[inline]
    pub fn add(&self, other: &Decimal) -> Result<Decimal, DecimalOverflow> {
        let shown = self.shown.max(other.shown);
        if let (Some(x), Some(y)) = (small_at(self, other.scale), small_at(other, self.scale))
            && (x | y) >> 126 == 0
        {
            let signed = |n: u128, negative| if negative { -(n as i128) } else { n as i128 };
            let sum = signed(x, self.negative) + signed(y, other.negative);
            let scale = self.scale.max(other.scale);
            return Ok(Decimal { shown, ..Decimal::from_i128(sum, scale) });
        }
        let (x, y, scale) = aligned(self, other);
        if self.negative == other.negative {
            return Decimal::make(self.negative, wide::add(&x, &y), scale, shown);
        }
        match wide::cmp(&x, &y) {
            Ordering::Less => Decimal::make(other.negative, wide::sub(&y, &x), scale, shown),
            _ => Decimal::make(self.negative, wide::sub(&x, &y), scale, shown),
        }
    }

    /// Difference; shows the larger of the two scales.
    #[inline]
    pub fn sub(&self, other: &Decimal) -> Result<Decimal, DecimalOverflow> {
        self.add(&-*other)
    }

    /// Product; shows the sum of the two scales, at most 30.
    #[inline]
    pub fn mul(&self, other: &Decimal) -> Result<Decimal, DecimalOverflow> {
        let shown = (self.shown + other.shown).min(MAX_SCALE);
        let negative = self.negative != other.negative;
        let scale = self.scale + other.scale;
        if let (Some(x), Some(y)) = (self.small(), other.small())
            && scale <= MAX_SCALE
            && let Some(n) = x.checked_mul(y)
        {
            let low = [n as u64, (n >> 64) as u64, 0];
            return Ok(Decimal { low, top: 0, scale, shown: shown.min(scale), negative: negative && n != 0 });
        }
        let product = wide::mul(&self.mag(), &other.mag());
        Decimal::make(negative, product, self.scale + other.scale, shown)
    }

    /// Quotient, `None` for a zero divisor. Kept in whole groups of nine digits like MySQL's, and
    /// shown with `increment` digits more than the dividend.
    pub fn div(&self, other: &Decimal, increment: u8) -> Result<Option<Decimal>, DecimalOverflow> {
        if other.is_zero() {
            return Ok(None);
        }
        let groups = whole_groups(self.scale) + whole_groups(other.scale);
        let spare = groups - self.scale - other.scale;
        let scale = whole_groups(groups + increment.saturating_sub(spare)).min(MAX_SCALE);
        // scale >= self.scale, as it is self's groups and more, or the maximum.
        let up = u32::from(scale + other.scale - self.scale);
        let numerator = wide::scale_up(&self.mag(), up);
        let (quotient, _) = wide::div_rem(&numerator, &other.mag());
        let shown = (self.shown + increment).min(MAX_SCALE);
        let negative = self.negative != other.negative;
        Decimal::make(negative, quotient, scale, shown).map(Some)
    }

    /// Remainder with the dividend's sign, `None` for a zero divisor.
    pub fn rem(&self, other: &Decimal) -> Option<Decimal> {
        if other.is_zero() {
            return None;
        }
        let (x, y, scale) = aligned(self, other);
        let (_, rest) = wide::div_rem(&x, &y);
        let shown = self.shown.max(other.shown);
        Decimal::make(self.negative, rest, scale, shown).ok()
    }

    /// The integer quotient, toward zero, as DIV computes it; `None` for a zero divisor or when it
    /// does not fit 128 bits.
    pub fn int_div(&self, other: &Decimal) -> Option<i128> {
        if other.is_zero() {
            return None;
        }
        let (x, y, _) = aligned(self, other);
        let (quotient, _) = wide::div_rem(&x, &y);
        let n = i128::try_from(wide::to_u128(&quotient)?).ok()?;
        Some(if self.negative != other.negative { -n } else { n })
    }

    /// Rounds half away from zero to `digits` behind the point; negative digits round before it.
    /// A value with fewer digits keeps them; SQL's ROUND pads them, which is [`Decimal::rescale`].
    pub fn round(&self, digits: i32) -> Decimal {
        self.reduce(digits, |half| half)
    }

    /// Drops digits beyond `digits` behind the point.
    pub fn truncate(&self, digits: i32) -> Decimal {
        self.reduce(digits, |_| false)
    }

    /// CEILING.
    pub fn ceil(&self) -> Decimal {
        let cut = self.truncate(0);
        if cut < *self { cut.add(&Decimal::from(1i64)).unwrap_or(cut) } else { cut }
    }

    /// FLOOR.
    pub fn floor(&self) -> Decimal {
        let cut = self.truncate(0);
        if cut > *self { cut.sub(&Decimal::from(1i64)).unwrap_or(cut) } else { cut }
    }

    fn reduce(&self, digits: i32, up: impl Fn(bool) -> bool) -> Decimal {
        let cut = i32::from(self.scale).saturating_sub(digits);
        if cut <= 0 {
            let shown = digits.clamp(0, i32::from(self.scale)) as u8;
            return Decimal { shown, ..*self };
        }
        let scale = digits.max(0) as u8;
        let cut = cut as u32;
        if cut > super::MAX_DIGITS + 30 {
            return Decimal { scale, shown: scale, ..Decimal::ZERO };
        }
        let (kept, half) = wide::scale_down(&self.mag(), cut);
        let mut mag = wide::add(&kept, &wide::from_u128(u128::from(up(half))));
        if digits < 0 {
            mag = wide::scale_up(&mag, digits.unsigned_abs());
        }
        Decimal::make(self.negative, mag, scale, scale)
            .unwrap_or_else(|_| Decimal::max_value(super::MAX_DIGITS as u8, scale, self.negative))
    }
}
