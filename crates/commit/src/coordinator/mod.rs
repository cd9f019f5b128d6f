//! The coordinator: one log, one engine, one order. The SQL layer commits and takes snapshots through it.

mod admin;
mod gtids;
mod large;
mod two_phase;

pub use admin::ResetLogError;
pub use gtids::{GtidModeError, GtidWait, Gtids, SetGtidsError};
use two_phase::TwoPhase;
pub use two_phase::{Blocking, just_block};

use crate::cache::{CacheSettings, TrxCache};
use crate::deletes::DeletedFloor;
use crate::error::CommitError;
use crate::log_env::{Appender, LogEnv};
use crate::pipeline::{Gate, Pipeline, Released};
use crate::published::{Published, SnapshotReader};
use crate::recovery::Recovered;
use crate::request::CommitRequest;
use crate::settings::CommitSettings;
use crate::stats::CommitStats;
use crate::ticket::Ticket;
use omnibus_engine::{CommitNo, Engine, Snapshot};
use omnibus_log::LogPosition;
use std::sync::Arc;

/// The commit path of a server, shared by all sessions. Each method says on which thread it may be called.
pub struct Coordinator {
    pipeline: Pipeline<LogEnv>,
    engine: Arc<dyn Engine>,
    deletes: Arc<DeletedFloor>,
    settings: Arc<CommitSettings>,
    cache_settings: Arc<CacheSettings>,
    first_xid: u64,
    two_phase: TwoPhase,
}

impl Coordinator {
    /// Starts committing behind the end that recovery found; the engine has everything up to there.
    ///
    /// # Errors
    /// A log thread could not be started.
    pub fn start(
        engine: Arc<dyn Engine>,
        env: LogEnv,
        writer: Appender,
        recovered: &Recovered,
        settings: Arc<CommitSettings>,
        cache_settings: Arc<CacheSettings>,
    ) -> std::io::Result<Coordinator> {
        let deletes = env.deletes().clone();
        cache_settings.large.open(env.files().disk(), env.files().path(), env.checksums().clone());
        let pipeline = Pipeline::start(env, writer, recovered.last, settings.clone())?;
        let first_xid = recovered.last_xid.max(recovered.last.0) + 1;
        Ok(Coordinator {
            pipeline,
            engine,
            deletes,
            settings,
            cache_settings,
            first_xid,
            two_phase: TwoPhase::new(just_block),
        })
    }

    /// Sets how sessions' threads block in the two-phase protocols.
    #[must_use]
    pub fn with_blocking(self, blocking: Blocking) -> Coordinator {
        Coordinator { two_phase: TwoPhase::new(blocking), ..self }
    }

    /// The number to begin with in XID events, so that recovery never meets one number twice.
    #[must_use]
    pub fn first_xid(&self) -> u64 {
        self.first_xid
    }

    pub(crate) fn pipeline(&self) -> &Pipeline<LogEnv> {
        &self.pipeline
    }

    /// Creates an empty trx cache for a session.
    #[must_use]
    pub fn new_cache(&self) -> TrxCache {
        TrxCache::new(self.cache_settings.clone())
    }

    /// Creates a reader with which one session takes snapshots.
    #[must_use]
    pub fn reader(&self) -> SnapshotReader {
        self.pipeline.published().reader()
    }

    /// The newest installed versions, for readers that hold the row locks.
    #[must_use]
    pub fn latest(&self) -> Box<dyn Snapshot> {
        self.engine.snapshot(CommitNo::MAX)
    }

    /// Hands a finished transaction over; see [`Pipeline::commit`]. Callable from any thread.
    ///
    /// Blocks for a large transaction ([`CommitRequest::is_large`]), whose size-dependent work is done on the calling
    /// thread.
    pub fn commit(&self, mut request: CommitRequest) -> Ticket {
        if self.settings.protocol.is_two_phase() {
            return self.two_phase.commit(&self.pipeline, &*self.engine, self.settings.protocol, request);
        }
        if request.is_large() {
            if let Err(error) = large::make_ready(&mut request, &*self.engine) {
                return Ticket::done(Err(error));
            }
            request.inline = false;
        }
        self.pipeline.commit(request)
    }

    /// See [`Pipeline::lead`].
    pub fn lead(&self) -> bool {
        self.pipeline.lead()
    }

    /// See [`Pipeline::wait_published`].
    pub fn wait_published(&self, no: CommitNo) -> Ticket {
        self.pipeline.wait_published(no)
    }

    /// The number up to which all commits are durable.
    #[must_use]
    pub fn durable(&self) -> CommitNo {
        self.pipeline.durable()
    }

    /// See [`Pipeline::set_gate`].
    pub fn set_gate(&self, gate: Gate) -> Released {
        self.pipeline.set_gate(gate)
    }

    /// See [`Pipeline::release`].
    pub fn release(&self, up_to: LogPosition) -> Released {
        self.pipeline.release(up_to)
    }

    /// See [`Pipeline::held`].
    #[must_use]
    pub fn held(&self) -> Option<(std::time::Instant, u64)> {
        self.pipeline.held()
    }

    /// The newest number assigned; a locking range scan may have seen effects up to it.
    #[must_use]
    pub fn numbered(&self) -> CommitNo {
        self.pipeline.numbered()
    }

    /// See [`Pipeline::installed`].
    #[must_use]
    pub fn installed(&self) -> CommitNo {
        self.pipeline.installed()
    }

    /// The published state, for snapshots.
    #[must_use]
    pub fn published(&self) -> &Arc<Published> {
        self.pipeline.published()
    }

    /// An upper bound of the commit number that deleted `key`. A reply that reports the key as absent must wait for it.
    #[must_use]
    pub fn deleted_floor(&self, key: &[u8]) -> CommitNo {
        self.deletes.floor(key)
    }

    /// The engine.
    #[must_use]
    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
    }

    /// Dynamic settings of the pipeline.
    #[must_use]
    pub fn settings(&self) -> &Arc<CommitSettings> {
        &self.settings
    }

    /// Dynamic limits of trx caches.
    #[must_use]
    pub fn cache_settings(&self) -> &Arc<CacheSettings> {
        &self.cache_settings
    }

    /// Counters and histograms.
    #[must_use]
    pub fn stats(&self) -> &Arc<CommitStats> {
        self.pipeline.stats()
    }

    /// The log: its GTIDs and files.
    #[must_use]
    pub fn log(&self) -> &LogEnv {
        self.pipeline.env()
    }

    /// The position of the next group.
    #[must_use]
    pub fn position(&self) -> LogPosition {
        self.pipeline.position()
    }

    /// Runs `work` while nothing is being appended; see [`Pipeline::with_quiet_log`]. Blocks.
    ///
    /// # Errors
    /// The log has failed.
    pub fn with_quiet_log<R>(
        &self,
        work: impl FnOnce(&LogEnv, &mut Appender) -> R,
    ) -> Result<R, CommitError> {
        self.pipeline.with_quiet_log(work)
    }

    /// Commits the queue and ends: afterwards the log is closed with a STOP event and the engine has everything
    /// persistent, so that the next start replays nothing. Blocks.
    ///
    /// # Errors
    /// The last write or checkpoint failed; the data is safe in the log all the same.
    pub fn close(&self) -> Result<(), CommitError> {
        let Some(mut appender) = self.pipeline.close() else { return Ok(()) };
        let failed = |error: &dyn std::fmt::Display| CommitError::LogFailed(error.to_string().into());
        self.pipeline.env().close(&mut appender).map_err(CommitError::LogFailed)?;
        self.engine.checkpoint().map_err(|error| failed(&error))?;
        Ok(())
    }
}
