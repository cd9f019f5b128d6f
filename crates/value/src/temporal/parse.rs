//! Dates and times from strings and numbers, in every form that MySQL reads.
//!
//! Delimiters may be any punctuation; digits without delimiters are read by their count; years of
//! two digits are 1970-2069; fractions are rounded to the wanted digits.

use super::{Date, DateMode, DateTime, TemporalError, Time};
use TemporalError::{Malformed, NotAllowed, OutOfRange};

/// A value that was read, and what MySQL would remark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed<T> {
    /// The value, rounded to the wanted fraction.
    pub value: T,
    /// Something other than spaces followed the value (a warning, or an error in strict mode).
    pub truncated: bool,
    /// A time part was given (storing into DATE notes 1265/1292 if it is not zero).
    pub has_time: bool,
    /// Digits of fraction given, 0-6.
    pub fraction_digits: u8,
    /// A date was given, also where only a time is wanted.
    pub has_date: bool,
    /// A time zone displacement '+hh:mm' was given, in seconds: the fields are in that zone.
    pub offset: Option<i32>,
}

struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }
    fn digit_next(&self) -> bool {
        self.peek().is_some_and(|c| c.is_ascii_digit())
    }
    fn left(&self) -> usize {
        self.text.len() - self.at
    }
    fn skip_spaces(&mut self) {
        while self.peek().is_some_and(is_space) {
            self.at += 1;
        }
    }
    /// Reads up to `max` digits, saturating far above every field's limit.
    fn number(&mut self, max: usize) -> (u64, usize) {
        let start = self.at;
        let mut n = 0u64;
        while self.at - start < max && self.digit_next() {
            n = n.saturating_mul(10).saturating_add(u64::from(self.text[self.at] - b'0'));
            self.at += 1;
        }
        (n, self.at - start)
    }
    /// Up to six digits of fraction as microseconds, a seventh for rounding, the rest skipped.
    fn fraction(&mut self) -> (u32, u8, bool) {
        let (n, digits) = self.number(6);
        let micros = n as u32 * 10u32.pow(6 - digits as u32);
        let round_up = digits == 6 && self.peek().is_some_and(|c| (b'5'..=b'9').contains(&c));
        self.number(usize::MAX);
        (micros, digits as u8, round_up)
    }
    /// 'e5', 'e+5': a number that is no time.
    fn exponent_next(&self) -> bool {
        let rest = &self.text[self.at..];
        let digits = match rest {
            [b'e' | b'E', b'+' | b'-', digits @ ..] | [b'e' | b'E', digits @ ..] => digits,
            _ => return false,
        };
        digits.first().is_some_and(u8::is_ascii_digit)
    }
    fn only_spaces_left(&self) -> bool {
        self.text[self.at..].iter().all(|&c| is_space(c))
    }
}

