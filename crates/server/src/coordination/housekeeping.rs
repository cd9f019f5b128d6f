//! One thread that keeps the log from growing for ever and recovery from taking long.
//!
//! Once a second it looks; what it finds decides what it does:
//! - a file was finished, or a minute is over: files past `binlog_expire_logs_seconds` or in excess of
//!   `binlog_space_limit` go (PURGE-1: never one that recovery or a reader needs);
//! - the log has grown by [`HousekeepingSettings::checkpoint_bytes`] past what the engine has persisted: a
//!   checkpoint, so that recovery never reads much more than that;
//! - the reserve for a full disk is not whole, and there is room: it is made anew;
//! - a day is over (`binlog_verify_interval`): finished files are read again (`verify`);
//! - the engine has failed in the background: the server stops.
//!
//! It never holds up a commit. Stop it before the coordinator is closed.

use super::failure::FailureWatch;
use super::purge::{Wish, hindrance, purge};
use super::variables::LogLimits;
use super::verify::Verifier;
use omnibus_commit::Coordinator;
use omnibus_engine::{CommitNo, EngineError};
use omnibus_log::FileSeq;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

/// How often, and how much. The server uses the default.
#[derive(Clone, Copy, Debug)]
pub struct HousekeepingSettings {
    /// Between two looks.
    pub tick: Duration,
    /// Between two purges without a rotation.
    pub purge_every: Duration,
    /// Log bytes past the engine's last persisted transaction that call for a checkpoint.
    pub checkpoint_bytes: u64,
}

impl Default for HousekeepingSettings {
    fn default() -> HousekeepingSettings {
        HousekeepingSettings {
            tick: Duration::from_secs(1),
            purge_every: Duration::from_secs(60),
            checkpoint_bytes: 1 << 30,
        }
    }
}

/// The running thread. Dropping it stops and joins it.
#[derive(Debug)]
pub struct Housekeeping {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Housekeeping {
    /// Starts the thread.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn start(
        coordinator: Arc<Coordinator>,
        limits: Arc<LogLimits>,
        failures: Arc<FailureWatch>,
        settings: HousekeepingSettings,
    ) -> std::io::Result<Housekeeping> {
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let signal = stop.clone();
        let thread = std::thread::Builder::new().name("housekeeping".into()).spawn(move || {
            let mut keeper = Keeper::new(coordinator, limits, failures, settings);
            let (stopped, bell) = &*signal;
            let mut stopped = stopped.lock();
            while !*stopped {
                parking_lot::MutexGuard::unlocked(&mut stopped, || keeper.round(Instant::now()));
                if !*stopped {
                    bell.wait_for(&mut stopped, settings.tick);
                }
            }
        })?;
        Ok(Housekeeping { stop, thread: Some(thread) })
    }

