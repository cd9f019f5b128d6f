//! The five commit protocols: what is synced when, between the log and the engines.
//!
//! They are the history of group commit. `serialized` is the old mutex from prepare to commit, three syncs a
//! transaction one after the other; `group` lets the log's sync be shared; `group-redo` also shares the engines'; and
//! `one-sync` needs no prepare at all, because engines are rebuilt from the log. What runs where: prepare on the
//! session's thread (`Coordinator`), the shared redo sync in the flush stage, the engines' commit records in the commit
//! stage (`pipeline`). Only transactions that end in an XID event take part in two phases, because recovery finds them
//! in the log by it; definitions and unlogged writes are recovered from the log under every protocol.

/// `commit_protocol`. Chosen at start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommitProtocol {
    /// Prepare and sync, log and sync, commit and sync, one transaction at a time.
    Serialized,
    /// Each session sees to the sync of its own prepare, which it shares with whoever prepared while the sync before was
    /// running; the log is synced once a group.
    Group,
    /// The engines' redo is synced once a group, in the flush stage, after the group is taken.
    GroupRedo,
    /// Only the log is synced; engines are rebuilt from it.
    #[default]
    OneSync,
    /// As one-sync with `sync_binlog=0`: the operating system decides.
    None,
}

impl CommitProtocol {
    /// All of them, from the oldest to the one without durability.
    pub const ALL: [CommitProtocol; 5] = [
        CommitProtocol::Serialized,
        CommitProtocol::Group,
        CommitProtocol::GroupRedo,
        CommitProtocol::OneSync,
        CommitProtocol::None,
    ];

    /// Its name as a value of `commit_protocol`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            CommitProtocol::Serialized => "serialized",
            CommitProtocol::Group => "group",
            CommitProtocol::GroupRedo => "group-redo",
            CommitProtocol::OneSync => "one-sync",
            CommitProtocol::None => "none",
        }
    }

    /// The protocol of that name, in any case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<CommitProtocol> {
        Self::ALL.into_iter().find(|protocol| protocol.name().eq_ignore_ascii_case(name))
    }

    /// Whether engines prepare before the log is written.
    #[must_use]
    pub fn is_two_phase(self) -> bool {
        matches!(self, CommitProtocol::Serialized | CommitProtocol::Group | CommitProtocol::GroupRedo)
    }
}
