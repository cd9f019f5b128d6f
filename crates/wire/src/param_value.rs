//! From a statement parameter as it stands in the packet to a `Value`.

use crate::buf::DecodeError;
use crate::stmt::{Param, ParamDateTime};
use bytes::Bytes;
use omnibus_value::Value;
use omnibus_value::decimal::Decimal;
use omnibus_value::temporal::{Date, DateTime, Time};

impl Param<'_> {
    /// The value. `long_data` is what COM_STMT_SEND_LONG_DATA collected for this parameter. Temporal
    /// fields that no calendar has are an error, as clients never send them.
    pub fn to_value(&self, long_data: impl FnOnce() -> Bytes) -> Result<Value, DecodeError> {
        Ok(match *self {
            Param::Null => Value::Null,
            Param::Int(n) => Value::Int(n),
            Param::UInt(n) => Value::UInt(n),
            Param::Float(f) => Value::Float(f),
            Param::Double(f) => Value::Double(f),
            Param::Bytes(b) => Value::Bytes(Bytes::copy_from_slice(b)),
            Param::Decimal(b) => decimal(b),
            Param::Date(t) => Value::Date(date(t)?),
            Param::DateTime(t) => Value::DateTime(datetime(t)?),
            Param::Time { negative, days, hour, minute, second, micros } => {
                let hours = days.checked_mul(24).and_then(|h| h.checked_add(u32::from(hour)));
                let time = hours
                    .and_then(|h| Time::new(negative, h, u32::from(minute), u32::from(second), micros))
                    .ok_or(DecodeError::Malformed("TIME parameter"))?;
                Value::Time(time)
            }
            Param::LongData => Value::Bytes(long_data()),
        })
    }
}

/// Digits as text; what is no number stays text, for the statement to complain about.
fn decimal(text: &[u8]) -> Value {
    let parsed = Decimal::parse(text);
    if parsed.truncated { Value::Bytes(Bytes::copy_from_slice(text)) } else { Value::Decimal(parsed.value) }
}

fn date(t: ParamDateTime) -> Result<Date, DecodeError> {
    Date::from_ymd(u32::from(t.year), u32::from(t.month), u32::from(t.day))
        .ok_or(DecodeError::Malformed("DATE parameter"))
}

fn datetime(t: ParamDateTime) -> Result<DateTime, DecodeError> {
    DateTime::new(date(t)?, u32::from(t.hour), u32::from(t.minute), u32::from(t.second), t.micros)
        .ok_or(DecodeError::Malformed("DATETIME parameter"))
}
