//! Recovery's pass over the log: groups events into transactions, finds those that the engine lacks, and detects
//! damage.
//!
//! It replays whole transactions as it meets them. The start of the pass and the steps after it are in `recovery`.

use super::damage::{self, FileFacts};
use super::{Progress, RecoverError, Recovered, Replay, ReplayEvent, Replayed};
use omnibus_engine::{CommitNo, Engine, TrxId, Write};
use omnibus_format::events::{
    FormatDescription, Gtid, MariadbGtid, MariadbGtidEvent, MariadbGtidList, PreviousGtids,
};
use omnibus_format::group::opens_group;
use omnibus_format::header::FLAG_IN_USE;
use omnibus_format::payload::Payload;
use omnibus_format::{
    AnyGtid, BinlogState, DecodeError, EventType, GtidSet, GtidState, LogPrivate, RawEvent,
};
use omnibus_log::mutant::{self, Mutant};
use omnibus_log::{EventPlace, FileNames, FileSeq, LogOffset, LogPosition};
use std::time::{Duration, Instant};

/// The suffix of the server version in a file's start event, for files that this server wrote.
const OUR_VERSION: &str = "-omnibus";

/// Bytes of a transaction's events that are kept until its end is seen; those of a larger one are replayed as they
/// come.
const PART: usize = 1 << 20;
/// The interval between progress messages in the error log.
const TELL: Duration = Duration::from_secs(5);

/// Reports how much of a large transaction is in the engines.
struct Told {
    no: CommitNo,
    bytes: u64,
    said: Instant,
}

impl Told {
    fn new(no: CommitNo) -> Told {
        Told { no, bytes: 0, said: Instant::now() }
    }

    fn write(&mut self, write: Option<&(bytes::Bytes, Write)>) {
        if let Some((key, value)) = write {
            self.bytes += (key.len() + value.as_ref().map_or(0, bytes::Bytes::len)) as u64;
        }
        if self.said.elapsed() >= TELL {
            self.said = Instant::now();
            tracing::info!("recovery: {} MB of transaction {} written", self.bytes >> 20, self.no);
        }
    }
}

