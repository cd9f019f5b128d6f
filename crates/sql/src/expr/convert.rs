//! Implicit conversions of values: to text, integer, double, decimal, date, truth. On an `Expr`,
//! because text of an ENUM or a TIME(3) needs the type; what is lost is remarked as a warning.
//!
//! Explicit ones (CAST, storing into a column) are in `cast` and `omnibus_value`.

use super::context::Context;
use super::node::{Expr, Kind};
use crate::error::{ExecResult, SqlError};
use bytes::Bytes;
use omnibus_value::column::NOT_FIXED;
use omnibus_value::convert::{Converted, document};
use omnibus_value::decimal::Decimal;
use omnibus_value::temporal::{Date, DateMode, DateTime, Time, parse_datetime, parse_time_in};
use omnibus_value::text::{write_f32_within, write_f64_within};
use omnibus_value::{ColumnKind, ColumnType, Value};

/// Doubles from here on are no decimals in MySQL, which computes with 81 digits.
const PAST_DECIMALS: f64 = 1e81;

/// A value's text; `decimals` for fractions of seconds.
#[must_use]
pub fn print(value: &Value, decimals: u8) -> Vec<u8> {
    let mut out = Vec::new();
    match value {
        Value::Null => {}
        Value::Int(n) => out.extend_from_slice(n.to_string().as_bytes()),
        Value::UInt(n) => out.extend_from_slice(n.to_string().as_bytes()),
        Value::Float(n) => super::number_text::float(*n, decimals, &mut out),
        Value::Double(n) => super::number_text::double(*n, decimals, &mut out),
        Value::Decimal(d) => d.write_text(&mut out),
        Value::Bytes(bytes) => out.extend_from_slice(bytes),
        Value::Date(d) => d.write_text(&mut out),
        Value::DateTime(d) => d.write_text(decimals.min(6), &mut out),
        Value::Time(t) => t.write_text(decimals.min(6), &mut out),
        Value::Year(y) => out.extend_from_slice(format!("{y:04}").as_bytes()),
        Value::Bit(n) => {
            let bytes = n.to_be_bytes();
            let skip = bytes.iter().take(7).take_while(|b| **b == 0).count();
            out.extend_from_slice(&bytes[skip..]);
        }
        Value::Enum(n) => out.extend_from_slice(n.to_string().as_bytes()),
        Value::Set(n) => out.extend_from_slice(n.to_string().as_bytes()),
        Value::Fixed(v) => v.write_text(&mut out),
        Value::Json(json) => super::json::print(json, &mut out),
    }
    out
}

/// A value's text as its type prints it. NULL prints as nothing.
#[must_use]
pub fn to_text(value: &Value, ty: &ColumnType) -> Bytes {
    match value {
        Value::Bytes(bytes) => bytes.clone(),
        Value::Enum(n) => match usize::from(*n).checked_sub(1).and_then(|i| ty.labels.get(i)) {
            Some(label) => label.clone(),
            None => Bytes::new(),
        },
        Value::Set(bits) => {
            let members: Vec<&[u8]> = ty
                .labels
                .iter()
                .take(64)
                .enumerate()
                .filter(|(i, _)| bits >> i & 1 == 1)
                .map(|(_, label)| &label[..])
                .collect();
            members.join(&b',').into()
        }
        Value::Bit(n) if ty.kind == ColumnKind::Bit => {
            let width = (ty.length.clamp(1, 64) as usize).div_ceil(8);
            Bytes::copy_from_slice(&n.to_be_bytes()[8 - width..])
        }
        value => {
            let mut text = print(value, ty.decimals);
            omnibus_value::convert::zero_fill(ty, 0, &mut text);
            text.into()
        }
    }
}

/// The number at the start of a text, and whether something else than a number is there.
#[must_use]
pub fn text_to_f64(text: &[u8]) -> (f64, bool) {
    let text = text.trim_ascii_start();
    let mut end = 0;
    let (mut digits, mut point) = (false, false);
    while let Some(&byte) = text.get(end) {
        match byte {
            b'+' | b'-' if end == 0 => {}
            b'0'..=b'9' => digits = true,
            b'.' if !point => point = true,
            _ => break,
        }
        end += 1;
    }
    if !digits {
        return (0.0, true);
    }
    end += exponent(&text[end..]);
    let number = std::str::from_utf8(&text[..end]).ok().and_then(|t| t.parse().ok()).unwrap_or(0.0);
    let number: f64 = if f64::is_infinite(number) { f64::MAX.copysign(number) } else { number };
    (number, !text[end..].trim_ascii_end().is_empty())
}

