//! Names of months and days in the languages of `lc_time_names`.
//!
//! `names.tsv` has a locale a line, in the order of the numbers that the binary log knows them by: name, months, short
//! months, days from Monday, short days;
//! decimal point, thousands separator and size of groups. Not here: which locale a session has. Pure; read once, when a session first asks for
//! something else than the default.

use std::sync::OnceLock;

/// A language's names. All text is UTF-8.
#[derive(Debug)]
pub struct Locale {
    /// Its number in the binary log.
    pub number: u16,
    /// Such as `de_DE`.
    pub name: &'static str,
    months: [&'static str; 12],
    short_months: [&'static str; 12],
    days: [&'static str; 7],
    short_days: [&'static str; 7],
    number_format: NumberFormat,
}

/// The format of numbers in FORMAT().
#[derive(Clone, Copy, Debug)]
pub struct NumberFormat {
    /// Before the decimals.
    pub point: &'static str,
    /// Between groups of digits; may be empty.
    pub separator: &'static str,
    /// Digits of the groups in front of the last one, which has three; 0 if there are no groups.
    pub group: usize,
}

/// `en_US`, the default.
pub static ENGLISH: Locale = Locale {
    number: 0,
    name: "en_US",
    months: [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ],
    short_months: ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"],
    days: ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"],
    short_days: ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"],
    number_format: NumberFormat { point: ".", separator: ",", group: 3 },
};

impl Locale {
    /// The months' names.
    #[must_use]
    pub fn months(&self) -> &[&'static str; 12] {
        &self.months
    }

    /// The days' names, from Monday.
    #[must_use]
    pub fn days(&self) -> &[&'static str; 7] {
        &self.days
    }

    /// A month's name, from 1; `None` for the month of a date without one.
    #[must_use]
    pub fn month(&self, month: u32) -> Option<&'static str> {
        self.months.get((month as usize).checked_sub(1)?).copied()
    }

    /// The same, abbreviated.
    #[must_use]
    pub fn short_month(&self, month: u32) -> Option<&'static str> {
        self.short_months.get((month as usize).checked_sub(1)?).copied()
    }

    /// A day's name; 0 is Monday.
    #[must_use]
    pub fn day(&self, weekday: u32) -> Option<&'static str> {
        self.days.get(weekday as usize).copied()
    }

    /// The same, abbreviated.
    #[must_use]
    pub fn short_day(&self, weekday: u32) -> Option<&'static str> {
        self.short_days.get(weekday as usize).copied()
    }

    /// The format of numbers.
    #[must_use]
    pub fn number_format(&self) -> NumberFormat {
        self.number_format
    }

    /// Characters of the longest name of a day, and of a month.
    #[must_use]
    pub fn longest(&self) -> (u32, u32) {
        let longest =
            |names: &[&str]| names.iter().map(|name| name.chars().count()).max().unwrap_or(0) as u32;
        (longest(&self.days), longest(&self.months))
    }
}

/// A locale by its name, without case.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Locale> {
    all().iter().find(|locale| locale.name.eq_ignore_ascii_case(name))
}

/// A locale by its number.
#[must_use]
pub fn by_number(number: u16) -> Option<&'static Locale> {
    match number {
        0 => Some(&ENGLISH),
        _ => all().get(usize::from(number)),
    }
}

fn all() -> &'static [Locale] {
    static ALL: OnceLock<Vec<Locale>> = OnceLock::new();
    ALL.get_or_init(|| {
        let lines = include_str!("names.tsv").lines().enumerate();
        lines.filter_map(|(number, line)| parse(number as u16, line)).collect()
    })
}

fn parse(number: u16, line: &'static str) -> Option<Locale> {
    let mut fields = line.split('\t');
    Some(Locale {
        number,
        name: fields.next()?,
        months: names(fields.next()?)?,
        short_months: names(fields.next()?)?,
        days: names(fields.next()?)?,
        short_days: names(fields.next()?)?,
        number_format: number_format(fields.next()?)?,
    })
}

fn number_format(field: &'static str) -> Option<NumberFormat> {
    let [point, separator, group] = names(field)?;
    Some(NumberFormat { point, separator, group: group.parse().ok()? })
}

fn names<const N: usize>(field: &'static str) -> Option<[&'static str; N]> {
    field.split('|').collect::<Vec<_>>().try_into().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_line_is_a_locale_and_the_first_is_the_default() {
        assert_eq!(all().len(), include_str!("names.tsv").lines().count());
        assert_eq!(format!("{:?}", all()[0]), format!("{ENGLISH:?}"));
    }

    #[test]
    fn names_have_their_numbers() {
        let german = by_name("DE_de").unwrap();
        assert_eq!((german.number, german.month(3), german.short_day(6)), (4, Some("März"), Some("So")));
        assert_eq!(by_number(4).unwrap().name, "de_DE");
        assert!(german.month(0).is_none() && by_number(5000).is_none() && by_name("xx_XX").is_none());
    }
}
