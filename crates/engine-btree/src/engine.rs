//! `BtreeEngine`: opening, and the contract's methods.

use crate::config::BtreeConfig;
use crate::layer::Layer;
use crate::shared::{Counters, Full, Shared};
use crate::signals::Signals;
use crate::snapshot::BtreeSnapshot;
use crate::spaces::DeadSpaces;
use crate::store::Store;
use crate::view::Views;
use crate::{NAME, backup, damage, io_error, load, writer};
use bytes::Bytes;
use omnibus_engine::interruptible::GoOn;
use omnibus_engine::{
    CommitNo, Engine, EngineError, EngineStats, Kept, Snapshot, SortedWrites, SpaceId, Staged, TrxId,
    WriteSet,
};
use omnibus_redo::Participant;
use parking_lot::Mutex;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The B-tree engine. Dropping it stops its thread without a checkpoint.
pub struct BtreeEngine {
    shared: Arc<Shared>,
    applied: u64,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for BtreeEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BtreeEngine")
            .field("directory", &self.shared.config.directory)
            .finish_non_exhaustive()
    }
}

impl BtreeEngine {
    /// Opens or creates the engine's directory. The caller owns the data directory's lock.
    ///
    /// # Errors
    /// The file cannot be opened, is damaged, or is of another version.
    pub fn open(config: BtreeConfig) -> Result<BtreeEngine, EngineError> {
        let store = Store::open(&config)?;
        let applied = store.state.lock().applied;
        let redo = Participant::open(
            &config.disk,
            &config.directory.join("redo"),
            omnibus_redo::SEGMENT_SIZE,
            CommitNo(applied),
        );
        let redo = redo.map_err(|error| omnibus_redo::open_error(NAME, error))?;
        let shared = Arc::new(Shared {
            views: Views::new(store.versions()?, applied),
            config,
            store,
            spaces: DeadSpaces::default(),
            redo,
            signals: Signals::default(),
            committed: AtomicU64::new(applied),
            persisted: AtomicU64::new(applied),
            checkpoint_to: AtomicU64::new(0),
            // No snapshot from before the start is left.
            watermark: AtomicU64::new(applied),
            counters: Counters::default(),
            failure: Mutex::new(None),
            damage: Mutex::new(None),
            damaged: AtomicBool::new(false),
        });
        let for_thread = Arc::clone(&shared);
        let body = move || writer::run(&for_thread);
        let thread = std::thread::Builder::new().name("btree-writer".to_owned()).spawn(body);
        Ok(BtreeEngine { shared, applied, thread: Some(thread.map_err(io_error)?) })
    }
}

impl BtreeEngine {
    /// Searches for damage by reading everything. Returns the first finding.
    #[must_use]
    pub fn verify(&self) -> Vec<String> {
        let snapshot = self.snapshot(CommitNo::MAX);
        let found = snapshot.scan(Bound::Unbounded, Bound::Unbounded, false).find_map(Result::err);
        found.map(|error| error.to_string()).into_iter().collect()
    }
}

#[cfg(test)]
impl BtreeEngine {
    pub(crate) fn shared_for_tests(&self) -> &Shared {
        &self.shared
    }
}

impl Drop for BtreeEngine {
    fn drop(&mut self) {
        self.shared.signals.stop();
        self.shared.store.files.stop_waiting();
        if let Some(thread) = self.thread.take() {
            // A panic in it has been reported as the engine's failure.
            let _ = thread.join();
        }
    }
}

impl BtreeEngine {
    fn checkpoint_or(&self, full: Full) -> Result<CommitNo, EngineError> {
        let target = self.shared.committed.load(Ordering::Acquire);
        if self.shared.persisted.load(Ordering::Acquire) < target {
            self.shared.checkpoint_to.fetch_max(target, Ordering::AcqRel);
            self.shared.wait_persisted(target, full)?;
        }
        self.shared.redo.checkpoint(self.persisted()).map_err(io_error)?;
        Ok(self.persisted())
    }
}

