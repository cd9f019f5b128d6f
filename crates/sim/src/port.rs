//! The commit interface of SQL sessions: the coordinator, or a mutant's.

use crate::mutant::Mutant;
use omnibus_commit::{CommitRequest, Coordinator, Ticket, TrxCache};
use omnibus_engine::{CommitNo, Engine};
use omnibus_sql::store::{CommitPort, SnapshotHold};
use std::sync::Arc;

/// See the module.
pub(crate) struct Port {
    coordinator: Arc<Coordinator>,
    mutant: Option<Mutant>,
}

impl Port {
    pub(crate) fn new(coordinator: Arc<Coordinator>, mutant: Option<Mutant>) -> Port {
        Port { coordinator, mutant }
    }
}

impl CommitPort for Port {
    fn new_cache(&self) -> TrxCache {
        self.coordinator.new_cache()
    }
    fn hold(&self) -> Box<dyn SnapshotHold> {
        CommitPort::hold(&*self.coordinator)
    }
    fn engine(&self) -> &Arc<dyn Engine> {
        self.coordinator.engine()
    }
    fn commit(&self, request: CommitRequest) -> Ticket {
        if self.mutant == Some(Mutant::AnswerEarly) && request.inline {
            drop(self.coordinator.commit(CommitRequest { inline: false, ..request }));
            return Ticket::done(Ok(self.coordinator.numbered()));
        }
        self.coordinator.commit(request)
    }
    fn wait_published(&self, no: CommitNo) -> Ticket {
        self.coordinator.wait_published(no)
    }
    fn published(&self) -> CommitNo {
        CommitPort::published(&*self.coordinator)
    }
    fn releases_early(&self) -> bool {
        CommitPort::releases_early(&*self.coordinator)
    }
    fn numbered(&self) -> CommitNo {
        self.coordinator.numbered()
    }
    fn installed(&self) -> CommitNo {
        self.coordinator.installed()
    }
    fn first_xid(&self) -> u64 {
        self.coordinator.first_xid()
    }
    fn deleted_floor(&self, key: &[u8]) -> CommitNo {
        self.coordinator.deleted_floor(key)
    }
}