    /// Ends the thread; waits for what it is doing.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Housekeeping {
    fn drop(&mut self) {
        *self.stop.0.lock() = true;
        self.stop.1.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The work of the thread, without the thread.
pub(super) struct Keeper {
    coordinator: Arc<Coordinator>,
    limits: Arc<LogLimits>,
    failures: Arc<FailureWatch>,
    settings: HousekeepingSettings,
    purged_at: Option<Instant>,
    active: FileSeq,
    distance: Distance,
    /// The hindrance of the last purge, so that it is said once.
    said: Option<String>,
    verifier: Verifier,
}

impl Keeper {
    pub(super) fn new(
        coordinator: Arc<Coordinator>,
        limits: Arc<LogLimits>,
        failures: Arc<FailureWatch>,
        settings: HousekeepingSettings,
    ) -> Keeper {
        let active = coordinator.log().files().durable_end().get().file;
        let distance = Distance::new(settings.checkpoint_bytes, unpersisted(&coordinator));
        let verifier = Verifier::new(coordinator.clone(), limits.clone());
        let (purged_at, said) = (None, None);
        Keeper { coordinator, limits, failures, settings, purged_at, active, distance, said, verifier }
    }

    /// One look at everything.
    pub(super) fn round(&mut self, now: Instant) {
        if let Some(reason) = self.coordinator.engine().failure() {
            self.failures.engine_failed(&reason);
            return;
        }
        let active = self.coordinator.log().files().durable_end().get().file;
        let due = self.purged_at.is_none_or(|at| now.duration_since(at) >= self.settings.purge_every);
        if due || active != self.active {
            self.active = active;
            self.purged_at = Some(now);
            self.expire();
        }
        self.bound_recovery();
        self.coordinator.log().files().keep_reserve();
        self.verifier.look(now);
    }

    fn expire(&mut self) {
        let mut hindered = None;
        if let Some(age) = self.limits.expire_after()
            && let Some(time) = SystemTime::now().checked_sub(age)
        {
            hindered = self.purge(Wish::Before(time));
        }
        if let Some(bytes) = self.limits.total_bytes() {
            hindered = self.purge(Wish::Total(bytes)).or(hindered);
        }
        if hindered != self.said {
            if let Some(why) = &hindered {
                tracing::warn!("old binary log files can not be purged: {why}");
            }
            self.said = hindered;
        }
    }

    fn purge(&self, wish: Wish) -> Option<String> {
        match purge(&self.coordinator, wish) {
            Ok(purged) => hindrance(&self.coordinator, &purged),
            Err(error) => Some(error.to_string()),
        }
    }

    fn bound_recovery(&mut self) {
        let written = self.coordinator.stats().bytes.load(Ordering::Relaxed);
        let published = self.coordinator.published().number();
        let behind = self.distance.behind(self.coordinator.engine().persisted(), published, written);
        if behind < self.settings.checkpoint_bytes {
            return;
        }
        tracing::debug!(behind, "checkpoint, to keep recovery short");
        match self.coordinator.engine().checkpoint() {
            // Reads go on, and the log keeps what the engine can not: asked again when the log has grown by as much again.
            Err(error @ EngineError::Corrupt { .. }) => {
                tracing::error!(%error, "the storage engine can not get on; log files are kept for it");
                self.distance.begin_anew(written);
            }
            Err(error) => self.failures.engine_failed(&error.to_string()),
            Ok(_) => {}
        }
    }
}

/// Bytes in the files that recovery would read now.
fn unpersisted(coordinator: &Coordinator) -> u64 {
    if coordinator.engine().persisted() >= coordinator.published().number() {
        return 0;
    }
    // Unreadable heads are reported by whoever has to do with them; counting all files is on the safe side.
    let first = coordinator.recovery_start().unwrap_or(FileSeq::FIRST);
    let files = coordinator.log().files().list();
    files.iter().filter(|entry| entry.file >= first).map(|entry| entry.size).sum()
}

/// How many bytes of log lie behind the engine's last persisted transaction, closely enough: a few
/// (number, bytes) pairs are remembered, and the newest one that is persisted is where counting starts.
#[derive(Debug)]
pub(super) struct Distance {
    step: u64,
    initial: u64,
    start: u64,
    samples: VecDeque<(CommitNo, u64)>,
}

impl Distance {
    /// `limit` is the distance that matters; `initial` what lay behind before the first byte was counted.
    pub(super) fn new(limit: u64, initial: u64) -> Distance {
        Distance { step: (limit / 64).max(1), initial, start: 0, samples: VecDeque::new() }
    }

    /// Counts from here on.
    fn begin_anew(&mut self, written: u64) {
        self.samples.clear();
        self.start = self.initial + written;
    }

    /// The distance, when `published` is the newest transaction and `written` bytes were counted.
    pub(super) fn behind(&mut self, persisted: CommitNo, published: CommitNo, written: u64) -> u64 {
        let now = self.initial + written;
        if persisted >= published {
            self.samples.clear();
            self.start = now;
            return 0;
        }
        while let Some(&(no, at)) = self.samples.front()
            && no <= persisted
        {
            self.start = at;
            self.samples.pop_front();
        }
        let newest = self.samples.back().map_or(self.start, |&(_, at)| at);
        if now >= newest.saturating_add(self.step) {
            self.samples.push_back((published, now));
        }
        now - self.start
    }
}
