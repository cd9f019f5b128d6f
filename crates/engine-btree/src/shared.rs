//! State that the engine's thread, its snapshots and its callers share: the views, the file, the progress of each, and
//! errors.

use crate::config::BtreeConfig;
use crate::layer::Layer;
use crate::signals::Signals;
use crate::spaces::DeadSpaces;
use crate::store::{Store, StoreState};
use crate::view::Views;
use crate::{NAME, damage, io_error};
use omnibus_engine::EngineError;
use omnibus_redo::Participant;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// State that the engine's thread, snapshots and callers share.
pub(crate) struct Shared {
    pub(crate) config: BtreeConfig,
    pub(crate) views: Views,
    pub(crate) store: Store,
    pub(crate) spaces: DeadSpaces,
    /// The transactions that were prepared in two phases and are not persistent.
    pub(crate) redo: Participant,
    pub(crate) signals: Signals,
    /// Durable in the log.
    pub(crate) committed: AtomicU64,
    /// Durable in the file.
    pub(crate) persisted: AtomicU64,
    /// The commit number that a checkpoint wants `persisted` to reach.
    pub(crate) checkpoint_to: AtomicU64,
    pub(crate) watermark: AtomicU64,
    pub(crate) counters: Counters,
    pub(crate) failure: Mutex<Option<String>>,
    /// The damage that a writing transaction has met: redb begins no other one after it.
    pub(crate) damage: Mutex<Option<String>>,
    pub(crate) damaged: AtomicBool,
}

/// The effect of a full disk on a wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// The wait continues.
    Waits,
    /// The wait ends with an error.
    IsAnError,
}

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) writes: AtomicU64,
    pub(crate) stalls: AtomicU64,
}

impl Shared {
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.lock().clone()
    }

    /// Why nothing can be written any more, if damage was met: until a start with another file.
    pub(crate) fn usable(&self) -> Result<(), EngineError> {
        if !self.damaged.load(Ordering::Acquire) {
            return Ok(());
        }
        let detail = self.damage.lock().clone().unwrap_or_default();
        Err(EngineError::Corrupt { engine: NAME, detail })
    }

    /// Runs a transaction that writes. Damage in its way is the last thing that happens to the file, and not to the server.
    pub(crate) fn writing<T>(&self, work: impl FnOnce() -> Result<T, EngineError>) -> Result<T, EngineError> {
        damage::caught(&self.store.path, work).inspect_err(|error| {
            if let EngineError::Corrupt { detail, .. } = error
                && !self.damaged.load(Ordering::Acquire)
            {
                tracing::error!("engine-btree: nothing more is written to the file: {detail}");
                *self.damage.lock() = Some(detail.clone());
                self.damaged.store(true, Ordering::Release);
                self.signals.progressed();
            }
        })
    }

    /// Runs background work; an error or a panic in it becomes the engine's failure.
    pub(crate) fn guard(&self, what: &str, work: impl FnOnce() -> Result<(), EngineError>) {
        let Err(error) = self.writing(work) else { return };
        if self.damaged.load(Ordering::Acquire) {
            return;
        }
        let detail = error.to_string();
        tracing::error!("engine-btree: {what} failed: {detail}");
        self.failure.lock().get_or_insert_with(|| format!("{what} failed: {detail}"));
        self.signals.progressed();
    }

    /// After a transaction of the file: shows it, and says how far it went.
    pub(crate) fn show(
        &self,
        state: &StoreState,
        durable: bool,
        written: Option<&Arc<Layer>>,
    ) -> Result<(), EngineError> {
        self.views.show(self.store.versions()?, written);
        if durable {
            self.persisted.fetch_max(state.applied, Ordering::AcqRel);
        }
        self.signals.progressed();
        Ok(())
    }

    /// Versions replaced at or below this are invisible to all, and what replaced them is durable in the log.
    pub(crate) fn prunable(&self) -> u64 {
        let durable = self.committed.load(Ordering::Acquire);
        self.watermark.load(Ordering::Acquire).min(durable)
    }

    /// Returns whether the file has more than a crash would leave.
    pub(crate) fn unsynced(&self) -> bool {
        self.store.state.lock().applied > self.persisted.load(Ordering::Acquire)
    }

    pub(crate) fn wait_persisted(&self, target: u64, full: Full) -> Result<(), EngineError> {
        let before = self.store.files.failures();
        self.signals.ask();
        self.signals.wait_until(|| {
            if self.persisted.load(Ordering::Acquire) >= target {
                return Some(Ok(()));
            }
            if let Err(error) = self.usable() {
                return Some(Err(error));
            }
            // One that failed just now may have begun before there was room.
            if full == Full::IsAnError && self.store.files.failures() > before + 1 {
                return Some(Err(io_error(std::io::ErrorKind::StorageFull.into())));
            }
            let closing = || self.signals.stopping().then(|| "the engine is closing".to_owned());
            let why = self.failure().or_else(closing)?;
            Some(Err(io_error(std::io::Error::other(why))))
        })
    }
}
