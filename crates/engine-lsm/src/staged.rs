//! A large transaction's memtable, made on its session's thread before it has a number, and attached when
//! it gets one: installing a million versions one by one would hold every other commit up for a second.
//!
//! It is the transaction's write set, which is ordered and found by key as it is. The memtable knows the number of all of it
//! (`MemTable::staged_at`): nothing is touched again when the number is known. It holds each key once, and whoever writes it holds
//! their locks, so no newer version can get below it. Everything older is in older memtables, because the active one is sealed
//! first; the order of memtables stays the order of numbers.
//!
//! `stage` runs on any thread that may take long, `attach` on the commit thread.

use crate::engine::Shared;
use crate::memtable::{MemTable, Span};
use bytes::Bytes;
use omnibus_engine::{Pending, Staged, WriteSet, WriteSetIter};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(crate) fn stage(writes: WriteSet) -> Staged {
    Staged::Built(Box::new(Arc::new(MemTable::of_staged(writes))))
}

/// A walk over a part of what was staged, forward.
pub(crate) struct Walk<'m> {
    rest: WriteSetIter<'m>,
    now: Option<Pending<'m>>,
    /// Of all versions.
    pub(crate) number: u64,
}

impl<'m> Walk<'m> {
    pub(crate) fn new(writes: &'m WriteSet, span: &Span, number: u64) -> Walk<'m> {
        Walk { rest: within(writes, span), now: None, number }
    }

    pub(crate) fn advance(&mut self) -> bool {
        self.now = self.rest.next();
        self.now.is_some()
    }

    /// Where it stands; nothing before `advance` said that there is something.
    pub(crate) fn key(&self) -> &'m [u8] {
        self.now.map_or(&[], |now| now.key())
    }

    pub(crate) fn value(&self) -> Option<Bytes> {
        self.now.and_then(|now| now.write())
    }
}

/// Each key has one version, so the bounds' numbers say nothing.
pub(crate) fn within<'m>(writes: &'m WriteSet, span: &Span) -> WriteSetIter<'m> {
    let bounds = (span.0.as_ref().map(|from| &from.key[..]), span.1.as_ref().map(|to| &to.key[..]));
    writes.range::<(Bound<&[u8]>, Bound<&[u8]>)>(bounds)
}

/// What `stage` made, or what it was given instead.
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
