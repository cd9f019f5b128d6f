//! INTERVAL expressions: units, their text forms ('1:30' MINUTE_SECOND), and date arithmetic.

use super::{Date, DateTime, Time, days_in_month};

/// The unit of an INTERVAL, EXTRACT or TIMESTAMPDIFF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum IntervalUnit {
    Microsecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    SecondMicrosecond,
    MinuteMicrosecond,
    MinuteSecond,
    HourMicrosecond,
    HourSecond,
    HourMinute,
    DayMicrosecond,
    DaySecond,
    DayMinute,
    DayHour,
    YearMonth,
}

/// (unit, its word), in the units' own order.
const UNITS: [(IntervalUnit, &str); 20] = [
    (IntervalUnit::Microsecond, "MICROSECOND"),
    (IntervalUnit::Second, "SECOND"),
    (IntervalUnit::Minute, "MINUTE"),
    (IntervalUnit::Hour, "HOUR"),
    (IntervalUnit::Day, "DAY"),
    (IntervalUnit::Week, "WEEK"),
    (IntervalUnit::Month, "MONTH"),
    (IntervalUnit::Quarter, "QUARTER"),
    (IntervalUnit::Year, "YEAR"),
    (IntervalUnit::SecondMicrosecond, "SECOND_MICROSECOND"),
    (IntervalUnit::MinuteMicrosecond, "MINUTE_MICROSECOND"),
    (IntervalUnit::MinuteSecond, "MINUTE_SECOND"),
    (IntervalUnit::HourMicrosecond, "HOUR_MICROSECOND"),
    (IntervalUnit::HourSecond, "HOUR_SECOND"),
    (IntervalUnit::HourMinute, "HOUR_MINUTE"),
    (IntervalUnit::DayMicrosecond, "DAY_MICROSECOND"),
    (IntervalUnit::DaySecond, "DAY_SECOND"),
    (IntervalUnit::DayMinute, "DAY_MINUTE"),
    (IntervalUnit::DayHour, "DAY_HOUR"),
    (IntervalUnit::YearMonth, "YEAR_MONTH"),
];

impl IntervalUnit {
    /// From its word in any case, also `SQL_TSI_DAY`.
    #[must_use]
    pub fn from_word(word: &[u8]) -> Option<Self> {
        let word = match word.get(..8) {
            Some(prefix) if prefix.eq_ignore_ascii_case(b"SQL_TSI_") => &word[8..],
            _ => word,
        };
        UNITS.iter().find(|(_, w)| w.as_bytes().eq_ignore_ascii_case(word)).map(|(u, _)| *u)
    }

    /// The unit whose `as u8` this is.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        UNITS.get(usize::from(number)).map(|(unit, _)| *unit)
    }

    /// Its word in upper case, as in `INTERVAL 1 DAY_HOUR`.
    #[must_use]
    pub fn word(self) -> &'static str {
        UNITS[self as usize].1
    }
}

/// An amount of time: months, and microseconds, never mixed by MySQL's units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Months, signed.
    pub months: i64,
    /// Microseconds, signed.
    pub micros: i64,
}

const SECOND: i64 = 1_000_000;

impl IntervalUnit {
    /// Adding it changes a DATE into a DATETIME.
    pub fn has_time(self) -> bool {
        use IntervalUnit::*;
        !matches!(self, Day | Week | Month | Quarter | Year | YearMonth)
    }

    /// Adds to a TIME and makes no date of it.
    pub fn is_of_time(self) -> bool {
        self.has_time() && !self.word().starts_with("DAY")
    }

    /// Takes a string of several numbers.
    pub fn is_compound(self) -> bool {
        self.word().contains('_')
    }

    /// Fractional second digits that adding it may produce beyond the operand's.
    pub fn has_micros(self) -> bool {
        self.word().ends_with("MICROSECOND")
    }

    fn scale(self) -> (i64, i64) {
        use IntervalUnit::*;
        match self {
            Microsecond => (0, 1),
            Second => (0, SECOND),
            Minute => (0, 60 * SECOND),
            Hour => (0, 3600 * SECOND),
            Day => (0, 86_400 * SECOND),
            Week => (0, 7 * 86_400 * SECOND),
            Month => (1, 0),
            Quarter => (3, 0),
            Year => (12, 0),
            _ => (0, 0),
        }
    }

    /// Multipliers of a compound unit's fields, the most significant first.
    fn fields(self) -> &'static [i64] {
        use IntervalUnit::*;
        const D: i64 = 86_400 * SECOND;
        const H: i64 = 3600 * SECOND;
        const M: i64 = 60 * SECOND;
        match self {
            SecondMicrosecond => &[SECOND, 1],
            MinuteMicrosecond => &[M, SECOND, 1],
            MinuteSecond => &[M, SECOND],
            HourMicrosecond => &[H, M, SECOND, 1],
            HourSecond => &[H, M, SECOND],
            HourMinute => &[H, M],
            DayMicrosecond => &[D, H, M, SECOND, 1],
            DaySecond => &[D, H, M, SECOND],
            DayMinute => &[D, H, M],
            DayHour => &[D, H],
            YearMonth => &[12, 1],
            _ => &[],
        }
    }
}

