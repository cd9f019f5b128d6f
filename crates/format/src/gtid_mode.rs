//! `gtid_mode`: which transactions have a GTID. Pure.
//!
//! Not here: who may change it when (`omnibus_commit`), and what a session may ask for (the server).

use crate::tsid::Tsid;
use std::fmt;

/// MySQL's four modes, each a step from its neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GtidMode {
    /// No transaction may have one.
    Off,
    /// New ones are anonymous; those that are given one, or come from elsewhere with one, have it.
    OffPermissive,
    /// New ones have one; those that come from elsewhere without one stay anonymous.
    OnPermissive,
    /// Every transaction has one.
    #[default]
    On,
}

impl GtidMode {
    /// All, from OFF to ON.
    pub const ALL: [GtidMode; 4] =
        [GtidMode::Off, GtidMode::OffPermissive, GtidMode::OnPermissive, GtidMode::On];

    /// As variables spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            GtidMode::Off => "OFF",
            GtidMode::OffPermissive => "OFF_PERMISSIVE",
            GtidMode::OnPermissive => "ON_PERMISSIVE",
            GtidMode::On => "ON",
        }
    }

    /// Reads a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<GtidMode> {
        GtidMode::ALL.into_iter().find(|mode| mode.name().eq_ignore_ascii_case(name))
    }

    /// Its place among the four; anything larger is ON.
    #[must_use]
    #[inline]
    pub fn from_number(number: u8) -> GtidMode {
        GtidMode::ALL.get(usize::from(number)).copied().unwrap_or_default()
    }

    /// Whether a transaction that asks for nothing gets a GTID.
    #[must_use]
    #[inline]
    pub fn names_new(self) -> bool {
        self >= GtidMode::OnPermissive
    }

    /// Whether one can be set right after the other.
    #[must_use]
    pub fn is_a_step_from(self, other: GtidMode) -> bool {
        (self as u8).abs_diff(other as u8) <= 1
    }

    /// Whether a replica in this mode can follow a source in the other: what one of them makes the other must take.
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

/// What becomes of a transaction that has no GTID yet when it gets its place in the log. MariaDB's dialect always gives one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Unnamed {
    /// As `gtid_mode` says: this server's next one, or none.
    #[default]
    Automatic,
    /// It stays without.
    Anonymous,
    /// The smallest free number of this source, where the mode gives new ones any.
    NextOf(Tsid),
}
