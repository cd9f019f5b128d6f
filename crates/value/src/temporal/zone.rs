//! Where a session's time zone enters: TIMESTAMP is stored as UTC and seen as local fields.

use super::DateTime;

/// A session's `time_zone`. Implemented outside for named zones; fixed offsets are here.
pub trait TimeZone {
    /// Offset in seconds east of UTC at a UTC instant.
    fn offset_at_utc(&self, unix: i64) -> i32;
    /// Unix seconds of local fields (given as seconds as if they were UTC). In a gap MySQL uses
    /// the first second after it, in an overlap the first of the two.
    fn local_to_unix(&self, local: i64) -> i64;
}

/// '+05:30' and the like, and UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedOffset {
    /// Seconds east of UTC.
    pub seconds: i32,
}

/// '+00:00'.
pub static UTC: FixedOffset = FixedOffset { seconds: 0 };

impl FixedOffset {
    /// Parses '+hh:mm' / '-h:mm' within MySQL's range -13:59 to +14:00.
    pub fn parse(text: &[u8]) -> Option<FixedOffset> {
        let (sign, rest) = match text.split_first()? {
            (b'+', rest) => (1, rest),
            (b'-', rest) => (-1, rest),
            _ => return None,
        };
        let colon = rest.iter().position(|&c| c == b':')?;
        let (hours, minutes) = (field(&rest[..colon])?, field(&rest[colon + 1..])?);
        let total = hours * 60 + minutes;
        let limit = if sign > 0 { 14 * 60 } else { 13 * 60 + 59 };
        (minutes < 60 && total <= limit).then_some(FixedOffset { seconds: sign * total * 60 })
    }
}

fn field(digits: &[u8]) -> Option<i32> {
    if digits.is_empty() || digits.len() > 2 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0, |n, d| n * 10 + i32::from(d - b'0')))
}

impl TimeZone for FixedOffset {
    fn offset_at_utc(&self, _unix: i64) -> i32 {
        self.seconds
    }
    fn local_to_unix(&self, local: i64) -> i64 {
        local - i64::from(self.seconds)
    }
}

impl DateTime {
    /// UTC fields to the fields a session sees. The zero date stays the zero date.
    pub fn utc_to_local(self, zone: &dyn TimeZone) -> Option<DateTime> {
        if self.is_zero() {
            return Some(self);
        }
        let unix = self.to_unix()?;
        DateTime::from_unix(unix + i64::from(zone.offset_at_utc(unix)), self.micros())
    }

    /// A session's fields to UTC fields, for storing a TIMESTAMP. `None` outside
    /// 1970-01-01 00:00:01 to 2038-01-19 03:14:07 UTC, MySQL's TIMESTAMP range.
    pub fn local_to_timestamp(self, zone: &dyn TimeZone) -> Option<DateTime> {
        if self.is_zero() {
            return Some(DateTime::ZERO);
        }
        let unix = zone.local_to_unix(self.to_unix()?);
        if !(1..=i64::from(i32::MAX)).contains(&unix) {
            return None;
        }
        DateTime::from_unix(unix, self.micros())
    }
}
