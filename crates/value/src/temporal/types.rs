//! `Date`, `DateTime` and `Time`: the packed values, their fields, text and calendar arithmetic.

use super::calendar::{self, EPOCH_DAY};
use super::{DateMode, TemporalError};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// A DATE: `year << 9 | month << 5 | day`, the three bytes that the binlog stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(pub(super) u32);

/// A DATETIME: MySQL's 64-bit packed form,
/// `((year*13 + month) << 5 | day) << 41 | (hour << 12 | minute << 6 | second) << 24 | micros`.
///
/// One that a zone's clocks showed twice may know that it is the second time, in a bit that the fraction does not need.
/// It equals the first one.
#[derive(Clone, Copy, Debug, Default)]
pub struct DateTime(pub(super) i64);

/// The bit of a [`DateTime`] that says so.
const SECOND_TIME: i64 = 1 << 23;

/// A TIME: `(hour << 12 | minute << 6 | second) << 24 | micros`, negated when below zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub(super) i64);

/// Microseconds of a day.
const DAY_US: i64 = 86_400_000_000;
/// 838:59:59, in seconds.
const TIME_MAX_S: i64 = 838 * 3600 + 59 * 60 + 59;

pub(super) fn push_digits(out: &mut Vec<u8>, value: u32, width: usize) {
    let mut buf = [b'0'; 10];
    let mut at = 10;
    let mut rest = value;
    while rest > 0 {
        at -= 1;
        buf[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let start = at.min(10 - width.min(10));
    out.extend_from_slice(&buf[start..]);
}

fn push_fraction(out: &mut Vec<u8>, micros: u32, fsp: u8) {
    if fsp == 0 {
        return;
    }
    let fsp = fsp.min(6);
    out.push(b'.');
    push_digits(out, micros / 10u32.pow(6 - u32::from(fsp)), usize::from(fsp));
}

impl Date {
    /// '0000-00-00'.
    pub const ZERO: Date = Date(0);

    /// From fields within the packed form's width; no calendar check.
    pub fn from_ymd(year: u32, month: u32, day: u32) -> Option<Date> {
        (year <= 9999 && month <= 12 && day <= 31).then_some(Date(year << 9 | month << 5 | day))
    }

    /// Checks the calendar and `mode`.
    pub fn check(self, mode: DateMode) -> Result<Date, TemporalError> {
        let (y, m, d) = self.ymd();
        if self.0 == 0 {
            return if mode.no_zero_date { Err(TemporalError::NotAllowed) } else { Ok(self) };
        }
        let zero_part = m == 0 || d == 0;
        let past_end = m > 0 && d > calendar::days_in_month(y, m);
        if (zero_part && mode.no_zero_in_date) || (past_end && !mode.allow_invalid) {
            return Err(TemporalError::NotAllowed);
        }
        Ok(self)
    }

    /// Year, month, day.
    pub fn ymd(self) -> (u32, u32, u32) {
        (self.year(), self.month(), self.day())
    }
    /// 0-9999.
    pub fn year(self) -> u32 {
        self.0 >> 9
    }
    /// 0-12.
    pub fn month(self) -> u32 {
        self.0 >> 5 & 15
    }
    /// 0-31.
    pub fn day(self) -> u32 {
        self.0 & 31
    }
    /// '0000-00-00'.
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// No zero month or day, so that calendar arithmetic has a meaning.
    pub fn is_full(self) -> bool {
        self.month() != 0 && self.day() != 0
    }
    /// The packed integer; integer order is date order.
    pub fn packed(self) -> u32 {
        self.0
    }
    /// From [`Date::packed`]; `None` if a field is out of range.
    pub fn from_packed(packed: u32) -> Option<Date> {
        Date::from_ymd(packed >> 9, packed >> 5 & 15, packed & 31)
    }
    /// TO_DAYS; `None` for dates with a zero part.
    pub fn to_days(self) -> Option<i64> {
        self.is_full().then(|| calendar::day_number(self.year(), self.month(), self.day()))
    }
    /// FROM_DAYS; `None` out of range.
    pub fn from_days(days: i64) -> Option<Date> {
        let (y, m, d) = calendar::from_day_number(days)?;
        Date::from_ymd(y, m, d)
    }
    /// 0 = Monday ... 6 = Sunday (WEEKDAY).
    pub fn weekday(self) -> Option<u32> {
        self.to_days().map(|days| ((days + 5) % 7) as u32)
    }
    /// 1-366 (DAYOFYEAR).
    pub fn day_of_year(self) -> Option<u32> {
        self.is_full().then(|| calendar::day_of_year(self.year(), self.month(), self.day()))
    }
    /// LAST_DAY; a zero day is allowed, a zero month is not.
    pub fn last_day(self) -> Option<Date> {
        let (y, m, _) = self.ymd();
        if m == 0 { None } else { Date::from_ymd(y, m, calendar::days_in_month(y, m)) }
    }
    /// Days from `other` to `self` (DATEDIFF).
    pub fn diff_days(self, other: Date) -> Option<i64> {
        Some(self.to_days()? - other.to_days()?)
    }
    /// YYYYMMDD.
    pub fn to_number(self) -> u32 {
        self.year() * 10_000 + self.month() * 100 + self.day()
    }
    /// Appends 'YYYY-MM-DD'.
    pub fn write_text(self, out: &mut Vec<u8>) {
        push_digits(out, self.year(), 4);
        out.push(b'-');
        push_digits(out, self.month(), 2);
        out.push(b'-');
        push_digits(out, self.day(), 2);
    }
}

impl PartialEq for DateTime {
    fn eq(&self, other: &DateTime) -> bool {
        self.packed() == other.packed()
    }
}

impl Eq for DateTime {}

impl PartialOrd for DateTime {
    fn partial_cmp(&self, other: &DateTime) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for DateTime {
    fn cmp(&self, other: &DateTime) -> Ordering {
        self.packed().cmp(&other.packed())
    }
}

impl Hash for DateTime {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.packed().hash(state);
    }
}

impl DateTime {
    /// '0000-00-00 00:00:00'.
    pub const ZERO: DateTime = DateTime(0);

    /// From fields; `None` if one is beyond its range. No calendar check.
    pub fn new(date: Date, hour: u32, minute: u32, second: u32, micros: u32) -> Option<DateTime> {
        if hour > 23 || minute > 59 || second > 59 || micros > 999_999 {
            return None;
        }
        Some(DateTime::join(date, hour << 12 | minute << 6 | second, micros))
    }

    fn join(date: Date, hms: u32, micros: u32) -> DateTime {
        let ym = i64::from(date.year() * 13 + date.month());
        DateTime((ym << 5 | i64::from(date.day())) << 41 | i64::from(hms) << 24 | i64::from(micros))
    }

    /// A date and a time of day, which must be 0 to 23:59:59.999999.
    pub fn from_parts(date: Date, time: Time) -> Option<DateTime> {
        if time.0 < 0 || time.hour() > 23 {
            return None;
        }
        DateTime::new(date, time.hour(), time.minute(), time.second(), time.micros())
    }

    /// The date part.
    pub fn date(self) -> Date {
        let ymd = self.0 >> 41;
        let ym = (ymd >> 5) as u32;
        Date((ym / 13) << 9 | (ym % 13) << 5 | (ymd & 31) as u32)
    }
    /// The time of day.
    pub fn time(self) -> Time {
        Time(self.packed() & ((1 << 41) - 1))
    }
    /// 0-23.
    pub fn hour(self) -> u32 {
        (self.0 >> 36 & 31) as u32
    }
    /// 0-59.
    pub fn minute(self) -> u32 {
        (self.0 >> 30 & 63) as u32
    }
    /// 0-59.
    pub fn second(self) -> u32 {
        (self.0 >> 24 & 63) as u32
    }
    /// 0-999999.
    pub fn micros(self) -> u32 {
        (self.packed() & 0xff_ffff) as u32
    }
    /// '0000-00-00 00:00:00', whatever the fraction.
    pub fn is_zero(self) -> bool {
        self.0 >> 24 == 0
    }
    /// The packed integer; integer order is time order.
    pub fn packed(self) -> i64 {
        self.0 & !SECOND_TIME
    }
    /// The same fields, which clocks show for the second time.
    pub(super) fn shown_again(self) -> DateTime {
        DateTime(self.0 | SECOND_TIME)
    }
    /// Returns whether clocks have shown these fields before.
    pub(super) fn is_second_time(self) -> bool {
        self.0 & SECOND_TIME != 0
    }
    /// The fields alone.
    pub fn fields(self) -> DateTime {
        DateTime(self.packed())
    }
    /// From [`DateTime::packed`]; `None` if a field is out of range.
    pub fn from_packed(packed: i64) -> Option<DateTime> {
        if packed < 0 || packed >> 46 >= 13 * 10_000 {
            return None;
        }
        let raw = DateTime(packed);
        DateTime::new(raw.date(), raw.hour(), raw.minute(), raw.second(), raw.micros())
    }
    /// Checks the date part against the calendar and `mode`.
    pub fn check(self, mode: DateMode) -> Result<DateTime, TemporalError> {
        if self.date().is_zero() && !self.is_zero() {
            // '0000-00-00 10:00:00' is a date with zero parts, not the zero date.
            return if mode.no_zero_in_date || mode.no_zero_date {
                Err(TemporalError::NotAllowed)
            } else {
                Ok(self)
            };
        }
        self.date().check(mode).map(|_| self)
    }
    /// Rounds half up to `fsp` fractional digits; `None` past the year 9999.
    pub fn round(self, fsp: u8) -> Option<DateTime> {
        let unit = 10u32.pow(6 - u32::from(fsp.min(6)));
        let over = self.micros() % unit;
        let base = DateTime(self.0 - i64::from(over));
        if over * 2 < unit || over == 0 {
            return Some(base);
        }
        base.step_fraction(unit)
    }
    /// Returns the value with `fsp` fractional digits, rounded or cut by `mode`.
    pub fn fit(self, fsp: u8, mode: DateMode) -> Option<DateTime> {
        if mode.truncate { Some(self.truncate(fsp)) } else { self.round(fsp) }
    }
    /// Adds `unit` microseconds without needing a full date unless the day changes.
    pub(super) fn step_fraction(self, unit: u32) -> Option<DateTime> {
        let micros = self.micros() + unit;
        if micros < 1_000_000 {
            return Some(DateTime(self.0 + i64::from(unit)));
        }
        let whole = DateTime(self.0 - i64::from(self.micros()));
        let seconds = whole.time().to_seconds() + 1;
        let (date, seconds) = if seconds == 86_400 {
            (Date::from_days(self.date().to_days()? + 1)?, 0)
        } else {
            (self.date(), seconds)
        };
        let time = Time::from_seconds(seconds, micros - 1_000_000);
        DateTime::from_parts(date, time)
    }
    /// Drops the fraction beyond `fsp` digits.
    pub fn truncate(self, fsp: u8) -> DateTime {
        let unit = 10u32.pow(6 - u32::from(fsp.min(6)));
        DateTime(self.0 - i64::from(self.micros() % unit))
    }
    /// YYYYMMDDhhmmss.
    pub fn to_number(self) -> u64 {
        let hms = self.hour() * 10_000 + self.minute() * 100 + self.second();
        u64::from(self.date().to_number()) * 1_000_000 + u64::from(hms)
    }
    /// Seconds since 1970-01-01, the fields taken as UTC; `None` for dates with a zero part.
    pub fn to_unix(self) -> Option<i64> {
        Some((self.date().to_days()? - EPOCH_DAY) * 86_400 + self.time().to_seconds())
    }
    /// UTC fields of seconds since 1970-01-01.
    pub fn from_unix(seconds: i64, micros: u32) -> Option<DateTime> {
        let date = Date::from_days(seconds.div_euclid(86_400).checked_add(EPOCH_DAY)?)?;
        if micros > 999_999 {
            return None;
        }
        DateTime::from_parts(date, Time::from_seconds(seconds.rem_euclid(86_400), micros))
    }
    /// Microseconds since 0000-01-01; `None` for dates with a zero part.
    pub fn to_micros(self) -> Option<i64> {
        Some(self.date().to_days()? * DAY_US + self.time().to_micros())
    }
    /// The inverse of [`DateTime::to_micros`].
    pub fn from_micros(micros: i64) -> Option<DateTime> {
        let date = Date::from_days(micros.div_euclid(DAY_US))?;
        DateTime::from_parts(date, Time::from_micros(micros.rem_euclid(DAY_US))?)
    }
    /// Adds a TIME (ADDTIME).
    pub fn add_time(self, time: Time) -> Option<DateTime> {
        DateTime::from_micros(self.to_micros()?.checked_add(time.to_micros())?)
    }
    /// `self - other`, not clipped to TIME's range (TIMEDIFF clips).
    pub fn diff_micros(self, other: DateTime) -> Option<i64> {
        Some(self.to_micros()? - other.to_micros()?)
    }
    /// Appends 'YYYY-MM-DD hh:mm:ss' and `fsp` fractional digits.
    pub fn write_text(self, fsp: u8, out: &mut Vec<u8>) {
        self.date().write_text(out);
        out.push(b' ');
        self.time().write_text(fsp, out);
    }
}

impl From<Date> for DateTime {
    fn from(date: Date) -> DateTime {
        DateTime::join(date, 0, 0)
    }
}

impl Time {
    /// '00:00:00'.
    pub const ZERO: Time = Time(0);
    /// '838:59:59', the largest without a fraction, to which MySQL clips.
    pub const MAX: Time = Time((838 << 12 | 59 << 6 | 59) << 24);
    /// '-838:59:59'.
    pub const MIN: Time = Time(-Time::MAX.0);

    /// From fields; `None` beyond 838:59:59 (a fraction on top of that is out of range too).
    pub fn new(negative: bool, hour: u32, minute: u32, second: u32, micros: u32) -> Option<Time> {
        if hour > 838 || minute > 59 || second > 59 || micros > 999_999 {
            return None;
        }
        let raw = i64::from(hour << 12 | minute << 6 | second) << 24 | i64::from(micros);
        (raw <= Time::MAX.0).then_some(Time(if negative { -raw } else { raw }))
    }
    /// Hours of the absolute value, 0-838.
    pub fn hour(self) -> u32 {
        (self.0.unsigned_abs() >> 36) as u32
    }
    /// 0-59.
    pub fn minute(self) -> u32 {
        (self.0.unsigned_abs() >> 30 & 63) as u32
    }
    /// 0-59.
    pub fn second(self) -> u32 {
        (self.0.unsigned_abs() >> 24 & 63) as u32
    }
    /// 0-999999.
    pub fn micros(self) -> u32 {
        (self.0.unsigned_abs() & 0xff_ffff) as u32
    }
    /// Below zero.
    pub fn is_negative(self) -> bool {
        self.0 < 0
    }
    /// The packed integer; integer order is time order.
    pub fn packed(self) -> i64 {
        self.0
    }
    /// From [`Time::packed`]; `None` if a field is out of range.
    pub fn from_packed(packed: i64) -> Option<Time> {
        if packed.unsigned_abs() > Time::MAX.0 as u64 {
            return None;
        }
        let raw = Time(packed);
        Time::new(packed < 0, raw.hour(), raw.minute(), raw.second(), raw.micros())
    }
    /// Whole seconds, toward zero, with the sign (TIME_TO_SEC).
    pub fn to_seconds(self) -> i64 {
        let abs = i64::from(self.hour() * 3600 + self.minute() * 60 + self.second());
        if self.0 < 0 { -abs } else { abs }
    }
    /// Seconds within TIME's range, clipped; the fraction takes the sign of the seconds.
    pub fn from_seconds(seconds: i64, micros: u32) -> Time {
        let s = seconds.unsigned_abs();
        if s >= TIME_MAX_S as u64 {
            return if seconds < 0 { Time::MIN } else { Time::MAX };
        }
        let s = s as u32;
        let micros = micros.min(999_999);
        Time::new(seconds < 0, s / 3600, s / 60 % 60, s % 60, micros).unwrap_or(Time::MAX)
    }
    /// Signed microseconds.
    pub fn to_micros(self) -> i64 {
        let abs = self.to_seconds().abs() * 1_000_000 + i64::from(self.micros());
        if self.0 < 0 { -abs } else { abs }
    }
    /// From signed microseconds; `None` out of TIME's range.
    pub fn from_micros(micros: i64) -> Option<Time> {
        let abs = micros.unsigned_abs();
        if abs > TIME_MAX_S as u64 * 1_000_000 {
            return None;
        }
        let s = (abs / 1_000_000) as u32;
        Time::new(micros < 0, s / 3600, s / 60 % 60, s % 60, (abs % 1_000_000) as u32)
    }
    /// From signed microseconds, clipped to TIME's range.
    pub fn from_micros_clipped(micros: i64) -> Time {
        Time::from_micros(micros).unwrap_or(if micros < 0 { Time::MIN } else { Time::MAX })
    }
    /// Rounds half away from zero to `fsp` digits, clipped to the range.
    pub fn round(self, fsp: u8) -> Time {
        let unit = 10i64.pow(6 - u32::from(fsp.min(6)));
        let abs = self.to_micros().abs();
        let rounded = (abs + unit / 2) / unit * unit;
        Time::from_micros_clipped(if self.0 < 0 { -rounded } else { rounded })
    }
    /// Returns the value with `fsp` fractional digits, rounded or cut by `mode`.
    pub fn fit(self, fsp: u8, mode: DateMode) -> Time {
        if mode.truncate { self.truncate(fsp) } else { self.round(fsp) }
    }
    /// Drops the fraction beyond `fsp` digits.
    pub fn truncate(self, fsp: u8) -> Time {
        let unit = 10i64.pow(6 - u32::from(fsp.min(6)));
        Time::from_micros_clipped(self.to_micros() / unit * unit)
    }
    /// [-]hhmmss.
    pub fn to_number(self) -> i64 {
        let abs = i64::from(self.hour() * 10_000 + self.minute() * 100 + self.second());
        if self.0 < 0 { -abs } else { abs }
    }
    /// Appends '[-]hh:mm:ss' (hours may take three digits) and `fsp` fractional digits.
    pub fn write_text(self, fsp: u8, out: &mut Vec<u8>) {
        if self.0 < 0 {
            out.push(b'-');
        }
        push_digits(out, self.hour(), 2);
        out.push(b':');
        push_digits(out, self.minute(), 2);
        out.push(b':');
        push_digits(out, self.second(), 2);
        push_fraction(out, self.micros(), fsp);
    }
}
