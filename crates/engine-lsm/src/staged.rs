//! A large transaction's memtable, made on its session's thread before it has a number, and attached when
//! it gets one: installing a million versions one by one would hold every other commit up for a second.
//!
//! It is the transaction's write set, which is ordered and can be searched as it is. The memtable has one number for
//! all of it (`MemTable::staged_at`), so it is not touched again when the number is known. It holds each key once, and
//! its transaction holds their locks, so no newer version can be installed before it. Everything older is in older
//! memtables, because the active one is sealed first; the order of memtables stays the order of numbers.
//!
//! `stage` runs on any thread that may take long, `attach` on the commit thread.

use crate::memtable::MemTable;
use crate::shared::Shared;
use omnibus_engine::{Staged, WriteSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(crate) fn stage(writes: WriteSet) -> Staged {
    Staged::Built(Box::new(Arc::new(MemTable::of_staged(writes))))
}

/// Returns the memtable that `stage` made, or the staged writes if they have another form.
pub(crate) fn built(staged: Staged) -> Result<Arc<MemTable>, Staged> {
    let Staged::Built(any) = staged else { return Err(staged) };
    any.downcast::<Arc<MemTable>>().map(|memtable| *memtable).map_err(Staged::Built)
}

pub(crate) fn attach(shared: &Shared, no: u64, memtable: Arc<MemTable>) {
    let mut writer = shared.views.writer.lock();
    if !writer.active.is_empty() {
        shared.seal(&mut writer);
    }
    writer.prepared = writer.prepared.max(no);
    if memtable.is_empty() {
        return;
    }
    memtable.number_staged(no);
    memtable.covers.store(no, Ordering::Release);
    shared.views.add_sealed(&mut writer, memtable);
    shared.measure(&shared.views.current());
    shared.signals.ask_flush();
}
