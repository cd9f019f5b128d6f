//! Proleptic Gregorian day numbers as MySQL counts them: day 1 is 0000-01-01, year 0 is no leap
//! year, 1970-01-01 is day 719528.

/// Day number of 1970-01-01.
pub(crate) const EPOCH_DAY: i64 = 719_528;
/// Day number of 9999-12-31, the last day there is.
pub(crate) const LAST_DAY: i64 = 3_652_424;

const BEFORE_MONTH: [u16; 13] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365];

/// Returns whether February has 29 days. Year 0 does not.
pub fn is_leap(year: u32) -> bool {
    year != 0 && year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

/// 365 or 366.
pub fn days_in_year(year: u32) -> u32 {
    365 + u32::from(is_leap(year))
}

/// Days of a month 1-12; 0 for any other month.
pub fn days_in_month(year: u32, month: u32) -> u32 {
    match month {
        2 => 28 + u32::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    }
}

/// Day of the year, 1-366; month must be 1-12.
pub(crate) fn day_of_year(year: u32, month: u32, day: u32) -> u32 {
    let before = u32::from(BEFORE_MONTH[(month.clamp(1, 12) - 1) as usize]);
    before + day + u32::from(month > 2 && is_leap(year))
}

/// Days up to and including the given date; month must be 1-12.
pub(crate) fn day_number(year: u32, month: u32, day: u32) -> i64 {
    let full = year.saturating_sub(1);
    let leaps = full / 4 - full / 100 + full / 400;
    i64::from(365 * year + leaps + day_of_year(year, month, day))
}

/// The date of a day number, or `None` outside 0000-01-01 to 9999-12-31.
pub(crate) fn from_day_number(number: i64) -> Option<(u32, u32, u32)> {
    if !(1..=LAST_DAY).contains(&number) {
        return None;
    }
    // An estimate never too high by more than one year, then corrected.
    let mut year = (number * 400 / 146_097) as u32;
    while day_number(year, 1, 1) > number {
        year -= 1;
    }
    while year < 9999 && day_number(year + 1, 1, 1) <= number {
        year += 1;
    }
    let of_year = (number - day_number(year, 1, 1)) as u32 + 1;
    let mut month = (of_year / 32).max(1);
    while month < 12 && day_of_year(year, month + 1, 1) <= of_year {
        month += 1;
    }
    Some((year, month, of_year - day_of_year(year, month, 0)))
}
