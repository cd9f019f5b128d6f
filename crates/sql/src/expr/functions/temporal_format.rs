//! Dates and times as text and back: DATE_FORMAT, TIME_FORMAT, STR_TO_DATE, FROM_UNIXTIME,
//! GET_FORMAT.

use super::temporal_parts::week_and_year;
use super::{Def, str_arg, text, text_lengths, ty, value_arg};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::context::unix_us;
use crate::expr::types::{BINARY, Family};
use crate::expr::{BindContext, Context, Expr, ExprType, cast, charset, interval};
use bytes::Bytes;
use omnibus_value::Value;
use omnibus_value::decimal::Decimal;
use omnibus_value::locale::{self, Locale};
use omnibus_value::temporal::{Date, DateMode, DateTime, Time};
use std::fmt::Write;

pub(super) const DEFS: &[Def] = &[
    Def::session("DATE_FORMAT", 2, 2, text_lengths::formatted, date_format),
    Def::session("TIME_FORMAT", 2, 2, text_lengths::formatted, time_format),
    Def::new("STR_TO_DATE", 2, 2, str_to_date_type, str_to_date),
    Def::session("FROM_UNIXTIME", 1, 2, from_unixtime_type, from_unixtime),
    Def::new("GET_FORMAT", 2, 2, ty::ascii::<17>, get_format),
];

fn ordinal(day: u32) -> &'static str {
    match (day % 10, day) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    }
}

/// Writes one conversion; `None` if the date has no such part (a zero month has no name).
fn conversion(code: u8, date: Date, time: Time, locale: &Locale, out: &mut String) -> Option<()> {
    let (year, month, day) = date.ymd();
    let (hour, minute, second) = (time.hour(), time.minute(), time.second());
    let twelve = if hour % 12 == 0 { 12 } else { hour % 12 };
    let half = if hour % 24 < 12 { "AM" } else { "PM" };
    let week = |mode: u32| week_and_year(date, mode);
    let written = match code {
        b'Y' => write!(out, "{year:04}"),
        b'y' => write!(out, "{:02}", year % 100),
        b'm' => write!(out, "{month:02}"),
        b'c' => write!(out, "{month}"),
        b'M' => write!(out, "{}", locale.month(month)?),
        b'b' => write!(out, "{}", locale.short_month(month)?),
        b'd' => write!(out, "{day:02}"),
        b'e' => write!(out, "{day}"),
        b'D' => write!(out, "{day}{}", ordinal(day)),
        b'j' => write!(out, "{:03}", date.day_of_year()?),
        b'W' => write!(out, "{}", locale.day(date.weekday()?)?),
        b'a' => write!(out, "{}", locale.short_day(date.weekday()?)?),
        b'w' => write!(out, "{}", (date.weekday()? + 1) % 7),
        b'H' => write!(out, "{hour:02}"),
        b'k' => write!(out, "{hour}"),
        b'h' | b'I' => write!(out, "{twelve:02}"),
        b'l' => write!(out, "{twelve}"),
        b'i' => write!(out, "{minute:02}"),
        b's' | b'S' => write!(out, "{second:02}"),
        b'f' => write!(out, "{:06}", time.micros()),
        b'p' => write!(out, "{half}"),
        b'r' => write!(out, "{twelve:02}:{minute:02}:{second:02} {half}"),
        b'T' => write!(out, "{hour:02}:{minute:02}:{second:02}"),
        b'U' => write!(out, "{:02}", week(0)?.0),
        b'u' => write!(out, "{:02}", week(1)?.0),
        b'V' => write!(out, "{:02}", week(2)?.0),
        b'v' => write!(out, "{:02}", week(3)?.0),
        b'X' => write!(out, "{:04}", week(2)?.1),
        b'x' => write!(out, "{:04}", week(3)?.1),
        other => write!(out, "{}", char::from(other)),
    };
    written.ok()
}

/// `collation` is the pattern's and the result's.
fn format(
    (date, time): (Date, Time),
    pattern: &[u8],
    locale: &Locale,
    collation: u16,
    cx: &mut Context<'_>,
) -> ExecResult<Option<Vec<u8>>> {
    let mut out = Vec::new();
    cx.room(&mut out, pattern.len() * 2)?;
    let mut piece = String::new();
    let mut bytes = pattern.iter();
    while let Some(&byte) = bytes.next() {
        cx.room(&mut out, 1)?;
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let Some(&code) = bytes.next() else {
            out.push(b'%');
            break;
        };
        if !code.is_ascii() {
            out.push(code);
            continue;
        }
        cx.tick()?;
        piece.clear();
        if conversion(code, date, time, locale, &mut piece).is_none() {
            return Ok(None);
        }
        cx.room(&mut out, piece.len())?;
        if piece.is_ascii() {
            out.extend_from_slice(piece.as_bytes());
        } else {
            out.extend_from_slice(&charset::from_utf8(&piece, collation));
        }
    }
    Ok(Some(out))
}

