//! A scan: the memtables, each in batches, merged with the tables' own merged stream.
//!
//! Each source yields a key at most once, with the newest version that the snapshot may see. Of
//! equal keys the highest number wins.

use crate::memtable::{MemTable, Span, Version};
use crate::tables::TableIter;
use crate::tree_error;
use crate::view::View;
use bytes::Bytes;
use omnibus_engine::EngineError;
use std::collections::VecDeque;
use std::sync::Arc;

/// The first batch suits a scan of a few rows; later ones amortise their seek.
const FIRST_BATCH: usize = 8;
const LAST_BATCH: usize = 256;

struct Source {
    memtable: Arc<MemTable>,
    span: Span,
    ready: VecDeque<Version>,
    batch: usize,
    more: bool,
}

impl Source {
    fn fill(&mut self, at: u64, reverse: bool) {
        if self.ready.is_empty() && self.more {
            self.more = self.memtable.batch(&mut self.span, at, reverse, self.batch, &mut self.ready);
            self.batch = (self.batch * 4).min(LAST_BATCH);
        }
    }
}

pub(crate) struct Scan {
    sources: Vec<Source>,
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
            Source { memtable, span: span.clone(), ready: VecDeque::new(), batch: FIRST_BATCH, more: true }
        };
        let used = view.memtables().filter(|memtable| !memtable.is_empty());
        let sources = used.map(source).collect();
        Scan { sources, tables, table_next: None, at, reverse, failed: false }
    }

    fn fill(&mut self) -> Result<(), EngineError> {
        for source in &mut self.sources {
            source.fill(self.at, self.reverse);
        }
        self.sources.retain(|source| !source.ready.is_empty());
        if self.table_next.is_none()
            && let Some(tables) = &mut self.tables
        {
            let next = if self.reverse { tables.next_back() } else { tables.next() };
            match next {
                None => self.tables = None,
                Some(entry) => {
                    let entry = entry.map_err(tree_error)?;
                    let (key, number) = (Bytes::from(entry.key.user_key), entry.key.seqno);
                    self.table_next = Some(Version { key, number, value: Some(Bytes::from(entry.value)) });
                }
            }
        }
        Ok(())
    }

    /// The next key's winning version, deletions included.
    fn advance(&mut self) -> Result<Option<Version>, EngineError> {
        self.fill()?;
        if self.sources.is_empty() {
            return Ok(self.table_next.take());
        }
        let Some(key) = self.next_key() else { return Ok(None) };
        let mut best = self.table_next.take_if(|version| version.key == key);
        for source in &mut self.sources {
            let version = source.ready.pop_front_if(|version| version.key == key);
            if version.as_ref().is_some_and(|v| best.as_ref().is_none_or(|best| v.number > best.number)) {
                best = version;
            }
        }
        Ok(best)
    }

    /// The first key of all sources in the scan's direction.
    fn next_key(&self) -> Option<Bytes> {
        let fronts = self.sources.iter().filter_map(|source| source.ready.front());
        let keys = fronts.chain(&self.table_next).map(|version| &version.key);
        if self.reverse { keys.max().cloned() } else { keys.min().cloned() }
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
