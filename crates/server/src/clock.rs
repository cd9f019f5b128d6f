//! Wall-clock time.

use omnibus_value::temporal::{DateTime, Zone};

/// Microseconds since the epoch.
#[must_use]
pub fn now_us() -> i64 {
    i64::try_from(omnibus_log::now_us()).unwrap_or(i64::MAX)
}

/// `261121 20:02:31` in the system's zone, as Last_IO_Error_Timestamp has it.
#[must_use]
pub fn compact_stamp(us: i64) -> String {
    let local = Zone::system().local_us(us);
    let at = DateTime::from_unix(local.div_euclid(1_000_000), 0).unwrap_or_default();
    let (date, time) = (at.date(), at.time());
    let (year, month, day) = (date.year() % 100, date.month(), date.day());
    let (hour, minute, second) = (time.hour(), time.minute(), time.second());
    format!("{year:02}{month:02}{day:02} {hour:02}:{minute:02}:{second:02}")
}

/// `2026-11-21 20:02:31`, UTC, of microseconds as [`now_us`] has them.
#[must_use]
pub fn utc_text(us: i64) -> String {
    let mut out = Vec::new();
    if let Some(t) = DateTime::from_unix(us.div_euclid(1_000_000), 0) {
        t.write_text(0, &mut out);
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_texts_to_the_second() {
        assert_eq!(utc_text(1_795_295_751_999_999), "2026-11-21 21:15:51");
        assert_eq!(utc_text(now_us()).len(), "2026-11-21 21:15:51".len());
    }
}
