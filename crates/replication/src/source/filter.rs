//! Filters out the transactions that a client by GTID has already. Pure.

use super::block::BlockEvent;
use super::error::SourceError;
use omnibus_format::events::{Gtid, MariadbGtid, MariadbGtidEvent};
use omnibus_format::{BinlogState, GtidPosition};
use omnibus_format::{Checksum, EventHeader, GtidSet};
use std::collections::BTreeMap;

/// The transactions to leave out; see the module.
#[derive(Clone, Debug, Default)]
pub enum Filter {
    /// None: the client asked by file and position.
    #[default]
    All,
    /// Those of this set.
    Mysql(GtidSet),
    /// Those up to a MariaDB position.
    Mariadb(MariadbFilter),
}

/// The filter in MariaDB's dialect: in each domain the client names the last transaction that it has.
#[derive(Clone, Debug, Default)]
pub struct MariadbFilter {
    /// The domains in which that transaction has not been read yet.
    skipping: BTreeMap<u32, MariadbGtid>,
    /// `gtid_strict_mode` of the client: that transaction must be in the log.
    strict: bool,
    /// `START SLAVE UNTIL`: the domains that have not reached their end.
    until: Option<BTreeMap<u32, MariadbGtid>>,
    /// The domain whose last transaction is being sent.
    last_of: Option<u32>,
}

impl MariadbFilter {
    /// Creates the filter of a client at `position`; the stream begins behind `before`.
    #[must_use]
    pub fn new(
        position: GtidPosition,
        before: &BinlogState,
        strict: bool,
        until: Option<GtidPosition>,
    ) -> MariadbFilter {
        let mut skipping = position.0;
        skipping.retain(|domain, at| before.newest(*domain) != Some(*at));
        MariadbFilter { skipping, strict, until: until.map(|until| until.0), last_of: None }
    }

    fn skips(&mut self, gtid: MariadbGtid) -> Result<bool, SourceError> {
        self.end_of_group();
        if let Some(until) = &self.until {
            match until.get(&gtid.domain) {
                None => return Ok(true),
                Some(last) if gtid.server == last.server && gtid.sequence >= last.sequence => {
                    self.last_of = Some(gtid.domain);
                }
                Some(_) => {}
            }
        }
        let Some(at) = self.skipping.get(&gtid.domain).copied() else { return Ok(false) };
        if gtid == at {
            self.skipping.remove(&gtid.domain);
            return Ok(true);
        }
        if gtid.server == at.server && gtid.sequence > at.sequence {
            if self.strict {
                return Err(SourceError::NotInLog { gtid: at.to_string() });
            }
            self.skipping.remove(&gtid.domain);
            return Ok(false);
        }
        Ok(true)
    }

    fn end_of_group(&mut self) {
        if let (Some(domain), Some(until)) = (self.last_of.take(), &mut self.until) {
            until.remove(&domain);
        }
    }
}

impl Filter {
    /// Begins a transaction. Returns whether it is left out.
    ///
    /// # Errors
    /// The client's position is not in the log.
    pub(super) fn skips(&mut self, event: &BlockEvent<'_>, checksum: Checksum) -> Result<bool, SourceError> {
        match self {
            Filter::All => Ok(false),
            Filter::Mysql(executed) => {
                let gtid = Gtid::decode_as(event.event_type(), event.body(checksum));
                Ok(gtid.is_ok_and(|gtid| executed.contains(gtid.source(), gtid.gno)))
            }
            Filter::Mariadb(filter) => {
                let header = EventHeader::decode(event.bytes);
                let body = MariadbGtidEvent::decode(event.body(checksum));
                let (Ok(header), Ok(body)) = (header, body) else { return Ok(false) };
                let (domain, sequence) = (body.domain, body.sequence);
                filter.skips(MariadbGtid { domain, server: header.server_id, sequence })
            }
        }
    }

    /// Returns whether `START SLAVE UNTIL` is fulfilled. Everything sent so far ends with a whole transaction.
    pub(super) fn is_fulfilled(&mut self) -> bool {
        let Filter::Mariadb(filter) = self else { return false };
        filter.end_of_group();
        filter.until.as_ref().is_some_and(BTreeMap::is_empty)
    }

    /// Returns whether the client is a replica that MySQL's heartbeats move past transactions that were left out.
    pub(super) fn is_mysql(&self) -> bool {
        matches!(self, Filter::Mysql(_))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn gtid(domain: u32, server: u32, sequence: u64) -> MariadbGtid {
        MariadbGtid { domain, server, sequence }
    }

    #[test]
    fn a_domain_is_skipped_up_to_the_clients_transaction_and_others_are_not() {
        let position: GtidPosition = "0-1-2,1-1-7".parse().unwrap();
        let before: BinlogState = "1-1-7".parse().unwrap();
        let mut filter = MariadbFilter::new(position, &before, true, None);
        let log = [gtid(0, 1, 1), gtid(1, 1, 8), gtid(0, 1, 2), gtid(2, 9, 1), gtid(0, 2, 3)];
        let sent: Vec<_> = log.into_iter().filter(|g| !filter.skips(*g).unwrap()).collect();
        assert_eq!(sent, [gtid(1, 1, 8), gtid(2, 9, 1), gtid(0, 2, 3)]);
    }

    #[test]
    fn a_hole_at_the_clients_position_is_an_error_only_if_it_is_strict() {
        let position: GtidPosition = "0-1-2".parse().unwrap();
        let mut strict = MariadbFilter::new(position.clone(), &BinlogState::default(), true, None);
        assert!(strict.skips(gtid(0, 1, 1)).unwrap());
        assert!(strict.skips(gtid(0, 1, 3)).is_err());
        let mut lenient = MariadbFilter::new(position, &BinlogState::default(), false, None);
        assert!(!lenient.skips(gtid(0, 1, 3)).unwrap());
    }

    #[test]
    fn until_ends_behind_the_last_transaction_wanted() {
        let until: GtidPosition = "0-1-2".parse().unwrap();
        let filter = MariadbFilter::new(GtidPosition::default(), &BinlogState::default(), false, Some(until));
        let mut filter = Filter::Mariadb(filter);
        let mut skips = |gtid| {
            let Filter::Mariadb(inner) = &mut filter else { unreachable!() };
            let skips = inner.skips(gtid).unwrap();
            (skips, filter.is_fulfilled())
        };
        assert_eq!(skips(gtid(0, 1, 1)), (false, false));
        assert_eq!(skips(gtid(5, 1, 1)), (true, false), "a domain that was not asked for");
        assert_eq!(skips(gtid(0, 1, 2)), (false, true));
    }
}
