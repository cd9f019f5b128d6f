//! Brings the engine to the end of the log after a stop of any kind (RECOVER-2).
//!
//! Recovery makes one pass over the files from the one that holds the engine's next commit number. It hands whole
//! transactions that are newer than the engine's state to the SQL layer, which turns events into writes through its
//! catalog; no SQL is executed. The torn tail of the last file is cut. A crash during recovery is like any other crash:
//! no state of an unfinished recovery is needed again.
//!
//! Runs on the main thread, before the server listens.

mod claim;
mod damage;
mod decide;
mod walk;

pub use decide::{Decision, decide};

use crate::head::read_head;
use omnibus_engine::{CommitNo, Engine, SortedWrites, TrxId, WriteSet};
use omnibus_format::{EventType, GtidSet, GtidState};
use omnibus_log::mutant::{self, Mutant};
use omnibus_log::{
    FileSeq, GroupsEnd, LogDir, LogOffset, LogPosition, Open, OpenError, ReadError, RecoveryItem,
    RecoveryScan,
};
use std::time::{Duration, Instant};
use walk::Walk;

/// An event of a transaction that is being replayed.
#[derive(Clone, Debug)]
pub struct ReplayEvent {
    /// The type of the event.
    pub event_type: EventType,
    /// Seconds since 1970 of its statement.
    pub timestamp: u32,
    /// Its body, without header and checksum.
    pub body: bytes::Bytes,
}

/// Turns logged transactions into writes. Implemented by the SQL layer.
pub trait Replay {
    /// Returns the writes of one whole transaction, given the engine's state right before it. `events` are those behind
    /// the GTID event.
    ///
    /// # Errors
    /// The events contradict the engine's contents; recovery stops.
    fn transaction(&mut self, no: CommitNo, events: &[ReplayEvent]) -> Result<Replayed, String>;

    /// Takes events of a large transaction ahead of its end. Afterwards `transaction` gets the rest, or `forget` is
    /// called.
    ///
    /// # Errors
    /// As `transaction`.
    fn part(&mut self, no: CommitNo, events: &[ReplayEvent]) -> Result<(), String>;

    /// Discards the events passed to `part`: the transaction is not whole.
    fn forget(&mut self);

    /// Receives the progress of the pass, after each transaction.
    fn progress(&mut self, _: Progress) {}
}

/// The progress of recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes read so far, of the files that are read.
    pub read: u64,
    /// Total bytes of these files; the valid part of the last one may end earlier.
    pub total: u64,
    /// Number of transactions replayed.
    pub replayed: u64,
}

/// The writes of a replayed transaction.
pub enum Replayed {
    /// In memory.
    Writes(WriteSet),
    /// In files, in key order, each key once.
    Sorted(Box<SortedWrites<'static>>),
}

impl std::fmt::Debug for Replayed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Replayed::Writes(writes) => f.debug_tuple("Writes").field(writes).finish(),
            Replayed::Sorted(_) => f.write_str("Sorted(..)"),
        }
    }
}

/// The result of recovery.
#[derive(Clone, Debug, Default)]
pub struct Recovered {
    /// The newest transaction in the log.
    pub last: CommitNo,
    /// Every GTID in the log, or before it.
    pub executed: GtidState,
    /// Those among them that no file ever had (`SET GLOBAL gtid_purged`).
    pub elsewhere: GtidSet,
    /// An upper bound of the numbers in XID events that a later recovery can meet, and of those of prepared
    /// transactions.
    pub last_xid: u64,
    /// The numbers of prepared transactions that were committed, and of those that were rolled back.
    pub prepared: (u64, u64),
    /// Number of transactions replayed into the engine.
    pub replayed: u64,
    /// Bytes read.
    pub bytes: u64,
    /// The end of the last file's groups.
    pub groups_end: GroupsEnd,
    /// Bytes of torn tail that were cut.
    pub truncated: u64,
    /// Duration of the recovery.
    pub took: Duration,
}

/// The reason why a data directory could not be recovered. Nothing was changed that a later attempt would need.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecoverError {
    /// A log file could not be read, or is damaged where a crash cannot have damaged it.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The torn tail could not be cut.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The log lacks data that was durable, which no crash causes.
    #[error("{file} is damaged at offset {offset}: {what}; {advice}")]
    Damaged {
        /// The file's name.
        file: String,
        /// The offset where the missing data should begin.
        offset: LogOffset,
        /// The evidence.
        what: String,
        /// The remedy.
        advice: &'static str,
    },
    /// The engine is ahead of the log, or behind its first file.
    #[error(
        "the storage engine holds transaction {applied} but the binary log {log}; restore the missing log files, or the whole data directory from one backup"
    )]
    Gap {
        /// The last commit number that the engine has.
        applied: CommitNo,
        /// The commits that the log has, in words.
        log: String,
    },
    /// A transaction could not be replayed.
    #[error("transaction {no} at {position} can not be replayed: {reason}")]
    Replay {
        /// Its number.
        no: CommitNo,
        /// The position of its last event.
        position: LogPosition,
        /// Why.
        reason: String,
    },
}

