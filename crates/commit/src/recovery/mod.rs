//! Bringing the engine to the end of the log after a stop of any kind (RECOVER-2).
//!
//! One pass over the files from the one that holds the engine's next commit number. Whole transactions
//! newer than what the engine has are handed to the SQL layer, which turns events into writes
//! through its catalog; no SQL is executed. The torn tail of the last file is cut. A crash during
//! recovery is just another crash: nothing here is needed a second time.
//!
//! On the main thread, before the server listens.

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
};
use std::time::{Duration, Instant};
use walk::Walk;

/// An event of a transaction that is being replayed.
#[derive(Clone, Debug)]
pub struct ReplayEvent {
    /// Its type.
    pub event_type: EventType,
    /// Seconds since 1970 of its statement.
    pub timestamp: u32,
    /// Its body, without header and checksum.
    pub body: bytes::Bytes,
}

/// What turns a logged transaction into writes. Implemented by the SQL layer.
pub trait Replay {
    /// The writes of one whole transaction, given the engine's state right before it. Events run
    /// from behind the GTID event to the last one.
    ///
    /// # Errors
    /// The events contradict the engine's contents; recovery stops.
    fn transaction(&mut self, no: CommitNo, events: &[ReplayEvent]) -> Result<Replayed, String>;

    /// Takes events of a large transaction ahead of its end: `transaction` gets the rest, or `forget` is called.
    ///
    /// # Errors
    /// As `transaction`'s.
    fn part(&mut self, no: CommitNo, events: &[ReplayEvent]) -> Result<(), String>;

    /// The transaction that `part` was called for is not whole.
    fn forget(&mut self);

    /// How far the pass is, after each transaction.
    fn progress(&mut self, _: Progress) {}
}

/// How far recovery is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the log that were read, of those files that are read.
    pub read: u64,
    /// Bytes of these files; the last one may end before.
    pub total: u64,
    /// Transactions that were replayed.
    pub replayed: u64,
}

/// What a transaction writes.
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

/// What recovery found and did.
#[derive(Clone, Debug, Default)]
pub struct Recovered {
    /// The newest transaction in the log.
    pub last: CommitNo,
    /// Every GTID in the log, or before it.
    pub executed: GtidState,
    /// Those among them that no file ever had (`SET GLOBAL gtid_purged`).
    pub elsewhere: GtidSet,
    /// No XID event that a later recovery can meet, and no prepared transaction, has a higher number.
    pub last_xid: u64,
    /// Transactions that engines held prepared, and that are committed now; and those rolled back.
    pub prepared: (u64, u64),
    /// Transactions replayed into the engine.
    pub replayed: u64,
    /// Bytes read.
    pub bytes: u64,
    /// How the groups of the last file end.
    pub groups_end: GroupsEnd,
    /// Bytes of torn tail that were cut off.
    pub truncated: u64,
    /// How long it took.
    pub took: Duration,
}

/// Why a data directory could not be recovered. Nothing was changed that a later try would need.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecoverError {
    /// A log file could not be read, or is damaged where a crash cannot have damaged it.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The torn tail could not be cut.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The log lacks what was durable once: no crash does that.
    #[error("{file} is damaged at offset {offset}: {what}; {advice}")]
    Damaged {
        /// The file's name.
        file: String,
        /// Where what is missing should begin.
        offset: LogOffset,
        /// How it is known.
        what: String,
        /// What to do.
        advice: &'static str,
    },
    /// The engine is ahead of the log, or behind its first file.
    #[error(
        "the storage engine holds transaction {applied} but the binary log {log}; restore the missing log files, or the whole data directory from one backup"
    )]
    Gap {
        /// What the engine has.
        applied: CommitNo,
        /// What the log has, in words.
        log: String,
    },
    /// A transaction could not be replayed.
    #[error("transaction {no} at {position} can not be replayed: {reason}")]
    Replay {
        /// Its number.
        no: CommitNo,
        /// Where its last event begins.
        position: LogPosition,
        /// Why.
        reason: String,
    },
}

/// Replays what the engine lacks, cuts the torn tail, and says where the log ends.
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
    let Some(mut scan) = dir.recovery_scan(first)? else { return Ok(Recovered::default()) };
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

/// RECOVER-1: prepared and in the log is committed, prepared and absent is rolled back. Replay has brought everything
/// from the log already, so a commit here only ends what the engine's redo holds open.
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

/// The newest file that begins at or before the engine's next transaction. `None` without files.
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

/// What is replayed must be durable in the log first (ENGINE-1), also after `sync_binlog=0`, and read from the device: after a
/// sync that failed, the operating system takes pages for clean that the device never got, and this sync finds nothing to do.
fn sync_last(dir: &LogDir) -> Result<(), RecoverError> {
    let Some(&last) = dir.files().last().filter(|_| !mutant::is(Mutant::RecoveryUnsynced)) else {
        return Ok(());
    };
    let path = dir.path_of(last);
    let synced = dir.config().disk.open(&path, Open::Read).and_then(|file| {
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
