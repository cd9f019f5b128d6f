//! When an event runs, as the catalog keeps it, and the statement that makes it.
//!
//! Moments are seconds since 1970 in UTC; days, months and years are counted on the clocks of the event's own time zone.

use super::{quote_ident, quote_string};
use omnibus_parser::ast::{EventStatus, IntervalUnit};
use omnibus_value::temporal::{DateTime, Interval, UTC, Zone};
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// When an event runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventTimes {
    /// AT: once.
    At(i64),
    /// EVERY so many of the unit's smallest part.
    Every {
        /// So many, more than 0.
        amount: i64,
        /// The unit.
        unit: IntervalUnit,
        /// The first time.
        starts: i64,
        /// No time is later.
        ends: Option<i64>,
    },
}

/// The definition of an event beside its text.
#[derive(Clone, Debug)]
pub struct EventDef {
    /// When it runs.
    pub times: EventTimes,
    /// Whether it does.
    pub status: EventStatus,
    /// ON COMPLETION PRESERVE.
    pub preserve: bool,
    /// The time zone that it was made in.
    pub zone: Arc<str>,
    /// `server_id` of the server that it was made on.
    pub originator: u32,
    /// When it last ran; 0: never. Shared by all definitions of the event, and stored with one that runs no more.
    pub executed: Arc<AtomicI64>,
}

/// An amount of a unit's smallest part.
fn interval(amount: i64, unit: IntervalUnit) -> Option<Interval> {
    use IntervalUnit as U;
    let smallest = match unit {
        U::YearMonth => U::Month,
        U::DayHour => U::Hour,
        U::DayMinute | U::HourMinute => U::Minute,
        U::DaySecond | U::HourSecond | U::MinuteSecond => U::Second,
        other => other,
    };
    Interval::of(amount, smallest)
}

impl EventTimes {
    /// EVERY with an interval of this unit; `None` if that is not positive or too much.
    #[must_use]
    pub fn every(given: Interval, unit: IntervalUnit, starts: i64, ends: Option<i64>) -> Option<EventTimes> {
        let one = interval(1, unit)?;
        let amount = match one.months {
            0 => given.micros / one.micros,
            months => given.months / months,
        };
        // As MySQL: so much that adding it to a moment is one still.
        let fits = (1..=i64::from(i32::MAX)).contains(&amount) && interval(amount, unit).is_some();
        fits.then_some(EventTimes::Every { amount, unit, starts, ends })
    }

    /// The first moment from `from` on at which the event runs.
    #[must_use]
    pub fn next(&self, from: i64, zone: Zone) -> Option<i64> {
        match *self {
            EventTimes::At(at) => Some(at),
            EventTimes::Every { amount, unit, starts, ends } => {
                let next = if from <= starts { starts } else { later(amount, unit, starts, from, zone)? };
                (ends.is_none_or(|ends| next <= ends)).then_some(next)
            }
        }
    }

    /// The last moment at which it may run.
    #[must_use]
    pub fn end(&self) -> Option<i64> {
        match *self {
            EventTimes::At(at) => Some(at),
            EventTimes::Every { ends, .. } => ends,
        }
    }

    /// ON SCHEDULE, in a time zone.
    fn text(&self, zone: Zone) -> String {
        let moment = |seconds: i64| format!("'{}'", local_text(seconds, zone));
        match *self {
            EventTimes::At(at) => format!("AT {}", moment(at)),
            EventTimes::Every { unit, starts, ends, .. } => {
                let value = self.interval_value().unwrap_or_default();
                let mut text = format!("EVERY {value} {} STARTS {}", unit.word(), moment(starts));
                if let Some(ends) = ends {
                    let _ = write!(text, " ENDS {}", moment(ends));
                }
                text
            }
        }
    }

    /// The number or text in front of the unit.
    #[must_use]
    pub fn interval_value(&self) -> Option<String> {
        use IntervalUnit as U;
        let EventTimes::Every { amount: n, unit, .. } = *self else { return None };
        Some(match unit {
            U::YearMonth => format!("'{}-{}'", n / 12, n % 12),
            U::DayHour => format!("'{} {}'", n / 24, n % 24),
            U::DayMinute => format!("'{} {}:{}'", n / 1440, n / 60 % 24, n % 60),
            U::HourMinute | U::MinuteSecond => format!("'{}:{}'", n / 60, n % 60),
            U::DaySecond => format!("'{} {}:{}:{}'", n / 86_400, n / 3600 % 24, n / 60 % 60, n % 60),
            U::HourSecond => format!("'{}:{}:{}'", n / 3600, n / 60 % 60, n % 60),
            _ => n.to_string(),
        })
    }
}

