//! Old versions of rows are kept for the oldest snapshot that somebody may read: whose it is, and since when.

use crate::log_admin::LogAdmin;
use crate::process::{Process, Processes};
use omnibus_engine::CommitNo;
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
}

/// The oldest one. `None`: nobody holds one.
pub(crate) fn oldest(processes: &Processes, log: &dyn LogAdmin) -> Option<OldestSnapshot> {
    let coordinator = log.coordinator()?;
    let now = u64::try_from(crate::clock::now_us()).unwrap_or(0);
    let of = |process: &Arc<Process>| {
        let (number, since) = process.transaction()?.snapshot()?;
        Some((number, since, u64::from(process.id)))
    };
    let held = processes.all().iter().filter_map(of).min();
    let published = coordinator.published();
    // One that is being chosen just now is new.
    let any = published.oldest().unwrap_or_else(|| held.map_or(published.number(), |(number, ..)| number));
    let behind = |number: CommitNo| published.number().0.saturating_sub(number.0);
    match held {
        Some((number, since, connection)) if number <= any => Some(OldestSnapshot {
            connection,
            seconds: now.saturating_sub(since) / 1_000_000,
            behind: behind(number),
            number: number.0,
        }),
        _ if behind(any) > 0 => {
            Some(OldestSnapshot { behind: behind(any), number: any.0, ..OldestSnapshot::default() })
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
    ]
    .map(|(name, value)| (name.to_owned(), value.to_string()))
    .to_vec()
}
