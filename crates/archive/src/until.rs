//! Up to where a log is brought back, and where in its files that is.
//!
//! A restore ends between two transactions: behind the one with a GTID, in front of the first that was committed after a time,
//! in front of the first that ends behind a position. Follows the files' events in order, as recovery does; what stands between
//! two transactions and is not logged for others (`sql_log_bin=0`) belongs to those in front of it.

use crate::inventory::split;
use crate::layout::BaseBackup;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use omnibus_format::events::MariadbGtid;
use omnibus_format::group::opens_group;
use omnibus_format::{AnyGtid, DecodeError, EventType, GtidSet, LogPrivate, RawEvent};
use omnibus_log::FileSeq;
use omnibus_replication::changes::{Borders, Class};
use std::fmt;
use std::str::FromStr;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Until {
    /// All that is archived.
    #[default]
    Newest,
    /// All transactions committed up to this time: microseconds since 1970.
    Time(u64),
    /// Up to and with the last of these transactions.
    Gtids(GtidSet),
    /// Up to and with this one of MariaDB's dialect.
    Gtid(MariadbGtid),
    /// Up to this place of the log.
    Position(String, u64),
}

impl FromStr for Until {
    type Err = String;

    fn from_str(text: &str) -> Result<Until, String> {
        let text = text.trim();
        if text.eq_ignore_ascii_case("newest") {
            return Ok(Until::Newest);
        }
        if let Some((file, offset)) = text.rsplit_once(':')
            && split(file).is_some()
            && let Ok(offset) = offset.parse()
        {
            return Ok(Until::Position(file.to_owned(), offset));
        }
        if let Ok(set) = text.parse::<GtidSet>()
            && !set.is_empty()
        {
            return Ok(Until::Gtids(set));
        }
        let utc = |time: DateTime| time.to_zoned(TimeZone::UTC).map(|time| time.timestamp());
        let time = text.parse::<Timestamp>().or_else(|_| text.parse::<DateTime>().and_then(utc));
        if let Some(us) = time.ok().and_then(|time| u64::try_from(time.as_microsecond()).ok()) {
            return Ok(Until::Time(us));
        }
        // Behind dates, which may look like one.
        text.parse::<MariadbGtid>().map(Until::Gtid).map_err(|_| {
            format!(
                "'{text}' is no position (binlog.000007:4711), GTID (uuid:7, 0-1-7), or time (2026-01-31 12:00:00.5, in UTC, or \
                 2026-01-31T12:00:00+01:00)"
            )
        })
    }
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Until::Newest => f.write_str("newest"),
            Until::Time(us) => f.write_str(&time_text(*us)),
            Until::Gtids(set) => set.fmt(f),
            Until::Gtid(gtid) => gtid.fmt(f),
            Until::Position(file, offset) => write!(f, "{file}:{offset}"),
        }
    }
}

/// RFC 3339, in UTC.
pub(crate) fn time_text(us: u64) -> String {
    let time = i64::try_from(us).ok().and_then(|us| Timestamp::from_microsecond(us).ok());
    time.map_or_else(|| us.to_string(), |time| time.to_string())
}

/// Returns whether a MariaDB position includes this GTID.
fn reached(position: &str, gtid: MariadbGtid) -> bool {
    let of_domain =
        |part: &str| part.trim().parse::<MariadbGtid>().ok().filter(|id| id.domain == gtid.domain);
    position.split(',').filter_map(of_domain).any(|id| id.sequence >= gtid.sequence)
}

impl Until {
    /// Returns whether a backup is not past it.
    pub(crate) fn can_begin_with(&self, backup: &BaseBackup) -> bool {
        match self {
            Until::Newest => true,
            Until::Time(us) => backup.taken_us <= *us,
            Until::Gtids(wanted) => backup
                .info
                .gtid_executed
                .parse::<GtidSet>()
                .is_ok_and(|executed| !executed.contains_set(wanted)),
            Until::Gtid(gtid) => !reached(&backup.info.gtid_executed, *gtid),
            Until::Position(file, offset) => {
                let of = |file: &str, offset| split(file).map(|(_, seq)| (seq, offset));
                of(&backup.info.file, backup.info.position) <= of(file, *offset)
            }
        }
    }
}

/// Follows the log's files from a base backup on.
#[derive(Debug)]
pub(crate) struct Search {
    until: Until,
    /// The executed transactions in MySQL's dialect, from the backup on.
    executed: GtidSet,
    /// The end of the backup: nothing before it is searched.
    from: (FileSeq, u64),
    seq: FileSeq,
    borders: Borders,
    /// In a group of private events that ends here.
    held: Option<u64>,
    /// The last place between two transactions.
    pub border: u64,
    /// The time of the last commit.
    pub last_us: u64,
    /// Transactions behind the backup.
    pub transactions: u64,
    /// The transaction that is open, and when it was committed.
    current: Option<(Option<AnyGtid>, u64)>,
    /// Whether the requested point was reached.
    pub found: bool,
}

/// Whether to continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    On,
    /// The log ends here: at [`Search::border`] of this file.
    Stop,
}

impl Search {
    pub fn new(until: Until, backup: &BaseBackup, seq: FileSeq) -> Search {
        Search {
            until,
            executed: backup.info.gtid_executed.parse().unwrap_or_default(),
            from: (seq, backup.info.position),
            seq,
            borders: Borders::default(),
            held: None,
            border: 4,
            last_us: 0,
            transactions: 0,
            current: None,
            found: false,
        }
    }

    /// A file begins.
    pub fn file(&mut self, seq: FileSeq) {
        (self.seq, self.borders) = (seq, Borders::default());
        (self.held, self.border, self.current) = (None, 4, None);
    }

