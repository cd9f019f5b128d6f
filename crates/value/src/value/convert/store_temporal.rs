//! Storing into DATE, TIME, DATETIME, TIMESTAMP and YEAR.

use super::store::Raw;
use super::temporal::{number_datetime, number_time};
use super::{Problem, StoreContext};
use crate::Value;
use crate::column::{ColumnKind, ColumnType};
use crate::json::Json;
use crate::temporal::{
    Date, DateTime, Instant, TemporalError, Time, parse_datetime, parse_time_in, parse_year, year_from_number,
};

pub(super) fn store(value: &Value, ty: &ColumnType, ctx: &StoreContext) -> Raw {
    match ty.kind {
        ColumnKind::Time => time(value, ty.fsp(), ctx),
        ColumnKind::Date => date(value, ctx),
        ColumnKind::Timestamp => timestamp(value, ty.fsp(), ctx),
        _ => datetime(value, ty.fsp(), ctx, Value::DateTime(DateTime::ZERO)),
    }
}

/// Fields in the session's zone, and a problem that does not prevent storing.
fn read(
    value: &Value,
    fsp: u8,
    ctx: &StoreContext,
    what: &'static str,
) -> Result<(DateTime, Option<Problem>), Problem> {
    let wrong = Problem::IncorrectTemporal(what);
    let checked = |dt: DateTime| dt.check(ctx.dates).map_err(|_| wrong);
    match value {
        Value::DateTime(dt) => {
            let dt = checked(*dt)?;
            dt.fit(fsp, ctx.dates).map(|dt| (dt, None)).ok_or(wrong)
        }
        Value::Date(d) => checked(DateTime::from(*d)).map(|dt| (dt, None)),
        Value::Time(t) => {
            let dt = DateTime::from(ctx.today).add_time(t.fit(fsp, ctx.dates)).ok_or(wrong)?;
            Ok((dt, None))
        }
        Value::Bytes(text) => {
            let p = parse_datetime(text, fsp, ctx.dates).map_err(|_| wrong)?;
            let value = match p.offset {
                Some(seconds) => shift(p.value, seconds, ctx).ok_or(wrong)?,
                None => p.value,
            };
            Ok((value, p.truncated.then_some(wrong)))
        }
        Value::Json(binary) => {
            let document = super::number::document(binary);
            // A text that is a date alone is no moment.
            let is_date = |text: &str| {
                parse_datetime(text.as_bytes(), fsp, ctx.dates).is_ok_and(|parsed| !parsed.has_time)
            };
            if what == "datetime" && matches!(&document, Json::String(text) if is_date(text)) {
                return Err(wrong);
            }
            let what = if what == "date" { "DATE" } else { "DATETIME/TIMESTAMP" };
            let read = super::document::to_datetime(&document, ctx.dates, what);
            let dt = read.value.ok_or(read.problem.unwrap_or(wrong))?;
            checked(dt)?.fit(fsp, ctx.dates).map(|dt| (dt, None)).ok_or(wrong)
        }
        other => {
            let dt = number_datetime(other, ctx.dates).and_then(|dt| dt.fit(fsp, ctx.dates));
            dt.map(|dt| (dt, None)).ok_or(wrong)
        }
    }
}

/// Fields given with a displacement, in the session's zone.
fn shift(dt: DateTime, seconds: i32, ctx: &StoreContext) -> Option<DateTime> {
    let unix = dt.to_unix()? - i64::from(seconds);
    DateTime::from_unix(unix, dt.micros())?.utc_to_local(ctx.zone)
}

fn datetime(value: &Value, fsp: u8, ctx: &StoreContext, zero: Value) -> Raw {
    match read(value, fsp, ctx, "datetime") {
        Ok((dt, problem)) => (Value::DateTime(dt), problem),
        Err(problem) => (zero, Some(problem)),
    }
}

fn date(value: &Value, ctx: &StoreContext) -> Raw {
    // The fraction is rounded first, so the last half second of a day belongs to the next.
    match read(value, 0, ctx, "date") {
        Ok((dt, problem)) => {
            let dropped = dt.time() != Time::ZERO && !matches!(value, Value::Json(_));
            (Value::Date(dt.date()), problem.or(dropped.then_some(Problem::Rounded)))
        }
        Err(problem) => (Value::Date(Date::ZERO), Some(problem)),
    }
}

