//! The real world behind the pipeline: log files and the engine.

use crate::CommitRequest;
use crate::appender::{Appender, CopyError, PIECE};
use crate::deletes::DeletedFloor;
use crate::env::{AppendError, Env};
use crate::executed::Executed;
use crate::head::{FileHead, head, now_s};
use crate::large::StagedWrites;
use crate::owned::OwnedGtids;
use omnibus_engine::{CommitNo, Engine, TrxId, WriteSet};
use omnibus_format::events::Rotate;
use omnibus_format::header::FLAG_IGNORABLE;
use omnibus_format::{
    Checksum, Dialect, EventContext, EventType, GtidMode, GtidState, LogPrivate, MIN_FILLER, ServerUuid,
};
use omnibus_log::{FileSeq, LogHandle, LogPosition, LogWriter, ResetError, RotateError, WriteJob};
use omnibus_sync::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

/// Who this server is, in the log.
#[derive(Clone, Debug)]
pub struct LogIdentity {
    /// `server_id`.
    pub server_id: u32,
    /// `server_uuid`, the source part of every GTID made here.
    pub uuid: ServerUuid,
    /// The version string in FORMAT_DESCRIPTION.
    pub version: String,
    /// Whose ids and events the log has. A property of the data directory: it never changes.
    pub dialect: Dialect,
}

/// Called once, with the reason, when the log fails for good.
pub type OnFailure = Box<dyn Fn(&str) + Send + Sync>;

/// Log and engine as the pipeline sees them.
pub struct LogEnv {
    identity: LogIdentity,
    server_id: AtomicU32,
    checksums: Arc<AtomicBool>,
    engine: Arc<dyn Engine>,
    deletes: Arc<DeletedFloor>,
    handle: LogHandle,
    pub(crate) executed: Mutex<Executed>,
    pub(crate) owned: Arc<OwnedGtids>,
    /// `gtid_strict_mode`.
    pub(crate) strict: AtomicBool,
    /// `gtid_mode`.
    mode: AtomicU8,
    /// Who waits for GTIDs.
    pub(crate) gtid_waits: AtomicU64,
    /// The newest number known to be durable, for the heads of groups.
    durable_no: AtomicU64,
    on_failure: OnFailure,
}

