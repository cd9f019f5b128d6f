//! Access paths: through which index, and along which ranges of it, a table is read.
//!
//! Plain data that a plan keeps; `ranges` makes the candidates, `choose` takes the cheapest, `exec::reader` reads along it.

use super::estimate::Known;
use super::sampled::Sampled;
use super::{cost, ranges};
use crate::catalog::{IndexKind, Table};
use crate::expr::SlotSet;
use crate::expr::node::Expr;
use crate::expr::subquery::Subquery;
use crate::state::SessionState;
use omnibus_parser::ast::{IndexHint, IndexHintKind};
use omnibus_value::temporal::UTC;
use std::sync::Arc;

/// One end of a range.
#[derive(Clone, Debug)]
pub struct Bound {
    /// Its value.
    pub expr: Expr,
    /// Whether the value is inside.
    pub inclusive: bool,
}

/// An equality on an index part; `null_safe` if NULL equals NULL.
#[derive(Clone, Debug)]
pub struct Equal {
    /// The value.
    pub expr: Expr,
    /// `<=>` or IS NULL.
    pub null_safe: bool,
}

/// What a leading part of an index is equal to.
#[derive(Clone, Debug)]
pub enum Part {
    /// One value.
    One(Equal),
    /// One of several (IN).
    Any(Vec<Expr>),
    /// One of those that a subquery gives (IN), which runs once.
    Among(Among),
}

/// A column of what a subquery gives. Parts that have columns of the same subquery take their values from one row of it.
#[derive(Clone, Debug)]
pub struct Among {
    /// `.. IN (SELECT ..)`, which reads nothing from outside.
    pub subquery: Arc<Subquery>,
    /// Which of its columns.
    pub member: usize,
    /// More rows of it than this are not looked up: to read all that the parts before leave costs less.
    pub most: usize,
    /// What it costs to have its rows, beside looking them up.
    pub cost: f64,
}

/// What is asked of the index part behind the leading ones.
#[derive(Clone, Debug)]
pub enum Tail {
    /// Nothing.
    Whole,
    /// It lies between bounds.
    Between {
        /// Lower bound.
        low: Option<Bound>,
        /// Upper bound.
        high: Option<Bound>,
    },
    /// It begins with what stands before the first wildcard of a LIKE pattern.
    Begins {
        /// The pattern.
        pattern: Expr,
        /// Its escape character.
        escape: Option<u32>,
    },
}

/// A piece of an index: leading parts with their values, and what is asked of the next one.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Leading parts.
    pub parts: Vec<Part>,
    /// The part behind them.
    pub tail: Tail,
}

/// Pieces of one index. They may overlap: a row in two of them is read once.
#[derive(Clone, Debug)]
pub struct IndexRanges {
    /// Which index.
    pub index: usize,
    /// The pieces; one at least.
    pub intervals: Vec<Interval>,
}

/// One branch of a union: where its rows are, and which rows are its own.
#[derive(Clone, Debug)]
pub struct UnionBranch {
    /// Pieces of an index that have all its rows.
    pub ranges: IndexRanges,
    /// The branch of the OR. A row belongs to the first branch of the union that it meets.
    pub conditions: Vec<Expr>,
}

/// How rows are found.
#[derive(Clone, Debug)]
pub enum Access {
    /// All rows, in the order of an index.
    Full {
        /// Which index.
        index: usize,
    },
    /// At most one row, by a complete unique key.
    Point {
        /// Which index.
        index: usize,
        /// Its values.
        key: Vec<Expr>,
    },
    /// Pieces of an index, in its order.
    Ranges(IndexRanges),
    /// What several indexes find, each row once, in no order.
    Union(Vec<UnionBranch>),
}

