//! State that the engine's threads, its snapshots and its callers share: the views, the tree, the progress of each, and
//! errors.

use crate::barrier::TableBarrier;
use crate::config::LsmConfig;
use crate::format::StateFiles;
use crate::memtable::MemTable;
use crate::signals::Signals;
use crate::spaces::DeadSpaces;
use crate::view::{View, Views, Writer};
use crate::{io_error, stall};
use lsm_tree::{SequenceNumberCounter, Tree};
use omnibus_engine::EngineError;
use omnibus_redo::Participant;
use parking_lot::Mutex;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// State that the engine's threads, snapshots and callers share.
pub(crate) struct Shared {
    pub(crate) config: LsmConfig,
    pub(crate) state_files: StateFiles,
    pub(crate) tree: Tree,
    /// Counts changes of the tree's tables. Not commit numbers: see `compaction`.
    pub(crate) versions: SequenceNumberCounter,
    pub(crate) views: Views,
    pub(crate) spaces: DeadSpaces,
    pub(crate) space: Space,
    /// A compaction has met damage: none is tried again before a restart.
    pub(crate) damaged: AtomicBool,
    /// The transactions that were prepared in two phases and are not persistent.
    pub(crate) redo: Participant,
    pub(crate) barrier: TableBarrier,
    /// The compaction that is running sweeps (`sweep`).
    pub(crate) sweeping: AtomicBool,
    pub(crate) files: Files,
    pub(crate) signals: Signals,
    /// Durable in the log.
    pub(crate) committed: AtomicU64,
    /// Durable in the tables.
    pub(crate) persisted: AtomicU64,
    /// The commit number that a checkpoint wants `persisted` to reach.
    pub(crate) checkpoint_to: AtomicU64,
    pub(crate) watermark: AtomicU64,
    /// No table holds a number above this.
    pub(crate) highest_in_tables: AtomicU64,
    pub(crate) counters: Counters,
    pub(crate) stall_us: AtomicU64,
    pub(crate) failure: Mutex<Option<String>>,
}

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) flushes: AtomicU64,
    pub(crate) compactions: AtomicU64,
    pub(crate) stalls: AtomicU64,
}

impl Shared {
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.lock().clone()
    }

    /// Runs background work; an error or a panic in it becomes the engine's failure.
    pub(crate) fn guard(&self, what: &str, work: impl FnOnce() -> Result<(), EngineError>) {
        let detail = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it panicked".to_owned(),
        };
        tracing::error!("engine-lsm: {what} failed: {detail}");
        self.failure.lock().get_or_insert_with(|| format!("{what} failed: {detail}"));
        self.signals.flushed();
    }

    /// Blocks until the view is as wanted, or the engine has failed.
    pub(crate) fn wait_until(&self, wanted: impl Fn(&View) -> bool) -> Result<(), EngineError> {
        self.signals.wait_until(|| {
            if wanted(&self.views.current()) {
                return Some(Ok(()));
            }
            Some(Err(io_error(std::io::Error::other(self.failure()?))))
        })
    }

    /// Shows other tables, and tells writers how they should behave.
    pub(crate) fn show(&self, flushed: Option<&Arc<MemTable>>) {
        self.views.refresh(|tables| tables.next(&self.tree), flushed);
        self.measure(&self.views.current());
    }

    pub(crate) fn measure(&self, view: &View) {
        // By size: a checkpoint seals small ones. A staged one counts as one whatever its size: its memory was
        // there before, and slowing everybody down makes it no smaller.
        let (limit, whole) = (self.config.memtable_size.max(1), |m: &MemTable| m.staged_at() > 0);
        let size = |m: &Arc<MemTable>| if whole(m) { m.bytes().min(limit) } else { m.bytes() };
        let bytes: u64 = view.sealed.iter().map(size).sum();
        let sealed = bytes.div_ceil(limit);
        let us = stall::delay_us(&self.config, sealed, view.tables.l0_runs as u64);
        self.stall_us.store(us, Ordering::Relaxed);
    }

    pub(crate) fn seal(&self, writer: &mut Writer) {
        let covers = writer.prepared.max(self.committed.load(Ordering::Acquire));
        self.views.seal(writer, covers);
        self.measure(&self.views.current());
        self.signals.ask_flush();
    }

    /// Removes dropped spaces that no snapshot can read and whose drop is persistent in this engine. Before that, a
    /// crash may take the drop back, or replay may need the rows from before it.
    pub(crate) fn advance_spaces(&self) {
        let persisted = self.persisted.load(Ordering::Acquire);
        if self.spaces.advance(self.watermark.load(Ordering::Acquire).min(persisted)) {
            self.signals.ask_compaction();
        }
    }

    /// Seals the active memtable if there is anything in it that is not persistent yet.
    pub(crate) fn seal_for_checkpoint(&self) {
        let mut writer = self.views.writer.lock();
        let covers = writer.prepared.max(self.committed.load(Ordering::Acquire));
        let view = self.views.current();
        let sealed =
            view.sealed.iter().map(|memtable| memtable.covers.load(Ordering::Acquire)).max().unwrap_or(0);
        let behind = covers > sealed.max(self.persisted.load(Ordering::Acquire));
        if behind || !writer.active.is_empty() {
            self.seal(&mut writer);
        }
    }
}

/// Held while the engine's files change. A thread that needs both locks takes `compaction` first: a compaction permits
/// flushes, but not the other way round.
#[derive(Default)]
pub(crate) struct Files {
    pub(crate) compaction: Mutex<()>,
    pub(crate) flush: Mutex<()>,
}

/// The state of a full disk (`space`).
#[derive(Default)]
pub(crate) struct Space {
    /// A flush waits.
    pub(crate) waiting: AtomicBool,
    /// How often one found no room.
    pub(crate) failures: AtomicU64,
    pub(crate) left: Mutex<HashSet<PathBuf>>,
}

impl Space {
    pub(crate) fn waiting(&self) -> bool {
        self.waiting.load(Ordering::Acquire)
    }
}
