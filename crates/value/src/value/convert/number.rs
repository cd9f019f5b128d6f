//! Values as numbers and truth.

use super::{Converted, Problem};
use crate::Value;
use crate::column::{ColumnKind, ColumnType};
use crate::decimal::Decimal;
use crate::json::Json;
use crate::temporal::DateMode;

fn is_space(c: u8) -> bool {
    matches!(c, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

fn only_spaces(rest: &[u8]) -> bool {
    rest.iter().all(|&c| is_space(c))
}

/// The length of the leading number '[sign]digits[.digits][e[sign]digits]', after spaces:
/// (start, end).
fn number_span(text: &[u8]) -> Option<(usize, usize)> {
    let start = text.iter().position(|&c| !is_space(c))?;
    let digits = |from: usize| text[from..].iter().take_while(|c| c.is_ascii_digit()).count();
    let mut at = start + usize::from(matches!(text[start], b'+' | b'-'));
    let int = digits(at);
    at += int;
    let mut fraction = 0;
    if text.get(at) == Some(&b'.') {
        fraction = digits(at + 1);
        if int + fraction > 0 {
            at += 1 + fraction;
        }
    }
    if int + fraction == 0 {
        return None;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits((at + 1 + sign).min(text.len()));
        if exponent > 0 {
            at += 1 + sign + exponent;
        }
    }
    Some((start, at))
}

/// A string as a double: its leading number, and whether that is all of it.
pub fn parse_f64_prefix(text: &[u8]) -> (f64, bool) {
    let Some((start, end)) = number_span(text) else { return (0.0, false) };
    let digits = std::str::from_utf8(&text[start..end]).unwrap_or("0");
    let n: f64 = digits.parse().unwrap_or(0.0);
    let clipped = n.clamp(-f64::MAX, f64::MAX);
    (clipped, only_spaces(&text[end..]) && clipped == n)
}

/// A string as CAST AS SIGNED reads it: leading digits only, so '1e3' is 1 and '1.9' is 1. The
/// number is exact within i128; the flag says whether it was the whole string.
pub fn parse_i64_prefix(text: &[u8]) -> (i128, bool) {
    let Some(start) = text.iter().position(|&c| !is_space(c)) else { return (0, false) };
    let negative = text[start] == b'-';
    let at = start + usize::from(matches!(text[start], b'+' | b'-'));
    let mut n = 0i128;
    let mut end = at;
    while let Some(c) = text.get(end).filter(|c| c.is_ascii_digit()) {
        n = (n * 10 + i128::from(c - b'0')).min(1 << 100);
        end += 1;
    }
    (if negative { -n } else { n }, end > at && only_spaces(&text[end..]))
}

/// C's `rint`: doubles become integers by rounding half to even.
pub fn round_half_even(n: f64) -> f64 {
    n.round_ties_even()
}

fn clip_i64(n: f64) -> Converted<i64> {
    let r = round_half_even(n);
    // 2^63 is a double, i64::MAX is not.
    if r >= 9_223_372_036_854_775_808.0 {
        Converted::lossy(i64::MAX, Problem::OutOfRange)
    } else if r < -9_223_372_036_854_775_808.0 {
        Converted::lossy(i64::MIN, Problem::OutOfRange)
    } else {
        Converted::exact(r as i64)
    }
}

impl Value {
    /// SQL NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// Truth in WHERE: `None` is unknown. Strings are true by their leading number.
    pub fn to_bool(&self) -> Option<bool> {
        Some(match self {
            Value::Null => return None,
            Value::Int(n) => *n != 0,
            Value::UInt(n) | Value::Bit(n) | Value::Set(n) => *n != 0,
            Value::Decimal(n) => !n.is_zero(),
            Value::Fixed(v) => !v.is_zero(),
            Value::Json(binary) => document(binary).is_true(),
            other => other.to_f64().value != 0.0,
        })
    }

    /// Converts to a double. NULL gives 0; the caller checks for it.
    pub fn to_f64(&self) -> Converted<f64> {
        Converted::exact(match self {
            Value::Null => 0.0,
            Value::Int(n) => *n as f64,
            Value::UInt(n) | Value::Bit(n) | Value::Set(n) => *n as f64,
            Value::Float(n) => f64::from(*n),
            Value::Double(n) => *n,
            Value::Decimal(n) => n.to_f64(),
            Value::Year(n) | Value::Enum(n) => f64::from(*n),
            Value::Date(_) | Value::DateTime(_) | Value::Time(_) => temporal_number(self).to_f64(),
            Value::Bytes(text) => {
                let (n, whole) = parse_f64_prefix(text);
                if !whole {
                    return Converted::lossy(n, Problem::TruncatedWrong("DOUBLE"));
                }
                n
            }
            Value::Fixed(_) => return self.text().to_f64(),
            Value::Json(binary) => return super::document::to_f64(&document(binary)),
        })
    }

    /// Converts to a signed integer: doubles round half to even, decimals half away from zero, strings by their leading
    /// digits. An unsigned value beyond i64 is out of range.
    pub fn to_i64(&self) -> Converted<i64> {
        match self {
            Value::Int(n) => Converted::exact(*n),
            Value::UInt(n) | Value::Bit(n) | Value::Set(n) => {
                i64::try_from(*n).map_or(Converted::lossy(i64::MAX, Problem::OutOfRange), Converted::exact)
            }
            Value::Float(n) => clip_i64(f64::from(*n)),
            Value::Double(n) => clip_i64(*n),
            Value::Bytes(text) => {
                let (n, whole) = parse_i64_prefix(text);
                match i64::try_from(n) {
                    Ok(n) if whole => Converted::exact(n),
                    Ok(n) => Converted::lossy(n, Problem::TruncatedWrong("INTEGER")),
                    Err(_) => {
                        let clipped = if n < 0 { i64::MIN } else { i64::MAX };
                        Converted::lossy(clipped, Problem::TruncatedWrong("INTEGER"))
                    }
                }
            }
            Value::Json(binary) => {
                let Converted { value, problem } = super::document::to_int(&document(binary));
                match i64::try_from(value) {
                    Ok(value) => Converted { value, problem },
                    Err(_) => Converted::lossy(i64::MAX, Problem::OutOfRange),
                }
            }
            other => {
                let Converted { value, problem } = other.in_seconds(DateMode::RELAXED).to_decimal();
                match value.to_i64() {
                    Ok(n) => Converted { value: n, problem },
                    Err(clipped) => Converted::lossy(clipped, Problem::OutOfRange),
                }
            }
        }
    }

    /// Converts to an unsigned integer. Negative integers wrap as in CAST AS UNSIGNED; the problem is then
    /// `OutOfRange`, for callers that refuse them.
    pub fn to_u64(&self) -> Converted<u64> {
        match self {
            Value::UInt(n) | Value::Bit(n) | Value::Set(n) => Converted::exact(*n),
            Value::Int(n) if *n >= 0 => Converted::exact(*n as u64),
            Value::Int(n) => Converted::lossy(*n as u64, Problem::OutOfRange),
            Value::Bytes(text) => {
                let (n, whole) = parse_i64_prefix(text);
                let wrong = Problem::TruncatedWrong("INTEGER");
                match (u64::try_from(n), i64::try_from(n)) {
                    (Ok(n), _) if whole => Converted::exact(n),
                    (Ok(n), _) => Converted::lossy(n, wrong),
                    (_, Ok(n)) => Converted::lossy(n as u64, wrong),
                    _ => Converted::lossy(if n < 0 { i64::MIN as u64 } else { u64::MAX }, wrong),
                }
            }
            Value::Float(_) | Value::Double(_) => {
                let n = round_half_even(self.to_f64().value);
                if n < 0.0 {
                    return Converted::lossy(clip_i64(n).value as u64, Problem::OutOfRange);
                }
                if n >= 18_446_744_073_709_551_616.0 {
                    return Converted::lossy(u64::MAX, Problem::OutOfRange);
                }
                Converted::exact(n as u64)
            }
            Value::Json(binary) => {
                let Converted { value, problem } = super::document::to_int(&document(binary));
                let below = (value < 0).then_some(Problem::OutOfRange);
                Converted { value: value as u64, problem: problem.or(below) }
            }
            other => {
                let Converted { value, problem } = other.in_seconds(DateMode::RELAXED).to_decimal();
                match value.to_u64() {
                    Ok(n) => Converted { value: n, problem },
                    Err(clipped) => Converted::lossy(clipped, Problem::OutOfRange),
                }
            }
        }
    }

    /// A time rounded to seconds, of which 60 are a minute, or cut by `mode`; other values as they are.
    pub(super) fn in_seconds(&self, mode: DateMode) -> Value {
        match self {
            Value::Time(time) => Value::Time(time.fit(0, mode)),
            Value::DateTime(at) => Value::DateTime(at.fit(0, mode).unwrap_or_else(|| at.truncate(0))),
            other => other.clone(),
        }
    }

    /// Returns the printed form.
    fn text(&self) -> Value {
        Value::Bytes(self.to_bytes(&ColumnType::of(ColumnKind::VarBinary)))
    }

    /// Converts to a decimal. NULL gives 0.
    pub fn to_decimal(&self) -> Converted<Decimal> {
        let wrong = Problem::TruncatedWrong("DECIMAL");
        Converted::exact(match self {
            Value::Null => Decimal::ZERO,
            Value::Int(n) => Decimal::from(*n),
            Value::UInt(n) | Value::Bit(n) | Value::Set(n) => Decimal::from(*n),
            Value::Decimal(n) => *n,
            Value::Year(n) | Value::Enum(n) => Decimal::from(i64::from(*n)),
            Value::Float(_) | Value::Double(_) => {
                let n = self.to_f64().value;
                return match Decimal::from_f64(n) {
                    Ok(d) => Converted::exact(d),
                    Err(e) => {
                        let max = Decimal::max_value(65, 0, e.negative);
                        Converted::lossy(max, Problem::OutOfRange)
                    }
                };
            }
            Value::Date(_) | Value::DateTime(_) | Value::Time(_) => temporal_number(self),
            Value::Bytes(text) => {
                let parsed = Decimal::parse(text);
                if parsed.empty || parsed.truncated || parsed.overflow {
                    return Converted::lossy(parsed.value, wrong);
                }
                parsed.value
            }
            Value::Fixed(_) => return self.text().to_decimal(),
            Value::Json(binary) => return super::document::to_decimal(&document(binary)),
        })
    }
}

/// A stored document; damaged bytes read as null, since the codec checked them.
pub(super) fn document(binary: &[u8]) -> Json {
    Json::decode(binary).unwrap_or(Json::Null)
}

/// YYYYMMDDhhmmss[.uuuuuu] and the like.
fn temporal_number(value: &Value) -> Decimal {
    let (whole, micros, negative) = match value {
        Value::Date(d) => (i128::from(d.to_number()), 0, false),
        Value::DateTime(dt) => (i128::from(dt.to_number()), dt.micros(), false),
        Value::Time(t) => (i128::from(t.to_number().abs()), t.micros(), t.is_negative()),
        _ => (0, 0, false),
    };
    if micros == 0 {
        return Decimal::from_i128(if negative { -whole } else { whole }, 0);
    }
    let n = whole * 1_000_000 + i128::from(micros);
    Decimal::from_i128(if negative { -n } else { n }, 6)
}
