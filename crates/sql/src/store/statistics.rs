//! Counts tables that nobody has analysed, when a query first asks for their size or they have grown to twice of it.
//!
//! A small table at once, on the asking thread; a large one in pieces on a thread of its own, so that no statement waits: the
//! plans made meanwhile go by rules. What is found is kept in memory only. It holds nothing of the engine between two pieces,
//! so that a server stops without waiting for it.

use super::auto::whole_index;
use super::counters::Counters;
use super::port::CommitPort;
use super::range::by_ref;
use super::{kept_statistics, samples};
use crate::catalog::statistics::Counter;
use crate::catalog::{Statistics, Table};
use omnibus_engine::EngineError;
use std::ops::Bound;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

/// Rows that are counted at once.
const AT_ONCE: usize = 2000;
/// In no more bytes than these.
const BYTES_AT_ONCE: usize = 64 << 20;
/// The guess for a larger table while it is being counted.
const MANY: u64 = 100_000;
/// Entries of a piece: some milliseconds.
const PIECE: u64 = 20_000;

impl Counters {
    /// About how many rows a table has. Commits keep it up to date.
    pub(super) fn row_estimate(&mut self, table: &Arc<Table>) -> u64 {
        let known = table.rows_estimate();
        if table.temporary {
            return known;
        }
        if !table.state.is_outdated() {
            self.sample(table);
            return known;
        }
        let range = whole_index(table, 0);
        let latest = self.shared.port.latest();
        let (mut rows, mut bytes) = (0, 0);
        let small = latest.visit(by_ref(&range.from), by_ref(&range.to), &mut |_, row| {
            (rows, bytes) = (rows + 1, bytes + row.len());
            rows <= AT_ONCE && bytes <= BYTES_AT_ONCE
        });
        if small.is_ok_and(|small| small) {
            if let Ok(found) = kept_statistics::count(&*latest, table, &mut || Ok(())) {
                table.state.set_statistics(found);
                self.sample(table);
            }
            return table.rows_estimate();
        }
        if known == 0 {
            let next = self.auto_increment(table).ok().filter(|_| table.auto_column.is_some());
            let guess = next.map_or(MANY, |next| next.max(AT_ONCE as u64));
            table.state.rows_estimate.store(guess, Ordering::Relaxed);
        }
        self.count_in_background(table);
        table.rows_estimate()
    }

    /// Reads rows for plans, if there are none as new as what was counted.
    fn sample(&self, table: &Table) {
        if table.statistics().is_none_or(|counted| table.is_sampled_for(&counted)) {
            return;
        }
        match samples::refresh(&*self.shared.port.latest(), table) {
            Ok(true) => drop(self.shared.statistics.fetch_add(1, Ordering::Release)),
            Ok(false) => {}
            // Plans go by rules then; whoever reads the table is told.
            Err(error) => tracing::debug!(%error, "no sample of a table"),
        }
    }

    fn count_in_background(&self, table: &Arc<Table>) {
        if table.state.counting.swap(true, Ordering::AcqRel) {
            return;
        }
        let (port, table) = (Arc::downgrade(&self.shared.port), table.clone());
        let shared = Arc::downgrade(&self.shared);
        let counting = move || {
            if let Ok(Some(found)) = count(&port, &table) {
                table.state.set_statistics(found);
                let sampled = port.upgrade().map(|port| samples::refresh(&*port.latest(), &table));
                drop(sampled);
                if let Some(shared) = shared.upgrade() {
                    shared.statistics.fetch_add(1, Ordering::Release);
                }
            }
        };
        // Without a thread the table stays marked, and plans go by rules.
        if let Err(error) = std::thread::Builder::new().name("statistics".into()).spawn(counting) {
            tracing::warn!(%error, "no thread to count a table");
        }
    }
}

/// Counts a table piece by piece; `None` if the server or the table is gone.
fn count(port: &Weak<dyn CommitPort>, table: &Table) -> Result<Option<Statistics>, EngineError> {
    let mut found = Statistics::default();
    for index in 0..table.indexes().len() {
        let mut counter = Counter::new(table, index);
        let mut range = whole_index(table, index);
        loop {
            let Some(port) = port.upgrade().filter(|_| !table.is_stale()) else { return Ok(None) };
            let (mut left, mut last) = (PIECE, None);
            let done = port.latest().visit(by_ref(&range.from), by_ref(&range.to), &mut |key, _| {
                counter.add(&key);
                left -= 1;
                if left == 0 {
                    last = Some(key.to_bytes());
                }
                left > 0
            })?;
            let Some(last) = last.filter(|_| !done) else { break };
            range.from = Bound::Excluded(last);
        }
        if index == 0 {
            found.rows = counter.entries();
        }
        found.indexes.insert(table.def.indexes[index].space.0, counter.finish());
    }
    Ok(Some(found))
}