/// Whether a text where a double is wanted is worth a complaint: MySQL takes one of nothing but spaces for 0 in silence.
#[must_use]
pub(crate) fn is_no_double(text: &[u8], cx: &Context<'_>) -> bool {
    text_to_f64(text).1 && (cx.session.settings.mariadb || !text.trim_ascii().is_empty())
}

/// Length of an exponent at the start of `text`, if there is a whole one.
fn exponent(text: &[u8]) -> usize {
    if !matches!(text.first(), Some(b'e' | b'E')) {
        return 0;
    }
    let sign = usize::from(matches!(text.get(1), Some(b'+' | b'-')));
    let digits = text[1 + sign..].iter().take_while(|b| b.is_ascii_digit()).count();
    if digits == 0 { 0 } else { 1 + sign + digits }
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(128)]).into_owned()
}

/// The unsigned number that the bytes of a binary literal are in a numeric context.
#[must_use]
pub fn bytes_as_number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().take(8).rev().fold(0, |n, b| n << 8 | u64::from(*b))
}

/// The number that the bytes of a binary literal are; more than eight are none to MySQL.
pub fn literal_number(bytes: &[u8], cx: &mut Context<'_>) -> u64 {
    if bytes.len() <= 8 || cx.session.settings.mariadb {
        return bytes_as_number(bytes);
    }
    let shown = format!("x'{}'", omnibus_value::hex::upper(bytes));
    cx.warn(SqlError::truncated_wrong_value("BINARY", lossy(shown.as_bytes())));
    0
}

/// The integer at the start of a text, clipped to BIGINT of either sign, and whether something else
/// is there. A fraction or exponent counts as something else.
#[must_use]
pub fn text_to_int(text: &[u8]) -> (i128, bool) {
    let text = text.trim_ascii();
    let (negative, digits) = match text.first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let length = digits.iter().take_while(|b| b.is_ascii_digit()).count();
    let limit = if negative { 1 << 63 } else { i128::from(u64::MAX) };
    let magnitude =
        digits[..length].iter().fold(0i128, |n, b| (n * 10 + i128::from(b - b'0')).min(limit + 1));
    let truncated = length == 0 || length < digits.len() || magnitude > limit;
    let clipped = magnitude.min(limit);
    (if negative { -clipped } else { clipped }, truncated)
}

/// A double as an integer, clipped to BIGINT as MySQL's own conversions are.
fn clip(number: f64) -> i128 {
    i128::from(number.round_ties_even() as i64)
}

/// Whether MySQL says nothing of values that are no numbers where integers and doubles are wanted: those of TEXT and BLOB columns.
pub(super) fn is_quiet(e: &Expr, cx: &Context<'_>) -> bool {
    use ColumnKind as K;
    let long = matches!(
        e.ty.column.kind,
        K::TinyText
            | K::Text
            | K::MediumText
            | K::LongText
            | K::TinyBlob
            | K::Blob
            | K::MediumBlob
            | K::LongBlob
    );
    long && matches!(e.kind, Kind::Column { .. }) && !cx.session.settings.mariadb
}

/// An expression's value as functions of text take it: with fewer zeros in front of small doubles than a result shows.
#[must_use]
pub(crate) fn text_in(e: &Expr, value: &Value, cx: &Context<'_>) -> Bytes {
    let column = &e.ty.column;
    if cx.session.settings.mariadb || column.zerofill || column.decimals < NOT_FIXED {
        return e.to_str(value);
    }
    let kept = matches!(e.kind, Kind::Column { .. } | Kind::Local(_));
    let mut text = Vec::with_capacity(24);
    let written = match value {
        Value::Double(n) => write_f64_within(*n, if kept { 24 } else { 22 }, &mut text),
        Value::Float(n) if kept || matches!(e.kind, Kind::Cast(_) | Kind::JsonValue(_) | Kind::Const(_)) => {
            write_f32_within(*n, 12, &mut text)
        }
        Value::Float(n) => write_f64_within(f64::from(*n), 22, &mut text),
        _ => false,
    };
    if written { text.into() } else { e.to_str(value) }
}