fn timestamp(value: &Value, fsp: u8, ctx: &StoreContext) -> Raw {
    let (local, problem) = datetime(value, fsp, ctx, Value::DateTime(DateTime::ZERO));
    let Value::DateTime(local) = local else { return (local, problem) };
    match local.local_to_timestamp(ctx.zone) {
        Some(utc) => {
            let skipped = matches!(local.instant(ctx.zone), Some(Instant::Never(_)));
            (Value::DateTime(utc), problem.or(skipped.then_some(Problem::SkippedTime)))
        }
        None if local.date().is_full() => {
            (Value::DateTime(DateTime::ZERO), Some(Problem::TemporalRange("datetime")))
        }
        None => (Value::DateTime(DateTime::ZERO), Some(Problem::IncorrectTemporal("datetime"))),
    }
}

fn time(value: &Value, fsp: u8, ctx: &StoreContext) -> Raw {
    let wrong = Problem::IncorrectTemporal("time");
    let fit = |time: Time| time.fit(fsp, ctx.dates);
    let made = match value {
        Value::Bytes(text) => match parse_time_in(text, 6, ctx.dates) {
            Ok(p) if p.offset.is_some() => match read(value, 6, ctx, "time") {
                Ok((dt, problem)) => {
                    return (Value::Time(fit(dt.time())), problem.or(Some(Problem::Rounded)));
                }
                Err(problem) => return (Value::Time(Time::ZERO), Some(problem)),
            },
            Ok(p) if p.truncated => return (Value::Time(fit(p.value)), Some(wrong)),
            Ok(p) if p.has_date => return (Value::Time(fit(p.value)), Some(Problem::Rounded)),
            other => other.map(|p| fit(p.value)),
        },
        Value::Time(t) => Ok(fit(*t)),
        Value::Date(d) => return (Value::Time(Time::ZERO), (!d.is_zero()).then_some(Problem::Rounded)),
        Value::DateTime(dt) => {
            return (Value::Time(fit(dt.time())), (!dt.date().is_zero()).then_some(Problem::Rounded));
        }
        Value::Json(binary) => {
            let read = super::document::to_time(&super::number::document(binary));
            return (Value::Time(fit(read.value.unwrap_or(Time::ZERO))), read.problem);
        }
        other => number_time(other, ctx.dates).map(fit),
    };
    // So many digits have a date in front, which is left out.
    let dated = matches!(
        value,
        Value::Int(_) | Value::UInt(_) | Value::Decimal(_) | Value::Float(_) | Value::Double(_)
    ) && value.to_f64().value >= 1e10;
    match made {
        Ok(t) => (Value::Time(t), dated.then_some(Problem::Rounded)),
        Err(TemporalError::OutOfRange { negative }) => {
            let clipped = if negative { Time::MIN } else { Time::MAX };
            (Value::Time(clipped), Some(Problem::TemporalRange("time")))
        }
        Err(_) => (Value::Time(Time::ZERO), Some(wrong)),
    }
}

pub(super) fn year(value: &Value, ctx: &StoreContext) -> Raw {
    match value {
        // As elsewhere a time is on the current day.
        Value::Time(time) => match DateTime::from(ctx.today).add_time(*time) {
            Some(at) => stored_year(i64::from(at.date().year())),
            None => (Value::Year(0), Some(Problem::OutOfRange)),
        },
        // What YEAR() gives may be none of those that a column holds.
        Value::Year(0 | 1901..=2155) => (value.clone(), None),
        Value::Year(year) => stored_year(i64::from(*year).max(100)),
        Value::Bytes(text) => match parse_year(text) {
            Ok(p) => (Value::Year(p.value), p.truncated.then_some(Problem::Truncated)),
            Err(TemporalError::Malformed) => (Value::Year(0), Some(Problem::IncorrectNumber("integer"))),
            Err(_) => (Value::Year(0), Some(Problem::OutOfRange)),
        },
        Value::Date(d) => stored_year(i64::from(d.year())),
        Value::DateTime(dt) => stored_year(i64::from(dt.date().year())),
        Value::Json(_) => {
            let read = value.to_i64();
            let (year, problem) = stored_year(read.value);
            (year, read.problem.or(problem))
        }
        other => stored_year(other.to_i64().value),
    }
}

fn stored_year(n: i64) -> Raw {
    match year_from_number(n) {
        Ok(year) => (Value::Year(year), None),
        Err(_) => (Value::Year(0), Some(Problem::OutOfRange)),
    }
}
