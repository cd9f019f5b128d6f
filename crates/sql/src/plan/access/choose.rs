//! The cheapest path of a table, of those that hints leave.

use super::ranges;
use crate::catalog::Table;
use crate::expr::SlotSet;
use crate::expr::node::Expr;
use crate::plan::cost::{self, Known};
use crate::plan::physical::path::{Access, IndexRanges, TableAccess};
use omnibus_parser::ast::{IndexHint, IndexHintKind};
use std::sync::Arc;

/// Positions of the indexes that the hints leave, in order; invisible ones never.
pub(in crate::plan) fn usable_indexes(table: &Table, hints: &[IndexHint]) -> Vec<usize> {
    let named = |kind: IndexHintKind| -> Vec<usize> {
        let matching = hints.iter().filter(|h| h.kind == kind);
        matching.flat_map(|h| &h.indexes).filter_map(|name| table.index_named(name)).collect()
    };
    let wanted: Vec<usize> = [named(IndexHintKind::Use), named(IndexHintKind::Force)].concat();
    let restricted = hints.iter().any(|h| matches!(h.kind, IndexHintKind::Use | IndexHintKind::Force));
    let ignored = named(IndexHintKind::Ignore);
    (0..table.indexes().len())
        .filter(|at| !table.indexes()[*at].invisible && !table.indexes()[*at].parts.is_empty())
        .filter(|at| !restricted || wanted.contains(at))
        .filter(|at| !ignored.contains(at))
        .collect()
}

/// Whether a path reads ranges of an index of which hints say that it must not.
pub(in crate::plan) fn is_forbidden(table: &Table, hints: &[IndexHint], access: &Access) -> bool {
    let plain = |ranges: &IndexRanges| matches!(&ranges.intervals[..], [only] if only.is_equality());
    let hinted = |index: usize| {
        let mut named = hints.iter().filter(|hint| hint.kind == IndexHintKind::NoRange);
        named.any(|hint| hint.indexes.iter().any(|name| table.index_named(name) == Some(index)))
    };
    match access {
        Access::Ranges(ranges) => !plain(ranges) && hinted(ranges.index),
        Access::Union(branches) => branches.iter().any(|branch| hinted(branch.ranges.index)),
        Access::Full { .. } | Access::Point { .. } => false,
    }
}

/// The table and the conditions that a path is chosen for.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub table: &'a Arc<Table>,
    pub slot: u16,
    /// Slots whose rows are not known by then, the table's own among them.
    pub missing: &'a SlotSet,
    pub hints: &'a [IndexHint],
    /// Whether the rows are locked as they are read.
    pub locks: bool,
    /// The columns that are read, if it is known which.
    pub needed: Option<&'a [u16]>,
    pub known: Known<'a>,
}

/// A candidate path and which conjuncts it absorbs.
pub(in crate::plan) struct Candidate {
    pub access: Access,
    pub absorbed: Vec<usize>,
    pub rows: f64,
    pub cost: f64,
}

/// The cheapest way to read a table, given the conjuncts that concern it, and the indexes that they could use.
pub(in crate::plan) fn best(wanted: &Wanted<'_>, conjuncts: &[&Expr]) -> (Candidate, Vec<usize>) {
    let total = wanted.known.rows(wanted.table);
    let (candidates, possible) = ranges::candidates(wanted, conjuncts, total);
    let best = candidates.into_iter().min_by(|a, b| a.cost.total_cmp(&b.cost));
    let forced = wanted.hints.iter().any(|h| h.kind == IndexHintKind::Force);
    let whole = cost::scan(total) + if wanted.locks { total * cost::LOCK } else { 0.0 };
    let best = best.filter(|b| forced || b.cost <= whole + cost::GROWTH).unwrap_or(Candidate {
        access: Access::Full { index: 0 },
        absorbed: Vec::new(),
        rows: total,
        cost: whole,
    });
    (best, possible)
}

/// As `best`, with the conjuncts: all of them end up in `filter` or `implied`.
#[must_use]
pub(crate) fn choose(wanted: &Wanted<'_>, conjuncts: Vec<Expr>) -> TableAccess {
    let (Candidate { access, absorbed, rows, cost }, possible) =
        best(wanted, &conjuncts.iter().collect::<Vec<_>>());
    let (mut filter, mut implied) = (Vec::new(), Vec::new());
    for (at, conjunct) in conjuncts.into_iter().enumerate() {
        if absorbed.contains(&at) { implied.push(conjunct) } else { filter.push(conjunct) }
    }
    let covered = matches!(&access, Access::Ranges(ranges) if wanted.covered(ranges.index));
    TableAccess { access, reverse: false, ordered: false, covered, filter, implied, rows, cost, possible }
}

impl Wanted<'_> {
    /// Whether the entries of an index say all that is wanted of their rows.
    pub(in crate::plan) fn covered(&self, index: usize) -> bool {
        !self.locks && self.needed.is_some_and(|columns| self.table.covers(index, columns))
    }
}
