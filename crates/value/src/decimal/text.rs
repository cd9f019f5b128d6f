//! Decimals from and to text.

use std::fmt;

use super::wide::{self, POW10};
use super::{Decimal, MAX_DIGITS, MAX_SCALE};

/// The result of parsing a string.
#[derive(Clone, Copy, Debug)]
pub struct ParsedDecimal {
    /// The number; 0 if there was none; all nines if it was too large.
    pub value: Decimal,
    /// There was no number at all.
    pub empty: bool,
    /// Something but spaces followed.
    pub truncated: bool,
    /// The number did not fit 65 digits.
    pub overflow: bool,
}

/// Significant digits gathered from text: those past `MAX_DIGITS` are only counted.
struct Digits {
    mag: wide::Wide,
    kept: u32,
    chunk: u64,
    chunk_len: usize,
    /// Digits before the point that were dropped.
    dropped: i64,
    /// Kept digits behind the point.
    scale: i64,
    round_up: bool,
    full: bool,
}

impl Digits {
    fn push(&mut self, digit: u8, fraction: bool) {
        let digit = u64::from(digit - b'0');
        if self.full || self.kept > MAX_DIGITS {
            if !self.full {
                self.round_up = digit >= 5;
                self.full = true;
            }
            self.dropped += i64::from(!fraction);
            return;
        }
        self.kept += u32::from(self.kept > 0 || digit != 0);
        self.scale += i64::from(fraction);
        self.chunk = self.chunk * 10 + digit;
        self.chunk_len += 1;
        if self.chunk_len == 19 {
            self.flush();
        }
    }
    fn flush(&mut self) {
        self.mag = wide::mul_small(&self.mag, POW10[self.chunk_len], self.chunk);
        (self.chunk, self.chunk_len) = (0, 0);
    }
}

fn is_space(c: u8) -> bool {
    matches!(c, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// An exponent 'e[+-]digits' at the start of `text`: its value and length.
fn exponent(text: &[u8]) -> Option<(i64, usize)> {
    if !matches!(text.first(), Some(b'e' | b'E')) {
        return None;
    }
    let signed = matches!(text.get(1), Some(b'+' | b'-'));
    let start = 1 + usize::from(signed);
    let digits = text[start..].iter().take_while(|c| c.is_ascii_digit()).count();
    if digits == 0 {
        return None;
    }
    let n = text[start..start + digits]
        .iter()
        .fold(0i64, |n, c| n.saturating_mul(10).saturating_add(i64::from(c - b'0')).min(100_000));
    Some((if text[1] == b'-' { -n } else { n }, start + digits))
}

impl Decimal {
    /// Reads `[spaces][sign]digits[.digits][e[sign]digits]` and remarks what follows.
    pub fn parse(text: &[u8]) -> ParsedDecimal {
        let mut at = text.iter().take_while(|&&c| is_space(c)).count();
        let negative = text.get(at) == Some(&b'-');
        at += usize::from(matches!(text.get(at), Some(b'+' | b'-')));
        let mut d = Digits {
            mag: wide::ZERO,
            kept: 0,
            chunk: 0,
            chunk_len: 0,
            dropped: 0,
            scale: 0,
            round_up: false,
            full: false,
        };
        let int = text[at..].iter().take_while(|c| c.is_ascii_digit()).count();
        text[at..at + int].iter().for_each(|&c| d.push(c, false));
        at += int;
        let mut any = int > 0;
        if text.get(at) == Some(&b'.') {
            let fraction = text[at + 1..].iter().take_while(|c| c.is_ascii_digit()).count();
            if any || fraction > 0 {
                text[at + 1..at + 1 + fraction].iter().for_each(|&c| d.push(c, true));
                at += 1 + fraction;
                any = true;
            }
        }
        if !any {
            return ParsedDecimal {
                value: Decimal::ZERO,
                empty: true,
                truncated: !text.is_empty(),
                overflow: false,
            };
        }
        d.flush();
        let (exp, used) = exponent(&text[at..]).unwrap_or((0, 0));
        at += used;
        let (value, overflow) = build(negative, &d, exp);
        let truncated = !text[at..].iter().all(|&c| is_space(c));
        ParsedDecimal { value, empty: false, truncated, overflow }
    }

    /// Appends the value with its shown digits.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        let rounded = self.round(i32::from(self.shown));
        rounded.write_kept(out);
    }

    /// Appends every kept digit.
    fn write_kept(&self, out: &mut Vec<u8>) {
        let mut buf = [b'0'; 100];
        let mut at = buf.len();
        let mut rest = self.mag();
        while !wide::is_zero(&rest) {
            let mut chunk = wide::div_small(&mut rest, POW10[19]);
            let stop = at - 19;
            let mut pos = at;
            while chunk > 0 {
                pos -= 1;
                buf[pos] = b'0' + (chunk % 10) as u8;
                chunk /= 10;
            }
            at = stop;
        }
        let scale = usize::from(self.scale);
        let point = buf.len() - scale;
        let first = buf[..point].iter().position(|&c| c != b'0').unwrap_or(point - 1);
        if self.negative {
            out.push(b'-');
        }
        out.extend_from_slice(&buf[first..point]);
        if scale > 0 {
            out.push(b'.');
            out.extend_from_slice(&buf[point..]);
        }
    }

    pub(super) fn to_text_full(self) -> String {
        let mut out = Vec::with_capacity(70);
        self.write_kept(&mut out);
        String::from_utf8(out).unwrap_or_default()
    }
}

/// Digits and exponent to a value, rounded to scale 30 and clipped to 65 digits.
fn build(negative: bool, d: &Digits, exp: i64) -> (Decimal, bool) {
    let mag = wide::add(&d.mag, &wide::from_u128(u128::from(d.round_up)));
    if wide::is_zero(&mag) {
        let scale = (d.scale - exp).clamp(0, i64::from(MAX_SCALE)) as u8;
        return (Decimal { scale, shown: scale, ..Decimal::ZERO }, false);
    }
    let scale = d.scale - d.dropped - exp;
    let overflow = || (Decimal::max_value(MAX_DIGITS as u8, 0, negative), true);
    if i64::from(wide::digits(&mag)) - scale > i64::from(MAX_DIGITS) {
        return overflow();
    }
    if scale < 0 {
        let up = wide::scale_up(&mag, scale.unsigned_abs() as u32);
        return Decimal::make(negative, up, 0, 0).map_or_else(|_| overflow(), |v| (v, false));
    }
    if scale > 200 {
        return (Decimal { scale: MAX_SCALE, shown: MAX_SCALE, ..Decimal::ZERO }, false);
    }
    let made = Decimal::make(negative, mag, scale as u8, scale.min(30) as u8);
    made.map_or_else(|_| overflow(), |v| (v, false))
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Vec::with_capacity(70);
        self.write_text(&mut out);
        f.write_str(std::str::from_utf8(&out).unwrap_or(""))
    }
}

impl std::str::FromStr for Decimal {
    type Err = super::DecimalOverflow;
    /// The leading number of `text`, as [`Decimal::parse`] reads it.
    fn from_str(text: &str) -> Result<Decimal, super::DecimalOverflow> {
        let parsed = Decimal::parse(text.as_bytes());
        let negative = parsed.value.negative;
        if parsed.overflow { Err(super::DecimalOverflow { negative }) } else { Ok(parsed.value) }
    }
}
