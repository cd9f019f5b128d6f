//! The commit coordinator as transactions see it, a trait so that tests can stand in for the
//! log. The server's is [`omnibus_commit::Coordinator`].

use crate::api::KillFlag;
use omnibus_commit::{
    CommitRequest, Coordinator, LogPosition, SnapshotReader, SnapshotWatch, Ticket, TrxCache,
};
use omnibus_engine::{CommitNo, Engine, Snapshot};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A session's hold on the snapshot it reads: what it may read stays readable until `release`.
pub trait SnapshotHold: Send {
    /// Takes the newest published number, or `at_least`, which is installed.
    fn take(&mut self, at_least: CommitNo) -> CommitNo;
    /// As `take`, with the log position of exactly this snapshot.
    fn take_with_position(&mut self) -> (CommitNo, LogPosition);
    /// Lets go.
    fn release(&mut self);
    /// A view of it for other threads.
    fn watch(&self) -> SnapshotWatch {
        SnapshotWatch::default()
    }
}

impl SnapshotHold for SnapshotReader {
    fn take(&mut self, at_least: CommitNo) -> CommitNo {
        self.take_at_least(at_least)
    }
    fn take_with_position(&mut self) -> (CommitNo, LogPosition) {
        SnapshotReader::take_with_position(self)
    }
    fn release(&mut self) {
        SnapshotReader::release(self);
    }
    fn watch(&self) -> SnapshotWatch {
        SnapshotReader::watch(self)
    }
}

/// A snapshot of what was published at one moment, readable until it is dropped.
pub(crate) struct HeldSnapshot {
    /// The newest number then.
    pub no: CommitNo,
    /// The view of it.
    pub snapshot: Box<dyn Snapshot>,
    hold: Box<dyn SnapshotHold>,
}

impl HeldSnapshot {
    /// Of now.
    pub fn newest(port: &dyn CommitPort) -> HeldSnapshot {
        let mut hold = port.hold();
        let no = hold.take(CommitNo::ZERO);
        HeldSnapshot { no, snapshot: port.engine().snapshot(no), hold }
    }
}

impl Drop for HeldSnapshot {
    fn drop(&mut self) {
        self.hold.release();
    }
}

/// Commits and snapshots. All methods may be called from any thread and do not block.
pub trait CommitPort: Send + Sync + 'static {
    /// An empty trx cache.
    fn new_cache(&self) -> TrxCache;
    /// A way to take snapshots; one per session.
    fn hold(&self) -> Box<dyn SnapshotHold>;
    /// The engine.
    fn engine(&self) -> &Arc<dyn Engine>;
    /// Hands a finished transaction over. Only an [inline](CommitRequest::inline) one may wait for the device: not that of a caller who has more to
    /// hand over before this is durable.
    fn commit(&self, request: CommitRequest) -> Ticket;
    /// Completes when everything up to `no` is published: durable, or with `sync_binlog` other than 1 at least written.
    fn wait_published(&self, no: CommitNo) -> Ticket;
    /// Everything up to here is published.
    fn published(&self) -> CommitNo;
    /// Whether the log has failed: what was under way then may be in it.
    fn has_failed(&self) -> bool {
        matches!(self.wait_published(self.numbered().next()).poll_now(), Some(Err(_)))
    }
    /// `release_locks_early`: row locks go when a commit has its place, not when it is durable.
    fn releases_early(&self) -> bool {
        true
    }
    /// Whether writes may go to files before they are committed: not where engines prepare them first.
    fn takes_files(&self) -> bool {
        true
    }
    /// Whether commits wait for room on the disk.
    fn waits_for_room(&self) -> bool {
        false
    }
    /// The newest number assigned.
    fn numbered(&self) -> CommitNo;
    /// Everything up to here is in the engines.
    fn installed(&self) -> CommitNo;
    /// The number to begin with in XID events.
    fn first_xid(&self) -> u64 {
        self.numbered().0 + 1
    }
    /// No deletion of `key` is newer than this.
    fn deleted_floor(&self, key: &[u8]) -> CommitNo;

    /// The newest installed versions, for holders of the row locks.
    fn latest(&self) -> Box<dyn Snapshot> {
        self.engine().snapshot(CommitNo::MAX)
    }
}

impl dyn CommitPort {
    /// As `commit` for a session that waits, whose process is seen to wait for its commit meanwhile, or for room (SPACE-1).
    pub(crate) fn commit_seen(&self, kill: &KillFlag, request: CommitRequest) -> Ticket {
        kill.while_committing(|| self.commit(request.inline()))
    }
}

impl CommitPort for Coordinator {
    fn new_cache(&self) -> TrxCache {
        Coordinator::new_cache(self)
    }
    fn hold(&self) -> Box<dyn SnapshotHold> {
        Box::new(self.reader())
    }
    fn engine(&self) -> &Arc<dyn Engine> {
        Coordinator::engine(self)
    }
    fn commit(&self, request: CommitRequest) -> Ticket {
        Coordinator::commit(self, request)
    }
    fn wait_published(&self, no: CommitNo) -> Ticket {
        Coordinator::wait_published(self, no)
    }
    fn waits_for_room(&self) -> bool {
        self.log().files().waits_for_room()
    }
    fn published(&self) -> CommitNo {
        Coordinator::published(self).number()
    }
    fn first_xid(&self) -> u64 {
        Coordinator::first_xid(self)
    }
    fn releases_early(&self) -> bool {
        self.settings().release_locks_early.load(Ordering::Relaxed)
    }
    fn takes_files(&self) -> bool {
        !self.settings().protocol.is_two_phase()
    }
    fn numbered(&self) -> CommitNo {
        Coordinator::numbered(self)
    }
    fn installed(&self) -> CommitNo {
        Coordinator::installed(self)
    }
    fn deleted_floor(&self, key: &[u8]) -> CommitNo {
        Coordinator::deleted_floor(self, key)
    }
}