/// A format in the character set of what it makes; nothing if it is NULL, or bytes that are no text.
fn pattern_of(args: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Option<Bytes>> {
    let Some(pattern) = super::text_arg(&args[1], cx)? else { return Ok(None) };
    let (from, to) = (args[1].ty.column.collation, ty.column.collation);
    Ok(match args[1].ty.family() {
        Family::String if from == BINARY && to != BINARY => cast::taken_for_text(pattern, to, cx),
        Family::String => Some(charset::convert(&pattern, from, to)),
        _ => Some(pattern),
    })
}

fn date_format(args: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = args[0].eval(cx)?;
    let Some(at) = args[0].to_datetime(&value, cx) else { return Ok(Value::Null) };
    if at == DateTime::ZERO && interval::refuses_zero(&value, cx) {
        let shown = String::from_utf8_lossy(&args[0].to_str(&value)).into_owned();
        cx.warn(SqlError::new(1292, b"22007", format!("Incorrect datetime value: '{shown}'")));
        return Ok(Value::Null);
    }
    let Some(pattern) = pattern_of(args, ty, cx)?.filter(|pattern| !pattern.is_empty()) else {
        return Ok(Value::Null);
    };
    let locale = cx.session.settings.lc_time_names;
    let formatted = format((at.date(), at.time()), &pattern, locale, ty.column.collation, cx)?;
    Ok(formatted.map_or(Value::Null, text))
}

fn time_format(args: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = match args[0].eval(cx)? {
        // As a number, it is one of a time.
        Value::Year(year) => Value::UInt(u64::from(year)),
        value => value,
    };
    let Some(time) = args[0].to_time(&value, cx) else { return Ok(Value::Null) };
    let Some(pattern) = pattern_of(args, ty, cx)? else { return Ok(Value::Null) };
    let formatted = format((Date::ZERO, time), &pattern, &locale::ENGLISH, ty.column.collation, cx)?;
    let signed = |shown: Vec<u8>| if time.is_negative() { [b"-", &shown[..]].concat() } else { shown };
    Ok(formatted.map_or(Value::Null, |shown| text(signed(shown))))
}

/// Whether a format has date parts, time parts, microseconds.
fn parts_of(pattern: &[u8]) -> (bool, bool, bool) {
    let (mut date, mut time, mut micros) = (false, false, false);
    for pair in pattern.windows(2).filter(|pair| pair[0] == b'%') {
        match pair[1] {
            b'f' => micros = true,
            b'H' | b'h' | b'I' | b'i' | b'k' | b'l' | b'p' | b'r' | b'S' | b's' | b'T' => time = true,
            // Days beside a time are hours of it.
            b'%' | b'.' | b'@' | b'#' | b'd' | b'D' | b'e' => {}
            _ => date = true,
        }
    }
    (date, time || micros, micros)
}

fn str_to_date_type(args: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
    let parts = match args[1].as_const() {
        Some(Value::Bytes(pattern)) => parts_of(pattern),
        _ => (true, true, true),
    };
    Ok(match parts {
        (_, false, _) => ExprType::date(),
        (false, true, micros) => ExprType::time(if micros { 6 } else { 0 }),
        (_, _, micros) => ExprType::datetime(if micros { 6 } else { 0 }),
    }
    .nullable(true))
}

/// The fields that STR_TO_DATE has read so far.
#[derive(Default)]
struct Fields {
    year: u32,
    month: u32,
    day: u32,
    day_of_year: Option<u32>,
    /// 1 is Monday.
    weekday: Option<u32>,
    week: Option<Week>,
    /// The year that a week belongs to, and whether its weeks begin on Sunday.
    week_year: Option<(u32, bool)>,
    hour: u32,
    minute: u32,
    second: u32,
    micros: u32,
    afternoon: Option<bool>,
}

/// A week by its number.
#[derive(Clone, Copy)]
struct Week {
    number: u32,
    /// It begins on Sunday.
    sunday: bool,
    /// It is counted in a year of its own, `%X` or `%x`.
    of_own_year: bool,
}

impl Week {
    fn read(code: u8, text: &mut &[u8]) -> Option<Week> {
        let (sunday, of_own_year) = (matches!(code, b'U' | b'V'), matches!(code, b'V' | b'v'));
        let number = number(text, 2)?.0;
        let counted = number <= 53 && (number > 0 || !of_own_year);
        counted.then_some(Week { number, sunday, of_own_year })
    }

    /// The number of a weekday's day; `year` is that of `%Y`.
    fn day(self, weekday: u32, year: u32, week_year: Option<(u32, bool)>) -> Option<i64> {
        let year = match (self.of_own_year, week_year) {
            (true, Some((year, sunday))) if sunday == self.sunday => year,
            (false, None) => year,
            _ => return None,
        };
        let first = Date::from_ymd(year, 1, 1)?;
        let day = i64::from(first.weekday()?);
        // Weeks of Sundays begin with the first Sunday, others with the first that has four days of the year.
        let (before, within) = match self.sunday {
            true => ((day + 1) % 7, i64::from(weekday % 7)),
            false => (day, i64::from(weekday) - 1),
        };
        let skipped = if before == 0 || !self.sunday && before <= 3 { 0 } else { 7 };
        Some(first.to_days()? + skipped - before + (i64::from(self.number) - 1) * 7 + within)
    }
}

fn number(text: &mut &[u8], width: usize) -> Option<(u32, usize)> {
    let digits = text.iter().take(width).take_while(|b| b.is_ascii_digit()).count();
    if digits == 0 {
        return None;
    }
    let n = text[..digits].iter().fold(0u32, |n, b| n * 10 + u32::from(b - b'0'));
    *text = &text[digits..];
    Some((n, digits))
}

/// The number of a name of at most so many letters, of which a beginning is enough that no other name has.
fn name(text: &mut &[u8], names: &[&str], letters: usize) -> Option<u32> {
    let given = *text;
    let word = given.iter().take_while(|b| b.is_ascii_alphabetic()).count();
    let (word, rest) = given.split_at(word);
    let short = |name: &str| name.len().min(letters);
    let begun = |name: &str| {
        name.as_bytes()[..short(name)].get(..word.len()).is_some_and(|t| t.eq_ignore_ascii_case(word))
    };
    let mut found = names.iter().enumerate().filter(|(_, name)| begun(name));
    let first = found.next()?;
    let whole = std::iter::once(first).chain(found.clone()).find(|(_, name)| short(name) == word.len());
    let (at, _) = whole.or_else(|| found.next().is_none().then_some(first))?;
    *text = rest;
    Some(at as u32)
}

fn skip_spaces(text: &mut &[u8]) {
    *text = text.trim_ascii_start();
}

/// Passes over characters of a class, if there are any.
fn skip(text: &mut &[u8], class: fn(&u8) -> bool) {
    let passed = text.iter().take_while(|b| class(b)).count();
    *text = &text[passed..];
}

/// The part of a text that was no value.
enum Wrong<'a> {
    All,
    /// `%r` or `%T`, from here on.
    Time(&'a [u8]),
}

/// Reads text by a format, and tells whether there is more of it.
fn read<'a>(mut text: &'a [u8], pattern: &[u8]) -> Result<(Fields, bool), Wrong<'a>> {
    let mut fields = Fields::default();
    let mut codes = pattern.iter();
    while let Some(&byte) = codes.next() {
        if byte.is_ascii_whitespace() {
            skip_spaces(&mut text);
            continue;
        }
        if text.is_empty() {
            break;
        }
        if byte != b'%' {
            text = text.strip_prefix(&[byte]).ok_or(Wrong::All)?;
            continue;
        }
        skip_spaces(&mut text);
        let begin = text;
        match codes.next().ok_or(Wrong::All)? {
            b'r' => read_half_day(&mut text, &mut fields).ok_or(Wrong::Time(begin))?,
            b'T' => read_time(&mut text, &mut fields).ok_or(Wrong::Time(begin))?,
            code => read_one(*code, &mut text, &mut fields).ok_or(Wrong::All)?,
        }
    }
    Ok((fields, !text.trim_ascii().is_empty()))
}