/// Replays the transactions that the engine lacks, cuts the torn tail, and returns the end of the log.
///
/// # Errors
/// See [`RecoverError`].
pub fn recover(
    dir: &LogDir,
    engine: &dyn Engine,
    replay: &mut dyn Replay,
) -> Result<Recovered, RecoverError> {
    let started = Instant::now();
    // Replay starts at the engine that is furthest behind; the log must reach the one furthest ahead (ENGINE-1).
    let (applied, newest) = (engine.applied(), engine.newest());
    sync_last(dir)?;
    let Some(first) = start_file(dir, applied)? else {
        if newest > CommitNo::ZERO {
            return Err(RecoverError::Gap { applied: newest, log: "is empty".into() });
        }
        return Ok(Recovered::default());
    };
    let mut walk = Walk::new(engine, replay, applied, dir.names(), total_bytes(dir, first), started);
    let Some(mut scan) = RecoveryScan::new(dir, first)? else { return Ok(Recovered::default()) };
    let tail = loop {
        match scan.next().map_err(|error| damage::named(dir, error))? {
            RecoveryItem::Event { file, event, place } => {
                if let Some(until) = walk.event(file, &event, place)? {
                    scan.hold(until);
                }
            }
            RecoveryItem::FileEnd(_) => {}
            // A transaction or private group that is open here was never whole: forgotten, and cut below.
            RecoveryItem::Tail(tail) => break tail,
        }
    };
    let (facts, mut recovered, logged) = walk.end();
    // Asserts ENGINE-1: no engine has what the log has not.
    if recovered.last < newest {
        let LogPosition { file, offset } = tail.end;
        let log = format!("ends at transaction {}, in {} at {offset}", recovered.last, dir.names().log(file));
        return Err(RecoverError::Gap { applied: newest, log });
    }
    damage::judge_tail(dir, &tail, recovered.last, facts)?;
    // A crash may have come between the two steps of an earlier cut.
    if (tail.needs_truncation() || facts.in_use) && !mutant::is(Mutant::KeepTail) {
        recovered.truncated = dir.truncate_tail(tail.end.file, tail.end.offset)?;
    }
    recovered.groups_end = tail.groups.map(|groups| groups.end).unwrap_or_default();
    settle_prepared(engine, &logged, &mut recovered);
    recovered.took = started.elapsed();
    Ok(recovered)
}

/// RECOVER-1: commits transactions that are prepared and in the log, and rolls back those that are prepared and absent.
/// The replay has applied everything from the log already, so a commit here only ends what the engine's redo holds
/// open.
fn settle_prepared(engine: &dyn Engine, logged: &[(TrxId, CommitNo)], recovered: &mut Recovered) {
    let prepared = engine.prepared();
    let newest = logged.iter().map(|(trx, _)| trx.0).chain(prepared.iter().map(|trx| trx.0)).max();
    recovered.last_xid = newest.unwrap_or(0);
    for (trx, decision) in decide(logged.iter().copied(), prepared) {
        match decision {
            Decision::Commit(no) => {
                engine.commit_prepared(trx, no);
                recovered.prepared.0 += 1;
            }
            Decision::Rollback => {
                engine.rollback(trx);
                recovered.prepared.1 += 1;
            }
        }
    }
    assert!(engine.prepared().is_empty(), "RECOVER-1: each prepared transaction is decided");
    engine.commit_ordered(recovered.last);
}

/// Returns the newest file that begins at or before the engine's next transaction. `None` without files.
fn start_file(dir: &LogDir, applied: CommitNo) -> Result<Option<FileSeq>, RecoverError> {
    let mut oldest = None;
    for &file in dir.files().iter().rev() {
        let start = first_number(dir, file)?;
        if start <= applied.next() {
            return Ok(Some(file));
        }
        oldest = Some(start);
    }
    match oldest {
        None => Ok(None),
        Some(start) => Err(RecoverError::Gap { applied, log: format!("begins at transaction {start}") }),
    }
}

/// The first commit number that a file may hold, from its head.
fn first_number(dir: &LogDir, file: FileSeq) -> Result<CommitNo, RecoverError> {
    // A file that another server wrote, or one from before this event existed: read it from its start.
    Ok(read_head(&mut dir.read(file)?)?.first.unwrap_or(CommitNo::ZERO))
}

/// Syncs the last file, and drops its pages from the cache. Events must be durable in the log before they are replayed
/// (ENGINE-1), also after `sync_binlog=0`, and must be read from the device: after a failed sync the operating system
/// takes pages for clean that the device never got, and this sync would find nothing to do.
fn sync_last(dir: &LogDir) -> Result<(), RecoverError> {
    let Some(&last) = dir.files().last().filter(|_| !mutant::is(Mutant::RecoveryUnsynced)) else {
        return Ok(());
    };
    let path = dir.path_of(last);
    // Windows syncs nothing by a handle that only reads.
    let synced = dir.config().disk.open(&path, Open::Write).and_then(|file| {
        file.sync_all()?;
        if mutant::is(Mutant::TrustCache) { Ok(()) } else { file.forget_cached() }
    });
    synced.map_err(|source| {
        RecoverError::Read(ReadError::from(omnibus_log::IoFailure::new("sync", &path, &source)))
    })
}

fn total_bytes(dir: &LogDir, first: FileSeq) -> u64 {
    let wanted = dir.files().iter().filter(|file| **file >= first);
    wanted
        .filter_map(|file| dir.config().disk.metadata(&dir.path_of(*file)).ok())
        .map(|about| about.len)
        .sum()
}
