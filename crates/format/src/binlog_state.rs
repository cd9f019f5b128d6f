//! MariaDB's binlog state, the GTIDs in a binary log by domain and server, and positions made of it.
//!
//! Text forms: a *position* has one GTID per domain (`gtid_binlog_pos`, `gtid_slave_pos`); a *state* has the last GTID
//! of every (domain, server), the newest of each domain last (`gtid_binlog_state`, and the order of GTID_LIST). Pure.

use crate::events::MariadbGtid;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// The text is not a list of MariaDB's GTIDs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed GTID list near '{0}'")]
pub struct GtidListError(pub String);

/// One domain's part of a state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Domain {
    /// Last sequence number of each server.
    servers: BTreeMap<u32, u64>,
    /// The server whose GTID was logged last.
    newest: u32,
    /// The largest sequence number of all servers.
    highest: u64,
}

/// The last GTID of every server in every domain, with the newest of each domain marked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BinlogState {
    domains: BTreeMap<u32, Domain>,
}

impl BinlogState {
    /// Records that `gtid` was logged behind all others.
    pub fn add(&mut self, gtid: MariadbGtid) {
        let domain = self.domains.entry(gtid.domain).or_default();
        domain.newest = gtid.server;
        domain.highest = domain.highest.max(gtid.sequence);
        domain.servers.insert(gtid.server, gtid.sequence);
    }

    /// Returns whether the state has no GTID.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.domains.is_empty()
    }

    /// The largest sequence number in a domain, 0 without any. A server's own next number is one more.
    #[must_use]
    pub fn highest(&self, domain: u32) -> u64 {
        self.domains.get(&domain).map_or(0, |domain| domain.highest)
    }

    /// The last sequence number of one server in a domain.
    #[must_use]
    pub fn last(&self, domain: u32, server: u32) -> Option<u64> {
        self.domains.get(&domain)?.servers.get(&server).copied()
    }

    /// The newest GTID of a domain.
    #[must_use]
    pub fn newest(&self, domain: u32) -> Option<MariadbGtid> {
        let found = self.domains.get(&domain)?;
        Some(MariadbGtid { domain, server: found.newest, sequence: *found.servers.get(&found.newest)? })
    }

    /// Returns whether a GTID has been logged: the log has it, or a later one of its server.
    #[must_use]
    pub fn contains(&self, gtid: MariadbGtid) -> bool {
        self.last(gtid.domain, gtid.server).is_some_and(|last| last >= gtid.sequence)
    }

    /// Every GTID, as GTID_LIST has them: by domain, each domain's newest last.
    #[must_use]
    pub fn list(&self) -> Vec<MariadbGtid> {
        let mut list = Vec::new();
        for (&domain, found) in &self.domains {
            let others = found.servers.iter().filter(|(server, _)| **server != found.newest);
            list.extend(others.map(|(&server, &sequence)| MariadbGtid { domain, server, sequence }));
            list.extend(self.newest(domain));
        }
        list
    }

    /// Builds the state from a GTID_LIST, or from a text in its order.
    #[must_use]
    pub fn from_list(list: &[MariadbGtid]) -> BinlogState {
        let mut state = BinlogState::default();
        list.iter().for_each(|gtid| state.add(*gtid));
        state
    }

    /// `gtid_binlog_pos`: the newest GTID of every domain.
    #[must_use]
    pub fn position(&self) -> GtidPosition {
        GtidPosition(
            self.domains.keys().filter_map(|domain| Some((*domain, self.newest(*domain)?))).collect(),
        )
    }
}

impl fmt::Display for BinlogState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_list(f, self.list().iter())
    }
}

impl FromStr for BinlogState {
    type Err = GtidListError;

    /// `0-1-5,0-2-7`; the order says which one of a domain is the newest.
    fn from_str(text: &str) -> Result<Self, GtidListError> {
        let mut seen = std::collections::BTreeSet::new();
        let list = parse_list(text)?;
        match list.iter().find(|gtid| !seen.insert((gtid.domain, gtid.server))) {
            Some(twice) => Err(GtidListError(twice.to_string())),
            None => Ok(BinlogState::from_list(&list)),
        }
    }
}

/// One GTID per domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GtidPosition(pub BTreeMap<u32, MariadbGtid>);