fn read_half_day(text: &mut &[u8], fields: &mut Fields) -> Option<()> {
    read_time(text, fields)?;
    if !(1..=12).contains(&fields.hour) {
        return None;
    }
    skip_spaces(text);
    fields.afternoon = Some(half(text)?);
    Some(())
}

fn read_time(text: &mut &[u8], fields: &mut Fields) -> Option<()> {
    fields.hour = number(text, 2)?.0;
    *text = text.strip_prefix(b":")?;
    fields.minute = number(text, 2)?.0;
    *text = text.strip_prefix(b":")?;
    fields.second = number(text, 2)?.0;
    Some(())
}

fn half(text: &mut &[u8]) -> Option<bool> {
    let afternoon = match text.get(..2)?.to_ascii_uppercase().as_slice() {
        b"AM" => false,
        b"PM" => true,
        _ => return None,
    };
    *text = &text[2..];
    Some(afternoon)
}

fn read_one(code: u8, text: &mut &[u8], fields: &mut Fields) -> Option<()> {
    match code {
        b'Y' => {
            let (year, digits) = number(text, 4)?;
            fields.year = if digits <= 2 { short_year(year) } else { year };
        }
        b'y' => fields.year = short_year(number(text, 2)?.0),
        b'm' | b'c' => fields.month = number(text, 2)?.0,
        b'M' => fields.month = name(text, locale::ENGLISH.months(), usize::MAX)? + 1,
        b'b' => fields.month = name(text, locale::ENGLISH.months(), 3)? + 1,
        b'd' | b'e' => fields.day = number(text, 2)?.0,
        b'D' => {
            fields.day = number(text, 2)?.0;
            *text = text.get(2..)?;
        }
        b'j' => fields.day_of_year = Some(number(text, 3)?.0),
        b'W' => fields.weekday = Some(name(text, locale::ENGLISH.days(), usize::MAX)? + 1),
        b'a' => fields.weekday = Some(name(text, locale::ENGLISH.days(), 3)? + 1),
        b'w' => match number(text, 1)?.0 {
            0 => fields.weekday = Some(7),
            day @ 1..=6 => fields.weekday = Some(day),
            _ => return None,
        },
        b'U' | b'u' | b'V' | b'v' => fields.week = Some(Week::read(code, text)?),
        b'X' | b'x' => fields.week_year = Some((number(text, 4)?.0, code == b'X')),
        b'H' | b'k' => fields.hour = number(text, 2)?.0,
        b'h' | b'I' | b'l' => {
            fields.hour = number(text, 2)?.0;
            if !(1..=12).contains(&fields.hour) {
                return None;
            }
            fields.afternoon.get_or_insert(false);
        }
        b'i' => fields.minute = number(text, 2)?.0,
        b's' | b'S' => fields.second = number(text, 2)?.0,
        b'f' => {
            let (n, digits) = number(text, 6)?;
            fields.micros = n * 10u32.pow(6 - digits as u32);
        }
        // It needs an hour of twelve in front.
        b'p' => {
            fields.afternoon?;
            fields.afternoon = Some(half(text)?);
        }
        b'%' => *text = text.strip_prefix(b"%")?,
        b'.' => skip(text, u8::is_ascii_punctuation),
        b'@' => skip(text, u8::is_ascii_alphabetic),
        b'#' => skip(text, u8::is_ascii_digit),
        _ => return None,
    }
    Some(())
}