impl Expr {
    /// A value of this expression as text.
    #[must_use]
    pub fn to_str(&self, value: &Value) -> Bytes {
        to_text(value, &self.ty.column)
    }

    /// Evaluates to text; `None` is NULL.
    ///
    /// # Errors
    /// As `eval`.
    pub fn eval_str(&self, cx: &mut Context<'_>) -> ExecResult<Option<Bytes>> {
        Ok(match self.eval(cx)? {
            Value::Null => None,
            Value::Bytes(bytes) => Some(bytes),
            value => Some(text_in(self, &value, cx)),
        })
    }

    /// A value as an integer wide enough for BIGINT of either sign, rounded; text by its numeric
    /// prefix, with a warning if there is more.
    #[must_use]
    pub fn to_int(&self, value: &Value, cx: &mut Context<'_>) -> i128 {
        match value {
            Value::Int(n) => i128::from(*n),
            Value::UInt(n) | Value::Bit(n) | Value::Set(n) => i128::from(*n),
            Value::Year(n) | Value::Enum(n) => i128::from(*n),
            Value::Float(n) => clip(f64::from(*n)),
            Value::Double(n) => clip(*n),
            Value::Decimal(d) if d.is_negative() => i128::from(d.to_i64().unwrap_or_else(|clipped| clipped)),
            Value::Decimal(d) => i128::from(d.to_u64().unwrap_or_else(|clipped| clipped)),
            Value::Date(d) => i128::from(d.to_number()),
            Value::DateTime(d) => i128::from(d.round(0).unwrap_or(*d).to_number()),
            Value::Time(t) => i128::from(t.round(0).to_number()),
            Value::Bytes(bytes) if self.ty.is_binary_literal() => i128::from(literal_number(bytes, cx)),
            Value::Bytes(text) => {
                let (n, truncated) = text_to_int(text);
                if truncated && !is_quiet(self, cx) {
                    cx.warn(SqlError::truncated_wrong_value("INTEGER", lossy(text)));
                }
                n
            }
            Value::Fixed(_) => self.to_int(&Value::Bytes(self.to_str(value)), cx),
            Value::Json(json) => of_json(self, document::to_int(&super::json::decode(json)), cx),
            Value::Null => 0,
        }
    }

    /// Evaluates to an integer.
    ///
    /// # Errors
    /// As `eval`; 1690 for a computed DOUBLE that no BIGINT holds.
    pub fn eval_int(&self, cx: &mut Context<'_>) -> ExecResult<Option<i128>> {
        let value = self.eval(cx)?;
        refuse_huge(self, &value, cx)?;
        Ok(match value {
            Value::Null => None,
            value => Some(self.to_int(&value, cx)),
        })
    }

    /// A value as a double.
    #[must_use]
    pub fn to_f64(&self, value: &Value, cx: &mut Context<'_>) -> f64 {
        match value {
            Value::Bytes(bytes) if self.ty.is_binary_literal() => literal_number(bytes, cx) as f64,
            Value::Bytes(text) => {
                if is_no_double(text, cx) && !is_quiet(self, cx) {
                    cx.warn(SqlError::truncated_wrong_value("DOUBLE", lossy(text)));
                }
                text_to_f64(text).0
            }
            Value::Json(json) => of_json(self, document::to_f64(&super::json::decode(json)), cx),
            Value::Double(number) => *number,
            value => super::compare::as_f64(value),
        }
    }

    /// Evaluates to a double.
    ///
    /// # Errors
    /// As `eval`.
    pub fn eval_f64(&self, cx: &mut Context<'_>) -> ExecResult<Option<f64>> {
        Ok(match self.eval(cx)? {
            Value::Null => None,
            value => Some(self.to_f64(&value, cx)),
        })
    }

