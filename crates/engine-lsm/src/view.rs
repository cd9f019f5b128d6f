//! The view of a read: memtables and one version of the tables, as one pointer.
//!
//! There are two kinds of change, each made completely under `Views::writer`, so that none is lost: the commit thread
//! seals the active memtable; a background thread adds new tables, and drops the memtable that went into them. New
//! tables are fetched from the tree before that lock is taken (`refresh`), because the tree may be syncing.

use crate::memtable::MemTable;
use crate::tables::Tables;
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(crate) struct View {
    pub(crate) active: Arc<MemTable>,
    /// Oldest first.
    pub(crate) sealed: Vec<Arc<MemTable>>,
    pub(crate) tables: Arc<Tables>,
}

impl View {
    /// Memtables, newest first.
    pub(crate) fn memtables(&self) -> impl Iterator<Item = &Arc<MemTable>> {
        std::iter::once(&self.active).chain(self.sealed.iter().rev())
    }

    /// Memtables in which a walk at `at` may find something, newest first.
    pub(crate) fn memtables_at(&self, at: u64) -> impl Iterator<Item = &Arc<MemTable>> {
        self.memtables().filter(move |memtable| !memtable.is_empty() && memtable.staged_at() <= at)
    }

    pub(crate) fn memtable_bytes(&self) -> u64 {
        self.memtables().map(|memtable| memtable.bytes()).sum()
    }
}

/// The writer's state; its lock is what makes a change of the view whole.
pub(crate) struct Writer {
    pub(crate) active: Arc<MemTable>,
    /// The highest number prepared.
    pub(crate) prepared: u64,
}

pub(crate) struct Views {
    current: RwLock<Arc<View>>,
    pub(crate) writer: Mutex<Writer>,
    /// Held from fetching the tables to showing them, so that an older version never replaces a
    /// newer one.
    refreshing: Mutex<()>,
    /// The next active memtable, made ahead of need: its filter is a megabyte to clear.
    spare: Mutex<Option<Arc<MemTable>>>,
    memtable_size: u64,
}

impl Views {
    pub(crate) fn new(tables: Tables, applied: u64, size: u64) -> Views {
        let active = Arc::new(MemTable::new(size));
        let view = View { active: Arc::clone(&active), sealed: Vec::new(), tables: Arc::new(tables) };
        Views {
            current: RwLock::new(Arc::new(view)),
            writer: Mutex::new(Writer { active, prepared: applied }),
            refreshing: Mutex::new(()),
            spare: Mutex::new(None),
            memtable_size: size,
        }
    }

    fn fresh(&self) -> Arc<MemTable> {
        let spare = self.spare.lock().take();
        spare.unwrap_or_else(|| Arc::new(MemTable::new(self.memtable_size)))
    }

    /// Makes the next active memtable. The flush thread, between flushes.
    pub(crate) fn prepare_spare(&self) {
        if self.spare.lock().is_none() {
            let made = Arc::new(MemTable::new(self.memtable_size));
            self.spare.lock().get_or_insert(made);
        }
    }

    pub(crate) fn current(&self) -> Arc<View> {
        Arc::clone(&self.current.read())
    }

    /// Seals the active memtable, which covers everything up to `covers`. Between transactions: the
    /// caller holds the writer.
    pub(crate) fn seal(&self, writer: &mut Writer, covers: u64) {
        writer.active.covers.store(covers, Ordering::Release);
        writer.active = self.fresh();
        let mut current = self.current.write();
        let mut sealed = current.sealed.clone();
        sealed.push(Arc::clone(&current.active));
        *current = Arc::new(View {
            active: Arc::clone(&writer.active),
            sealed,
            tables: Arc::clone(&current.tables),
        });
    }

    /// Adds a filled memtable behind the active one. The caller holds the writer.
    pub(crate) fn add_sealed(&self, _writer: &mut Writer, memtable: Arc<MemTable>) {
        let mut current = self.current.write();
        let mut sealed = current.sealed.clone();
        sealed.push(memtable);
        let (active, tables) = (Arc::clone(&current.active), Arc::clone(&current.tables));
        *current = Arc::new(View { active, sealed, tables });
    }

    /// Shows what `fetch` makes of the tables that are shown, and no longer `flushed`. Background threads.
    pub(crate) fn refresh(&self, fetch: impl FnOnce(&Tables) -> Tables, flushed: Option<&Arc<MemTable>>) {
        let _refreshing = self.refreshing.lock();
        let tables = Arc::new(fetch(&self.current().tables));
        let writer = self.writer.lock();
        let mut current = self.current.write();
        let keep = |memtable: &&Arc<MemTable>| flushed.is_none_or(|gone| !Arc::ptr_eq(gone, memtable));
        let sealed = current.sealed.iter().filter(keep).cloned().collect();
        let old = std::mem::replace(
            &mut *current,
            Arc::new(View { active: Arc::clone(&writer.active), sealed, tables }),
        );
        drop(current);
        drop(writer);
        // May be the last reference to a memtable of many megabytes: freed here, outside the locks.
        drop(old);
    }
}
