//! Bringing the engine to the end of the log after a stop of any kind (RECOVER-2).
//!
//! One pass over the files from the one that holds the engine's next commit number. Whole transactions
//! newer than what the engine has are handed to the SQL layer, which turns events into writes
//! through its catalog; no SQL is executed. The torn tail of the last file is cut. A crash during
//! recovery is just another crash: nothing here is needed a second time.
//!
//! On the main thread, before the server listens.

use crate::damage::{self, FileFacts};
use crate::decide::{Decision, decide};
use omnibus_engine::{CommitNo, Engine, TrxId, WriteSet};
use omnibus_format::events::{Gtid, MariadbGtid, MariadbGtidEvent, MariadbGtidList, PreviousGtids};
use omnibus_format::header::FLAG_IN_USE;
use omnibus_format::{AnyGtid, BinlogState, EventType, GtidSet, GtidState, LogPrivate, RawEvent};
use omnibus_log::{
    FileNames, FileSeq, LogDir, LogOffset, LogPosition, Next, OpenError, Place, ReadError, ReadFile,
    RecoveryItem,
};
use std::time::{Duration, Instant};

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
    fn transaction(&mut self, no: CommitNo, events: &[ReplayEvent]) -> Result<WriteSet, String>;
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
    let Some(first) = start_file(dir, applied)? else {
        if newest > CommitNo::ZERO {
            return Err(RecoverError::Gap { applied: newest, log: "is empty".into() });
        }
        return Ok(Recovered::default());
    };
    sync_last(dir)?;
    let mut walk = Walk::new(engine, replay, applied, dir.names(), total_bytes(dir, first), started);
    let Some(mut scan) = dir.recovery_scan(first)? else { return Ok(Recovered::default()) };
    let tail = loop {
        match scan.next()? {
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
    let Walk { file: facts, mut recovered, logged, .. } = walk;
    if recovered.last < newest {
        let log = format!("ends at transaction {}", recovered.last);
        return Err(RecoverError::Gap { applied: newest, log });
    }
    damage::judge_tail(dir, &tail, recovered.last, facts)?;
    if tail.needs_truncation() {
        recovered.truncated = dir.truncate_tail(tail.end.file, tail.end.offset)?;
    }
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

/// What the first events of a file say about it.
#[derive(Debug, Default)]
pub(crate) struct Head {
    /// The first commit number that it may hold.
    pub(crate) first: Option<CommitNo>,
    /// What was executed when it began.
    pub(crate) previous: Option<GtidState>,
}

pub(crate) fn read_head(reader: &mut ReadFile) -> Result<Head, ReadError> {
    let mut head = Head::default();
    for _ in 0..3 {
        let Next::Event(event) = reader.next()? else { break };
        if event.header.event_type == EventType::PREVIOUS_GTIDS {
            let previous = PreviousGtids::decode(event.body).ok();
            head.previous = previous.map(|previous| GtidState::Mysql(previous.set));
        }
        if event.header.event_type == EventType::MARIADB_GTID_LIST {
            let list = MariadbGtidList::decode(event.body).ok();
            head.previous = list.map(|list| GtidState::Mariadb(BinlogState::from_list(&list.gtids)));
        }
        if let Some(LogPrivate::FileStart { first, .. }) = LogPrivate::of_event(&event) {
            head.first = Some(CommitNo(first));
        }
    }
    Ok(head)
}

/// What is replayed must be durable in the log first (ENGINE-1), also after `sync_binlog=0`.
fn sync_last(dir: &LogDir) -> Result<(), RecoverError> {
    let Some(&last) = dir.files().last() else { return Ok(()) };
    let path = dir.path_of(last);
    let synced = std::fs::File::open(&path).and_then(|file| file.sync_all());
    synced.map_err(|source| {
        RecoverError::Read(ReadError::from(omnibus_log::IoFailure::new("sync", &path, &source)))
    })
}

fn total_bytes(dir: &LogDir, first: FileSeq) -> u64 {
    let wanted = dir.files().iter().filter(|file| **file >= first);
    wanted.filter_map(|file| std::fs::metadata(dir.path_of(*file)).ok()).map(|meta| meta.len()).sum()
}

/// The state of one pass.
struct Walk<'a> {
    engine: &'a dyn Engine,
    replay: &'a mut dyn Replay,
    applied: CommitNo,
    recovered: Recovered,
    /// What the present file's head says.
    file: FileFacts,
    /// The names of files, for errors.
    names: &'a FileNames,
    /// The file that the pass began with.
    first: Option<FileSeq>,
    /// The transaction being read, and its events if the engine lacks it.
    open: Option<(CommitNo, Option<AnyGtid>)>,
    /// A group of private events without a GTID, and where it ends.
    private: Option<(CommitNo, LogOffset, GtidSet)>,
    events: Vec<ReplayEvent>,
    /// What the log has committed, by the number in its XID event.
    logged: Vec<(TrxId, CommitNo)>,
    at: LogPosition,
    total: u64,
    /// Bytes of the files before the present one.
    before: (FileSeq, u64, u64),
    said: Instant,
}

impl<'a> Walk<'a> {
    fn new(
        engine: &'a dyn Engine,
        replay: &'a mut dyn Replay,
        applied: CommitNo,
        names: &'a FileNames,
        total: u64,
        now: Instant,
    ) -> Walk<'a> {
        Walk {
            engine,
            replay,
            applied,
            recovered: Recovered::default(),
            file: FileFacts::default(),
            names,
            first: None,
            open: None,
            private: None,
            events: Vec::new(),
            logged: Vec::new(),
            at: LogPosition::new(FileSeq(0), 0),
            total,
            before: (FileSeq(0), 0, 0),
            said: now,
        }
    }

    /// Takes an event; returns where the group that it opens ends, if only its number of bytes says so.
    fn event(
        &mut self,
        file: FileSeq,
        event: &RawEvent<'_>,
        place: Place,
    ) -> Result<Option<LogOffset>, RecoverError> {
        self.count(file, event);
        self.first.get_or_insert(file);
        match place {
            Place::First => self.begin(event),
            Place::Inside => self.keep(event),
            Place::Last => {
                self.keep(event);
                if let Some((no, gtid)) = self.open.take() {
                    self.note_xid(no, event);
                    if let Some(gtid) = gtid {
                        self.recovered.executed.add(gtid);
                    }
                    self.finish(no)?;
                }
            }
            Place::Outside => return self.outside(file, event),
        }
        Ok(None)
    }

    fn note_xid(&mut self, no: CommitNo, event: &RawEvent<'_>) {
        let xid = event.body.first_chunk().map(|bytes| TrxId(u64::from_le_bytes(*bytes)));
        if let (EventType::XID, Some(xid)) = (event.header.event_type, xid) {
            self.logged.push((xid, no));
        }
    }

    fn begin(&mut self, event: &RawEvent<'_>) {
        self.events.clear();
        self.private = None;
        // A group that opens with BEGIN instead of a GTID is not ours and has no number: it is skipped.
        self.open = match event.header.event_type {
            kind @ (EventType::GTID | EventType::GTID_TAGGED) => {
                Gtid::decode_as(kind, event.body).ok().map(|gtid| {
                    (self.number(&gtid), Some(AnyGtid::Mysql { source: gtid.source(), gno: gtid.gno }))
                })
            }
            EventType::ANONYMOUS_GTID => Gtid::decode(event.body).ok().map(|gtid| (self.number(&gtid), None)),
            // Nothing in it says a number: groups are counted, and those without a GTID say theirs.
            EventType::MARIADB_GTID => MariadbGtidEvent::decode(event.body).ok().map(|gtid| {
                let (domain, sequence) = (gtid.domain, gtid.sequence);
                let server = event.header.server_id;
                let gtid = AnyGtid::Mariadb(MariadbGtid { domain, server, sequence });
                (self.recovered.last.next(), Some(gtid))
            }),
            _ => None,
        };
    }

    /// A transaction's commit number: its place in the file, counted from what the file's head says, whatever
    /// its GTID is. Files of another origin have only the GTID, or nothing.
    fn number(&self, gtid: &Gtid) -> CommitNo {
        CommitNo(match self.file.base {
            Some(base) => base.saturating_add(gtid.sequence_number),
            None if gtid.gno == 0 => self.recovered.last.next().0,
            None => gtid.gno,
        })
    }

    fn keep(&mut self, event: &RawEvent<'_>) {
        let open = self.open.as_ref().map(|(no, _)| *no);
        if open.or(self.private.as_ref().map(|(no, ..)| *no)).is_some_and(|no| no > self.applied) {
            self.events.push(ReplayEvent {
                event_type: event.header.event_type,
                timestamp: event.header.timestamp,
                body: bytes::Bytes::copy_from_slice(event.body),
            });
        }
    }

    fn outside(&mut self, file: FileSeq, event: &RawEvent<'_>) -> Result<Option<LogOffset>, RecoverError> {
        // Whatever was open never became whole.
        self.open = None;
        if event.header.event_type == EventType::FORMAT_DESCRIPTION {
            self.file = FileFacts { base: None, in_use: event.header.flags & FLAG_IN_USE != 0 };
        }
        if event.header.event_type == EventType::MARIADB_GTID_LIST {
            if let Ok(list) = MariadbGtidList::decode(event.body) {
                self.recovered.executed = GtidState::Mariadb(BinlogState::from_list(&list.gtids));
            }
            return Ok(None);
        }
        if event.header.event_type == EventType::PREVIOUS_GTIDS {
            // Everything that was executed when the file began; less than before after a reset.
            if let Ok(previous) = PreviousGtids::decode(event.body) {
                self.recovered.executed = GtidState::Mysql(previous.set);
            }
            return Ok(None);
        }
        match LogPrivate::of_event(event) {
            Some(LogPrivate::CommitMark { no, len, gtid }) => {
                self.events.clear();
                let until = LogOffset(event.end().saturating_add(len));
                self.private = Some((CommitNo(no), until, gtid));
                self.end_private(event.end())?;
                return Ok(Some(until));
            }
            Some(LogPrivate::FileStart { first, elsewhere }) => {
                let base = first.saturating_sub(1);
                damage::check_succession(self.names, self.first, file, self.recovered.last, CommitNo(base))?;
                self.file.base = Some(base);
                self.recovered.elsewhere = elsewhere;
                self.recovered.last = self.recovered.last.max(CommitNo(base));
            }
            Some(LogPrivate::Filler(_)) => {}
            None => {
                self.keep(event);
                self.end_private(event.end())?;
            }
        }
        Ok(None)
    }

    fn end_private(&mut self, at: u64) -> Result<(), RecoverError> {
        match self.private.take() {
            Some((no, until, gtid)) if at >= until.0 => {
                if let GtidState::Mysql(executed) = &mut self.recovered.executed {
                    executed.union(&gtid);
                    self.recovered.elsewhere.union(&gtid);
                }
                self.finish(no)
            }
            open => {
                self.private = open;
                Ok(())
            }
        }
    }

    fn finish(&mut self, no: CommitNo) -> Result<(), RecoverError> {
        self.recovered.last = self.recovered.last.max(no);
        if no <= self.applied {
            return Ok(());
        }
        let failed = |reason| RecoverError::Replay { no, position: self.at, reason };
        let writes = self.replay.transaction(no, &self.events).map_err(failed)?;
        self.engine.prepare_ordered(no, writes);
        self.engine.commit_ordered(no);
        // Replay reads the newest versions only: without this every version of a hot row would be kept.
        self.engine.gc_watermark(no);
        self.recovered.replayed += 1;
        self.events.clear();
        let stall = self.engine.write_stall();
        if !stall.is_zero() {
            std::thread::sleep(stall);
        }
        Ok(())
    }

    fn count(&mut self, file: FileSeq, event: &RawEvent<'_>) {
        if self.before.0 != file {
            self.before = (file, self.before.1 + self.before.2, 0);
        }
        self.before.2 = event.end();
        self.at = LogPosition::new(file, event.offset);
        self.recovered.bytes = self.before.1 + self.before.2;
        if self.said.elapsed() >= Duration::from_secs(5) {
            self.said = Instant::now();
            let percent = self.recovered.bytes * 100 / self.total.max(1);
            let (replayed, position) = (self.recovered.replayed, self.at);
            tracing::info!(
                "recovery: {percent}% of the log read, {replayed} transactions replayed, at {position}"
            );
        }
    }
}