impl Interval {
    /// `amount` of a simple unit; `None` on overflow or for a compound unit.
    pub fn of(amount: i64, unit: IntervalUnit) -> Option<Interval> {
        if unit.is_compound() {
            return None;
        }
        let (months, micros) = unit.scale();
        Some(Interval { months: amount.checked_mul(months)?, micros: amount.checked_mul(micros)? })
    }

    /// Seconds with a fraction, in microseconds (INTERVAL 1.5 SECOND).
    pub fn of_micros(micros: i64) -> Interval {
        Interval { months: 0, micros }
    }

    /// A compound unit from its string: numbers separated by anything; missing leading fields are
    /// zero, so '1' is the least significant field.
    pub fn parse(text: &[u8], unit: IntervalUnit) -> Option<Interval> {
        let fields = unit.fields();
        let start = text.iter().position(|c| !c.is_ascii_whitespace()).unwrap_or(text.len());
        let text = &text[start..];
        let (negative, text) = match text.first() {
            Some(b'-') => (true, &text[1..]),
            _ => (false, text),
        };
        let mut numbers: Vec<(i64, usize)> = Vec::with_capacity(5);
        for run in text.split(|c| !c.is_ascii_digit()).filter(|run| !run.is_empty()) {
            if numbers.len() == fields.len() {
                return None;
            }
            let n = std::str::from_utf8(run).ok()?.parse::<i64>().ok()?;
            numbers.push((n, run.len()));
        }
        let mut total = 0i64;
        let skipped = fields.len() - numbers.len();
        for (&scale, &(n, digits)) in fields[skipped..].iter().zip(&numbers) {
            // '1.5' SECOND_MICROSECOND is half a second: the last field is a fraction.
            let is_fraction = scale == 1 && unit.has_micros();
            let n = if is_fraction && digits < 6 { n * 10i64.pow(6 - digits as u32) } else { n };
            total = total.checked_add(n.checked_mul(scale)?)?;
        }
        let total = if negative { -total } else { total };
        Some(match unit {
            IntervalUnit::YearMonth => Interval { months: total, micros: 0 },
            _ => Interval { months: 0, micros: total },
        })
    }

    /// The opposite amount.
    pub fn negate(self) -> Interval {
        Interval { months: self.months.saturating_neg(), micros: self.micros.saturating_neg() }
    }
}

fn add_months(date: Date, months: i64) -> Option<Date> {
    let (y, m, d) = date.ymd();
    if m == 0 {
        return None;
    }
    let total = i64::from(y * 12 + m - 1).checked_add(months)?;
    if !(0..120_000).contains(&total) {
        return None;
    }
    let (y, m) = ((total / 12) as u32, (total % 12) as u32 + 1);
    Date::from_ymd(y, m, d.min(days_in_month(y, m)))
}

impl DateTime {
    /// DATE_ADD; `None` (SQL NULL) when out of range or when a zero part gives no meaning.
    #[allow(clippy::should_implement_trait, reason = "the result may be NULL")]
    pub fn add(self, interval: Interval) -> Option<DateTime> {
        let mut out = self;
        if interval.months != 0 {
            let date = add_months(self.date(), interval.months)?;
            out = DateTime::from_parts(date, self.time())?;
        }
        if interval.micros == 0 {
            return out.date().is_full().then_some(out);
        }
        DateTime::from_micros(out.to_micros()?.checked_add(interval.micros)?)
    }

    /// TIMESTAMPDIFF(unit, self, later): whole units from `self` to `later`, toward zero.
    pub fn timestamp_diff(self, later: DateTime, unit: IntervalUnit) -> Option<i64> {
        let (months, micros) = unit.scale();
        let diff = later.diff_micros(self)?;
        if months == 0 {
            return (micros != 0).then(|| diff / micros);
        }
        let (from, to, sign) = if diff < 0 { (later, self, -1) } else { (self, later, 1) };
        let (fd, td) = (from.date(), to.date());
        let month_of = |d: Date| i64::from(d.year() * 12 + d.month());
        let mut whole = month_of(td) - month_of(fd);
        if (td.day(), to.time()) < (fd.day(), from.time()) {
            whole -= 1;
        }
        Some(sign * (whole / months))
    }
}

impl Time {
    /// Adds an interval without months, clipped out of range to `None`.
    #[allow(clippy::should_implement_trait, reason = "the result may be NULL")]
    pub fn add(self, interval: Interval) -> Option<Time> {
        if interval.months != 0 {
            return None;
        }
        Time::from_micros(self.to_micros().checked_add(interval.micros)?)
    }
}
