//! The tree's table files at one version, for reading without the tree's lock.
//!
//! The tree's version types cannot be named outside its crate, so that the scan of all of them is kept as a closure. Reads
//! of `lsm-tree` are exclusive ("older than"), reads here are inclusive: `limit` converts.

use crate::block::Row;
use crate::key::Keys;
use crate::table::{Reader, Rows, TableFiles};
use crate::{checksum, table_error, tree_error};
use bytes::Bytes;
use lsm_tree::{AbstractTree, InternalValue, Table, TableId, Tree, UserKey};
use omnibus_engine::{EngineError, Kept};
use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;

type Bounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);
pub(crate) type TableIter = Box<dyn DoubleEndedIterator<Item = Result<InternalValue, EngineError>> + Send>;
type TreeIter = Box<dyn DoubleEndedIterator<Item = lsm_tree::Result<InternalValue>> + Send>;
type Scan = dyn Fn(Bounds<'_>, u64) -> TreeIter + Send + Sync;

/// Tables whose key ranges do not overlap, in order.
type Run = Vec<Arc<Reader>>;

pub(crate) struct Tables {
    files: Arc<TableFiles>,
    scan: Box<Scan>,
    runs: Vec<Run>,
    /// Runs in level 0: each may have to be looked at by every read.
    pub(crate) l0_runs: usize,
    pub(crate) disk_bytes: u64,
    /// Versions, and how many of them are deletions.
    pub(crate) versions: u64,
    pub(crate) deletions: u64,
    pub(crate) empty: bool,
}

impl Tables {
    /// The first version that is looked at.
    pub(crate) fn first(tree: &Tree, files: TableFiles) -> Tables {
        Tables::current(tree, Arc::new(files), &HashMap::new())
    }

    /// The present version, with what this one has read of the tables that are in both. Takes the tree's version lock,
    /// which a flush or compaction may hold for as long as it syncs its manifest: never on the commit thread.
    pub(crate) fn next(&self, tree: &Tree) -> Tables {
        let known = self.runs.iter().flatten().map(|reader| (reader.table().id(), reader)).collect();
        Tables::current(tree, Arc::clone(&self.files), &known)
    }

    fn current(tree: &Tree, files: Arc<TableFiles>, known: &HashMap<TableId, &Arc<Reader>>) -> Tables {
        let version = tree.current_version();
        let frozen = tree.get_version_history_lock().latest_version();
        let l0_runs = version.level(0).map_or(0, |level| level.run_count());
        let disk_bytes = version.iter_levels().map(|level| level.size()).sum();
        let reader = |table: &Table| match known.get(&table.id()) {
            Some(reader) => Arc::clone(reader),
            None => Arc::new(Reader::new(table.clone(), Arc::clone(&files))),
        };
        let runs = version.iter_levels().flat_map(|level| level.iter());
        let runs: Vec<Run> = runs.map(|run| run.iter().map(&reader).collect()).collect();
        let sum = |count: fn(&Table) -> u64| runs.iter().flatten().map(|reader| count(reader.table())).sum();
        let versions = sum(|table| table.metadata.item_count);
        let deletions = sum(|table| table.metadata.tombstone_count);
        let scan = move |bounds: Bounds<'_>, limit: u64| -> TreeIter {
            Box::new(Tree::create_internal_range::<&[u8], _>(frozen.clone(), &bounds, limit, None))
        };
        let (scan, empty) = (Box::new(scan), runs.is_empty());
        Tables { files, scan, runs, l0_runs, disk_bytes, versions, deletions, empty }
    }

    /// Bytes that the indexes of its tables take, and those of all tables that anybody has.
    #[cfg(test)]
    pub(crate) fn indexes(&self) -> (usize, usize) {
        (self.runs.iter().flatten().map(|reader| reader.size()).sum(), self.files.taken())
    }

    /// The newest version at or below `at`: `Some((_, None))` is a deletion. `hash` is `Filter::hash`.
    pub(crate) fn get(
        &self,
        key: &[u8],
        hash: u64,
        at: u64,
    ) -> Result<Option<(u64, Option<Bytes>)>, EngineError> {
        for (nth, run) in self.runs.iter().enumerate() {
            let last = nth + 1 == self.runs.len();
            let table = run.partition_point(|reader| reader.table().metadata.key_range.max()[..] < *key);
            if let Some(reader) = run.get(table)
                && reader.table().metadata.key_range.min()[..] <= *key
                && let Some(found) = reader.get(key, hash, at, last)?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The tables with versions that are newer than a snapshot at `at`: a compaction drops nothing of them (`threshold`).
    pub(crate) fn kept_since(&self, at: u64) -> Kept {
        let newer = self.runs.iter().flatten().map(|reader| reader.table());
        let newer = newer.filter(|table| table.get_highest_seqno() > at);
        newer.fold(Kept::default(), |kept, table| kept + Kept { bytes: table.metadata.file_size, files: 1 })
    }

    pub(crate) fn runs(&self) -> usize {
        self.runs.len()
    }

    /// For each run with tables in the range, returns all versions from the range's start on, and some behind its end,
    /// because finding the end takes as long as finding the start. The bounds must not be inverted.
    pub(crate) fn ranges<'v>(
        &'v self,
        keys: Keys<'_>,
    ) -> impl Iterator<Item = Result<RunRows<'v>, EngineError>> {
        let runs = self.runs.iter().map(move |run| (tables_of_run(run, keys), keys.0));
        runs.filter(|(tables, _)| !tables.is_empty()).map(|(tables, from)| RunRows::from(tables, from))
    }

    /// Returns the versions within the bounds that a snapshot at `at` sees, without deletions. The bounds must not be
    /// inverted.
    pub(crate) fn scan(self: &Arc<Self>, from: Bound<&[u8]>, to: Bound<&[u8]>, at: u64) -> Option<TableIter> {
        if self.empty {
            return None;
        }
        let (tables, bounds) = (Arc::clone(self), (from.map(UserKey::from), to.map(UserKey::from)));
        let pairs = (self.scan)((from, to), limit(at));
        Some(Box::new(pairs.map(move |pair| pair.map_err(|error| tables.named(&bounds, error)))))
    }

    /// The tree does not say which of the files in a range is damaged: they are read as a whole to find out.
    fn named(&self, bounds: &(Bound<UserKey>, Bound<UserKey>), error: lsm_tree::Error) -> EngineError {
        let keys = (bounds.0.as_ref().map(|from| &from[..]), bounds.1.as_ref().map(|to| &to[..]));
        let within = self.runs.iter().flat_map(|run| tables_of_run(run, keys));
        let damaged = |table: &&Table| !checksum::is_whole(table).unwrap_or(false);
        match within
            .map(|reader| reader.table())
            .filter(|_| !matches!(error, lsm_tree::Error::Io(_)))
            .find(damaged)
        {
            Some(table) => table_error(&table.path, error),
            None => tree_error(error),
        }
    }
}