fn is_space(c: u8) -> bool {
    matches!(c, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

fn full_year(year: u64) -> u64 {
    if year < 70 { year + 2000 } else { year + 1900 }
}

/// The fields of a datetime as read, before any check.
#[derive(Default)]
struct Fields {
    part: [u64; 6],
    count: usize,
    year_digits: usize,
    micros: u32,
    fraction_digits: u8,
    round_up: bool,
    found_delimiter: bool,
    found_space: bool,
}

/// Reads year to fraction. Mirrors what MySQL accepts: see the module's remark.
fn read_fields(cur: &mut Cursor<'_>) -> Result<Fields, TemporalError> {
    let rest = &cur.text[cur.at..];
    let digits = rest.iter().take_while(|c| c.is_ascii_digit() || **c == b'T').count();
    let compact = digits == rest.len() || rest.get(digits) == Some(&b'.');
    let mut f = Fields::default();
    let long_year = matches!(digits, 4 | 8) || digits >= 14;
    while f.count < 6 && cur.digit_next() {
        let max = match (compact, f.count, long_year) {
            (false, ..) => usize::MAX,
            (true, 0, true) => 4,
            _ => 2,
        };
        let (n, len) = cur.number(max);
        if n > 999_999 {
            return Err(Malformed);
        }
        if f.count == 0 {
            f.year_digits = len;
        }
        f.part[f.count] = n;
        f.count += 1;
        if f.count == 6 {
            read_seconds_tail(cur, &mut f);
            break;
        }
        skip_delimiters(cur, &mut f)?;
    }
    Ok(f)
}

fn read_seconds_tail(cur: &mut Cursor<'_>, f: &mut Fields) {
    if cur.peek() == Some(b'.') {
        cur.at += 1;
        let (micros, digits, round_up) = cur.fraction();
        (f.micros, f.fraction_digits, f.round_up) = (micros, digits, round_up);
    }
}

fn skip_delimiters(cur: &mut Cursor<'_>, f: &mut Fields) -> Result<(), TemporalError> {
    if f.count == 3 && cur.peek() == Some(b'T') {
        cur.at += 1;
        f.found_space = true;
        return Ok(());
    }
    let start = cur.at;
    while let Some(c) = cur.peek() {
        if is_space(c) {
            if f.count != 3 {
                // A space belongs between date and time only; at the very end it is padding.
                return if cur.only_spaces_left() { Ok(()) } else { Err(Malformed) };
            }
            f.found_space = true;
        } else if !c.is_ascii_punctuation() {
            break;
        }
        cur.at += 1;
        f.found_delimiter = true;
    }
    if !cur.digit_next() && cur.at > start && !cur.only_spaces_left() {
        // What follows is not a field: leave the delimiters to be seen as garbage.
        cur.at = start;
    }
    Ok(())
}

/// '+hh:mm' directly behind the value.
fn read_offset(cur: &mut Cursor<'_>) -> Option<i32> {
    let rest = &cur.text[cur.at..];
    let end = rest.iter().rposition(|&c| !is_space(c)).map_or(0, |n| n + 1);
    if end != 6 {
        return None;
    }
    // Fourteen hours west are no zone, but a displacement.
    let west = &rest[..6] == b"-14:00";
    let offset = if west { -14 * 3600 } else { super::Zone::parse_offset(&rest[..6])? };
    cur.at += 6;
    Some(offset)
}

/// Reads a date with or without time. `fsp` is where the fraction is rounded.
pub fn parse_datetime(text: &[u8], fsp: u8, mode: DateMode) -> Result<Parsed<DateTime>, TemporalError> {
    let mut cur = Cursor { text, at: 0 };
    cur.skip_spaces();
    if !cur.digit_next() {
        return Err(Malformed);
    }
    let mut f = read_fields(&mut cur)?;
    let not_zero = f.part.iter().any(|&n| n != 0) || f.micros != 0;
    if f.year_digits == 2 && not_zero {
        f.part[0] = full_year(f.part[0]);
    }
    let [y, mo, d, h, mi, s] = f.part;
    if f.count < 3 || y > 9999 || mo > 12 || d > 31 || h > 23 || mi > 59 || s > 59 {
        return Err(Malformed);
    }
    let date = Date::from_ymd(y as u32, mo as u32, d as u32).ok_or(Malformed)?;
    let value = DateTime::new(date, h as u32, mi as u32, s as u32, f.micros).ok_or(Malformed)?;
    let value = value.check(mode)?;
    let offset = if f.count >= 5 { read_offset(&mut cur) } else { None };
    let value = if mode.truncate { value.truncate(fsp) } else { round_to(value, f.round_up, fsp)? };
    Ok(Parsed {
        value,
        truncated: !cur.only_spaces_left(),
        has_time: f.count > 3,
        has_date: true,
        fraction_digits: f.fraction_digits,
        offset,
    })
}

fn round_to(value: DateTime, round_up: bool, fsp: u8) -> Result<DateTime, TemporalError> {
    let bump = if round_up && fsp >= 6 { value.step_fraction(1) } else { Some(value) };
    bump.and_then(|v| v.round(fsp)).ok_or(OutOfRange { negative: false })
}

/// Reads a date; a time part is dropped (and reported by `has_time`).
pub fn parse_date(text: &[u8], mode: DateMode) -> Result<Parsed<Date>, TemporalError> {
    let p = parse_datetime(text, 6, mode)?;
    Ok(Parsed {
        value: p.value.date(),
        truncated: p.truncated,
        has_time: p.has_time && p.value.time() != Time::ZERO,
        has_date: true,
        fraction_digits: p.fraction_digits,
        offset: p.offset,
    })
}

/// Reads a TIME: `[-][d ]hh:mm:ss.f`, `hhmmss`, or the time part of a full datetime.
pub fn parse_time(text: &[u8], fsp: u8) -> Result<Parsed<Time>, TemporalError> {
    parse_time_in(text, fsp, DateMode::RELAXED)
}

/// The same, with a fraction that is rounded or cut by `mode`.
pub fn parse_time_in(text: &[u8], fsp: u8, mode: DateMode) -> Result<Parsed<Time>, TemporalError> {
    let mut cur = Cursor { text, at: 0 };
    cur.skip_spaces();
    let negative = cur.peek() == Some(b'-');
    if negative {
        cur.at += 1;
    }
    let only_fraction = cur.peek() == Some(b'.') && cur.text.get(cur.at + 1).is_some_and(u8::is_ascii_digit);
    if !cur.digit_next() && !only_fraction {
        return Err(Malformed);
    }
    if cur.left() >= 12
        && let Some(parsed) = time_of_datetime(&cur.text[cur.at..], fsp, mode)
    {
        return Ok(parsed);
    }
    let (hours, minutes, seconds) = read_hms(&mut cur);
    let (mut micros, mut digits, mut round_up) = (0, 0, false);
    if cur.peek() == Some(b'.') {
        cur.at += 1;
        (micros, digits, round_up) = cur.fraction();
    }
    let round_up = round_up && !mode.truncate;
    if cur.exponent_next() {
        return Err(Malformed);
    }
    if minutes > 59 || seconds > 59 {
        return Err(Malformed);
    }
    let abs = hours
        .checked_mul(3600)
        .and_then(|n| n.checked_add(minutes * 60 + seconds))
        .and_then(|n| i64::try_from(n).ok()?.checked_mul(1_000_000))
        .and_then(|n| n.checked_add(i64::from(micros) + i64::from(round_up)))
        .filter(|&us| Time::from_micros(us).is_some())
        .ok_or(OutOfRange { negative })?;
    let value = Time::from_micros_clipped(if negative { -abs } else { abs }).fit(fsp, mode);
    Ok(Parsed {
        value,
        truncated: !cur.only_spaces_left(),
        has_time: true,
        has_date: false,
        fraction_digits: digits,
        offset: None,
    })
}

/// Long enough to be a datetime: taken as one when it has both parts.
fn time_of_datetime(text: &[u8], fsp: u8, mode: DateMode) -> Option<Parsed<Time>> {
    let mut cur = Cursor { text, at: 0 };
    let f = read_fields(&mut cur).ok()?;
    if f.count < 4 || (f.found_delimiter && !f.found_space) {
        return None;
    }
    let p = parse_datetime(text, 6, DateMode { truncate: mode.truncate, ..DateMode::RELAXED }).ok()?;
    // Rounded as a time: the day's last half second becomes 24:00:00.
    Some(Parsed {
        value: p.value.time().fit(fsp, mode),
        truncated: p.truncated,
        has_time: true,
        has_date: true,
        fraction_digits: p.fraction_digits,
        offset: p.offset,
    })
}

fn read_hms(cur: &mut Cursor<'_>) -> (u64, u64, u64) {
    let (first, _) = cur.number(usize::MAX);
    let after_first = cur.at;
    cur.skip_spaces();
    let mut days = 0;
    let mut part = [0u64; 3];
    let mut at = 0;
    if cur.left() > 1 && cur.at != after_first && cur.digit_next() {
        days = first;
    } else if cur.left() > 1 && cur.peek() == Some(b':') && cur.text[cur.at + 1].is_ascii_digit() {
        part[0] = first;
        at = 1;
        cur.at += 1;
    } else {
        cur.at = after_first;
        return (first / 10_000, first / 100 % 100, first % 100);
    }
    loop {
        part[at] = cur.number(usize::MAX).0;
        at += 1;
        let more = cur.left() >= 2 && cur.peek() == Some(b':');
        if at == 3 || !more || !cur.text[cur.at + 1].is_ascii_digit() {
            break;
        }
        cur.at += 1;
    }
    let minutes = part[1].min(60);
    let seconds = part[2].min(60);
    (days.saturating_mul(24).saturating_add(part[0]), minutes, seconds)
}

/// Reads YEAR: '1901'-'2155', '0'-'99' with two-digit years, '0000'.
pub fn parse_year(text: &[u8]) -> Result<Parsed<u16>, TemporalError> {
    let mut cur = Cursor { text, at: 0 };
    cur.skip_spaces();
    let (n, digits) = cur.number(usize::MAX);
    if digits == 0 {
        return Err(Malformed);
    }
    let n = match text[cur.at..].first() {
        // '1.5' and '1e1' are numbers too, rounded.
        Some(b'.' | b'e' | b'E') => {
            let number = crate::decimal::Decimal::parse(text);
            cur.at = if number.truncated { cur.at } else { text.len() };
            number.value.to_i64().unwrap_or(i64::MAX)
        }
        _ => i64::try_from(n).unwrap_or(i64::MAX),
    };
    // As a string '0' and '00' are 2000, only '0000' is 0; as a number 0 is 0.
    let value = if n == 0 && text.len() != 4 { 2000 } else { year_from_number(n)? };
    let truncated = !cur.only_spaces_left();
    Ok(Parsed { value, truncated, has_time: false, has_date: false, fraction_digits: 0, offset: None })
}

/// YEAR from a number.
pub fn year_from_number(n: i64) -> Result<u16, TemporalError> {
    match n {
        0 => Ok(0),
        1..=99 => Ok(full_year(n as u64) as u16),
        1901..=2155 => Ok(n as u16),
        _ => Err(OutOfRange { negative: n < 0 }),
    }
}

/// YYMMDD, YYYYMMDD, YYMMDDhhmmss or YYYYMMDDhhmmss; the flag says a time part was given.
pub fn datetime_from_number(n: i64, mode: DateMode) -> Result<(DateTime, bool), TemporalError> {
    let (full, has_time) = match n {
        0 => return DateTime::ZERO.check(mode).map(|v| (v, false)),
        101..=691_231 => ((n + 20_000_000) * 1_000_000, false),
        700_101..=991_231 => ((n + 19_000_000) * 1_000_000, false),
        991_232..=99_991_231 => (n * 1_000_000, false),
        101_000_000..=691_231_235_959 => (n + 20_000_000_000_000, true),
        700_101_000_000..=991_231_235_959 => (n + 19_000_000_000_000, true),
        10_000_101_000_000..=99_999_999_999_999 => (n, true),
        _ => return Err(Malformed),
    };
    let (ymd, hms) = ((full / 1_000_000) as u32, (full % 1_000_000) as u32);
    let date = Date::from_ymd(ymd / 10_000, ymd / 100 % 100, ymd % 100).ok_or(Malformed)?;
    let value = DateTime::new(date, hms / 10_000, hms / 100 % 100, hms % 100, 0).ok_or(Malformed)?;
    value.check(mode).map(|v| (v, has_time)).map_err(|_| NotAllowed)
}

/// hhmmss, or the time part of a number that is a whole datetime.
pub fn time_from_number(n: i64, micros: u32) -> Result<Time, TemporalError> {
    let negative = n < 0;
    let abs = n.unsigned_abs();
    if abs > 8_385_959 {
        if abs >= 10_000_000_000
            && let Ok((dt, _)) = datetime_from_number(n, DateMode::RELAXED)
        {
            let micros = i64::from(micros.min(999_999));
            return Ok(Time::from_micros(dt.time().to_micros() + micros).unwrap_or(dt.time()));
        }
        return Err(OutOfRange { negative });
    }
    let abs = abs as u32;
    Time::new(negative, abs / 10_000, abs / 100 % 100, abs % 100, micros.min(999_999)).ok_or(Malformed)
}