    /// The transactions executed so far, in MySQL's dialect.
    pub fn executed(&self) -> &GtidSet {
        &self.executed
    }

    /// The requested point.
    pub fn until(&self) -> &Until {
        &self.until
    }

    /// Returns whether the end of the log is an answer, too, because nothing was committed later.
    pub fn may_end_early(&self) -> bool {
        matches!(self.until, Until::Newest | Until::Time(_))
    }

    /// The file is read; `complete` if another one follows. Whether what was asked for is in it.
    pub fn file_ended(&mut self, complete: bool) -> Step {
        let in_it = self.place().is_some_and(|(seq, offset)| {
            seq == self.seq && (complete || offset == self.border) || seq < self.seq
        });
        if in_it { self.stop() } else { Step::On }
    }

    /// Takes the next event.
    pub fn step(&mut self, event: &RawEvent<'_>) -> Result<Step, DecodeError> {
        let mut closes = false;
        match self.borders.classify(&event.header, event.body)? {
            Class::Begin(trx) | Class::Single(trx) if (self.seq, event.offset) >= self.from => {
                let us = match trx.immediate_commit_us {
                    0 => u64::from(trx.timestamp) * 1_000_000,
                    us => us,
                };
                if matches!(self.until, Until::Time(time) if us > time) {
                    return Ok(self.stop());
                }
                self.current = Some((trx.gtid, us));
                closes = !self.borders.is_open();
            }
            Class::End => closes = true,
            _ => self.hold(event),
        }
        if self.borders.is_open() || self.held.is_some() {
            return Ok(Step::On);
        }
        if self.place().is_some_and(|(seq, offset)| seq == self.seq && event.end() > offset) {
            return Ok(self.stop());
        }
        self.border = event.end();
        if closes && let Some((gtid, us)) = self.current.take() {
            self.last_us = us;
            self.transactions += 1;
            if self.is_last(gtid) {
                return Ok(self.stop());
            }
        }
        Ok(Step::On)
    }

    fn stop(&mut self) -> Step {
        self.found = true;
        Step::Stop
    }

    /// The position that is asked for.
    fn place(&self) -> Option<(FileSeq, u64)> {
        let Until::Position(file, offset) = &self.until else { return None };
        split(file).map(|(_, seq)| (seq, *offset))
    }

    /// A transaction has ended: whether it was the last one that is wanted.
    fn is_last(&mut self, gtid: Option<AnyGtid>) -> bool {
        match (gtid, &self.until) {
            (Some(AnyGtid::Mysql { source, gno }), until) => {
                self.executed.add(source, gno);
                matches!(until, Until::Gtids(wanted) if self.executed.contains_set(wanted))
            }
            (Some(AnyGtid::Mariadb(gtid)), Until::Gtid(wanted)) => gtid == *wanted,
            _ => false,
        }
    }

    /// Private events between transactions that belong together.
    fn hold(&mut self, event: &RawEvent<'_>) {
        if opens_group(event) {
            let len = event.bytes.len() as u64;
            self.held = self.held.map(|until| until + len);
        } else if let Some(LogPrivate::CommitMark { len, gtid, .. }) = LogPrivate::of_event(event) {
            self.held = Some(event.end() + len);
            self.executed.union(&gtid);
        } else if matches!(event.header.event_type, EventType::ROTATE | EventType::STOP) {
            self.held = None;
        }
        self.held = self.held.filter(|until| event.end() < *until);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_asked_for_is_understood_and_the_rest_refused() {
        let of = |text: &str| text.parse::<Until>();
        assert_eq!(of("newest").unwrap(), Until::Newest);
        assert_eq!(of("binlog.000007:4711").unwrap(), Until::Position("binlog.000007".into(), 4711));
        assert_eq!(of("1970-01-01 00:00:01.5").unwrap(), Until::Time(1_500_000));
        assert_eq!(of("1970-01-01T01:00:01+01:00").unwrap(), Until::Time(1_000_000));
        assert_eq!(of("1970-01-01T00:00:02Z").unwrap(), Until::Time(2_000_000));
        assert_eq!(of("1970-01-02").unwrap(), Until::Time(86_400_000_000));
        assert_eq!(of("0-1-7").unwrap(), Until::Gtid(MariadbGtid { domain: 0, server: 1, sequence: 7 }));
        let set = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:9";
        assert_eq!(of(set).unwrap(), Until::Gtids(set.parse().unwrap()));
        for text in ["", "yesterday", "binlog.7:1", "12:00:00", "binlog.000007"] {
            assert!(of(text).is_err(), "{text}");
        }
        for text in ["newest", "binlog.000007:4711", "0-1-7", set, "1970-01-01T00:00:02Z"] {
            assert_eq!(of(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_backup_that_is_past_the_place_is_no_beginning() {
        let mut backup = BaseBackup { taken_us: 5_000_000, ..BaseBackup::default() };
        backup.info.file = "binlog.000003".into();
        backup.info.position = 100;
        backup.info.gtid_executed = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5".into();
        let can = |text: &str| text.parse::<Until>().unwrap().can_begin_with(&backup);
        assert!(can("newest") && can("1970-01-01 00:00:05") && !can("1970-01-01 00:00:04"));
        assert!(can("binlog.000003:100") && can("binlog.000010:4") && !can("binlog.000002:900"));
        assert!(!can("binlog.000003:99"));
        assert!(
            can("3e11fa47-71ca-11e1-9e33-c80aa9429562:6") && !can("3e11fa47-71ca-11e1-9e33-c80aa9429562:3")
        );
        backup.info.gtid_executed = "0-1-5,1-1-9".into();
        let can = |text: &str| text.parse::<Until>().unwrap().can_begin_with(&backup);
        assert!(can("0-1-6") && !can("0-2-5") && can("2-1-1"));
    }
}
