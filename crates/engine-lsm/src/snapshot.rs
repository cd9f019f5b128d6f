//! A frozen view: a commit number. What is read through it is fetched from the present view each
//! time, so that a transaction that stays open for an hour pins no memory; the watermark keeps
//! what it needs.

use crate::filter::Filter;
use crate::key::span;
use crate::list::Probe;
use crate::scan::Scan;
use crate::shared::Shared;
use crate::visit::{self, RowCursor};
use bytes::Bytes;
use omnibus_engine::{CommitNo, EngineError, Lent, Snapshot, SnapshotIter};
use std::ops::Bound;
use std::sync::Arc;

pub(crate) struct LsmSnapshot {
    pub(crate) shared: Arc<Shared>,
    pub(crate) at: u64,
}

/// Reads at a number.
pub(crate) struct Reads<'s> {
    pub(crate) shared: &'s Shared,
    pub(crate) at: u64,
}

impl LsmSnapshot {
    #[inline]
    fn reads(&self) -> Reads<'_> {
        Reads { shared: &self.shared, at: self.at }
    }
}

impl Snapshot for LsmSnapshot {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        self.reads().get(key)
    }

    fn get_version(&self, key: &[u8]) -> Result<Option<(CommitNo, Bytes)>, EngineError> {
        self.reads().get_version(key)
    }

    fn scan<'a>(&'a self, from: Bound<&[u8]>, to: Bound<&[u8]>, reverse: bool) -> SnapshotIter<'a> {
        self.reads().scan(from, to, reverse)
    }

    fn visit(
        &self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        each: &mut dyn FnMut(Lent<'_>, Lent<'_>) -> bool,
    ) -> Result<bool, EngineError> {
        self.reads().visit(from, to, each)
    }
}

impl Reads<'_> {
    fn find(&self, key: &[u8]) -> Result<Option<(u64, Option<Bytes>)>, EngineError> {
        let view = self.shared.views.current();
        let hash = Filter::hash(key);
        let probe = Probe::new(key, self.at);
        // Newest first; a memtable's versions are newer than any older memtable's or table's.
        for memtable in view.memtables().filter(|memtable| memtable.may_hold(hash)) {
            if let Some(found) = memtable.get(&probe)? {
                return Ok(Some(found));
            }
        }
        view.tables.get(key, hash, self.at)
    }

    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        Ok(self.find(key)?.and_then(|(_, value)| value))
    }

    pub(crate) fn get_version(&self, key: &[u8]) -> Result<Option<(CommitNo, Bytes)>, EngineError> {
        Ok(self.find(key)?.and_then(|(number, value)| value.map(|value| (CommitNo(number), value))))
    }

    pub(crate) fn scan(&self, from: Bound<&[u8]>, to: Bound<&[u8]>, reverse: bool) -> SnapshotIter<'static> {
        if inverted(from, to) {
            return Box::new(std::iter::empty());
        }
        let view = self.shared.views.current();
        let tables = view.tables.scan(from, to, self.at);
        Box::new(Scan::new(&view, span(from, to), tables, self.at, reverse))
    }

    pub(crate) fn visit(
        &self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        each: &mut dyn FnMut(Lent<'_>, Lent<'_>) -> bool,
    ) -> Result<bool, EngineError> {
        if inverted(from, to) {
            return Ok(true);
        }
        let view = self.shared.views.current();
        let span = span(from, to);
        // Of one source mostly, which is so large that room for some more of them is no small object for the allocator.
        let most = view.memtables_at(self.at).count() + view.tables.runs();
        let mut sources = Vec::with_capacity(most);
        for memtable in view.memtables_at(self.at) {
            sources.extend(RowCursor::of_memory(memtable.cursor(&span, self.at))?);
        }
        for rows in view.tables.ranges((from, to)) {
            sources.extend(RowCursor::of_table(rows?, to, self.at)?);
        }
        visit::merge(sources, self.at, each)
    }
}

#[inline]
fn inverted(from: Bound<&[u8]>, to: Bound<&[u8]>) -> bool {
    match (from, to) {
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (Bound::Included(from) | Bound::Excluded(from), Bound::Excluded(to))
        | (Bound::Excluded(from), Bound::Included(to)) => from >= to,
        _ => false,
    }
}
