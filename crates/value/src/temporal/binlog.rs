//! The binlog's (and InnoDB's) bytes of DATE, DATETIME(n), TIMESTAMP(n), TIME(n) and YEAR.
//!
//! Fractions take (n+1)/2 bytes. All but DATE and YEAR are big-endian, so DATETIME2 and TIME2
//! bytes also sort. Decoders accept any bytes and refuse fields out of range.

use super::{Date, DateTime, Time};

/// Bytes that are no temporal value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemporalDecodeError {
    /// Fewer bytes than the type takes.
    #[error("temporal value cut short")]
    Short,
    /// A field beyond its range.
    #[error("temporal value with a field out of range")]
    Range,
}
use TemporalDecodeError::{Range, Short};

const DATETIME_OFFSET: u64 = 0x80_0000_0000;
const TIME_OFFSET: i64 = 0x80_0000;
const TIME_OFFSET_6: i64 = 0x8000_0000_0000;

/// Bytes a fraction of `fsp` digits takes.
pub const fn fraction_bytes(fsp: u8) -> usize {
    (fsp as usize).div_ceil(2)
}

fn push_be(out: &mut Vec<u8>, value: u64, bytes: usize) {
    out.extend_from_slice(&value.to_be_bytes()[8 - bytes..]);
}

fn read_be(bytes: &[u8], at: usize, len: usize) -> Result<u64, TemporalDecodeError> {
    let slice = bytes.get(at..at + len).ok_or(Short)?;
    Ok(slice.iter().fold(0, |n, &b| n << 8 | u64::from(b)))
}

/// Microseconds per stored unit of the fraction.
fn fraction_unit(fsp: u8) -> u32 {
    match fsp {
        0 => 1_000_000,
        1 | 2 => 10_000,
        3 | 4 => 100,
        _ => 1,
    }
}

fn push_fraction(out: &mut Vec<u8>, micros: u32, fsp: u8) {
    push_be(out, u64::from(micros / fraction_unit(fsp)), fraction_bytes(fsp.min(6)));
}

fn read_fraction(bytes: &[u8], at: usize, fsp: u8) -> Result<u32, TemporalDecodeError> {
    let raw = read_be(bytes, at, fraction_bytes(fsp.min(6)))? as u32;
    raw.checked_mul(fraction_unit(fsp)).filter(|&us| us <= 999_999).ok_or(Range)
}

impl Date {
    /// Three bytes, little-endian.
    pub fn to_binlog(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.packed().to_le_bytes()[..3]);
    }
}

impl DateTime {
    /// DATETIME2: five bytes and the fraction. The value should be rounded to `fsp` before.
    pub fn to_binlog(self, fsp: u8, out: &mut Vec<u8>) {
        push_be(out, (self.packed() >> 24) as u64 + DATETIME_OFFSET, 5);
        push_fraction(out, self.micros(), fsp);
    }
    /// TIMESTAMP2 of UTC fields: four bytes of unix seconds and the fraction. Values outside
    /// TIMESTAMP's range, which no column holds, become the zero timestamp.
    pub fn to_binlog_timestamp(self, fsp: u8, out: &mut Vec<u8>) {
        let unix = self.to_unix().and_then(|s| u32::try_from(s).ok()).unwrap_or(0);
        push_be(out, u64::from(unix), 4);
        push_fraction(out, self.micros(), fsp);
    }
}

impl Time {
    /// TIME2: three bytes and the fraction, below zero as two's complement of the whole.
    pub fn to_binlog(self, fsp: u8, out: &mut Vec<u8>) {
        let packed = self.packed();
        if fsp > 4 {
            return push_be(out, (packed + TIME_OFFSET_6) as u64, 6);
        }
        let whole = packed >> 24;
        let fraction = packed % (1 << 24);
        push_be(out, (whole + TIME_OFFSET) as u64, 3);
        let unit = i64::from(fraction_unit(fsp));
        let bytes = fraction_bytes(fsp);
        // A borrow: when the fraction is cut to zero, the whole part must not keep it.
        if fraction != 0 && fraction / unit == 0 && packed < 0 {
            let len = out.len();
            out.truncate(len - 3);
            push_be(out, (whole + 1 + TIME_OFFSET) as u64, 3);
        }
        push_be(out, (fraction / unit) as u64, bytes);
    }
}