impl GtidPosition {
    /// The GTID of a domain, if there is one.
    #[must_use]
    pub fn get(&self, domain: u32) -> Option<MariadbGtid> {
        self.0.get(&domain).copied()
    }

    /// Replaces the GTID of a domain.
    pub fn set(&mut self, gtid: MariadbGtid) {
        self.0.insert(gtid.domain, gtid);
    }

    /// Returns whether every domain of `other` is here at least as far, by sequence number.
    #[must_use]
    pub fn reaches(&self, other: &GtidPosition) -> bool {
        other.0.values().all(|want| self.get(want.domain).is_some_and(|have| have.sequence >= want.sequence))
    }
}

impl fmt::Display for GtidPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_list(f, self.0.values())
    }
}

impl FromStr for GtidPosition {
    type Err = GtidListError;

    fn from_str(text: &str) -> Result<Self, GtidListError> {
        let mut position = GtidPosition::default();
        for gtid in parse_list(text)? {
            if position.0.insert(gtid.domain, gtid).is_some() {
                return Err(GtidListError(gtid.to_string()));
            }
        }
        Ok(position)
    }
}

impl FromStr for MariadbGtid {
    type Err = GtidListError;

    /// `domain-server-sequence`.
    fn from_str(text: &str) -> Result<Self, GtidListError> {
        let malformed = || GtidListError(text.to_owned());
        let mut parts = text.trim().split('-');
        let mut part = || {
            let digits = parts.next().filter(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
            digits.ok_or_else(malformed)
        };
        let (domain, server, sequence) = (part()?, part()?, part()?);
        let gtid = MariadbGtid {
            domain: domain.parse().map_err(|_| malformed())?,
            server: server.parse().map_err(|_| malformed())?,
            sequence: sequence.parse().map_err(|_| malformed())?,
        };
        if parts.next().is_some() { Err(malformed()) } else { Ok(gtid) }
    }
}

fn parse_list(text: &str) -> Result<Vec<MariadbGtid>, GtidListError> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::parse).collect()
}

fn write_list<'a>(f: &mut fmt::Formatter<'_>, list: impl Iterator<Item = &'a MariadbGtid>) -> fmt::Result {
    for (n, gtid) in list.enumerate() {
        if n > 0 {
            f.write_str(",")?;
        }
        write!(f, "{gtid}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_state_keeps_each_servers_last_and_knows_the_newest_of_a_domain() {
        let mut state: BinlogState = "0-1-5,0-2-7,3-1-1".parse().unwrap();
        assert_eq!(state.position().to_string(), "0-2-7,3-1-1");
        state.add("0-1-8".parse().unwrap());
        assert_eq!(state.to_string(), "0-2-7,0-1-8,3-1-1");
        assert_eq!((state.highest(0), state.highest(9)), (8, 0));
        assert!(state.contains("0-2-6".parse().unwrap()) && !state.contains("0-2-8".parse().unwrap()));
        assert_eq!(state.to_string().parse::<BinlogState>().unwrap(), state);
        assert_eq!(BinlogState::from_list(&state.list()), state);
    }

    #[test]
    fn what_is_not_a_list_is_refused() {
        for text in ["0-1", "0-1-2-3", "a-1-1", "0-1-+1", "0-1-1 0-1-2", "0-1-", "5000000000-1-1"] {
            assert!(text.parse::<GtidPosition>().is_err(), "{text}");
            assert!(text.parse::<BinlogState>().is_err(), "{text}");
        }
        assert!("0-1-1,0-2-2".parse::<GtidPosition>().is_err(), "one GTID a domain");
        assert!("0-1-1,0-1-2".parse::<BinlogState>().is_err(), "one GTID a server");
        assert_eq!("".parse::<GtidPosition>().unwrap().to_string(), "");
    }

    #[test]
    fn a_position_reaches_another_by_its_numbers() {
        let at = |text: &str| text.parse::<GtidPosition>().unwrap();
        assert!(at("0-1-5,1-1-1").reaches(&at("0-9-5")));
        assert!(!at("0-1-5").reaches(&at("0-1-6")) && !at("0-1-5").reaches(&at("1-1-1")));
        assert!(at("").reaches(&at("")));
    }
}