impl Engine for BtreeEngine {
    fn name(&self) -> &'static str {
        "BTREE"
    }

    fn comment(&self) -> &'static str {
        "Copy-on-write B-tree"
    }

    fn applied(&self) -> CommitNo {
        CommitNo(self.applied)
    }

    fn prepare_ordered(&self, no: CommitNo, writes: WriteSet) {
        let writes = match writes.into_writes() {
            Ok(writes) => writes,
            Err(spilled) => return self.prepare_staged(no, self.stage(spilled)),
        };
        let mut installer = self.shared.views.installer.lock();
        for (key, write) in writes {
            installer.active.insert(key, no.0, write);
        }
        installer.prepared = installer.prepared.max(no.0);
        drop(installer);
        self.shared.signals.ask();
    }

    fn stage(&self, writes: WriteSet) -> Staged {
        Staged::Built(Box::new(Arc::new(Layer::of_staged(writes))))
    }

    fn prepare_staged(&self, no: CommitNo, staged: Staged) {
        match staged {
            Staged::Writes(writes) => self.prepare_ordered(no, writes),
            Staged::Built(layer) => match layer.downcast::<Arc<Layer>>() {
                Ok(layer) => {
                    self.shared.views.attach(*layer, no.0);
                    self.shared.signals.ask();
                }
                Err(_) => unreachable!("what another engine staged is not given to this one"),
            },
        }
    }

    fn install_sorted(&self, no: CommitNo, writes: &mut SortedWrites<'_>) -> Result<(), EngineError> {
        self.checkpoint()?;
        self.shared.writing(|| load::install(&self.shared, no.0, writes))
    }

    fn commit_ordered(&self, up_to: CommitNo) {
        self.shared.committed.fetch_max(up_to.0, Ordering::AcqRel);
    }

    fn snapshot(&self, at: CommitNo) -> Box<dyn Snapshot> {
        Box::new(BtreeSnapshot { shared: Arc::clone(&self.shared), at: at.0 })
    }

    fn load(&self, at: CommitNo, pairs: &mut dyn Iterator<Item = (Bytes, Bytes)>) -> Result<(), EngineError> {
        damage::caught(&self.shared.store.path, || load::load(&self.shared, at.0, pairs))
    }

    fn drop_space(&self, space: SpaceId, at: CommitNo) {
        self.shared.spaces.add(space.0, at.0);
        self.shared.signals.ask();
    }

    fn gc_watermark(&self, oldest: CommitNo) {
        self.shared.watermark.fetch_max(oldest.0, Ordering::AcqRel);
    }

    fn write_stall(&self) -> Duration {
        let (bytes, limit) =
            (self.shared.views.current().bytes(), self.shared.config.memory_soft_limit.max(1));
        // After damage it would be for ever; then sessions ask `refuses`.
        if bytes <= limit || self.shared.usable().is_err() {
            return Duration::ZERO;
        }
        self.shared.counters.stalls.fetch_add(1, Ordering::Relaxed);
        // Twice the limit: 16 milliseconds; four times: a second, which amounts to a stop.
        let excess = ((bytes - limit).saturating_mul(4) / limit).min(10);
        Duration::from_millis(1 << excess)
    }

    fn recovered(&self) -> Result<(), EngineError> {
        self.shared.store.renew()
    }

    fn checkpoint(&self) -> Result<CommitNo, EngineError> {
        self.checkpoint_or(Full::Waits)
    }

    fn checkpoint_if_room(&self) -> Result<CommitNo, EngineError> {
        self.checkpoint_or(Full::IsAnError)
    }

    fn persisted(&self) -> CommitNo {
        CommitNo(self.shared.persisted.load(Ordering::Acquire))
    }

    fn failure(&self) -> Option<String> {
        self.shared.failure()
    }

    fn refuses(&self, _: &WriteSet) -> Option<EngineError> {
        self.shared.usable().err()
    }

    fn backup_to(&self, root: &Path, go_on: GoOn<'_>) -> Result<CommitNo, EngineError> {
        damage::caught(&self.shared.store.path, || backup::backup(&self.shared, root, go_on))
    }

    fn two_phase(&self) -> bool {
        true
    }

    fn prepare(&self, trx: TrxId, writes: &WriteSet) -> Result<(), EngineError> {
        self.shared.redo.prepare(trx, writes, self.persisted()).map_err(io_error)
    }

    fn flush_logs(&self) -> Result<(), EngineError> {
        self.shared.redo.flush().map_err(io_error)
    }

    fn prepared(&self) -> Vec<TrxId> {
        self.shared.redo.prepared()
    }

    fn commit_prepared(&self, trx: TrxId, no: CommitNo) {
        if let Some(writes) = self.shared.redo.commit(trx, no)
            && no.0 > self.shared.views.installer.lock().prepared
        {
            self.prepare_ordered(no, writes);
        }
    }

    fn rollback(&self, trx: TrxId) {
        self.shared.redo.rollback(trx);
    }

    fn kept_since(&self, at: CommitNo) -> Kept {
        let store = &self.shared.store;
        let (mut from, mut bytes) = (self.persisted().0, 0);
        let view = self.shared.views.current();
        let active = (&view.active, self.shared.views.installer.lock().prepared);
        let sealed = view.sealed.iter().map(|layer| (layer, layer.covers.load(Ordering::Acquire)));
        for (layer, to) in sealed.chain([active]) {
            bytes += Kept::part(layer.bytes(), from, to, at.0);
            from = from.max(to);
        }
        // Damage has been told where it was met.
        let in_file = damage::caught(&store.path, || store.kept_since(at.0)).unwrap_or_default();
        Kept { bytes, files: 0 } + in_file
    }

    fn stats(&self) -> EngineStats {
        let counters = &self.shared.counters;
        EngineStats {
            memtable_bytes: self.shared.views.current().bytes(),
            flushes: counters.writes.load(Ordering::Relaxed),
            compactions: 0,
            write_stalls: counters.stalls.load(Ordering::Relaxed),
            disk_bytes: self
                .shared
                .config
                .disk
                .metadata(&self.shared.store.path)
                .map_or(0, |about| about.len),
            redo_syncs: self.shared.redo.syncs(),
        }
    }
}
