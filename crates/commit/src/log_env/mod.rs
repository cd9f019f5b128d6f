//! The real environment of the pipeline: log files and the engine. It connects the numbering of ids (`numbering`), the
//! bytes of a transaction's first event (`first_event`), and the log's append side (`appender`); `promote` is the
//! flush stage of a large transaction.

mod appender;
mod first_event;
mod numbering;
mod promote;

pub use appender::Appender;

use crate::deletes::DeletedFloor;
use crate::env::{AppendError, Env};
use crate::error::reason;
use crate::executed::Executed;
use crate::head::{FileHead, LogIdentity, head, now_s};
use crate::recovery::Recovered;
use crate::request::{CommitRequest, StagedWrites};
use appender::{CopyError, PIECE};
use first_event::{FirstEvent, context_of};
use numbering::{CommitNumbers, Next, Numbering};
use omnibus_engine::{CommitNo, Engine, TrxId, WriteSet};
use omnibus_format::events::Rotate;
use omnibus_format::header::FLAG_IGNORABLE;
use omnibus_format::{
    Checksum, Dialect, EventContext, EventType, GtidMode, GtidState, LogPrivate, MIN_FILLER,
};
use omnibus_log::{FileSeq, LogHandle, LogPosition, LogWriter, ResetError, RotateError, WriteJob};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Called once, with the reason, when the log fails for good.
pub type OnFailure = Box<dyn Fn(&str) + Send + Sync>;

/// The log and the engine, as the pipeline uses them.
pub struct LogEnv {
    identity: LogIdentity,
    server_id: AtomicU32,
    checksums: Arc<AtomicBool>,
    engine: Arc<dyn Engine>,
    deletes: Arc<DeletedFloor>,
    handle: LogHandle,
    pub(crate) gtids: Numbering,
    /// The newest number known to be durable, for the heads of groups.
    durable_no: AtomicU64,
    on_failure: OnFailure,
}