    /// A value as a decimal.
    #[must_use]
    pub fn to_decimal(&self, value: &Value, cx: &mut Context<'_>) -> Decimal {
        match value {
            Value::Decimal(d) => *d,
            Value::Float(n) => Decimal::from_f64(f64::from(*n)).unwrap_or_default(),
            Value::Double(n) => Decimal::from_f64(*n).unwrap_or_else(|overflow| {
                if n.abs() >= PAST_DECIMALS {
                    cx.warn(SqlError::truncated_wrong_value("DECIMAL", if *n < 0.0 { "-1" } else { "1" }));
                }
                Decimal::max_value(65, 0, overflow.negative)
            }),
            Value::Bytes(bytes) if self.ty.is_binary_literal() => {
                Decimal::from_i128(i128::from(literal_number(bytes, cx)), 0)
            }
            Value::Bytes(text) => {
                let parsed = Decimal::parse(text);
                if parsed.empty || parsed.truncated {
                    cx.warn(SqlError::truncated_wrong_value("DECIMAL", lossy(text)));
                }
                parsed.value
            }
            Value::DateTime(d) => {
                let micros = i128::from(d.to_number()) * 1_000_000 + i128::from(d.micros());
                Decimal::from_i128(micros, 6).rescale(self.ty.column.decimals.min(6))
            }
            Value::Time(t) => {
                let micros = if t.is_negative() { -i128::from(t.micros()) } else { i128::from(t.micros()) };
                Decimal::from_i128(i128::from(t.to_number()) * 1_000_000 + micros, 6)
                    .rescale(self.ty.column.decimals.min(6))
            }
            Value::Fixed(_) => self.to_decimal(&Value::Bytes(self.to_str(value)), cx),
            Value::Json(json) => of_json(self, document::to_decimal(&super::json::decode(json)), cx),
            value => Decimal::from_i128(self.to_int(value, cx), 0),
        }
    }

    /// A value's truth; `None` for NULL.
    #[must_use]
    pub fn to_bool(&self, value: &Value, cx: &mut Context<'_>) -> Option<bool> {
        match value {
            Value::Null => None,
            Value::Int(n) => Some(*n != 0),
            Value::UInt(n) => Some(*n != 0),
            Value::Decimal(d) => Some(!d.is_zero()),
            Value::Fixed(v) => Some(!v.is_zero()),
            Value::Json(json) => Some(super::json::decode(json).is_true()),
            value => Some(self.to_f64(value, cx) != 0.0),
        }
    }

    /// A value as date and time; `None` if it is none (with a warning) or NULL. A TIME is taken on
    /// the current day.
    #[must_use]
    pub fn to_datetime(&self, value: &Value, cx: &mut Context<'_>) -> Option<DateTime> {
        match value {
            Value::Null => None,
            Value::Date(d) => Some(DateTime::from(*d)),
            Value::DateTime(d) => Some(*d),
            Value::Time(t) => DateTime::from(cx.now().date()).add_time(*t),
            Value::Bytes(text) => match parse_datetime(text, 6, relaxed_dates(&cx.session.settings)) {
                Ok(parsed) => {
                    if parsed.truncated {
                        cx.warn(SqlError::truncated_wrong_value("datetime", lossy(text)));
                    }
                    Some(match parsed.offset {
                        Some(offset) => {
                            shift(parsed.value, -offset).utc_to_local(cx.zone()).unwrap_or(parsed.value)
                        }
                        None => parsed.value,
                    })
                }
                Err(_) => bad_datetime(&lossy(text), cx),
            },
            Value::Year(year) => first_day(*year, cx),
            Value::Json(json) => {
                let document = super::json::decode(json);
                of_json(self, document::to_datetime(&document, DateMode::RELAXED, "DATETIME/TIMESTAMP"), cx)
            }
            Value::Enum(_) | Value::Set(_) | Value::Bit(_) | Value::Fixed(_) => {
                self.to_datetime(&Value::Bytes(to_text(value, &self.ty.column)), cx)
            }
            value => {
                let truncate = cx.session.settings.date_mode().truncate;
                let read = value.to_datetime(6, DateMode { truncate, ..DateMode::RELAXED }, Date::ZERO);
                if read.value.is_none() {
                    let text = String::from_utf8_lossy(&self.to_str(value)).into_owned();
                    return bad_datetime(&text, cx);
                }
                read.value
            }
        }
    }