impl LogEnv {
    /// Starts the next log file behind what recovery found.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn start(
        dir: omnibus_log::LogDir,
        recovered: &crate::Recovered,
        identity: LogIdentity,
        checksum: Checksum,
        engine: Arc<dyn Engine>,
        on_failure: OnFailure,
    ) -> Result<(LogEnv, Appender), omnibus_log::OpenError> {
        let state = match recovered.executed.dialect() == identity.dialect {
            true => recovered.executed.clone(),
            false => GtidState::new(identity.dialect),
        };
        let next_sequence = (0, state.state().map_or(0, |state| state.highest(0)) + 1);
        let executed = Executed::new(state, recovered.elsewhere.clone());
        let first = recovered.last.next();
        let head = head(&identity, identity.server_id, checksum, first, &executed, recovered.groups_end);
        let writer = dir.start(&head.bytes)?;
        let next_gno = executed.all().set().map_or(1, |set| set.free_from(identity.uuid, 1));
        let env = LogEnv {
            server_id: AtomicU32::new(identity.server_id),
            identity,
            checksums: Arc::new(AtomicBool::new(checksum == Checksum::Crc32)),
            engine,
            deletes: Arc::new(DeletedFloor::default()),
            handle: writer.handle(),
            executed: Mutex::new(executed),
            owned: Arc::default(),
            strict: AtomicBool::new(false),
            mode: AtomicU8::new(GtidMode::On as u8),
            gtid_waits: AtomicU64::new(0),
            durable_no: AtomicU64::new(recovered.last.0),
            on_failure,
        };
        Ok((env, Appender::new(writer, &head, recovered, next_gno, next_sequence)))
    }

    /// Every GTID in the log, the newest perhaps not durable yet.
    #[must_use]
    pub fn executed(&self) -> GtidState {
        self.executed.lock().all().clone()
    }

    /// Listing, purging and reading of log files.
    #[must_use]
    pub fn files(&self) -> &LogHandle {
        &self.handle
    }

    /// Who this server is.
    #[must_use]
    pub fn identity(&self) -> &LogIdentity {
        &self.identity
    }

    /// Whose ids and events the log has.
    #[must_use]
    #[inline]
    pub fn dialect(&self) -> Dialect {
        self.identity.dialect
    }

    /// `gtid_strict_mode`: refuse given ids that are out of order.
    pub fn set_strict(&self, strict: bool) {
        self.strict.store(strict, Ordering::Relaxed);
    }

    /// `gtid_mode`.
    #[must_use]
    #[inline]
    pub fn gtid_mode(&self) -> GtidMode {
        GtidMode::from_number(self.mode.load(Ordering::SeqCst))
    }

    /// `gtid_mode`, at start-up. Later it is [`crate::Coordinator::change_gtid_mode`] that changes it.
    pub fn set_gtid_mode(&self, mode: GtidMode) {
        self.mode.store(mode as u8, Ordering::SeqCst);
    }

    /// Changes when `gtid_executed` and `gtid_purged` change otherwise than by commits and purges.
    #[must_use]
    pub fn gtid_generation(&self) -> u64 {
        self.executed.lock().generation()
    }

    /// `binlog_checksum` of the next file.
    #[must_use]
    pub fn checksum(&self) -> Checksum {
        if self.checksums.load(Ordering::Relaxed) { Checksum::Crc32 } else { Checksum::None }
    }

    /// `binlog_checksum`, from the next file on.
    pub fn set_checksum(&self, checksum: Checksum) {
        self.checksums.store(checksum == Checksum::Crc32, Ordering::Relaxed);
    }

    /// `server_id`, for events that the log itself makes from now on.
    pub fn set_server_id(&self, id: u32) {
        self.server_id.store(id, Ordering::Relaxed);
    }

    /// Whether the next file has checksums, for those who write their events ahead of time.
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

    /// The head of a file that follows what was appended; no group is open.
    pub(crate) fn next_head(&self, appender: &Appender) -> FileHead {
        let (checksum, first, before) = (self.checksum(), appender.last.next(), appender.groups_end());
        head(&self.identity, self.server_id(), checksum, first, &self.executed.lock(), before)
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

    /// Forgets every file and every GTID, and goes on in file `first`. The engine has everything that
    /// was appended, persistently, and nothing is in flight. The inner error is one that leaves a log that
    /// works; the outer one has poisoned it.
    pub(crate) fn reset(
        &self,
        appender: &mut Appender,
        first: FileSeq,
    ) -> Result<Result<(), ResetError>, Arc<str>> {
        if let Err(error) = appender.writer.can_restart_at(first) {
            return Ok(Err(error));
        }
        // The file that a crash from here on leaves as the log says the new story already.
        self.executed.lock().clear();
        appender.next_gno = 1;
        appender.next_sequence = (0, 1);
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
        let place = self.place(appender, (no, last_seen), request);
        self.check_given(place, request)?;
        if request.cache.settled().is_some()
            && let Some(done) = self.promote(appender, place, request)
        {
            return done;
        }
        appender.stamp(self.context_of(request), self.durable_no());
        if request.cache.len() >= PIECE as u64 {
            // It takes several groups, which are there or not together.
            appender.end_group();
        }
        appender.begin_group();
        let start = appender.writer.position();
        let mut first = std::mem::take(&mut appender.scratch);
        first.clear();
        self.write_first(&mut first, appender, start.offset.0, place, request);
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

    fn wants_rotation(&self, appender: &Appender) -> bool {
        appender.writer.needs_rotation()
    }

    fn rotate(&self, appender: &mut Appender) -> Result<(), Arc<str>> {
        self.rotate_with(appender, LogWriter::rotate)
    }

    fn install(&self, no: CommitNo, writes: WriteSet) {
        for (key, write) in writes.iter() {
            if write.is_none() {
                self.deletes.note(key, no);
            }
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
        self.executed.lock().settle(oldest, self.durable_no());
        self.engine.gc_watermark(oldest);
    }

    fn failed(&self, reason: &str) {
        tracing::error!("the binary log failed: {reason}");
        (self.on_failure)(reason);
    }
}

pub(crate) fn reason(error: &dyn std::error::Error) -> Arc<str> {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        source = inner.source();
    }
    text.into()
}
