//! Dates and times as MySQL stores them: packed integers whose integer order is time order.
//!
//! Not a calendar library: fields may be zero ('0000-00-00', '2020-01-00'), TIME runs to
//! +-838:59:59.999999, and nothing here knows the session's time zone except through
//! [`Zone`]. Pure functions, any thread.

mod binlog;
mod calendar;
mod interval;
mod parse;
mod types;
mod zone;
mod zone_files;

#[cfg(test)]
mod tables;
#[cfg(test)]
mod tests;

pub use binlog::{
    TemporalDecodeError, date_from_binlog, datetime_from_binlog, time_from_binlog, timestamp_from_binlog,
    year_from_binlog, year_to_binlog,
};
pub use binlog::{fraction_bytes, old_datetime_from_binlog, old_time_from_binlog};
pub use calendar::{days_in_month, days_in_year, is_leap};
pub use interval::{Interval, IntervalUnit};
pub use parse::{
    Parsed, datetime_from_number, parse_date, parse_datetime, parse_time, parse_time_in, parse_year,
    time_from_number, year_from_number,
};
pub use types::{Date, DateTime, Time};
pub use zone::{Instant, UTC, Zone};
pub use zone_files::{NamedZone, ZonePeriod, zone_names, zone_periods};

/// The dates that `sql_mode` permits in a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DateMode {
    /// NO_ZERO_DATE: '0000-00-00' is refused.
    pub no_zero_date: bool,
    /// NO_ZERO_IN_DATE: a zero month or day is refused.
    pub no_zero_in_date: bool,
    /// ALLOW_INVALID_DATES: days 1-31 in every month.
    pub allow_invalid: bool,
    /// TIME_TRUNCATE_FRACTIONAL: digits of a fraction that a column has not are cut.
    pub truncate: bool,
}

impl DateMode {
    /// Permits all dates that MySQL can represent, except days past the end of a month.
    pub const RELAXED: DateMode =
        DateMode { no_zero_date: false, no_zero_in_date: false, allow_invalid: false, truncate: false };
    /// The default `sql_mode` of MySQL 8: no zero dates at all.
    pub const STRICT: DateMode = DateMode { no_zero_date: true, no_zero_in_date: true, ..DateMode::RELAXED };
}

/// Why a string or number is no date or time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemporalError {
    /// The text has no form that MySQL reads, or a field is beyond its range.
    #[error("not a date or time")]
    Malformed,
    /// Well formed, but `sql_mode` or the calendar refuses it.
    #[error("a date that is not allowed")]
    NotAllowed,
    /// Beyond what the type can hold; for TIME, carries the clipped value's sign.
    #[error("out of range")]
    OutOfRange {
        /// The value was negative.
        negative: bool,
    },
}
