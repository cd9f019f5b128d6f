//! Chooses the transactions to print: by GTID and by time. Events outside of transactions are always printed.
//!
//! A transaction is printed whole or not at all, so the decision falls at its first event.

use clap::Args;
use omnibus_format::events::Modern;
use omnibus_format::{AnyGtid, DecodeError, GtidSet, RawEvent};
use omnibus_replication::changes::{Borders, Class};
use omnibus_value::temporal::{DateMode, parse_datetime};

/// The restrictions of the command line.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct Wanted {
    /// Begin with the first transaction that began at this time or later (UTC).
    #[arg(long = "start-datetime", value_name = "'YYYY-MM-DD HH:MM:SS'", value_parser = datetime)]
    start: Option<u32>,
    /// End before the first transaction that began at this time or later (UTC).
    #[arg(long = "stop-datetime", value_name = "'YYYY-MM-DD HH:MM:SS'", value_parser = datetime)]
    stop: Option<u32>,
    /// Only transactions with these GTIDs: `uuid:1-5:7`, or `0-1-5,0-1-6`.
    #[arg(long = "include-gtids", value_name = "GTIDS", value_parser = gtids)]
    include: Option<Gtids>,
    /// No transactions with these GTIDs.
    #[arg(long = "exclude-gtids", value_name = "GTIDS", value_parser = gtids)]
    exclude: Option<Gtids>,
    /// Only transactions that this server executed first.
    #[arg(long, value_name = "N")]
    server_id: Option<u32>,
}

impl Wanted {
    /// Returns whether the filter may end the reading.
    pub(super) fn stops(&self) -> bool {
        self.stop.is_some()
    }

    /// Returns whether there is any restriction.
    pub(super) fn is_some(&self) -> bool {
        let gtids = self.include.is_some() || self.exclude.is_some();
        self.start.is_some() || self.stop.is_some() || gtids || self.server_id.is_some()
    }
}

/// GTIDs of either dialect.
#[derive(Clone, Debug, Default)]
pub(super) struct Gtids {
    sets: GtidSet,
    single: Vec<AnyGtid>,
}

impl Gtids {
    fn contains(&self, gtid: Option<&AnyGtid>) -> bool {
        match gtid {
            Some(AnyGtid::Mysql { source, gno }) => self.sets.contains(*source, *gno),
            Some(other) => self.single.contains(other),
            None => false,
        }
    }
}

/// `uuid:1-5:7` of MySQL, or a list `0-1-5,0-1-6` of MariaDB's.
pub(super) fn gtids(text: &str) -> Result<Gtids, String> {
    if let Ok(sets) = text.parse::<GtidSet>() {
        return Ok(Gtids { sets, single: Vec::new() });
    }
    let mut single = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let gtid: omnibus_format::events::MariadbGtid =
            part.parse().map_err(|_| format!("'{part}' is neither uuid:n nor domain-server-sequence"))?;
        single.push(AnyGtid::Mariadb(gtid));
    }
    Ok(Gtids { sets: GtidSet::new(), single })
}

/// `2026-01-31 12:00:00`, in UTC, as seconds since 1970.
pub(super) fn datetime(text: &str) -> Result<u32, String> {
    let wrong = || format!("'{text}' is no date and time like '2026-01-31 12:00:00' (UTC)");
    let parsed = parse_datetime(text.as_bytes(), 0, DateMode::STRICT).map_err(|_| wrong())?;
    let seconds = parsed.value.to_unix().ok_or_else(wrong)?;
    u32::try_from(seconds).map_err(|_| wrong())
}

/// The decision about an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Print,
    Skip,
    /// Neither this event nor any later one is printed.
    Stop,
}

/// Follows one file.
#[derive(Debug, Default)]
pub(super) struct Filter {
    borders: Borders,
    skipping: bool,
    modern: Modern,
}

impl Filter {
    /// Judges the next event.
    pub(super) fn judge(&mut self, event: &RawEvent<'_>, wanted: &Wanted) -> Result<Verdict, DecodeError> {
        let body = self.modern.body(&event.header, event.body);
        let class = self.borders.classify(&event.header, &body)?;
        if let (Class::Begin(trx) | Class::Single(trx), Some(stop)) = (&class, wanted.stop)
            && trx.timestamp >= stop
        {
            return Ok(Verdict::Stop);
        }
        let verdict = match &class {
            Class::Begin(trx) | Class::Single(trx) => {
                let gtid = trx.gtid.as_ref();
                let wants = wanted.start.is_none_or(|start| trx.timestamp >= start)
                    && wanted.include.as_ref().is_none_or(|set| set.contains(gtid))
                    && wanted.exclude.as_ref().is_none_or(|set| !set.contains(gtid))
                    && wanted.server_id.is_none_or(|id| trx.server_id == id);
                self.skipping = !wants;
                self.skipping
            }
            Class::Inside | Class::End => self.skipping,
            Class::Other => false,
        };
        if matches!(class, Class::End | Class::Single(_)) {
            self.skipping = false;
        }
        Ok(if verdict { Verdict::Skip } else { Verdict::Print })
    }
}