fn from_in_table(table: &Table, from: Bound<UserKey>) -> TableIter {
    let path = Arc::clone(&table.path);
    let pairs = table.range((from, Bound::Unbounded));
    Box::new(pairs.map(move |pair| pair.map_err(|error| table_error(&path, error))))
}

fn tables_of_run<'r>(run: &'r Run, (from, to): Keys<'_>) -> &'r [Arc<Reader>] {
    let first = run.partition_point(|reader| match from {
        Bound::Included(from) => reader.table().metadata.key_range.max()[..] < *from,
        Bound::Excluded(from) => reader.table().metadata.key_range.max()[..] <= *from,
        Bound::Unbounded => false,
    });
    let within = |reader: &&Arc<Reader>| match to {
        Bound::Included(to) => reader.table().metadata.key_range.min()[..] <= *to,
        Bound::Excluded(to) => reader.table().metadata.key_range.min()[..] < *to,
        Bound::Unbounded => true,
    };
    let tables = &run[first..];
    &tables[..tables.partition_point(|table| within(&table))]
}

/// A version of a row in a run.
pub(crate) enum Version {
    /// In the present block ([`RunRows::data`]).
    InBlock(Row),
    /// As the tree gave it.
    Own(InternalValue),
}

/// A walk over all versions in tables of a run.
pub(crate) struct RunRows<'v> {
    now: TableRows<'v>,
    rest: &'v [Arc<Reader>],
}

enum TableRows<'v> {
    Here(Rows<'v>),
    ByTree(TableIter),
}

impl<'v> RunRows<'v> {
    fn from(tables: &'v [Arc<Reader>], from: Bound<&[u8]>) -> Result<RunRows<'v>, EngineError> {
        let (now, rest) = match tables.split_first() {
            Some((first, rest)) => (TableRows::from(first, from)?, rest),
            None => (TableRows::ByTree(Box::new(std::iter::empty())), tables),
        };
        Ok(RunRows { now, rest })
    }

    /// The next version.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<Version>, EngineError> {
        loop {
            let next = match &mut self.now {
                TableRows::Here(rows) => rows.next()?.map(Version::InBlock),
                TableRows::ByTree(rows) => rows.next().transpose()?.map(Version::Own),
            };
            if next.is_some() {
                return Ok(next);
            }
            let Some((first, rest)) = self.rest.split_first() else { return Ok(None) };
            (self.now, self.rest) = (TableRows::from(first, Bound::Unbounded)?, rest);
        }
    }

    /// The block of the version that came last.
    #[inline]
    pub(crate) fn data(&self) -> Option<&Bytes> {
        match &self.now {
            TableRows::Here(rows) => rows.data(),
            TableRows::ByTree(_) => None,
        }
    }
}

impl<'v> TableRows<'v> {
    fn from(reader: &'v Reader, from: Bound<&[u8]>) -> Result<TableRows<'v>, EngineError> {
        Ok(match reader.rows_from(from)? {
            Some(rows) => TableRows::Here(rows),
            None => TableRows::ByTree(from_in_table(reader.table(), from.map(UserKey::from))),
        })
    }
}

/// The tree shows what is older than a sequence number; a snapshot includes its own.
fn limit(at: u64) -> u64 {
    at.saturating_add(1)
}