/// The state of one pass.
pub(crate) struct Walk<'a> {
    engine: &'a dyn Engine,
    replay: &'a mut dyn Replay,
    applied: CommitNo,
    pub(crate) recovered: Recovered,
    /// The facts from the present file's head.
    pub(crate) file: FileFacts,
    /// The names of files, for errors.
    names: &'a FileNames,
    /// The file that the pass began with.
    first: Option<FileSeq>,
    /// The transaction being read, and its events if the engine lacks it.
    open: Option<(CommitNo, Option<AnyGtid>)>,
    /// An open group of private events without a GTID: its number, its end, and its ids.
    private: Option<(CommitNo, LogOffset, GtidSet)>,
    events: Vec<ReplayEvent>,
    /// Bytes in `events`.
    kept: usize,
    /// Earlier events of the open transaction were passed on.
    in_parts: bool,
    /// The transactions that the log has committed, by the number in their XID events.
    pub(crate) logged: Vec<(TrxId, CommitNo)>,
    at: LogPosition,
    total: u64,
    /// Bytes of the files before the present one.
    before: (FileSeq, u64, u64),
    said: Instant,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(
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
            kept: 0,
            in_parts: false,
            logged: Vec::new(),
            at: LogPosition::new(FileSeq(0), 0),
            total,
            before: (FileSeq(0), 0, 0),
            said: now,
        }
    }

    /// Takes an event. Returns the end of the group that it opens, if only the group's number of bytes determines that.
    pub(crate) fn event(
        &mut self,
        file: FileSeq,
        event: &RawEvent<'_>,
        place: EventPlace,
    ) -> Result<Option<LogOffset>, RecoverError> {
        self.count(file, event);
        self.first.get_or_insert(file);
        if opens_group(event) {
            // It says nothing of the transaction that it may stand in.
            if let Some((_, until, _)) = &mut self.private {
                until.0 += event.bytes.len() as u64;
            }
            return Ok(None);
        }
        match place {
            EventPlace::First => self.begin(event),
            EventPlace::Inside => self.keep(event)?,
            EventPlace::Last => {
                self.keep(event)?;
                if let Some((no, gtid)) = self.open.take() {
                    self.note_xid(no, event);
                    if let Some(gtid) = gtid {
                        self.recovered.executed.add(gtid);
                    }
                    self.finish(no)?;
                }
            }
            EventPlace::Outside => return self.outside(file, event),
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
        self.drop_open();
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

    /// Returns a transaction's commit number: its place in the file, counted from the number in the file's head,
    /// whatever its GTID is. Files of another origin have only the GTID, or nothing.
    fn number(&self, gtid: &Gtid) -> CommitNo {
        CommitNo(match self.file.base {
            Some(base) => base.saturating_add(gtid.sequence_number),
            None if gtid.gno == 0 => self.recovered.last.next().0,
            None => gtid.gno,
        })
    }

    fn keep(&mut self, event: &RawEvent<'_>) -> Result<(), RecoverError> {
        let open = self.open.as_ref().map(|(no, _)| *no);
        let open = open.or(self.private.as_ref().map(|(no, ..)| *no));
        match (open, event.header.event_type) {
            (Some(no), EventType::TRANSACTION_PAYLOAD) => self.keep_payload(no, event),
            (Some(no), _) => self.keep_one(no, event),
            (None, _) => Ok(()),
        }
    }

    /// Keeps the events of a compressed transaction.
    fn keep_payload(&mut self, no: CommitNo, event: &RawEvent<'_>) -> Result<(), RecoverError> {
        let failed = |walk: &Self, error: DecodeError| walk.failed(no, error.to_string());
        let mut events = Payload::new(event.body).map_err(|error| failed(self, error))?;
        while let Some((header, body)) = events.next().map_err(|error| failed(self, error))? {
            let inner = RawEvent { header, body, ..*event };
            self.note_xid(no, &inner);
            self.keep_one(no, &inner)?;
        }
        Ok(())
    }

    fn keep_one(&mut self, no: CommitNo, event: &RawEvent<'_>) -> Result<(), RecoverError> {
        if no <= self.applied {
            return Ok(());
        }
        if self.kept >= PART {
            self.replay.part(no, &self.events).map_err(|reason| self.failed(no, reason))?;
            self.events.clear();
            (self.kept, self.in_parts) = (0, true);
        }
        self.events.push(ReplayEvent {
            event_type: event.header.event_type,
            timestamp: event.header.timestamp,
            body: bytes::Bytes::copy_from_slice(event.body),
        });
        self.kept += event.body.len();
        Ok(())
    }

    /// Drops the open transaction, which is incomplete.
    fn drop_open(&mut self) {
        self.events.clear();
        (self.open, self.private, self.kept) = (None, None, 0);
        if std::mem::take(&mut self.in_parts) {
            self.replay.forget();
        }
    }

    /// Returns the results of the pass.
    pub(crate) fn end(mut self) -> (FileFacts, Recovered, Vec<(TrxId, CommitNo)>) {
        self.drop_open();
        (self.file, self.recovered, self.logged)
    }

    fn failed(&self, no: CommitNo, reason: String) -> RecoverError {
        RecoverError::Replay { no, position: self.at, reason }
    }

    fn outside(&mut self, file: FileSeq, event: &RawEvent<'_>) -> Result<Option<LogOffset>, RecoverError> {
        if self.open.is_some() {
            self.drop_open();
        }
        if event.header.event_type == EventType::FORMAT_DESCRIPTION {
            let ours = FormatDescription::decode(event.body)
                .is_ok_and(|description| description.server_version.ends_with(OUR_VERSION));
            self.file = FileFacts { base: None, in_use: event.header.flags & FLAG_IN_USE != 0, ours };
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
                self.drop_open();
                let until = LogOffset(event.end().saturating_add(len));
                self.private = Some((CommitNo(no), until, gtid));
                self.end_private(event.end())?;
                return Ok(Some(until));
            }
            Some(LogPrivate::FileStart { first, elsewhere, .. }) => {
                let base = first.saturating_sub(1);
                damage::check_succession(self.names, self.first, file, self.recovered.last, CommitNo(base))?;
                self.file.base = Some(base);
                self.recovered.elsewhere = elsewhere;
                self.recovered.last = self.recovered.last.max(CommitNo(base));
            }
            Some(LogPrivate::Filler(_) | LogPrivate::Group { .. }) => {}
            None => {
                self.keep(event)?;
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
        let (read, replayed) = (self.recovered.bytes, self.recovered.replayed);
        self.replay.progress(Progress { read, total: self.total, replayed });
        self.recovered.last = self.recovered.last.max(no);
        if no <= self.applied || mutant::is(Mutant::ReplayLate) && no == self.applied.next() {
            return Ok(());
        }
        (self.kept, self.in_parts) = (0, false);
        match self.replay.transaction(no, &self.events).map_err(|reason| self.failed(no, reason))? {
            Replayed::Writes(writes) => self.engine.prepare_ordered(no, writes),
            Replayed::Sorted(mut writes) => {
                tracing::info!(
                    "recovery: writing large transaction {no}, which ends at {}, into the storage engines",
                    self.at
                );
                let mut told = Told::new(no);
                let mut writes = writes.by_ref().inspect(|write| told.write(write.as_ref().ok()));
                let done = self.engine.install_sorted(no, &mut writes);
                done.map_err(|error| self.failed(no, error.to_string()))?;
            }
        }
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
        if self.said.elapsed() >= TELL {
            self.said = Instant::now();
            let percent = self.recovered.bytes * 100 / self.total.max(1);
            let (replayed, position) = (self.recovered.replayed, self.at);
            tracing::info!(
                "recovery: {percent}% of the log read, {replayed} transactions replayed, at {position}"
            );
        }
    }
}