fn short_year(year: u32) -> u32 {
    match year {
        0..=69 => year + 2000,
        70..=99 => year + 1900,
        _ => year,
    }
}

/// A day that is computed, which is none before the year 1.
fn day_numbered(number: i64) -> Option<Date> {
    if number > 365 { Date::from_days(number) } else { None }
}

fn assemble(mut fields: Fields, mode: DateMode) -> Option<DateTime> {
    if let Some(afternoon) = fields.afternoon {
        fields.hour = fields.hour % 12 + if afternoon { 12 } else { 0 };
    }
    if fields.hour > 23 || fields.minute > 59 || fields.second > 59 || fields.month > 12 || fields.day > 31 {
        return None;
    }
    let mut date = Date::from_ymd(fields.year, fields.month, fields.day)?;
    if let Some(day) = fields.day_of_year.filter(|day| *day > 0) {
        let first = Date::from_ymd(fields.year, 1, 1)?.to_days()?;
        date = day_numbered(first + i64::from(day) - 1)?;
    }
    if let (Some(week), Some(weekday)) = (fields.week, fields.weekday) {
        date = day_numbered(week.day(weekday, fields.year, fields.week_year)?)?;
    }
    if date.is_full() {
        date.check(mode).ok()?;
    }
    DateTime::new(date, fields.hour, fields.minute, fields.second, fields.micros)
}

