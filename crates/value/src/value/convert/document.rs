//! A document where SQL wants a number or a time: the one place that says which it is, for expressions and for columns.
//!
//! Numbers are themselves, true is 1, false is 0, a string is the number or the time that it begins with, and a time is one where a time
//! is wanted. Anything else is nothing, which the [`Problem`] tells.

use super::store::rounded;
use super::{Converted, Problem, parse_f64_prefix, parse_i64_prefix, round_half_even};
use crate::decimal::Decimal;
use crate::json::Json;
use crate::temporal::{DateMode, DateTime, Time, parse_datetime, parse_time};

/// As a double.
pub fn to_f64(document: &Json) -> Converted<f64> {
    match document {
        Json::Bool(is) => Converted::exact(f64::from(u8::from(*is))),
        Json::String(text) => {
            let (n, whole) = parse_f64_prefix(text.as_bytes());
            if whole || text.is_empty() { Converted::exact(n) } else { lost(n, "DOUBLE") }
        }
        other => match other.as_f64() {
            Some(n) => Converted::exact(n),
            None => lost(0.0, "DOUBLE"),
        },
    }
}

/// As an integer within the ranges of BIGINT and BIGINT UNSIGNED.
pub fn to_int(document: &Json) -> Converted<i128> {
    let clipped = |n: i128, low: i128, high: i128| match n.clamp(low, high) {
        inside if inside == n => Converted::exact(n),
        outside => Converted::lossy(outside, Problem::JsonRange("INTEGER")),
    };
    let (least, most) = (i128::from(i64::MIN), i128::from(i64::MAX));
    match document {
        Json::Bool(is) => Converted::exact(i128::from(*is)),
        Json::Int(n) => Converted::exact(i128::from(*n)),
        Json::UInt(n) => Converted::exact(i128::from(*n)),
        // Past i128 it saturates, which is out of range as well.
        Json::Double(n) => clipped(round_half_even(*n) as i128, least, most),
        Json::Decimal(n) => clipped(rounded(n), least, i128::from(u64::MAX)),
        Json::String(text) => {
            let (n, whole) = parse_i64_prefix(text.as_bytes());
            let read = clipped(n, least, i128::from(u64::MAX));
            if whole { read } else { lost(read.value, "INTEGER") }
        }
        _ => lost(0, "INTEGER"),
    }
}

/// As a decimal.
pub fn to_decimal(document: &Json) -> Converted<Decimal> {
    match document {
        Json::Bool(is) => Converted::exact(Decimal::from(i64::from(*is))),
        Json::Int(n) => Converted::exact(Decimal::from(*n)),
        Json::UInt(n) => Converted::exact(Decimal::from(*n)),
        Json::Decimal(n) => Converted::exact(*n),
        Json::Double(n) => match Decimal::from_f64(*n) {
            Ok(n) => Converted::exact(n),
            Err(beyond) => {
                let most = Decimal::max_value(65, 0, beyond.negative);
                Converted::lossy(most, Problem::JsonRange("DECIMAL"))
            }
        },
        Json::String(text) => {
            let parsed = Decimal::parse(text.as_bytes());
            if parsed.empty || parsed.truncated || parsed.overflow {
                return lost(parsed.value, "DECIMAL");
            }
            Converted::exact(parsed.value)
        }
        _ => lost(Decimal::ZERO, "DECIMAL"),
    }
}

/// As date and time; `what` is the type that is wanted.
pub fn to_datetime(document: &Json, mode: DateMode, what: &'static str) -> Converted<Option<DateTime>> {
    match document {
        Json::Date(date) => Converted::exact(Some(DateTime::from(*date))),
        Json::DateTime(at) | Json::Timestamp(at) => Converted::exact(Some(*at)),
        Json::String(text) => match parse_datetime(text.as_bytes(), 6, mode) {
            Ok(parsed) if !parsed.truncated => Converted::exact(Some(parsed.value)),
            _ => lost(None, what),
        },
        _ => lost(None, what),
    }
}

/// As a time.
pub fn to_time(document: &Json) -> Converted<Option<Time>> {
    match document {
        Json::Time(time) => Converted::exact(Some(*time)),
        Json::String(text) => match parse_time(text.as_bytes(), 6) {
            // A number alone is none here.
            Ok(parsed) if !parsed.truncated && !parsed.has_date && text.contains(':') => {
                Converted::exact(Some(parsed.value))
            }
            _ => lost(None, "TIME"),
        },
        _ => lost(None, "TIME"),
    }
}

fn lost<T>(value: T, what: &'static str) -> Converted<T> {
    Converted::lossy(value, Problem::JsonCast(what))
}