    /// A value as functions of dates take it, which call a text that is none an incorrect date.
    #[must_use]
    pub fn to_calendar(&self, value: &Value, cx: &mut Context<'_>) -> Option<DateTime> {
        let Value::Bytes(text) = value else { return self.to_datetime(value, cx) };
        if cx.session.settings.mariadb {
            return self.to_datetime(value, cx);
        }
        match parse_datetime(text, 6, relaxed_dates(&cx.session.settings)) {
            Ok(parsed) if parsed.offset.is_some() => self.to_datetime(value, cx),
            Ok(parsed) => {
                if parsed.truncated {
                    cx.warn(SqlError::truncated_wrong_value("date", lossy(text)));
                }
                Some(parsed.value)
            }
            Err(_) => {
                cx.warn(SqlError::truncated_wrong_value("date", lossy(text)));
                None
            }
        }
    }

    /// Evaluates to date and time.
    ///
    /// # Errors
    /// As `eval`.
    pub fn eval_datetime(&self, cx: &mut Context<'_>) -> ExecResult<Option<DateTime>> {
        let value = self.eval(cx)?;
        Ok(self.to_datetime(&value, cx))
    }

    /// Evaluates to a time; the time part of a date and time.
    ///
    /// # Errors
    /// As `eval`.
    pub fn eval_time(&self, cx: &mut Context<'_>) -> ExecResult<Option<Time>> {
        let value = self.eval(cx)?;
        Ok(self.to_time(&value, cx))
    }

    /// A value as a time; `None` if it is none (with a warning) or NULL.
    #[must_use]
    pub fn to_time(&self, value: &Value, cx: &mut Context<'_>) -> Option<Time> {
        match value {
            Value::Null => None,
            Value::Time(t) => Some(*t),
            Value::DateTime(d) => Some(d.time()),
            Value::Date(_) | Value::Year(_) => Some(Time::ZERO),
            Value::Bytes(text) => match parse_time_in(text, 6, relaxed_dates(&cx.session.settings)) {
                Ok(parsed) if parsed.offset.is_some() => self.to_datetime(value, cx).map(DateTime::time),
                Ok(parsed) => {
                    if parsed.truncated {
                        cx.warn(SqlError::truncated_wrong_value("time", lossy(text)));
                    }
                    Some(parsed.value)
                }
                Err(omnibus_value::temporal::TemporalError::OutOfRange { negative }) => {
                    cx.warn(SqlError::truncated_wrong_value("time", lossy(text)));
                    let greatest = Time::from_micros_clipped(if negative { i64::MIN } else { i64::MAX });
                    has_minutes(text).then_some(greatest)
                }
                Err(_) => {
                    cx.warn(SqlError::truncated_wrong_value("time", lossy(text)));
                    None
                }
            },
            Value::Json(json) => of_json(self, document::to_time(&super::json::decode(json)), cx),
            Value::Enum(_) | Value::Set(_) | Value::Bit(_) | Value::Fixed(_) => {
                self.to_time(&Value::Bytes(to_text(value, &self.ty.column)), cx)
            }
            value => {
                let read = value.to_time_in(6, relaxed_dates(&cx.session.settings));
                if read.problem.is_some() {
                    let text = String::from_utf8_lossy(&self.to_str(value)).into_owned();
                    cx.warn(SqlError::truncated_wrong_value("time", text));
                }
                let mariadb = cx.session.settings.mariadb;
                let clipped =
                    |time: &Time| [i64::MIN, i64::MAX].map(Time::from_micros_clipped).contains(time);
                read.value.filter(|time| mariadb || read.problem.is_none() || !clipped(time))
            }
        }
    }
}

/// Refuses a computed DOUBLE that no BIGINT holds, where an integer is wanted of it: error 1690. Those that are stored or written are clipped.
pub(crate) fn refuse_huge(e: &Expr, value: &Value, cx: &Context<'_>) -> ExecResult<()> {
    if !is_huge(e, value) || cx.session.settings.mariadb {
        return Ok(());
    }
    Err(SqlError::data_out_of_range("BIGINT", super::print::expr(e, cx)).into())
}