fn str_to_date(args: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = str_arg!(args, 0, cx);
    let pattern = str_arg!(args, 1, cx);
    let mode = cx.session.settings.date_mode();
    let (fields, more) = match read(&value, &pattern) {
        Ok(read) => read,
        Err(wrong) => return Ok(not_read(&value, &wrong, cx)),
    };
    let at = assemble(fields, crate::expr::convert::relaxed_dates(&cx.session.settings));
    let plain_time = |at: &DateTime| ty.family() == Family::Time && at.date() == Date::ZERO;
    let complete = |date: Date| match (mode.no_zero_date, date.is_zero()) {
        // The year may not be zero either, unlike elsewhere.
        (true, _) => date.is_full() && date.year() > 0,
        (false, zero) => zero || !mode.no_zero_in_date || date.is_full(),
    };
    let Some(at) = at.filter(|at| plain_time(at) || complete(at.date())) else {
        return Ok(not_read(&value, &Wrong::All, cx));
    };
    if more {
        let kind = match ty.family() {
            Family::Time => "time",
            Family::Date => "date",
            _ => "datetime",
        };
        cx.warn(SqlError::truncated_wrong_value(kind, String::from_utf8_lossy(&value).into_owned()));
    }
    Ok(match ty.family() {
        Family::Date => Value::Date(at.date()),
        Family::Time => {
            let days = i64::from(at.date().day()) * 86_400_000_000;
            Value::Time(Time::from_micros_clipped(days + at.time().to_micros()))
        }
        _ => Value::DateTime(at),
    })
}

fn not_read(value: &[u8], wrong: &Wrong<'_>, cx: &mut Context<'_>) -> Value {
    let (kind, shown) = match wrong {
        Wrong::All => ("datetime", value),
        Wrong::Time(rest) => ("time", *rest),
    };
    let shown = String::from_utf8_lossy(shown);
    let text = format!("Incorrect {kind} value: '{shown}' for function str_to_date");
    cx.warn(SqlError::new(1411, b"HY000", text));
    Value::Null
}

fn from_unixtime_type(args: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
    if args.len() > 1 {
        return text_lengths::formatted(args, cx);
    }
    let decimals = match args[0].ty.family() {
        Family::Integer => 0,
        Family::Decimal => args[0].ty.column.decimals.min(6),
        _ => 6,
    };
    Ok(ExprType::datetime(decimals).nullable(true))
}

fn from_unixtime(args: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = value_arg!(args, 0, cx);
    let seconds = args[0].to_decimal(&value, cx);
    let cut = cx.session.settings.date_mode().truncate;
    let fitted = if cut { seconds.truncate(6) } else { seconds.round(6) };
    let micros = fitted.mul(&Decimal::from_i128(1_000_000, 0)).ok().and_then(|micros| micros.to_i64().ok());
    let end = super::temporal::UNIX_END * 1_000_000;
    let known = micros.filter(|micros| (0..end).contains(micros) && !seconds.is_negative());
    let Some(micros) = known else { return Ok(Value::Null) };
    let at = unix_us(cx.zone().local_us(micros));
    if args.len() == 1 {
        return Ok(Value::DateTime(at));
    }
    let Some(pattern) = pattern_of(args, ty, cx)? else { return Ok(Value::Null) };
    let locale = cx.session.settings.lc_time_names;
    let formatted = format((at.date(), at.time()), &pattern, locale, ty.column.collation, cx)?;
    Ok(formatted.map_or(Value::Null, text))
}

fn get_format(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let kind = str_arg!(args, 0, cx).to_ascii_uppercase();
    let place = str_arg!(args, 1, cx).to_ascii_uppercase();
    let found = match (kind.as_slice(), place.as_slice()) {
        (b"DATE", b"USA") => "%m.%d.%Y",
        (b"DATE", b"JIS" | b"ISO") => "%Y-%m-%d",
        (b"DATE", b"EUR") => "%d.%m.%Y",
        (b"DATE", b"INTERNAL") => "%Y%m%d",
        (b"DATETIME" | b"TIMESTAMP", b"USA" | b"EUR") => "%Y-%m-%d %H.%i.%s",
        (b"DATETIME" | b"TIMESTAMP", b"JIS" | b"ISO") => "%Y-%m-%d %H:%i:%s",
        (b"DATETIME" | b"TIMESTAMP", b"INTERNAL") => "%Y%m%d%H%i%s",
        (b"TIME", b"USA") => "%h:%i:%s %p",
        (b"TIME", b"JIS" | b"ISO") => "%H:%i:%s",
        (b"TIME", b"EUR") => "%H.%i.%s",
        (b"TIME", b"INTERNAL") => "%H%i%s",
        _ => return Ok(Value::Null),
    };
    Ok(text(found))
}
