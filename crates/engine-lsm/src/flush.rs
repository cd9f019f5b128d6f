//! The flush thread: writes sealed memtables into level 0, oldest first, and only what the log holds
//! (ENGINE-1).
//!
//! A memtable is normally written once everything in it is durable in the log. A checkpoint does not
//! wait for that: it has the durable part written, and the rest follows later (`MemTable::flushed`).

use crate::memtable::{MemTable, Version};
use crate::shared::Shared;
use crate::spaces::within;
use crate::{io_error, large, load, space, tree_error};
use bytes::Bytes;
use lsm_tree::{AbstractTree, InternalValue, ValueType};
use omnibus_engine::{EngineError, SortedWrites, Write};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The interval at which the thread checks whether the head of its queue has become durable. A memtable takes far
/// longer to fill, so the commit path does not need to wake the thread.
const POLL: Duration = Duration::from_millis(5);
/// The tree keeps old versions of its manifest for readers that we do not have: none are needed.
const FORGET_ALL: u64 = u64::MAX >> 1;

/// The part of a memtable that is to be written.
struct Task {
    memtable: Arc<MemTable>,
    /// The newest commit number to write; `None` for a load, whose one number was published before it began.
    up_to: Option<u64>,
    whole: bool,
}

/// The thread's body.
pub(crate) fn run(shared: &Arc<Shared>) {
    while !shared.signals.stopping() {
        shared.views.prepare_spare();
        match next_task(shared) {
            Some(task) if shared.failure().is_none() => {
                shared.guard("flush", || flush(shared, &task));
            }
            _ => shared.signals.wait_for_flush(POLL, shared.views.current().sealed.is_empty()),
        }
    }
}

/// Memtables go in order, so that what is persistent is a prefix. A load goes as soon as everything up
/// to its number is persistent, whatever is in its way: its keys are nowhere else.
fn next_task(shared: &Shared) -> Option<Task> {
    let view = shared.views.current();
    let persisted = shared.persisted.load(Ordering::Acquire);
    let ready = |memtable: &&Arc<MemTable>| memtable.loaded_at.is_some_and(|at| at <= persisted);
    if let Some(load) = view.sealed.iter().find(ready) {
        return Some(Task { memtable: Arc::clone(load), up_to: None, whole: true });
    }
    let head = view.sealed.iter().find(|memtable| memtable.loaded_at.is_none())?;
    let (memtable, covers) = (Arc::clone(head), head.covers.load(Ordering::Acquire));
    let committed = shared.committed.load(Ordering::Acquire);
    if committed >= covers {
        return Some(Task { memtable, up_to: Some(covers), whole: true });
    }
    let asked = shared.checkpoint_to.load(Ordering::Acquire) > persisted;
    (asked && committed > persisted).then_some(Task { memtable, up_to: Some(committed), whole: false })
}

fn flush(shared: &Arc<Shared>, task: &Task) -> Result<(), EngineError> {
    let mut written = false;
    let mut step = || {
        let _files = shared.files.flush.lock();
        if !std::mem::replace(&mut written, true) {
            write(shared, task).inspect_err(|_| written = false)?;
        }
        finish(shared, task)
    };
    if task.memtable.loaded_at.is_none() {
        return space::patiently(shared, step);
    }
    match space::attempt(shared, &mut step) {
        // Its statement fails, and nothing else.
        Err(error) if error.is_full() => {
            load::give_up(shared, std::slice::from_ref(&task.memtable));
            Ok(())
        }
        done => done,
    }
}

/// Shows what the tree names now, and says how far it goes.
fn finish(shared: &Shared, task: &Task) -> Result<(), EngineError> {
    if let Some(up_to) = task.up_to {
        shared.state_files.write_applied(up_to).map_err(io_error)?;
        task.memtable.flushed.store(up_to, Ordering::Release);
    }
    shared.show(task.whole.then_some(&task.memtable));
    if let Some(up_to) = task.up_to {
        shared.persisted.fetch_max(up_to, Ordering::AcqRel);
    }
    shared.counters.flushes.fetch_add(1, Ordering::Relaxed);
    shared.signals.flushed();
    Ok(())
}

