//! The compaction thread.
//!
//! When one may drop old versions is said in `threshold`.
//!
//! When nothing else is to be done, what deletions have left is swept out (`sweep`).

use crate::shared::Shared;
use crate::space;
use crate::spaces::within;
use crate::sweep::{self, Quiet};
use crate::threshold;
use crate::tree_error;
use lsm_tree::AbstractTree;
use lsm_tree::compaction::filter::Context;
use lsm_tree::compaction::{CompactionFilter, Factory, ItemAccessor, Leveled, Verdict};
use omnibus_engine::EngineError;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, RefUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// The longest sleep: old versions may have become droppable without a flush.
const POLL: Duration = Duration::from_secs(1);

/// The thread's body.
pub(crate) fn run(shared: &Arc<Shared>) {
    let leveled = Leveled::default().with_table_target_size(shared.config.table_target_size);
    let strategy: Arc<Leveled> = Arc::new(leveled);
    let mut quiet = Quiet::new(shared);
    while shared.signals.wait_for_compaction(POLL.min(shared.config.sweep_after)) {
        if shared.failure().is_none() {
            persist_drops(shared);
            shared.guard("compaction", || settle(shared, round(shared, &strategy)));
        }
        if quiet.lasts(shared) && shared.failure().is_none() && !shared.damaged.load(Ordering::Acquire) {
            shared.guard("compaction", || settle(shared, sweep::sweep(shared, &mut quiet)));
        }
    }
}

fn round(shared: &Shared, strategy: &Arc<Leveled>) -> Result<(), EngineError> {
    space::clean(shared);
    if shared.damaged.load(Ordering::Acquire) {
        return Ok(());
    }
    drop_tables(shared)?;
    if shared.config.full_disk.is_making_room() {
        return Ok(());
    }
    space::attempt(shared, || compact(shared, strategy))?;
    space::compacted(shared);
    Ok(())
}

/// A compaction that fails leaves the tables as they were. It waits for a full disk. With damage it is not retried, and
/// every read that needs the damaged block reports it.
fn settle(shared: &Shared, done: Result<(), EngineError>) -> Result<(), EngineError> {
    if space::waits_to_compact(shared, &done) {
        return Ok(());
    }
    match done {
        Err(error @ EngineError::Corrupt { .. }) => {
            tracing::error!(%error, "engine-lsm: no more compactions until the next start; find the table with CHECK TABLE");
            shared.damaged.store(true, Ordering::Release);
            Ok(())
        }
        done => done,
    }
}

/// Space of a dropped table is wanted soon, not when a memtable is full: has the drop persisted, once it is durable.
fn persist_drops(shared: &Shared) {
    shared.advance_spaces();
    let Some(at) = shared.spaces.waits_for() else { return };
    let settled = shared.committed.load(Ordering::Acquire).min(shared.watermark.load(Ordering::Acquire));
    if shared.persisted.load(Ordering::Acquire) < at && at <= settled {
        shared.seal_for_checkpoint();
        shared.checkpoint_to.fetch_max(at, Ordering::AcqRel);
        shared.signals.ask_flush();
    }
}

/// Drops the tables that lie wholly within a gone space.
fn drop_tables(shared: &Shared) -> Result<(), EngineError> {
    let _files = shared.files.compaction.lock();
    let fresh = shared.spaces.take_fresh();
    for space in &fresh {
        let from = space.to_be_bytes();
        let dropped = match space.checked_add(1) {
            Some(next) => shared.tree.drop_range(from.as_slice()..next.to_be_bytes().as_slice()),
            None => shared.tree.drop_range(from.as_slice()..),
        };
        if let Err(error) = dropped {
            shared.spaces.give_back(fresh);
            return Err(tree_error(error));
        }
    }
    if !fresh.is_empty() {
        shared.show(None);
    }
    Ok(())
}

/// Compacts until the strategy has nothing left to do.
fn compact(shared: &Shared, strategy: &Arc<Leveled>) -> Result<(), EngineError> {
    while !shared.signals.stopping() {
        let before = shared.versions.get();
        let done = compact_once(shared, Arc::clone(strategy));
        if shared.signals.stopping() {
            return Ok(());
        }
        done?;
        if shared.versions.get() == before {
            return Ok(());
        }
        shared.counters.compactions.fetch_add(1, Ordering::Relaxed);
        shared.show(None);
        shared.signals.flushed();
    }
    Ok(())
}

fn compact_once(shared: &Shared, strategy: Arc<Leveled>) -> Result<(), EngineError> {
    let _files = shared.files.compaction.lock();
    threshold::with_threshold(shared, |threshold| shared.tree.compact(strategy, threshold.unwrap_or(0)))
}

/// Makes the filters, and opens the barrier. It is handed to the tree before `Shared` exists.
#[derive(Default)]
pub(crate) struct FilterFactory {
    shared: AssertUnwindSafe<OnceLock<Weak<Shared>>>,
}

impl FilterFactory {
    pub(crate) fn connect(&self, shared: &Arc<Shared>) {
        // Set once, by `LsmEngine::open`.
        let _ = self.shared.set(Arc::downgrade(shared));
    }
}

impl Factory for FilterFactory {
    fn name(&self) -> &str {
        "gone spaces"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        let shared = self.shared.get().and_then(Weak::upgrade);
        if let Some(shared) = &shared {
            shared.barrier.open();
        }
        let gone = shared.as_ref().map_or_else(Arc::default, |shared| shared.spaces.gone());
        let sweeps = shared.as_ref().and_then(sweep::GiveWay::of);
        let stop = shared.map_or_else(Arc::default, |shared| shared.signals.stop_flag());
        Box::new(Filter { gone, stop, sweeps })
    }
}

struct Filter {
    gone: Arc<HashSet<u32>>,
    stop: Arc<AtomicBool>,
    sweeps: Option<sweep::GiveWay>,
}

impl CompactionFilter for Filter {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> lsm_tree::Result<Verdict> {
        if self.stop.load(Ordering::Relaxed) || self.sweeps.as_mut().is_some_and(sweep::GiveWay::is_due) {
            // The only way to stop a merge at once; the tables it read stay as they are.
            return Err(lsm_tree::Error::Io(std::io::ErrorKind::Interrupted.into()));
        }
        // No tombstone is needed: nobody looks into a gone space, so older versions below are as
        // invisible as this one.
        Ok(if within(&self.gone, item.key()) { Verdict::Destroy } else { Verdict::Keep })
    }
}

const _: () = {
    const fn unwind_safe<T: RefUnwindSafe>() {}
    unwind_safe::<FilterFactory>();
};
