//! Applies a session's time zone: TIMESTAMP is stored in UTC and shown as local fields.
//!
//! Zones by name come from [`super::zone_files`]. Pure functions, any thread.

use super::DateTime;
use super::zone_files::NamedZone;
use std::fmt;

/// A session's `time_zone`.
#[derive(Clone, Copy)]
pub enum Zone {
    /// '+05:30' and the like, and UTC: seconds east of it.
    Offset(i32),
    /// A zone whose offset changes.
    Named(&'static NamedZone),
}

/// '+00:00'.
pub static UTC: Zone = Zone::Offset(0);

/// The instants at which a zone's clocks show given fields, in Unix seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instant {
    /// The fields were shown once.
    Once(i64),
    /// Clocks were set back and showed them twice: the first and the second time.
    Twice(i64, i64),
    /// Clocks were set forward past them: when that was.
    Never(i64),
}

impl Instant {
    /// The instant that MySQL chooses.
    pub fn unix(self) -> i64 {
        match self {
            Instant::Once(unix) | Instant::Twice(unix, _) | Instant::Never(unix) => unix,
        }
    }
}

impl Zone {
    /// '+hh:mm' / '-h:mm' within MySQL's range -13:59 to +14:00, as seconds east of UTC.
    pub fn parse_offset(text: &[u8]) -> Option<i32> {
        let (sign, rest) = match text.split_first()? {
            (b'+', rest) => (1, rest),
            (b'-', rest) => (-1, rest),
            _ => return None,
        };
        let colon = rest.iter().position(|&c| c == b':')?;
        let (hours, minutes) = (field(&rest[..colon])?, field(&rest[colon + 1..])?);
        let total = hours * 60 + minutes;
        let limit = if sign > 0 { 14 * 60 } else { 13 * 60 + 59 };
        (minutes < 60 && total <= limit).then_some(sign * total * 60)
    }

    /// Returns whether the zone's clocks show UTC.
    #[inline]
    pub fn is_utc(self) -> bool {
        matches!(self, Zone::Offset(0))
    }

    /// Seconds east of UTC at an instant.
    #[inline]
    pub fn offset_at(self, unix: i64) -> i32 {
        match self {
            Zone::Offset(seconds) => seconds,
            Zone::Named(zone) => zone.offset_at(unix),
        }
    }

    /// Microseconds since 1970 as its clocks show them.
    #[inline]
    pub fn local_us(self, us: i64) -> i64 {
        us + i64::from(self.offset_at(us.div_euclid(1_000_000))) * 1_000_000
    }

    /// The instant of local fields, given as seconds as if they were UTC.
    pub fn instant(self, local: i64) -> Instant {
        match self {
            Zone::Offset(seconds) => Instant::Once(local - i64::from(seconds)),
            Zone::Named(zone) => zone.instant(local),
        }
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Zone) -> bool {
        match (self, other) {
            (Zone::Offset(a), Zone::Offset(b)) => a == b,
            (Zone::Named(a), Zone::Named(b)) => std::ptr::eq(*a, *b),
            _ => false,
        }
    }
}

impl Eq for Zone {}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Zone::Offset(seconds) => write!(f, "{seconds:+}s"),
            Zone::Named(zone) => f.write_str(zone.name()),
        }
    }
}

fn field(digits: &[u8]) -> Option<i32> {
    if digits.is_empty() || digits.len() > 2 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0, |n, d| n * 10 + i32::from(d - b'0')))
}

impl DateTime {
    /// UTC fields to the fields a session sees. The zero date stays the zero date.
    pub fn utc_to_local(self, zone: Zone) -> Option<DateTime> {
        if self.is_zero() || zone.is_utc() {
            return Some(self);
        }
        let unix = self.to_unix()?;
        let seconds = unix + i64::from(zone.offset_at(unix));
        let local = DateTime::from_unix(seconds, self.micros())?;
        match zone.instant(seconds) {
            Instant::Twice(_, second) if second == unix => Some(local.shown_again()),
            _ => Some(local),
        }
    }

    /// The instant of a session's fields; `None` if they are no day of the calendar. Fields that came from an instant
    /// lead back to it.
    pub fn instant(self, zone: Zone) -> Option<Instant> {
        self.to_unix().map(|local| match zone.instant(local) {
            Instant::Twice(_, second) if self.is_second_time() => Instant::Once(second),
            instant => instant,
        })
    }

    /// A session's fields to UTC fields, for storing a TIMESTAMP. `None` outside
    /// 1970-01-01 00:00:01 to 2038-01-19 03:14:07 UTC, MySQL's TIMESTAMP range. Fields that no clock showed become the
    /// moment when clocks were set past them.
    pub fn local_to_timestamp(self, zone: Zone) -> Option<DateTime> {
        if self.is_zero() {
            return Some(DateTime::ZERO);
        }
        let instant = self.instant(zone)?;
        if !(1..=i64::from(i32::MAX)).contains(&instant.unix()) {
            return None;
        }
        DateTime::from_unix(instant.unix(), self.micros())
    }
}
