//! `gtid_mode`: which transactions have a GTID. Pure.
//!
//! When the mode may be changed is decided by `omnibus_commit`, and what a session may ask for by the server.

use crate::tsid::Tsid;
use std::fmt;

/// MySQL's four modes, each a step from its neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GtidMode {
    /// No transaction may have a GTID.
    Off,
    /// New transactions are anonymous; those that are given a GTID, or come from elsewhere with one, keep it.
    OffPermissive,
    /// New transactions have a GTID; those that come from elsewhere without one stay anonymous.
    OnPermissive,
    /// Every transaction has a GTID.
    #[default]
    On,
}

impl GtidMode {
    /// All modes, from OFF to ON.
    pub const ALL: [GtidMode; 4] =
        [GtidMode::Off, GtidMode::OffPermissive, GtidMode::OnPermissive, GtidMode::On];

    /// The mode's name in system variables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            GtidMode::Off => "OFF",
            GtidMode::OffPermissive => "OFF_PERMISSIVE",
            GtidMode::OnPermissive => "ON_PERMISSIVE",
            GtidMode::On => "ON",
        }
    }

    /// Parses a mode's name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<GtidMode> {
        GtidMode::ALL.into_iter().find(|mode| mode.name().eq_ignore_ascii_case(name))
    }

    /// Returns the mode with this number, from 0 for OFF; larger numbers are ON.
    #[must_use]
    #[inline]
    pub fn from_number(number: u8) -> GtidMode {
        GtidMode::ALL.get(usize::from(number)).copied().unwrap_or_default()
    }

    /// Returns whether a transaction without other settings gets a GTID.
    #[must_use]
    #[inline]
    pub fn names_new(self) -> bool {
        self >= GtidMode::OnPermissive
    }

    /// Returns whether one mode can be set right after the other.
    #[must_use]
    pub fn is_a_step_from(self, other: GtidMode) -> bool {
        (self as u8).abs_diff(other as u8) <= 1
    }

    /// Returns whether a replica in this mode can follow a source in the other: it must accept all transactions that
    /// the source makes.
    #[must_use]
    pub fn can_follow(self, source: GtidMode) -> bool {
        match self {
            GtidMode::Off => source <= GtidMode::OffPermissive,
            GtidMode::On => source >= GtidMode::OnPermissive,
            _ => true,
        }
    }
}

impl fmt::Display for GtidMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The treatment of a transaction that has no GTID when it gets its place in the log. MariaDB's dialect always gives
/// one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Unnamed {
    /// By `gtid_mode`: this server's next GTID, or none.
    #[default]
    Automatic,
    /// The transaction stays anonymous.
    Anonymous,
    /// The smallest free number of this source, if the mode gives new transactions a GTID.
    NextOf(Tsid),
}
