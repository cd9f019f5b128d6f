//! Old versions of rows are kept for the oldest snapshot that somebody may read: whose it is, and since when.

use crate::log_admin::LogAdmin;
use crate::process::{Process, Processes};
use omnibus_commit::Published;
use omnibus_engine::{CommitNo, Kept};
use std::sync::Arc;

/// The oldest snapshot in use.
#[derive(Clone, Debug, Default)]
pub(crate) struct OldestSnapshot {
    /// The connection; 0 if nobody's transaction has it: a definition, a backup.
    pub connection: u64,
    /// For how long, in seconds.
    pub seconds: u64,
    /// Transactions that were committed since: their changes keep what was before.
    pub behind: u64,
    /// The commit number that it reads.
    pub number: u64,
    /// The engines' estimate of what they keep for it.
    pub kept: Kept,
}

/// A snapshot of a connection.
pub(crate) struct Held {
    /// The commit number that it reads.
    pub number: CommitNo,
    /// Since when, in microseconds since 1970.
    pub since_us: u64,
    /// The connection that reads it.
    pub process: Arc<Process>,
}

impl Held {
    /// For how many seconds it has been held at a time in microseconds since 1970.
    pub fn seconds(&self, now: i64) -> u64 {
        u64::try_from(now).unwrap_or(0).saturating_sub(self.since_us) / 1_000_000
    }
}

/// Transactions that were committed since a snapshot of this number.
pub(crate) fn behind(published: &Published, number: CommitNo) -> u64 {
    published.number().0.saturating_sub(number.0)
}

/// Those of all connections, the oldest first.
pub(crate) fn held(processes: &Processes) -> Vec<Held> {
    let of = |process: Arc<Process>| {
        let (number, since_us) = process.transaction()?.snapshot()?;
        Some(Held { number, since_us, process })
    };
    let mut held: Vec<Held> = processes.all().into_iter().filter_map(of).collect();
    held.sort_by_key(|held| (held.number, held.since_us));
    held
}

/// The oldest number that is read, whoever does. One that is being chosen just now is new.
pub(crate) fn oldest_number(published: &Published, held: &[Held]) -> CommitNo {
    let newest = || held.first().map_or(published.number(), |held| held.number);
    published.oldest().unwrap_or_else(newest)
}

/// The oldest one. `None`: nobody holds one.
pub(crate) fn oldest(processes: &Processes, log: &dyn LogAdmin) -> Option<OldestSnapshot> {
    let coordinator = log.coordinator()?;
    let (held, published) = (held(processes), coordinator.published());
    let any = oldest_number(published, &held);
    let behind = |number| behind(published, number);
    let kept = |number| coordinator.engine().kept_since(number);
    match held.first() {
        Some(held) if held.number <= any => Some(OldestSnapshot {
            connection: held.process.id.into(),
            seconds: held.seconds(crate::clock::now_us()),
            behind: behind(held.number),
            number: held.number.0,
            kept: kept(held.number),
        }),
        _ if behind(any) > 0 => {
            let (behind, kept) = (behind(any), kept(any));
            Some(OldestSnapshot { behind, number: any.0, kept, ..OldestSnapshot::default() })
        }
        _ => None,
    }
}

/// Lines for SHOW STATUS.
pub(crate) fn counters(processes: &Processes, log: &dyn LogAdmin) -> Vec<(String, String)> {
    let oldest = oldest(processes, log).unwrap_or_default();
    [
        ("Innodb_history_list_length", oldest.behind),
        ("Omnibus_oldest_snapshot_connection", oldest.connection),
        ("Omnibus_oldest_snapshot_seconds", oldest.seconds),
        ("Omnibus_oldest_snapshot_bytes", oldest.kept.bytes),
        ("Omnibus_oldest_snapshot_files", oldest.kept.files),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_string()))
    .to_vec()
}
