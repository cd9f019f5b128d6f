//! What a client is told of the session's global transaction ids.

use omnibus_commit::Coordinator;
use omnibus_engine::CommitNo;

/// `session_track_gtids`: what an OK packet says to clients that track the session's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Track {
    #[default]
    Off,
    Own,
    All,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Gtids {
    track: Track,
    committed: Option<CommitNo>,
}

impl Gtids {
    /// The value of `session_track_gtids`.
    pub(crate) fn track(&mut self, value: &str) {
        self.track = match value {
            "OWN_GTID" => Track::Own,
            "ALL_GTIDS" => Track::All,
            _ => Track::Off,
        };
    }

    /// The statement has committed.
    pub(crate) fn committed(&mut self, number: CommitNo) {
        self.committed = Some(number);
    }

    /// The id of what the statement committed, or all that there is then; for the client, once.
    pub(crate) fn take_told(&mut self, coordinator: Option<&Coordinator>) -> Option<String> {
        let number = self.committed.take()?;
        match self.track {
            Track::Off => None,
            Track::All => Some(coordinator?.gtid_executed().to_string()).filter(|set| !set.is_empty()),
            Track::Own => Some(coordinator?.gtid_of(number)?.to_string()),
        }
    }
}
