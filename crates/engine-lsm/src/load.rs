//! Bulk loads into a space without readers: memtables of their own go straight into the queue of the flush thread, so
//! that an index build neither competes with commits for the active memtable nor fills it.

use crate::io_error;
use crate::memtable::MemTable;
use crate::shared::Shared;
use crate::view::View;
use bytes::Bytes;
use omnibus_engine::EngineError;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Durable on return.
pub(crate) fn load(
    shared: &Shared,
    at: u64,
    pairs: &mut dyn Iterator<Item = (Bytes, Bytes)>,
) -> Result<(), EngineError> {
    // What is persistent must stay a prefix: everything up to `at` goes to disk before the load does.
    shared.seal_for_checkpoint();
    shared.checkpoint_to.fetch_max(at, Ordering::AcqRel);
    let mut mine: Vec<Arc<MemTable>> = Vec::new();
    loop {
        let memtable = Arc::new(MemTable::for_load(shared.config.memtable_size, at));
        let mut writing = memtable.write(0);
        for (key, value) in &mut *pairs {
            writing.insert(key, at, Some(value));
            if memtable.bytes() >= shared.config.memtable_size {
                break;
            }
        }
        drop(writing);
        if memtable.is_empty() {
            break;
        }
        let loads = |view: &View| view.sealed.iter().filter(|sealed| sealed.loaded_at.is_some()).count();
        wait(shared, &mine, |view| loads(view) < shared.config.sealed_soft_limit.max(1))?;
        shared.views.add_sealed(&mut shared.views.writer.lock(), Arc::clone(&memtable));
        shared.signals.ask_flush();
        mine.push(memtable);
    }
    let Some(last) = mine.last() else { return Ok(()) };
    wait(shared, &mine, |view| !view.sealed.iter().any(|sealed| Arc::ptr_eq(sealed, last)))
}

/// Until the view is as wanted; an error if the disk is too full for what is to be loaded, or for what has to go before it.
fn wait(shared: &Shared, mine: &[Arc<MemTable>], wanted: impl Fn(&View) -> bool) -> Result<(), EngineError> {
    let given_up = || mine.iter().any(|memtable| memtable.given_up.load(Ordering::Acquire));
    shared.wait_until(|view| wanted(view) || given_up() || shared.space.waiting())?;
    if given_up() || (shared.space.waiting() && !wanted(&shared.views.current())) {
        give_up(shared, mine);
        return Err(io_error(std::io::ErrorKind::StorageFull.into()));
    }
    Ok(())
}

/// Drops the rows that are not written yet; the space has no readers.
pub(crate) fn give_up(shared: &Shared, mine: &[Arc<MemTable>]) {
    for memtable in mine {
        memtable.given_up.store(true, Ordering::Release);
        shared.show(Some(memtable));
    }
    shared.signals.flushed();
}
