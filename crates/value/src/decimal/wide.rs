//! The unsigned integers behind `Decimal`: 512 bits, as eight little-endian words.
//!
//! Only what decimals need. Wide enough for a 65-digit number times 10^60, so no operation here
//! overflows when its operands are within `Decimal`'s bounds.

use std::cmp::Ordering;

/// Words, the least significant first.
pub(super) type Wide = [u64; 8];

pub(super) const ZERO: Wide = [0; 8];

/// Powers of ten that fit a word.
pub(super) const POW10: [u64; 20] = {
    let mut table = [1u64; 20];
    let mut i = 1;
    while i < 20 {
        table[i] = table[i - 1] * 10;
        i += 1;
    }
    table
};

pub(super) fn from_u128(n: u128) -> Wide {
    let mut w = ZERO;
    w[0] = n as u64;
    w[1] = (n >> 64) as u64;
    w
}

/// The value if it fits.
pub(super) fn to_u128(w: &Wide) -> Option<u128> {
    w[2..].iter().all(|&x| x == 0).then(|| u128::from(w[1]) << 64 | u128::from(w[0]))
}

pub(super) fn is_zero(w: &Wide) -> bool {
    w.iter().all(|&x| x == 0)
}

pub(super) fn cmp(a: &Wide, b: &Wide) -> Ordering {
    a.iter().rev().cmp(b.iter().rev())
}

pub(super) fn add(a: &Wide, b: &Wide) -> Wide {
    let mut out = ZERO;
    let mut carry = 0u128;
    for i in 0..8 {
        let sum = u128::from(a[i]) + u128::from(b[i]) + carry;
        out[i] = sum as u64;
        carry = sum >> 64;
    }
    out
}

/// `a - b`; the caller knows `a >= b`.
pub(super) fn sub(a: &Wide, b: &Wide) -> Wide {
    let mut out = ZERO;
    let mut borrow = false;
    for i in 0..8 {
        let (x, under1) = a[i].overflowing_sub(b[i]);
        let (y, under2) = x.overflowing_sub(u64::from(borrow));
        out[i] = y;
        borrow = under1 || under2;
    }
    out
}

/// `w * n + plus`.
pub(super) fn mul_small(w: &Wide, n: u64, plus: u64) -> Wide {
    let mut out = ZERO;
    let mut carry = u128::from(plus);
    for i in 0..8 {
        let product = u128::from(w[i]) * u128::from(n) + carry;
        out[i] = product as u64;
        carry = product >> 64;
    }
    out
}

/// Quotient in place; the remainder.
pub(super) fn div_small(w: &mut Wide, n: u64) -> u64 {
    let mut rest = 0u128;
    for word in w.iter_mut().rev() {
        if rest == 0 && *word == 0 {
            continue;
        }
        let cur = rest << 64 | u128::from(*word);
        *word = (cur / u128::from(n)) as u64;
        rest = cur % u128::from(n);
    }
    rest as u64
}

/// The product of two numbers of at most 256 bits each.
pub(super) fn mul(a: &Wide, b: &Wide) -> Wide {
    let mut out = ZERO;
    for i in 0..4 {
        let mut carry = 0u128;
        for j in 0..4 {
            let cur = u128::from(a[i]) * u128::from(b[j]) + u128::from(out[i + j]) + carry;
            out[i + j] = cur as u64;
            carry = cur >> 64;
        }
        out[i + 4] = carry as u64;
    }
    out
}

/// `w * 10^exponent`.
pub(super) fn scale_up(w: &Wide, exponent: u32) -> Wide {
    let mut out = *w;
    let mut left = exponent;
    while left > 0 {
        let step = left.min(19);
        out = mul_small(&out, POW10[step as usize], 0);
        left -= step;
    }
    out
}

/// `w / 10^exponent`, toward zero, and whether the dropped part is at least one half.
pub(super) fn scale_down(w: &Wide, exponent: u32) -> (Wide, bool) {
    let mut out = *w;
    let mut left = exponent;
    while left > 19 {
        div_small(&mut out, POW10[19]);
        left -= 19;
    }
    if left == 0 {
        return (out, false);
    }
    let unit = POW10[left as usize];
    // The last chunk holds the highest dropped digits, so it alone decides the rounding.
    let rest = div_small(&mut out, unit);
    (out, rest >= unit / 2)
}

/// Decimal digits; 0 has none.
pub(super) fn digits(w: &Wide) -> u32 {
    if let Some(n) = to_u128(w) {
        return if n == 0 { 0 } else { n.ilog10() + 1 };
    }
    let mut rest = *w;
    let mut count = 0;
    while to_u128(&rest).is_none() {
        div_small(&mut rest, POW10[19]);
        count += 19;
    }
    count + digits(&rest)
}

fn bits(w: &Wide) -> u32 {
    w.iter().rposition(|&x| x != 0).map_or(0, |i| (i as u32 + 1) * 64 - w[i].leading_zeros())
}

/// Quotient and remainder; the caller knows `b != 0`.
pub(super) fn div_rem(a: &Wide, b: &Wide) -> (Wide, Wide) {
    if let (Some(x), Some(y)) = (to_u128(a), to_u128(b))
        && y != 0
    {
        return (from_u128(x / y), from_u128(x % y));
    }
    if b[1..].iter().all(|&x| x == 0) && b[0] != 0 {
        let mut quotient = *a;
        let rest = div_small(&mut quotient, b[0]);
        return (quotient, from_u128(u128::from(rest)));
    }
    let mut quotient = ZERO;
    let mut rest = ZERO;
    for bit in (0..bits(a)).rev() {
        rest = shift_in(&rest, a[(bit / 64) as usize] >> (bit % 64) & 1);
        if cmp(&rest, b) != Ordering::Less {
            rest = sub(&rest, b);
            quotient[(bit / 64) as usize] |= 1 << (bit % 64);
        }
    }
    (quotient, rest)
}

fn shift_in(w: &Wide, bit: u64) -> Wide {
    let mut out = ZERO;
    let mut carry = bit;
    for i in 0..8 {
        out[i] = w[i] << 1 | carry;
        carry = w[i] >> 63;
    }
    out
}