/// DATE from three bytes.
pub fn date_from_binlog(bytes: &[u8]) -> Result<Date, TemporalDecodeError> {
    let b = bytes.get(..3).ok_or(Short)?;
    Date::from_packed(u32::from_le_bytes([b[0], b[1], b[2], 0])).ok_or(Range)
}

/// DATETIME2: the value and how many bytes it took.
pub fn datetime_from_binlog(fsp: u8, bytes: &[u8]) -> Result<(DateTime, usize), TemporalDecodeError> {
    let whole = read_be(bytes, 0, 5)?.checked_sub(DATETIME_OFFSET).ok_or(Range)?;
    let micros = read_fraction(bytes, 5, fsp)?;
    let packed = (whole << 24) as i64 | i64::from(micros);
    Ok((DateTime::from_packed(packed).ok_or(Range)?, 5 + fraction_bytes(fsp.min(6))))
}

/// TIMESTAMP2 to UTC fields: the value and how many bytes it took.
pub fn timestamp_from_binlog(fsp: u8, bytes: &[u8]) -> Result<(DateTime, usize), TemporalDecodeError> {
    let unix = read_be(bytes, 0, 4)?;
    let micros = read_fraction(bytes, 4, fsp)?;
    let used = 4 + fraction_bytes(fsp.min(6));
    if unix == 0 && micros == 0 {
        return Ok((DateTime::ZERO, used));
    }
    Ok((DateTime::from_unix(unix as i64, micros).ok_or(Range)?, used))
}

/// TIME2: the value and how many bytes it took.
pub fn time_from_binlog(fsp: u8, bytes: &[u8]) -> Result<(Time, usize), TemporalDecodeError> {
    if fsp > 4 {
        let packed = read_be(bytes, 0, 6)? as i64 - TIME_OFFSET_6;
        return Ok((Time::from_packed(packed).ok_or(Range)?, 6));
    }
    let mut whole = read_be(bytes, 0, 3)? as i64 - TIME_OFFSET;
    let len = fraction_bytes(fsp);
    let mut fraction = read_be(bytes, 3, len)? as i64;
    if whole < 0 && fraction != 0 {
        whole += 1;
        fraction -= 1 << (8 * len);
    }
    let packed = (whole << 24) + fraction * i64::from(fraction_unit(fsp));
    Ok((Time::from_packed(packed).ok_or(Range)?, 3 + len))
}

/// YEAR's byte: 0, or the year less 1900.
pub fn year_to_binlog(year: u16) -> u8 {
    year.saturating_sub(1900).min(255) as u8
}

/// The year of YEAR's byte.
pub fn year_from_binlog(byte: u8) -> u16 {
    if byte == 0 { 0 } else { 1900 + u16::from(byte) }
}

/// DATETIME before MySQL 5.6: eight bytes little-endian, YYYYMMDDhhmmss.
pub fn old_datetime_from_binlog(bytes: &[u8]) -> Result<DateTime, TemporalDecodeError> {
    let raw: [u8; 8] = bytes.get(..8).ok_or(Short)?.try_into().map_err(|_| Short)?;
    let n = u64::from_le_bytes(raw);
    let (ymd, hms) = (n / 1_000_000, (n % 1_000_000) as u32);
    let ymd = u32::try_from(ymd).map_err(|_| Range)?;
    let date = Date::from_ymd(ymd / 10_000, ymd / 100 % 100, ymd % 100).ok_or(Range)?;
    DateTime::new(date, hms / 10_000, hms / 100 % 100, hms % 100, 0).ok_or(Range)
}

/// TIME before MySQL 5.6: three bytes little-endian, signed hhmmss.
pub fn old_time_from_binlog(bytes: &[u8]) -> Result<Time, TemporalDecodeError> {
    let b = bytes.get(..3).ok_or(Short)?;
    let n = i32::from_le_bytes([0, b[0], b[1], b[2]]) >> 8;
    let abs = n.unsigned_abs();
    Time::new(n < 0, abs / 10_000, abs / 100 % 100, abs % 100, 0).ok_or(Range)
}
