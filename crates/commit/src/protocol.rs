//! The five commit protocols: the order of syncs between the log and the engines.
//!
//! They are the history of group commit. `serialized` is the old mutex from prepare to commit, with three consecutive
//! syncs per transaction; `group` lets transactions share the log's sync; `group-redo` lets them share the engines'
//! syncs, too; `one-sync` needs no prepare at all, because engines are rebuilt from the log. The prepare runs on the
//! session's thread (`Coordinator`), the shared redo sync in the flush stage, and the engines' commit records in the
//! commit stage (`pipeline`). Only transactions that end in an XID event take part in two phases, because recovery
//! finds them in the log by it; definitions and unlogged writes are recovered from the log under every protocol.

/// The values of `commit_protocol`, which is chosen at start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommitProtocol {
    /// Prepare and sync, log and sync, commit and sync, one transaction at a time.
    Serialized,
    /// Each session syncs its own prepare, and shares that sync with the sessions that prepared while the previous sync
    /// was running; the log is synced once a group.
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
    /// All protocols, from the oldest to the one without durability.
    pub const ALL: [CommitProtocol; 5] = [
        CommitProtocol::Serialized,
        CommitProtocol::Group,
        CommitProtocol::GroupRedo,
        CommitProtocol::OneSync,
        CommitProtocol::None,
    ];

    /// The protocol's name as a value of `commit_protocol`.
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

    /// Returns the protocol of that name, in any case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<CommitProtocol> {
        Self::ALL.into_iter().find(|protocol| protocol.name().eq_ignore_ascii_case(name))
    }

    /// Returns whether engines prepare before the log is written.
    #[must_use]
    pub fn is_two_phase(self) -> bool {
        matches!(self, CommitProtocol::Serialized | CommitProtocol::Group | CommitProtocol::GroupRedo)
    }
}
