//! The tree's table files at one version, for reading without the tree's lock.
//!
//! The tree's version types cannot be named outside its crate, so the needed functions are kept as two closures. Reads
//! of `lsm-tree` are exclusive ("older than"), reads here are inclusive: `limit` converts.

use crate::key::Keys;
use crate::{checksum, large, table_error, tree_error};
use bytes::Bytes;
use lsm_tree::{AbstractTree, InternalValue, Table, Tree, UserKey};
use omnibus_engine::EngineError;
use std::ops::Bound;
use std::sync::Arc;

type Get = dyn Fn(&[u8], u64, u64) -> Result<Option<InternalValue>, EngineError> + Send + Sync;
type Bounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);
pub(crate) type TableIter = Box<dyn DoubleEndedIterator<Item = Result<InternalValue, EngineError>> + Send>;
type TreeIter = Box<dyn DoubleEndedIterator<Item = lsm_tree::Result<InternalValue>> + Send>;
type Scan = dyn Fn(Bounds<'_>, u64) -> TreeIter + Send + Sync;

/// Tables whose key ranges do not overlap, in order.
type Run = Vec<Table>;

pub(crate) struct Tables {
    get: Box<Get>,
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
    /// The present version. Takes the tree's version lock, which a flush or compaction may hold for as
    /// long as it syncs its manifest: never on the commit thread.
    pub(crate) fn current(tree: &Tree) -> Tables {
        let version = tree.current_version();
        let frozen = tree.get_version_history_lock().latest_version();
        let runs: Vec<_> = version.iter_levels().flat_map(|level| level.iter().cloned()).collect();
        let l0_runs = version.level(0).map_or(0, |level| level.run_count());
        let disk_bytes = version.iter_levels().map(|level| level.size()).sum();
        let empty = runs.is_empty();
        let tables: Vec<Run> = runs.iter().map(|run| run.iter().cloned().collect()).collect();
        let sum = |count: fn(&Table) -> u64| tables.iter().flatten().map(count).sum();
        let versions = sum(|table| table.metadata.item_count);
        let deletions = sum(|table| table.metadata.tombstone_count);
        let get = move |key: &[u8], hash: u64, limit: u64| {
            for run in &runs {
                if let Some(table) = run.get_for_key(key)
                    && let Some(entry) = Table::get(table, key, limit, hash)
                        .map_err(|error| table_error(&table.path, error))?
                {
                    return Ok(Some(entry));
                }
            }
            Ok(None)
        };
        let scan = move |bounds: Bounds<'_>, limit: u64| -> TreeIter {
            Box::new(Tree::create_internal_range::<&[u8], _>(frozen.clone(), &bounds, limit, None))
        };
        let (get, scan) = (Box::new(get), Box::new(scan));
        Tables { get, scan, runs: tables, l0_runs, disk_bytes, versions, deletions, empty }
    }

    /// The newest version at or below `at`: `Some((_, None))` is a deletion. `hash` is `Filter::hash`.
    pub(crate) fn get(
        &self,
        key: &[u8],
        hash: u64,
        at: u64,
    ) -> Result<Option<(u64, Option<Bytes>)>, EngineError> {
        if self.empty {
            return Ok(None);
        }
        let entry = (self.get)(key, hash, limit(at))?;
        let Some(entry) = entry else { return Ok(None) };
        let value = if entry.key.is_tombstone() { None } else { Some(large::unpack(entry.value.into())?) };
        Ok(Some((entry.key.seqno, value)))
    }

    /// For each run with tables in the range, returns all versions from the range's start on, and some behind its end,
    /// because finding the end takes as long as finding the start. The bounds must not be inverted.
    pub(crate) fn ranges(&self, (from, to): Keys<'_>) -> impl Iterator<Item = TableIter> {
        self.runs.iter().filter_map(move |run| from_in_run(tables_of_run(run, (from, to)), from))
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
        match within.filter(|_| !matches!(error, lsm_tree::Error::Io(_))).find(damaged) {
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

fn tables_of_run<'r>(run: &'r Run, (from, to): Keys<'_>) -> &'r [Table] {
    let first = run.partition_point(|table| match from {
        Bound::Included(from) => table.metadata.key_range.max()[..] < *from,
        Bound::Excluded(from) => table.metadata.key_range.max()[..] <= *from,
        Bound::Unbounded => false,
    });
    let within = |table: &&Table| match to {
        Bound::Included(to) => table.metadata.key_range.min()[..] <= *to,
        Bound::Excluded(to) => table.metadata.key_range.min()[..] < *to,
        Bound::Unbounded => true,
    };
    let tables = &run[first..];
    &tables[..tables.partition_point(|table| within(&table))]
}

/// All versions in tables of a run, from a key on.
fn from_in_run(tables: &[Table], from: Bound<&[u8]>) -> Option<TableIter> {
    let (first, rest) = tables.split_first()?;
    let first = from_in_table(first, from.map(UserKey::from));
    if rest.is_empty() {
        return Some(first);
    }
    let rest = Vec::from(rest);
    Some(Box::new(first.chain(rest.into_iter().flat_map(|table| from_in_table(&table, Bound::Unbounded)))))
}

/// The tree shows what is older than a sequence number; a snapshot includes its own.
fn limit(at: u64) -> u64 {
    at.saturating_add(1)
}