/// A table's access path and the conditions that go with it.
#[derive(Clone, Debug)]
pub struct TableAccess {
    /// The path.
    pub access: Access,
    /// Backwards.
    pub reverse: bool,
    /// The order in which its rows come is relied on.
    pub ordered: bool,
    /// The entries of the index say all that is wanted: no row is looked up.
    pub covered: bool,
    /// Conditions that every row must still meet.
    pub filter: Vec<Expr>,
    /// Conditions that the path itself guarantees, unless a key value could not be held exactly by
    /// its column.
    pub implied: Vec<Expr>,
    /// Rows expected of one reading, before `filter`.
    pub rows: f64,
    /// What one reading costs, in the unit of [`cost`].
    pub cost: f64,
    /// Positions of indexes that conditions could use, for EXPLAIN.
    pub possible: Vec<usize>,
}

/// Positions of the indexes that the hints leave, in order; invisible ones never.
pub(super) fn usable_indexes(table: &Table, hints: &[IndexHint]) -> Vec<usize> {
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
pub(super) fn is_forbidden(table: &Table, hints: &[IndexHint], access: &Access) -> bool {
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

/// What a path is chosen for.
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
pub(super) struct Candidate {
    pub access: Access,
    pub absorbed: Vec<usize>,
    pub rows: f64,
    pub cost: f64,
}

/// The cheapest way to read a table, given the conjuncts that concern it, and the indexes that they could use.
pub(super) fn best(wanted: &Wanted<'_>, conjuncts: &[&Expr]) -> (Candidate, Vec<usize>) {
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
    pub(super) fn covered(&self, index: usize) -> bool {
        !self.locks && self.needed.is_some_and(|columns| self.table.covers(index, columns))
    }
}

impl Interval {
    /// How many leading parts are fixed to one value.
    fn fixed_parts(&self) -> usize {
        self.parts.iter().take_while(|part| matches!(part, Part::One(_))).count()
    }

    /// Whether it is the rows of one value of its leading parts.
    #[must_use]
    pub fn is_equality(&self) -> bool {
        matches!(self.tail, Tail::Whole) && self.fixed_parts() == self.parts.len()
    }

    /// Visits the values.
    pub fn values<'e>(&'e self, visit: &mut dyn FnMut(&'e Expr)) {
        for part in &self.parts {
            match part {
                Part::One(equal) => visit(&equal.expr),
                Part::Any(list) => list.iter().for_each(&mut *visit),
                // It reads nothing from outside.
                Part::Among(_) => {}
            }
        }
        match &self.tail {
            Tail::Whole => {}
            Tail::Between { low, high } => low.iter().chain(high).for_each(|bound| visit(&bound.expr)),
            Tail::Begins { pattern, .. } => visit(pattern),
        }
    }
}

impl Access {
    /// Visits the values that keys are made of.
    pub fn values<'e>(&'e self, visit: &mut dyn FnMut(&'e Expr)) {
        match self {
            Access::Full { .. } => {}
            Access::Point { key, .. } => key.iter().for_each(visit),
            Access::Ranges(ranges) => ranges.intervals.iter().for_each(|interval| interval.values(visit)),
            Access::Union(branches) => {
                let intervals = branches.iter().flat_map(|branch| &branch.ranges.intervals);
                intervals.for_each(|interval| interval.values(visit));
            }
        }
    }
}

impl TableAccess {
    /// All rows of a table that has no indexes.
    #[must_use]
    pub fn all(filter: Vec<Expr>, rows: f64) -> TableAccess {
        TableAccess {
            access: Access::Full { index: 0 },
            reverse: false,
            ordered: false,
            covered: false,
            filter,
            implied: Vec::new(),
            rows,
            cost: cost::scan(rows),
            possible: Vec::new(),
        }
    }

    /// Whether at most one row can come.
    #[must_use]
    pub fn is_point(&self) -> bool {
        matches!(self.access, Access::Point { .. })
    }

    /// Rows that are read, at least one; never more than the table has, as far as anybody has counted.
    #[must_use]
    pub fn expected(&self, table: &Table) -> f64 {
        let most = table.rows_estimate().max(1) as f64;
        if self.is_point() { 1.0 } else { self.rows.min(most).max(1.0) }
    }

    /// How many of a hundred rows meet `filter`, as EXPLAIN says; `slot` is the table's.
    #[must_use]
    pub fn filtered(&self, table: &Arc<Table>, slot: u16) -> f64 {
        let session = SessionState::default();
        let sampled = Sampled::new(&session);
        let known = Known { zone: UTC, sampled: Some(&sampled) };
        let share: f64 = self.filter.iter().map(|e| known.selectivity(table, slot, e)).product();
        (share * 100.0).clamp(0.01, 100.0)
    }

    /// The index that is read; the first of a union's.
    #[must_use]
    pub fn index(&self) -> usize {
        match &self.access {
            Access::Full { index } | Access::Point { index, .. } => *index,
            Access::Ranges(ranges) => ranges.index,
            Access::Union(branches) => branches.first().map_or(0, |branch| branch.ranges.index),
        }
    }

    /// How many leading parts of the index are fixed to one value.
    #[must_use]
    pub fn fixed_parts(&self) -> usize {
        match &self.access {
            Access::Ranges(IndexRanges { intervals, .. }) => match &intervals[..] {
                [only] => only.fixed_parts(),
                _ => 0,
            },
            _ => 0,
        }
    }

    /// Whether the rows come in the wanted order, or would if read backwards: then sets `reverse`.
    /// `keys` are columns of the table and whether they descend.
    pub fn delivers(&mut self, table: &Table, keys: &[(usize, bool)]) -> bool {
        if self.is_point() {
            return true;
        }
        if matches!(self.access, Access::Union(_)) {
            return false;
        }
        match order_of(table, self.index(), self.fixed_parts(), keys) {
            Some(reverse) => {
                self.reverse = reverse;
                self.ordered = true;
                true
            }
            None => false,
        }
    }

    /// For a scan of the whole table: another index whose order is the wanted one.
    pub fn scan_in_order(&mut self, table: &Table, keys: &[(usize, bool)], hints: &[IndexHint]) -> bool {
        if !matches!(self.access, Access::Full { .. }) {
            return false;
        }
        for index in usable_indexes(table, hints) {
            if table.indexes()[index].parts.iter().any(|p| p.prefix.is_some()) {
                continue;
            }
            if let Some(reverse) = order_of(table, index, 0, keys) {
                self.access = Access::Full { index };
                self.reverse = reverse;
                return true;
            }
        }
        false
    }
}
/// Whether an index, behind `fixed` parts, has the order of `keys` forwards (`Some(false)`) or
/// backwards (`Some(true)`). A unique key's order decides everything behind it.
fn order_of(table: &Table, index: usize, fixed: usize, keys: &[(usize, bool)]) -> Option<bool> {
    let definition = &table.indexes()[index];
    if definition.parts.is_empty() {
        return None;
    }
    let decides = definition.kind != IndexKind::Plain
        && definition.parts.iter().all(|part| !table.columns()[part.column].nullable);
    let fixed_columns: Vec<usize> = definition.parts.iter().take(fixed).map(|p| p.column).collect();
    // A secondary index continues with the clustered key.
    let mut parts: Vec<(usize, bool, bool)> =
        definition.parts.iter().map(|p| (p.column, p.descending, p.prefix.is_some())).collect();
    if !definition.clustered && definition.kind == IndexKind::Plain {
        parts.extend(table.indexes()[0].parts.iter().map(|p| (p.column, p.descending, p.prefix.is_some())));
    }
    let mut reverse = None;
    let mut at = fixed;
    for (column, descending) in keys {
        if fixed_columns.contains(column) {
            continue;
        }
        let Some((part, part_descending, prefix)) = parts.get(at) else {
            return decides.then(|| reverse.unwrap_or(false));
        };
        if part != column || *prefix {
            return None;
        }
        let wanted = descending != part_descending;
        if *reverse.get_or_insert(wanted) != wanted {
            return None;
        }
        at += 1;
    }
    Some(reverse.unwrap_or(false))
}
