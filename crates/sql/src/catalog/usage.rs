//! How often a table's rows were read, by which index, and changed, since this definition of it was opened. Whoever reads counts
//! for itself first, so that a query adds once.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counters of one definition of a table.
#[derive(Debug)]
pub struct Usage {
    /// By position of the index; the last is for rows read along none.
    fetched: Box<[AtomicU64]>,
    inserted: AtomicU64,
    updated: AtomicU64,
    deleted: AtomicU64,
}

/// Rows, as they were read and changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// Read.
    pub fetched: u64,
    /// Inserted.
    pub inserted: u64,
    /// Updated.
    pub updated: u64,
    /// Deleted.
    pub deleted: u64,
}

impl Usage {
    /// Of a table with so many indexes.
    #[must_use]
    pub fn new(indexes: usize) -> Usage {
        let fetched = (0..=indexes).map(|_| AtomicU64::new(0)).collect();
        let [inserted, updated, deleted] = [0; 3].map(AtomicU64::new);
        Usage { fetched, inserted, updated, deleted }
    }

    /// The uses of one index; `None`: no index. Rows go in along none, and are found by the first for their change.
    #[must_use]
    pub fn of(&self, index: Option<usize>) -> Uses {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let changes = |wanted: bool, counter: &AtomicU64| if wanted { read(counter) } else { 0 };
        Uses {
            fetched: self.fetched.get(index.unwrap_or(self.fetched.len() - 1)).map_or(0, read),
            inserted: changes(index.is_none(), &self.inserted),
            updated: changes(index == Some(0), &self.updated),
            deleted: changes(index == Some(0), &self.deleted),
        }
    }

    /// All of it.
    #[must_use]
    pub fn all(&self) -> Uses {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Uses {
            fetched: self.fetched.iter().map(read).sum(),
            inserted: read(&self.inserted),
            updated: read(&self.updated),
            deleted: read(&self.deleted),
        }
    }

    /// Rows were read along an index, or along none.
    pub(crate) fn fetch(&self, index: Option<usize>, rows: u64) {
        if let Some(counter) = self.fetched.get(index.unwrap_or(self.fetched.len() - 1)) {
            counter.fetch_add(rows, Ordering::Relaxed);
        }
    }

    pub(crate) fn insert(&self) {
        self.inserted.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn update(&self) {
        self.updated.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn delete(&self) {
        self.deleted.fetch_add(1, Ordering::Relaxed);
    }
}
