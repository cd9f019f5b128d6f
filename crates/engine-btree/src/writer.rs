//! The writer thread: brings layers into the file, never ahead of the log (ENGINE-1).
//!
//! A layer is written when everything in it is durable in the log. A checkpoint does not wait for that: it has the
//! durable part written, and the rest follows later (`Layer::written`).

use crate::io_error;
use crate::layer::{Layer, Version};
use crate::prune::{Probe, Pruner};
use crate::shared::Shared;
use crate::spaces::within;
use omnibus_engine::EngineError;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The interval at which the thread checks whether the log has become durable up to the waiting layer. The commit path
/// does not wake the thread for it.
const POLL: Duration = Duration::from_millis(1);
/// The interval of checks without work, to pick up the watermark, which is not signalled.
const IDLE: Duration = Duration::from_millis(500);
/// Versions of a dropped space removed in one transaction.
const REMOVED_AT_ONCE: usize = 8192;

/// The part of a layer that is to be written.
struct Task {
    layer: Arc<Layer>,
    up_to: u64,
    whole: bool,
}

/// The thread's body.
pub(crate) fn run(shared: &Arc<Shared>) {
    let mut idle_since = Instant::now();
    while !shared.signals.stopping() {
        shared.signals.look();
        let mut wait = IDLE;
        shared.guard("writing", || {
            wait = round(shared, &mut idle_since)?;
            Ok(())
        });
        if shared.failure().is_some() || shared.usable().is_err() {
            wait = IDLE;
        }
        if !wait.is_zero() {
            shared.signals.wait_for_work(wait);
        }
    }
}

/// Does one thing. Tells how long to wait before the next.
fn round(shared: &Shared, idle_since: &mut Instant) -> Result<Duration, EngineError> {
    // Damage: what is in memory stays there, for reads. The log has it.
    if shared.failure().is_some() || shared.usable().is_err() {
        return Ok(IDLE);
    }
    if !shared.store.files.settle().map_err(io_error)? {
        return Ok(IDLE);
    }
    shared.views.seal();
    let committed = shared.committed.load(Ordering::Acquire);
    let asked = shared.checkpoint_to.load(Ordering::Acquire) > shared.persisted.load(Ordering::Acquire);
    let head = shared.views.current().sealed.first().cloned();
    if let Some(layer) = head {
        *idle_since = Instant::now();
        let (covers, written) = (layer.covers.load(Ordering::Acquire), layer.written.load(Ordering::Acquire));
        let whole = committed >= covers;
        if whole || (asked && committed > written.max(shared.persisted.load(Ordering::Acquire))) {
            let up_to = if whole { covers } else { committed };
            write(shared, &Task { layer, up_to, whole })?;
            return Ok(Duration::ZERO);
        }
        return Ok(POLL);
    }
    let behind = shared.store.state.lock().applied < committed || shared.unsynced();
    let asked = asked || drop_waits(shared, committed);
    let long = idle_since.elapsed() >= Duration::from_secs(shared.config.idle_s);
    if behind && (asked || long) {
        *idle_since = Instant::now();
        catch_up(shared, committed)?;
        return Ok(Duration::ZERO);
    }
    clean(shared)
}

fn write(shared: &Shared, task: &Task) -> Result<(), EngineError> {
    let gone = shared.spaces.gone();
    let above = task.layer.written.load(Ordering::Acquire);
    let mut state = shared.store.state.lock();
    let asked = shared.checkpoint_to.load(Ordering::Acquire) > shared.persisted.load(Ordering::Acquire);
    let durable = asked || state.loose >= shared.config.durable_every;
    let probe = probe(shared);
    shared.store.transaction(&mut state, task.up_to, durable, |write, state| {
        let mut pruner = Pruner::new(write, shared.prunable())?;
        let mut same: Vec<Version> = Vec::new();
        let wanted = |version: &Version| version.number > above && version.number <= task.up_to;
        for version in task.layer.versions() {
            let version = version?;
            if !wanted(&version) || within(&gone, &version.key) {
                continue;
            }
            if same.first().is_some_and(|first| first.key != version.key) {
                state.loose += pruner.write(&same)?;
                same.clear();
            }
            same.push(version);
        }
        state.loose += pruner.write(&same)?;
        pruner.again(state, &probe)
    })?;
    task.layer.written.store(task.up_to, Ordering::Release);
    shared.show(&state, durable, task.whole.then_some(&task.layer))?;
    shared.counters.writes.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

fn probe(shared: &Shared) -> Probe<'_> {
    Probe { file: Arc::clone(&shared.views.current().file), path: &shared.store.path }
}

/// Persists the number, or makes earlier writes durable, when there is nothing to write.
fn catch_up(shared: &Shared, committed: u64) -> Result<(), EngineError> {
    // The number was read before this looks: what it covers was prepared by then.
    if !shared.views.all_written() {
        return Ok(());
    }
    let mut state = shared.store.state.lock();
    shared.store.transaction(&mut state, committed, true, |_, _| Ok(()))?;
    shared.show(&state, true, None)
}

/// Returns whether a dropped space is kept only because its drop is not persistent in this engine.
fn drop_waits(shared: &Shared, committed: u64) -> bool {
    let settled = committed.min(shared.watermark.load(Ordering::Acquire));
    shared.spaces.waits_for().is_some_and(|at| at <= settled && at > shared.persisted.load(Ordering::Acquire))
}

/// Removes versions that no snapshot can see.
fn clean(shared: &Shared) -> Result<Duration, EngineError> {
    let watermark = shared.prunable();
    shared.spaces.advance(watermark.min(shared.persisted.load(Ordering::Acquire)));
    let mut state = shared.store.state.lock();
    let dead = shared.spaces.fresh();
    if dead.is_none() && state.garbage_from.is_none_or(|number| number > watermark) {
        return Ok(IDLE);
    }
    let applied = state.applied;
    let mut more = true;
    let probe = probe(shared);
    shared.store.transaction(&mut state, applied, false, |write, state| {
        let mut pruner = Pruner::new(write, watermark)?;
        if let Some(space) = dead {
            more = pruner.remove_space(space, REMOVED_AT_ONCE, &probe)?;
        }
        pruner.again(state, &probe)
    })?;
    if let Some(space) = dead.filter(|_| !more) {
        shared.spaces.removed(space);
    }
    shared.show(&state, false, None)?;
    Ok(Duration::ZERO)
}