/// The first of `starts`, `starts` and an interval, and so on, that is not before `from`.
fn later(amount: i64, unit: IntervalUnit, starts: i64, from: i64, zone: Zone) -> Option<i64> {
    let local = |seconds: i64| DateTime::from_unix(seconds + i64::from(zone.offset_at(seconds)), 0);
    let (first, wanted) = (local(starts)?, local(from)?);
    let one = interval(amount, unit)?;
    let passed = match one.months {
        0 => from.saturating_sub(starts) / (one.micros / 1_000_000).max(1),
        months => first.timestamp_diff(wanted, IntervalUnit::Month)? / months,
    };
    // Clocks that were changed meanwhile move it by less than a step each way.
    (passed.saturating_sub(1).max(0)..).take(4).find_map(|count| {
        let moment = first.add(interval(amount.checked_mul(count)?, unit)?)?.instant(zone)?.unix();
        (moment >= from).then_some(moment)
    })
}

/// A moment as the clocks of a zone show it.
#[must_use]
pub fn local_text(seconds: i64, zone: Zone) -> String {
    let local = DateTime::from_unix(seconds + i64::from(zone.offset_at(seconds)), 0);
    let mut text = Vec::new();
    local.unwrap_or(DateTime::ZERO).write_text(0, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

impl EventDef {
    /// Its time zone's clocks.
    #[must_use]
    pub fn zone(&self) -> Zone {
        Zone::by_name(&self.zone).unwrap_or(UTC)
    }

    /// When it last ran, in seconds since 1970; 0: never.
    #[must_use]
    pub fn executed(&self) -> i64 {
        self.executed.load(Ordering::Relaxed)
    }

    /// The statement that makes it. `definer` is quoted.
    #[must_use]
    pub fn text(&self, definer: &str, name: &str, comment: &[u8], body: &[u8], mariadb: bool) -> String {
        let mut text = format!(
            "CREATE DEFINER={definer} EVENT {} ON SCHEDULE {} ON COMPLETION {} {}",
            quote_ident(name),
            self.times.text(self.zone()),
            self.completion(),
            self.status.text(mariadb)
        );
        if !comment.is_empty() {
            let _ = write!(text, " COMMENT {}", quote_string(&String::from_utf8_lossy(comment)));
        }
        let _ = write!(text, " DO {}", String::from_utf8_lossy(body));
        text
    }

    /// `PRESERVE` or `NOT PRESERVE`.
    #[must_use]
    pub fn completion(&self) -> &'static str {
        if self.preserve { "PRESERVE" } else { "NOT PRESERVE" }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const DAY: i64 = 86_400;

    #[test]
    fn the_next_time_is_found_from_the_first() {
        let every = |amount, unit| EventTimes::Every { amount, unit, starts: 100, ends: Some(20 * DAY) };
        let minute = every(2, IntervalUnit::Minute);
        assert_eq!(minute.next(0, UTC), Some(100));
        assert_eq!(minute.next(101, UTC), Some(220));
        assert_eq!(minute.next(220, UTC), Some(220));
        assert_eq!(minute.next(20 * DAY, UTC), None);
        // The 31st of January, and a month later, and two.
        let starts = 30 * DAY;
        let month = EventTimes::Every { amount: 1, unit: IntervalUnit::Month, starts, ends: None };
        assert_eq!(month.next(starts + 1, UTC), Some(58 * DAY));
        assert_eq!(month.next(58 * DAY + 1, UTC), Some(89 * DAY));
    }

    #[test]
    fn a_day_is_a_day_on_the_clocks() {
        let Some(zone) = Zone::by_name("Europe/Berlin") else { return };
        // 2026-03-28 12:00 there; a day later clocks are an hour ahead.
        let starts = 1_774_695_600;
        let every = EventTimes::Every { amount: 1, unit: IntervalUnit::Day, starts, ends: None };
        assert_eq!(every.next(starts + 1, zone), Some(starts + 23 * 3600));
    }

    #[test]
    fn an_amount_has_the_unit_s_form() {
        let given = Interval::parse(b"1:30", IntervalUnit::HourMinute).unwrap();
        let times = EventTimes::every(given, IntervalUnit::HourMinute, 0, None).unwrap();
        assert_eq!(times.interval_value().unwrap(), "'1:30'");
        assert_eq!(EventTimes::every(Interval::default(), IntervalUnit::Day, 0, None), None);
    }
}
