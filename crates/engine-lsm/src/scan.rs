//! A scan: the memtables, each in batches, merged with the tables' own merged stream.
//!
//! Each source yields a key at most once, with the newest version that the snapshot may see. Of
//! equal keys the highest number wins; that in the tables is always the lowest.

use crate::key::Span;
use crate::large;
use crate::memtable::{MemTable, Version};
use crate::tables::TableIter;
use crate::view::View;
use bytes::Bytes;
use omnibus_engine::EngineError;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

/// The first batch suits a scan of a few rows; later ones amortise their seek.
const FIRST_BATCH: usize = 4;
const LAST_BATCH: usize = 256;

struct MemtableBatches {
    memtable: Arc<MemTable>,
    span: Span,
    ready: VecDeque<Version>,
    batch: usize,
    more: bool,
}

impl MemtableBatches {
    fn fill(&mut self, at: u64, reverse: bool) -> Result<(), EngineError> {
        if self.ready.is_empty() && self.more {
            self.more = self.memtable.batch(&mut self.span, at, reverse, self.batch, &mut self.ready)?;
            self.batch = (self.batch * 2).min(LAST_BATCH);
        }
        Ok(())
    }
}

pub(crate) struct Scan {
    sources: Vec<MemtableBatches>,
    tables: Option<TableIter>,
    table_next: Option<Version>,
    at: u64,
    reverse: bool,
    failed: bool,
}

impl Scan {
    pub(crate) fn new(view: &View, span: Span, tables: Option<TableIter>, at: u64, reverse: bool) -> Scan {
        let source = |memtable: &Arc<MemTable>| {
            let memtable = Arc::clone(memtable);
            MemtableBatches {
                memtable,
                span: span.clone(),
                ready: VecDeque::new(),
                batch: FIRST_BATCH,
                more: true,
            }
        };
        let used = view.memtables_at(at);
        let sources = used.map(source).collect();
        Scan { sources, tables, table_next: None, at, reverse, failed: false }
    }

    fn fill(&mut self) -> Result<(), EngineError> {
        for source in &mut self.sources {
            source.fill(self.at, self.reverse)?;
        }
        self.sources.retain(|source| !source.ready.is_empty());
        if self.table_next.is_none()
            && let Some(tables) = &mut self.tables
        {
            let next = if self.reverse { tables.next_back() } else { tables.next() };
            match next {
                None => self.tables = None,
                Some(entry) => {
                    let entry = entry?;
                    let (key, number) = (Bytes::from(entry.key.user_key), entry.key.seqno);
                    let value = large::unpack(entry.value.into())?;
                    self.table_next = Some(Version { key, number, value: Some(value) });
                }
            }
        }
        Ok(())
    }

    /// The next key's winning version, deletions included.
    fn advance(&mut self) -> Result<Option<Version>, EngineError> {
        self.fill()?;
        let Some(best) = self.best_source() else { return Ok(self.table_next.take()) };
        let first = self.sources[best].ready.front();
        let order = first.zip(self.table_next.as_ref()).map(|(memory, table)| self.order(memory, table));
        if order == Some(Ordering::Greater) {
            return Ok(self.table_next.take());
        }
        if order == Some(Ordering::Equal) {
            // What is in a memtable is newer than what is in the tables.
            self.table_next = None;
        }
        let Some(version) = self.sources[best].ready.pop_front() else { return Ok(None) };
        for source in &mut self.sources {
            source.ready.pop_front_if(|other| other.key == version.key);
        }
        Ok(Some(version))
    }

    /// The memtable that has the next key, and of several the one with its newest version.
    fn best_source(&self) -> Option<usize> {
        let fronts = self.sources.iter().map(|source| source.ready.front());
        let fronts = fronts.enumerate().filter_map(|(at, front)| front.map(|front| (at, front)));
        let order = |(_, a): &(usize, &Version), (_, b): &(usize, &Version)| {
            self.order(a, b).then_with(|| b.number.cmp(&a.number))
        };
        fronts.min_by(order).map(|(at, _)| at)
    }

    /// Compares by key, in the scan's direction.
    fn order(&self, a: &Version, b: &Version) -> Ordering {
        if self.reverse { b.key.cmp(&a.key) } else { a.key.cmp(&b.key) }
    }
}

impl Iterator for Scan {
    type Item = Result<(Bytes, Bytes), EngineError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.failed {
            match self.advance() {
                Ok(None) => return None,
                Ok(Some(Version { key, value: Some(value), .. })) => return Some(Ok((key, value))),
                Ok(Some(_)) => {}
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}