impl LogEnv {
    /// Starts the next log file behind the end that recovery found.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn start(
        dir: omnibus_log::LogDir,
        recovered: &Recovered,
        identity: LogIdentity,
        checksum: Checksum,
        engine: Arc<dyn Engine>,
        on_failure: OnFailure,
    ) -> Result<(LogEnv, Appender), omnibus_log::OpenError> {
        let state = match recovered.executed.dialect() == identity.dialect {
            true => recovered.executed.clone(),
            false => GtidState::new(identity.dialect),
        };
        let executed = Executed::new(state, recovered.elsewhere.clone());
        let first = recovered.last.next();
        let head = head(&identity, identity.server_id, checksum, first, &executed, recovered.groups_end);
        let writer = LogWriter::start(dir, &head.bytes)?;
        let gtids = Numbering::new(identity.uuid, identity.dialect, executed);
        let mut next = Next::default();
        gtids.count_anew(&mut next);
        let env = LogEnv {
            server_id: AtomicU32::new(identity.server_id),
            identity,
            checksums: Arc::new(AtomicBool::new(checksum == Checksum::Crc32)),
            engine,
            deletes: Arc::new(DeletedFloor::default()),
            handle: writer.handle(),
            gtids,
            durable_no: AtomicU64::new(recovered.last.0),
            on_failure,
        };
        Ok((env, Appender::new(writer, &head, recovered, next)))
    }

    /// All GTIDs in the log; the newest may not be durable yet.
    #[must_use]
    pub fn executed(&self) -> GtidState {
        self.gtids.executed.lock().all().clone()
    }

    /// The log's files, to be listed, purged and read.
    #[must_use]
    pub fn files(&self) -> &LogHandle {
        &self.handle
    }

    /// The identity of this server in the log.
    #[must_use]
    pub fn identity(&self) -> &LogIdentity {
        &self.identity
    }

    /// The dialect of the log's ids and events.
    #[must_use]
    #[inline]
    pub fn dialect(&self) -> Dialect {
        self.identity.dialect
    }

    /// `gtid_strict_mode`: whether given ids that are out of order are refused.
    pub fn set_strict(&self, strict: bool) {
        self.gtids.strict.store(strict, Ordering::Relaxed);
    }

    /// `gtid_mode`.
    #[must_use]
    #[inline]
    pub fn gtid_mode(&self) -> GtidMode {
        self.gtids.mode()
    }

    /// Sets `gtid_mode` at start-up. Later changes go through [`crate::Gtids::change_mode`].
    pub fn set_gtid_mode(&self, mode: GtidMode) {
        self.gtids.set_mode(mode);
    }

    /// A number that changes when `gtid_executed` and `gtid_purged` change otherwise than by commits and purges.
    #[must_use]
    pub fn gtid_generation(&self) -> u64 {
        self.gtids.executed.lock().generation()
    }

    /// `binlog_checksum` of the next file.
    #[must_use]
    pub fn checksum(&self) -> Checksum {
        if self.checksums.load(Ordering::Relaxed) { Checksum::Crc32 } else { Checksum::None }
    }

    /// Sets `binlog_checksum`, in effect from the next file on.
    pub fn set_checksum(&self, checksum: Checksum) {
        self.checksums.store(checksum == Checksum::Crc32, Ordering::Relaxed);
    }

    /// Sets `server_id` for events that the log itself makes from now on.
    pub fn set_server_id(&self, id: u32) {
        self.server_id.store(id, Ordering::Relaxed);
    }

    /// Returns whether the next file has checksums, for code that writes final events ahead of time.
    pub(crate) fn checksums(&self) -> &Arc<AtomicBool> {
        &self.checksums
    }

    pub(crate) fn deletes(&self) -> &Arc<DeletedFloor> {
        &self.deletes
    }

    fn context(&self) -> EventContext {
        EventContext { timestamp: now_s(), server_id: self.server_id() }
    }

    /// `server_id`.
    #[must_use]
    pub fn server_id(&self) -> u32 {
        self.server_id.load(Ordering::Relaxed)
    }

    pub(crate) fn durable_no(&self) -> CommitNo {
        CommitNo(self.durable_no.load(Ordering::Acquire))
    }

    /// Appends the ROTATE event that ends the active file.
    pub(crate) fn add_rotate(&self, appender: &mut Appender) -> Result<(), Arc<str>> {
        self.end_group(appender);
        let name =
            appender.writer.next_file_name().ok_or_else(|| Arc::from("the log file numbers are used up"))?;
        let rotate = Rotate { position: 4, file: name.as_bytes() };
        appender.add(self.context(), EventType::ROTATE, 0, |body| rotate.encode(body));
        Ok(())
    }

    /// Ends the group that was being appended.
    pub(crate) fn end_group(&self, appender: &mut Appender) {
        appender.stamp(self.context(), self.durable_no());
        appender.end_group();
    }

    /// Builds the head of the file that follows; no group may be open.
    pub(crate) fn next_head(&self, appender: &Appender) -> FileHead {
        let (checksum, first, before) = (self.checksum(), appender.last.next(), appender.groups_end());
        head(&self.identity, self.server_id(), checksum, first, &self.gtids.executed.lock(), before)
    }

    fn rotate_with(
        &self,
        appender: &mut Appender,
        rotate: impl FnOnce(&mut LogWriter, &[u8]) -> Result<LogPosition, RotateError>,
    ) -> Result<(), Arc<str>> {
        self.add_rotate(appender)?;
        let head = self.next_head(appender);
        rotate(&mut appender.writer, &head.bytes).map_err(|error| reason(&error))?;
        appender.in_new_file(head.checksum, head.chain, head.end());
        appender.base = appender.last;
        Ok(())
    }

    /// Removes every file and every GTID, and continues in file `first`. The engine has all appended commits,
    /// persistently, and nothing is in flight. After the inner error the log still works; after the outer one it is
    /// poisoned.
    pub(crate) fn reset(
        &self,
        appender: &mut Appender,
        first: FileSeq,
    ) -> Result<Result<(), ResetError>, Arc<str>> {
        if let Err(error) = appender.writer.can_restart_at(first) {
            return Ok(Err(error));
        }
        // The file that a crash from here on leaves as the log says the new story already.
        self.gtids.executed.lock().clear();
        self.gtids.count_anew(&mut appender.next);
        self.rotate_with(appender, LogWriter::rotate_alone)?;
        let (head, rotated) = (self.next_head(appender), appender.writer.position());
        match appender.writer.restart_at(first, &head.bytes) {
            // The rotation has led there.
            Ok(there) if there.file == rotated.file => Ok(Ok(())),
            Ok(_) => {
                appender.in_new_file(head.checksum, head.chain, head.end());
                Ok(Ok(()))
            }
            Err(error @ (ResetError::Purge(_) | ResetError::NotDeleted(_))) => Ok(Err(error)),
            Err(error) => Err(reason(&error)),
        }
    }

    fn first_event<'a>(
        &self,
        appender: &Appender,
        place: CommitNumbers,
        request: &'a CommitRequest,
    ) -> FirstEvent<'a> {
        let context = context_of(request, self.server_id());
        FirstEvent { context, checksum: appender.checksum, base: appender.base, place, request }
    }

    /// Records that all events of a transaction have been appended.
    fn appended(&self, appender: &mut Appender, place: CommitNumbers) {
        appender.last = place.no;
        self.gtids.appended(&mut appender.next, place);
    }

    /// Ends the log with a STOP event.
    pub(crate) fn close(&self, appender: &mut Appender) -> Result<(), Arc<str>> {
        self.end_group(appender);
        appender.add(self.context(), EventType::STOP, 0, |_| {});
        appender.writer.close().map_err(|error| reason(&error))
    }
}