/// Whether an expression has computed a DOUBLE that no BIGINT holds.
pub(crate) fn is_huge(e: &Expr, value: &Value) -> bool {
    const PAST: f64 = 9_223_372_036_854_775_808.0;
    matches!(e.kind, Kind::Call(..) | Kind::Arith(..))
        && matches!(value, Value::Double(n) if !(-PAST..PAST).contains(n))
}

/// Whether the last four of a text's digits can be minutes and seconds; a text with colons has been looked at.
fn has_minutes(text: &[u8]) -> bool {
    let whole = text.split(|byte| *byte == b'.').next().unwrap_or_default().trim_ascii();
    if !whole.last_chunk::<4>().is_some_and(|last| last.iter().all(u8::is_ascii_digit)) {
        return true;
    }
    let tens = |from_end: usize| whole.len().checked_sub(from_end).is_none_or(|at| whole[at] < b'6');
    tens(2) && tens(4)
}

/// A year as a date: its first day, or in MariaDB's dialect no day of it.
fn first_day(year: u16, cx: &Context<'_>) -> Option<DateTime> {
    let first = u32::from(!cx.session.settings.mariadb);
    Date::from_ymd(u32::from(year), first, first).map(DateTime::from)
}

/// Seconds east added to fields.
#[must_use]
pub fn shift(at: DateTime, seconds: i32) -> DateTime {
    at.to_micros().and_then(|us| DateTime::from_micros(us + i64::from(seconds) * 1_000_000)).unwrap_or(at)
}

/// Warns of a value that has no day of which a function could tell something, in the mysql dialect.
pub(crate) fn no_day(e: &Expr, value: &Value, cx: &mut Context<'_>) {
    if cx.session.settings.mariadb {
        return;
    }
    match value {
        Value::Null | Value::Date(_) | Value::DateTime(_) | Value::Time(_) | Value::Year(_) => {}
        Value::Bytes(text) => cx.warn(SqlError::truncated_wrong_value("date", lossy(text))),
        value => {
            let text = String::from_utf8_lossy(&e.to_str(value)).into_owned();
            bad_datetime(&text, cx);
        }
    }
}

/// Evaluates what a date has, with a warning if it has none.
///
/// # Errors
/// As `eval`.
pub(crate) fn of_date<T>(
    e: &Expr,
    part: impl FnOnce(Date) -> Option<T>,
    cx: &mut Context<'_>,
) -> ExecResult<Option<T>> {
    let value = e.eval(cx)?;
    let Some(at) = e.to_calendar(&value, cx) else { return Ok(None) };
    let found = part(at.date());
    if found.is_none() {
        no_day(e, &value, cx);
    }
    Ok(found)
}

fn bad_datetime(text: &str, cx: &mut Context<'_>) -> Option<DateTime> {
    cx.warn(SqlError::new(1292, b"22007", format!("Incorrect datetime value: '{text}'")));
    None
}

/// Returns the value that a document of an expression was read as, and complains of one that is nothing of the kind.
fn of_json<T>(e: &Expr, read: Converted<T>, cx: &mut Context<'_>) -> T {
    if let Some(problem) = read.problem {
        let state = problem.sqlstate().as_bytes().try_into().unwrap_or(*b"HY000");
        let name = column_name(e, cx).unwrap_or_default();
        cx.warn(SqlError::new(problem.code(), &state, problem.message(&name, 1, b"")));
    }
    read.value
}

/// The name of the column that an expression is.
fn column_name(e: &Expr, cx: &Context<'_>) -> Option<String> {
    let super::Kind::Column { slot, column, .. } = &e.kind else { return None };
    let table = cx.frame.get(usize::from(*slot))?.table.as_ref()?;
    Some(table.columns().get(usize::from(*column))?.name.to_string())
}

/// Dates as conversions within expressions take them: zeros are, and days that a month has not if `sql_mode` says so.
pub(crate) fn relaxed_dates(settings: &crate::api::SessionSettings) -> DateMode {
    let mode = settings.date_mode();
    DateMode { allow_invalid: mode.allow_invalid, truncate: mode.truncate, ..DateMode::RELAXED }
}
