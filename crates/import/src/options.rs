//! The user's choices.

use crate::address::Address;
use crate::selection::Selection;

/// The part of the work that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Look, tell, and change nothing that stays.
    Plan,
    /// Copy, check, and follow.
    Copy,
    /// Compare what was copied.
    Check,
    /// Make the target the server that is written to.
    CutOver,
}

/// The part of the work behind the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// Nothing: the copy is of one moment.
    No,
    /// The target follows the source, and the command ends once it has caught up.
    UntilCaughtUp,
    /// The target follows the source, and the command tells how far it is until it is ended.
    Forever,
}

/// The source as the target reaches it, where it is not as the command does.
#[derive(Clone, Debug, Default)]
pub struct SourceForTarget {
    /// Host and port.
    pub address: Option<(String, u16)>,
    /// The account with REPLICATION SLAVE, and its password.
    pub account: Option<(String, String)>,
}

/// Choices about details.
#[derive(Clone, Copy, Debug)]
pub struct Details {
    /// Sessions at each side.
    pub threads: usize,
    /// About how many bytes of a table a session works on at once.
    pub chunk: u64,
    /// Seconds that the moment's lock may take.
    pub lock_wait_s: u32,
    /// Take accounts, roles and rights along.
    pub accounts: bool,
    /// Leave out what the target refuses, instead of refusing all.
    pub skip_refused: bool,
    /// Write the copied rows to the target's binary log.
    pub log: bool,
    /// Compare numbers of rows only.
    pub quick: bool,
    /// Do not compare behind the copy.
    pub no_check: bool,
    /// Make the source read-only at the cut-over.
    pub set_read_only: bool,
}

/// Everything that the user says.
#[derive(Clone, Debug)]
pub struct Options {
    /// The server that is copied.
    pub from: Address,
    /// The server that gets it.
    pub to: Address,
    /// The choice of its contents.
    pub selection: Selection,
    /// The part of the work.
    pub action: Action,
    /// The part of the work behind the copy.
    pub follow: Follow,
    /// The source as the target sees it.
    pub source_for_target: SourceForTarget,
    /// Details.
    pub details: Details,
}
