//! The set of executed transactions in either dialect: MySQL's GTID set, or MariaDB's binlog state. Pure.

use crate::binlog_state::BinlogState;
use crate::events::MariadbGtid;
use crate::gtid::{GtidSet, Interval};
use crate::identity::AnyGtid;
use std::fmt;

/// The server whose GTIDs and events a binary log uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// `uuid:number`, PREVIOUS_GTIDS, ROWS_QUERY.
    #[default]
    Mysql,
    /// `domain-server-sequence`, GTID_LIST, ANNOTATE_ROWS.
    Mariadb,
}

impl Dialect {
    /// The dialect's name in options and files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Mysql => "mysql",
            Dialect::Mariadb => "mariadb",
        }
    }

    /// Parses a dialect's name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Dialect> {
        [Dialect::Mysql, Dialect::Mariadb]
            .into_iter()
            .find(|dialect| dialect.name().eq_ignore_ascii_case(name))
    }
}

impl AnyGtid {
    /// The dialect of this id.
    #[must_use]
    pub fn dialect(self) -> Dialect {
        match self {
            AnyGtid::Mysql { .. } => Dialect::Mysql,
            AnyGtid::Mariadb(_) => Dialect::Mariadb,
        }
    }

    /// Returns the id that is `by` numbers later, of the same server.
    #[must_use]
    pub fn later(self, by: u64) -> AnyGtid {
        match self {
            AnyGtid::Mysql { source, gno } => AnyGtid::Mysql { source, gno: gno.saturating_add(by) },
            AnyGtid::Mariadb(gtid) => {
                AnyGtid::Mariadb(MariadbGtid { sequence: gtid.sequence.saturating_add(by), ..gtid })
            }
        }
    }
}

/// Executed transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GtidState {
    /// MySQL's set.
    Mysql(GtidSet),
    /// MariaDB's state.
    Mariadb(BinlogState),
}

impl Default for GtidState {
    fn default() -> GtidState {
        GtidState::new(Dialect::Mysql)
    }
}

impl GtidState {
    /// Creates an empty state.
    #[must_use]
    pub fn new(dialect: Dialect) -> GtidState {
        match dialect {
            Dialect::Mysql => GtidState::Mysql(GtidSet::new()),
            Dialect::Mariadb => GtidState::Mariadb(BinlogState::default()),
        }
    }

    /// The dialect of the state.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        match self {
            GtidState::Mysql(_) => Dialect::Mysql,
            GtidState::Mariadb(_) => Dialect::Mariadb,
        }
    }

    /// MySQL's set, if it is one.
    #[must_use]
    pub fn set(&self) -> Option<&GtidSet> {
        if let GtidState::Mysql(set) = self { Some(set) } else { None }
    }

    /// MariaDB's state, if it is one.
    #[must_use]
    pub fn state(&self) -> Option<&BinlogState> {
        if let GtidState::Mariadb(state) = self { Some(state) } else { None }
    }

    /// Returns whether no transaction has been executed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            GtidState::Mysql(set) => set.is_empty(),
            GtidState::Mariadb(state) => state.is_empty(),
        }
    }

    /// Adds a GTID; one of the other dialect is ignored.
    pub fn add(&mut self, gtid: AnyGtid) {
        self.add_run(gtid, 1);
    }

    /// Adds `count` GTIDs of one server, from `gtid` on.
    pub fn add_run(&mut self, gtid: AnyGtid, count: u64) {
        match (self, gtid) {
            (GtidState::Mysql(set), AnyGtid::Mysql { source, gno }) => {
                set.add_interval(source, Interval { start: gno, end: gno.saturating_add(count) });
            }
            (GtidState::Mariadb(state), AnyGtid::Mariadb(first)) if count > 0 => {
                state.add(MariadbGtid { sequence: first.sequence.saturating_add(count - 1), ..first });
            }
            _ => {}
        }
    }

    /// Returns whether a GTID has been executed.
    #[must_use]
    pub fn contains(&self, gtid: AnyGtid) -> bool {
        match (self, gtid) {
            (GtidState::Mysql(set), AnyGtid::Mysql { source, gno }) => set.contains(source, gno),
            (GtidState::Mariadb(state), AnyGtid::Mariadb(gtid)) => state.contains(gtid),
            _ => false,
        }
    }
}

impl fmt::Display for GtidState {
    /// `gtid_executed`, or `gtid_binlog_pos`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GtidState::Mysql(set) => set.fmt(f),
            GtidState::Mariadb(state) => state.position().fmt(f),
        }
    }
}