/// Writes tables and has the tree name them, which it does or does not: a failure can be followed by another attempt.
fn write(shared: &Shared, task: &Task) -> Result<(), EngineError> {
    let gone = shared.spaces.gone();
    let keep = Keep::new(task, shared.watermark.load(Ordering::Acquire), &gone);
    let entries = task.memtable.versions().scan(keep, |keep, version| {
        Some(version.map(|version| keep.entry(version)).map_err(of_memtable).transpose())
    });
    let entries = entries.flatten();
    add_tables(shared, task.up_to.or(task.memtable.loaded_at).unwrap_or(u64::MAX), entries)
}

/// See `Engine::install_sorted`. Everything before is in tables.
pub(crate) fn install(shared: &Shared, no: u64, writes: &mut SortedWrites<'_>) -> Result<(), EngineError> {
    let _files = shared.files.flush.lock();
    let entries = writes.map(|write| {
        let (key, value) = write.map_err(lsm_tree::Error::Io)?;
        Ok(entry(key, value, no))
    });
    add_tables(shared, no, entries)?;
    shared.state_files.write_applied(no).map_err(io_error)?;
    let mut writer = shared.views.writer.lock();
    writer.prepared = writer.prepared.max(no);
    drop(writer);
    shared.committed.fetch_max(no, Ordering::AcqRel);
    shared.show(None);
    shared.persisted.fetch_max(no, Ordering::AcqRel);
    shared.counters.flushes.fetch_add(1, Ordering::Relaxed);
    shared.signals.flushed();
    Ok(())
}

/// Writes tables and has the tree name all of them at once.
fn add_tables(
    shared: &Shared,
    highest: u64,
    entries: impl Iterator<Item = lsm_tree::Result<InternalValue>>,
) -> Result<(), EngineError> {
    let written = shared.tree.flush_to_tables(entries).map_err(tree_error)?;
    let tables = written.map(|(tables, _)| tables).unwrap_or_default();
    if tables.is_empty() {
        return Ok(());
    }
    shared.barrier.register(|| {
        shared.highest_in_tables.fetch_max(highest, Ordering::SeqCst);
        shared.tree.register_tables(&tables, None, None, &[], FORGET_ALL).map_err(tree_error)
    })
}

/// Converts the error of reading a large transaction's files.
fn of_memtable(error: EngineError) -> lsm_tree::Error {
    lsm_tree::Error::Io(match error {
        EngineError::Spill(source) => source,
        other => std::io::Error::other(other),
    })
}

/// Decides which versions a flush writes.
struct Keep<'a> {
    above: u64,
    up_to: u64,
    watermark: u64,
    gone: &'a HashSet<u32>,
    /// The key whose newest version at or below the watermark has been written: older ones are
    /// invisible to every snapshot that is left.
    settled: Vec<u8>,
}

impl<'a> Keep<'a> {
    fn new(task: &Task, watermark: u64, gone: &'a HashSet<u32>) -> Keep<'a> {
        let above = task.memtable.flushed.load(Ordering::Acquire);
        Keep { above, up_to: task.up_to.unwrap_or(u64::MAX), watermark, gone, settled: Vec::new() }
    }

    fn entry(&mut self, version: Version) -> Option<InternalValue> {
        let Version { key, number, value } = version;
        // A load has one number, which may be 0.
        let written_before = self.above > 0 && number <= self.above;
        if number > self.up_to || written_before || self.settled == key || within(self.gone, &key) {
            return None;
        }
        if number <= self.watermark {
            self.settled.clear();
            self.settled.extend_from_slice(&key);
        }
        Some(entry(key, value, number))
    }
}

fn entry(key: Bytes, value: Write, number: u64) -> InternalValue {
    match value {
        Some(value) => InternalValue::from_components(key, large::pack(value), number, ValueType::Value),
        None => InternalValue::new_tombstone(key, number),
    }
}
