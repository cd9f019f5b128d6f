//! How far a start is, for those who look over HTTP before there is a server to ask.

use omnibus_commit::{Progress, Replay, ReplayEvent, Replayed};
use omnibus_engine::CommitNo;
use std::sync::atomic::{AtomicU64, Ordering};

/// See the module. Written by the thread that starts the server, read by any.
#[derive(Debug, Default)]
pub(crate) struct Starting {
    read: AtomicU64,
    total: AtomicU64,
    replayed: AtomicU64,
}

impl Starting {
    /// How far recovery is.
    pub(crate) fn recovery(&self) -> Progress {
        let get = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        Progress { read: get(&self.read), total: get(&self.total), replayed: get(&self.replayed) }
    }

    fn note(&self, progress: Progress) {
        let cells =
            [(&self.read, progress.read), (&self.total, progress.total), (&self.replayed, progress.replayed)];
        cells.into_iter().for_each(|(cell, now)| cell.store(now, Ordering::Relaxed));
    }
}

/// A replay that is watched.
pub(crate) struct Watched<'a, R> {
    /// The replay.
    pub replay: R,
    /// The observer of the start.
    pub starting: &'a Starting,
}

impl<R: Replay> Replay for Watched<'_, R> {
    fn transaction(&mut self, no: CommitNo, events: &[ReplayEvent]) -> Result<Replayed, String> {
        self.replay.transaction(no, events)
    }

    fn part(&mut self, no: CommitNo, events: &[ReplayEvent]) -> Result<(), String> {
        self.replay.part(no, events)
    }

    fn forget(&mut self) {
        self.replay.forget();
    }

    fn progress(&mut self, progress: Progress) {
        self.starting.note(progress);
    }
}
