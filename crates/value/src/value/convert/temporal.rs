//! Values as dates and times.

use super::{Converted, Problem};
use crate::Value;
use crate::temporal::{
    Date, DateMode, DateTime, TemporalError, Time, datetime_from_number, parse_datetime, parse_time_in,
    time_from_number,
};

impl Value {
    /// Converts to a DATETIME rounded to `fsp` digits; `None` if it is not one. A TIME needs `today`.
    pub fn to_datetime(&self, fsp: u8, mode: DateMode, today: Date) -> Converted<Option<DateTime>> {
        let wrong = Problem::TruncatedWrong("datetime");
        let made = match self {
            Value::Null => return Converted::exact(None),
            Value::DateTime(dt) => dt.check(mode).ok().and_then(|dt| dt.round(fsp)),
            Value::Date(d) => d.check(mode).ok().map(DateTime::from),
            Value::Time(t) => DateTime::from(today).add_time(t.round(fsp)),
            Value::Bytes(text) => match parse_datetime(text, fsp, mode) {
                Ok(p) if p.truncated => return Converted::lossy(Some(p.value), wrong),
                Ok(p) => Some(p.value),
                Err(_) => None,
            },
            other => number_datetime(other, mode).and_then(|dt| dt.fit(fsp, mode)),
        };
        match made {
            Some(dt) => Converted::exact(Some(dt)),
            None => Converted::lossy(None, wrong),
        }
    }

    /// Converts to a DATE.
    pub fn to_date(&self, mode: DateMode, today: Date) -> Converted<Option<Date>> {
        let Converted { value, problem } = match self {
            // The fraction is dropped, not rounded into the next day.
            Value::DateTime(dt) => Converted::exact(dt.check(mode).ok()),
            other => other.to_datetime(6, mode, today),
        };
        Converted { value: value.map(DateTime::date), problem }
    }

    /// Converts to a TIME rounded to `fsp` digits; out of range is clipped.
    pub fn to_time(&self, fsp: u8) -> Converted<Option<Time>> {
        self.to_time_in(fsp, DateMode::RELAXED)
    }

    /// The same, with a fraction that is rounded or cut by `mode`.
    pub fn to_time_in(&self, fsp: u8, mode: DateMode) -> Converted<Option<Time>> {
        let wrong = Problem::TruncatedWrong("time");
        let made = match self {
            Value::Null => return Converted::exact(None),
            Value::Time(t) => Ok(t.round(fsp)),
            Value::DateTime(dt) => Ok(dt.time().round(fsp)),
            Value::Date(_) => Ok(Time::ZERO),
            Value::Bytes(text) => match parse_time_in(text, fsp, mode) {
                Ok(p) if p.truncated => return Converted::lossy(Some(p.value), wrong),
                other => other.map(|p| p.value),
            },
            other => number_time(other, mode).map(|t| t.fit(fsp, mode)),
        };
        match made {
            Ok(t) => Converted::exact(Some(t)),
            Err(TemporalError::OutOfRange { negative }) => {
                Converted::lossy(Some(if negative { Time::MIN } else { Time::MAX }), wrong)
            }
            Err(_) => Converted::lossy(None, wrong),
        }
    }
}

/// A number's integer part and microseconds, a million of them where the fraction rounds up.
fn split(value: &Value, mode: DateMode) -> Option<(i64, u32, bool)> {
    let n = value.to_decimal().value;
    let whole = n.truncate(0);
    let fraction = n.sub(&whole).ok()?.abs();
    let fraction = if mode.truncate { fraction.truncate(6) } else { fraction.round(6) }.rescale(6);
    let micros = fraction.mul(&crate::decimal::Decimal::from(SECOND_US)).ok()?;
    let micros = u32::try_from(micros.to_i64().ok()?).ok()?;
    Some((whole.to_i64().ok()?, micros, n.is_negative()))
}

const SECOND_US: i64 = 1_000_000;

pub(super) fn number_datetime(value: &Value, mode: DateMode) -> Option<DateTime> {
    let (whole, micros, _) = split(value, mode)?;
    let (dt, has_time) = datetime_from_number(whole, mode).ok()?;
    if !has_time || micros == 0 {
        return Some(dt);
    }
    dt.add_time(Time::from_micros(i64::from(micros))?)
}

pub(super) fn number_time(value: &Value, mode: DateMode) -> Result<Time, TemporalError> {
    let negative = value.to_f64().value < 0.0;
    let beyond = TemporalError::OutOfRange { negative };
    let (whole, micros, _) = split(value, mode).ok_or(beyond)?;
    let time = time_from_number(whole, 0)?.to_micros();
    let micros = i64::from(micros);
    // '-0.5' has no sign left in its integer part.
    Time::from_micros(if negative { time - micros } else { time + micros }).ok_or(beyond)
}
