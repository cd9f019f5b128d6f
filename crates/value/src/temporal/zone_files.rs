//! Time zones by name, from the operating system's zone files; MySQL has tables for them that an administrator must
//! load.
//!
//! A zone is read when it is first asked for and kept until the program ends, like SYSTEM: what a statement means does not
//! change while a server runs. Names come from the system's directory, so their number is bounded. Any thread.

use super::zone::{Instant, Zone};
use jiff::Timestamp;
use jiff::tz::{self, AmbiguousOffset, Offset, TimeZone};
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

/// A zone whose offset from UTC changes.
pub struct NamedZone {
    rules: TimeZone,
    name: Box<str>,
}

impl NamedZone {
    /// Its name in the system's directory.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn offset_at(&self, unix: i64) -> i32 {
        self.rules.to_offset(timestamp(unix)).seconds()
    }

    pub(super) fn instant(&self, local: i64) -> Instant {
        let fields = Offset::UTC.to_datetime(timestamp(local));
        let before = |offset: Offset| local - i64::from(offset.seconds());
        match self.rules.to_ambiguous_timestamp(fields).offset() {
            AmbiguousOffset::Unambiguous { offset } => Instant::Once(before(offset)),
            AmbiguousOffset::Fold { before: first, after } => Instant::Twice(before(first), before(after)),
            AmbiguousOffset::Gap { after, .. } => {
                // Read with the new offset, such fields are ahead of the change.
                let change = self.rules.following(timestamp(before(after))).next();
                Instant::Never(change.map_or(before(after), |change| change.timestamp().as_second()))
            }
        }
    }
}

/// An offset that a zone has for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZonePeriod {
    /// The period's beginning; `None` for the first.
    pub begins: Option<i64>,
    /// Seconds east of UTC.
    pub offset: i32,
    /// Whether it is daylight saving time.
    pub dst: bool,
    /// Its short name, such as `CEST`.
    pub short: String,
}

/// The names of the system's zones.
pub fn zone_names() -> Vec<String> {
    tz::db().available().map(|name| name.as_str().to_owned()).collect()
}

/// Returns the periods of a zone until 2038; none if there is no such zone.
pub fn zone_periods(name: &str) -> Vec<ZonePeriod> {
    let Ok(rules) = TimeZone::get(name) else { return Vec::new() };
    let first = rules.to_offset_info(Timestamp::MIN);
    let mut periods = vec![ZonePeriod {
        begins: None,
        offset: first.offset().seconds(),
        dst: first.dst().is_dst(),
        short: first.abbreviation().to_owned(),
    }];
    let until_2038 = rules
        .following(Timestamp::MIN)
        .take_while(|next| next.timestamp().as_second() <= i64::from(i32::MAX));
    periods.extend(until_2038.map(|next| ZonePeriod {
        begins: Some(next.timestamp().as_second()),
        offset: next.offset().seconds(),
        dst: next.dst().is_dst(),
        short: next.abbreviation().to_owned(),
    }));
    periods
}

fn timestamp(unix: i64) -> Timestamp {
    let (least, most) = (Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
    Timestamp::from_second(unix.clamp(least, most)).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// A zone for good; an offset if that is all it is.
fn keep(rules: TimeZone, name: &str) -> Zone {
    if rules.following(Timestamp::MIN).next().is_none() {
        return Zone::Offset(rules.to_offset(Timestamp::UNIX_EPOCH).seconds());
    }
    Zone::Named(Box::leak(Box::new(NamedZone { rules, name: name.into() })))
}

fn system() -> &'static (Zone, String) {
    static SYSTEM: OnceLock<(Zone, String)> = OnceLock::new();
    SYSTEM.get_or_init(|| match TimeZone::try_system() {
        Ok(rules) if !rules.is_unknown() => {
            let short = rules.to_offset_info(Timestamp::now()).abbreviation().to_owned();
            (keep(rules, "SYSTEM"), short)
        }
        _ => (Zone::Offset(0), "UTC".to_owned()),
    })
}

impl Zone {
    /// The machine's zone: the environment's TZ, or what `/etc/localtime` is.
    pub fn system() -> Zone {
        system().0
    }

    /// The short name of the machine's zone when it was first asked for, such as `CET`.
    pub fn system_name() -> &'static str {
        &system().1
    }

    /// Parses a value of `time_zone`: `SYSTEM`, an offset, or a name, in letters of either case. UTC needs no file.
    pub fn by_name(name: &str) -> Option<Zone> {
        let name = name.to_ascii_lowercase();
        match name.as_str() {
            "system" => return Some(Zone::system()),
            "utc" | "etc/utc" | "gmt" => return Some(Zone::Offset(0)),
            _ => {}
        }
        if let Some(offset) = Zone::parse_offset(name.as_bytes()) {
            return Some(Zone::Offset(offset));
        }
        static KNOWN: OnceLock<Mutex<HashMap<String, Zone>>> = OnceLock::new();
        let mut known = KNOWN.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(zone) = known.get(&name) {
            return Some(*zone);
        }
        let rules = TimeZone::get(&name).ok().filter(|rules| !rules.is_unknown())?;
        let written = rules.iana_name().unwrap_or(&name).to_owned();
        let zone = keep(rules, &written);
        known.insert(name, zone);
        Some(zone)
    }

    /// Returns whether the machine has no zone files at all.
    pub fn no_files() -> bool {
        tz::db().is_definitively_empty()
    }
}
