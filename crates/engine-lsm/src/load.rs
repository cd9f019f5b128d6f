//! Bulk loads into a space that nobody reads yet: memtables of their own, straight into the queue of
//! the flush thread, so that an index build neither competes with commits for the active memtable
//! nor sits in it.

use crate::engine::Shared;
use crate::memtable::MemTable;
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
    let mut last = None;
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
        shared.signals.wait_until(shared, |view| loads(view) < shared.config.sealed_soft_limit.max(1))?;
        shared.views.add_sealed(&mut shared.views.writer.lock(), Arc::clone(&memtable));
        shared.signals.ask_flush();
        last = Some(memtable);
    }
    let Some(last) = last else { return Ok(()) };
    shared.signals.wait_until(shared, |view| !view.sealed.iter().any(|sealed| Arc::ptr_eq(sealed, &last)))
}