impl Env for LogEnv {
    type Writer = Appender;
    type Job = WriteJob;

    fn append(
        &self,
        appender: &mut Appender,
        no: CommitNo,
        last_seen: CommitNo,
        request: &mut CommitRequest,
    ) -> Result<(), AppendError> {
        let place = self.gtids.place(&mut appender.next, self.server_id(), (no, last_seen), request);
        self.gtids.check_given(place, request)?;
        if request.cache.settled().is_some()
            && let Some(done) = self.promote(appender, place, request)
        {
            return done;
        }
        let first_event = self.first_event(appender, place, request);
        appender.stamp(first_event.context, self.durable_no());
        if request.cache.len() >= PIECE as u64 {
            // It takes several groups, which are there or not together.
            appender.end_group();
        }
        appender.begin_group();
        let start = appender.writer.position();
        let mut first = std::mem::take(&mut appender.scratch);
        first.clear();
        first_event.write(&mut first, start.offset.0);
        appender.writer.buffer().extend_from_slice(&first);
        appender.scratch = first;
        match request.cache.read_events(PIECE, |cached| appender.add_cached(cached)) {
            Ok(()) => {}
            Err(CopyError::Log(reason)) => return Err(AppendError::Log(reason)),
            Err(CopyError::Cache(reason)) => {
                appender.writer.rewind(start);
                // Part of it is in the file already if it was large: then the log ends in a torn
                // transaction and must not go on.
                let undone = appender.writer.position() == start;
                return Err(if undone { AppendError::Cache(reason) } else { AppendError::Log(reason) });
            }
        }
        self.appended(appender, place);
        Ok(())
    }

    fn position(&self, appender: &Appender) -> LogPosition {
        appender.writer.position()
    }

    fn seal(&self, appender: &mut Appender, pad: bool) -> Result<WriteJob, Arc<str>> {
        if pad && appender.writer.needs_padding() {
            // A large transaction's file was taken over with its group: there is none open.
            appender.begin_group();
            let length = appender.writer.pad_len(MIN_FILLER);
            if length > 0 {
                let spare = length - MIN_FILLER + (4 - appender.checksum.len());
                appender.add(self.context(), EventType::IGNORABLE, FLAG_IGNORABLE, |body| {
                    LogPrivate::Filler(spare).encode(body);
                });
            }
        }
        self.end_group(appender);
        Ok(appender.writer.seal())
    }

    fn overlaps(&self, appender: &Appender) -> bool {
        appender.writer.shares_sealed_block()
    }

    fn write(&self, job: WriteJob, sync: bool) -> Result<(), Arc<str>> {
        let result = if sync { job.run() } else { job.run_without_sync() };
        result.map_err(|error| reason(&error))
    }

    fn is_stuck(&self) -> bool {
        self.handle.waits_for_room()
    }

    fn wants_rotation(&self, appender: &Appender) -> bool {
        appender.writer.needs_rotation()
    }

    fn rotate(&self, appender: &mut Appender) -> Result<(), Arc<str>> {
        self.rotate_with(appender, LogWriter::rotate)
    }

    fn install(&self, no: CommitNo, writes: WriteSet) {
        // Large ones are staged; this one is in memory.
        for deleted in writes.in_memory(..).filter(|held| held.is_delete()) {
            self.deletes.note(deleted.key(), no);
        }
        self.engine.prepare_ordered(no, writes);
    }

    fn install_staged(&self, no: CommitNo, writes: StagedWrites) {
        self.engine.prepare_staged(no, writes.staged);
        if writes.deletes {
            self.deletes.note_all(no);
        }
    }

    fn flush_engines(&self) -> Result<(), Arc<str>> {
        self.engine.flush_logs().map_err(|error| reason(&error))
    }

    fn commit_prepared(&self, xid: u64, no: CommitNo) {
        self.engine.commit_prepared(TrxId(xid), no);
    }

    fn rollback_prepared(&self, xid: u64) {
        self.engine.rollback(TrxId(xid));
    }

    fn durable(&self, no: CommitNo, position: LogPosition) {
        self.handle.durable_end().advance(position);
        self.durable_no.store(no.0, Ordering::Release);
        self.engine.commit_ordered(no);
    }

    fn watermark(&self, oldest: CommitNo) {
        self.gtids.executed.lock().settle(oldest, self.durable_no());
        self.engine.gc_watermark(oldest);
    }

    fn failed(&self, reason: &str) {
        tracing::error!("the binary log failed: {reason}");
        (self.on_failure)(reason);
    }
}
