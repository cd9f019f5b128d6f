//! Access paths: which index to read a table through, given the conditions on it and the tables
//! read before it.
//!
//! Rules and rough estimates, except where ANALYZE TABLE has counted: a unique key beats a prefix of an index, that beats a
//! range, that beats a scan. SELECT, UPDATE and DELETE all choose here; `reader` then reads.

use super::condition::{Says, says};
use crate::catalog::{IndexKind, Table};
use crate::expr::SlotSet;
use crate::expr::node::Expr;
use omnibus_parser::ast::{IndexHint, IndexHintKind};
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
    /// Rows whose leading parts are equal to values and whose next part is within bounds.
    Range {
        /// Which index.
        index: usize,
        /// Leading parts.
        equal: Vec<Equal>,
        /// Lower bound of the next part.
        low: Option<Bound>,
        /// Upper bound of the next part.
        high: Option<Bound>,
    },
    /// Rows whose leading parts are equal to values and whose next part begins with what stands
    /// before the first wildcard of a LIKE pattern.
    Prefix {
        /// Which index.
        index: usize,
        /// Leading parts.
        equal: Vec<Equal>,
        /// The pattern.
        pattern: Expr,
        /// Its escape character.
        escape: Option<u32>,
    },
    /// As `Range`, once for each value of a list for the next part (IN).
    List {
        /// Which index.
        index: usize,
        /// Leading parts.
        equal: Vec<Equal>,
        /// Values of the next part.
        list: Vec<Expr>,
    },
}

/// A table's access path and the conditions that go with it.
#[derive(Clone, Debug)]
pub struct TableAccess {
    /// The path.
    pub access: Access,
    /// Backwards.
    pub reverse: bool,
    /// Conditions that every row must still meet.
    pub filter: Vec<Expr>,
    /// Conditions that the path itself guarantees, unless a key value could not be held exactly by
    /// its column.
    pub implied: Vec<Expr>,
    /// Rows expected of one reading.
    pub rows: f64,
    /// Positions of indexes that conditions could use, for EXPLAIN.
    pub possible: Vec<usize>,
}

/// Positions of the indexes that the hints leave, in order; invisible ones never.
fn candidates(table: &Table, hints: &[IndexHint]) -> Vec<usize> {
    let named = |kind: IndexHintKind| -> Vec<usize> {
        let matching = hints.iter().filter(|h| h.kind == kind);
        matching.flat_map(|h| &h.indexes).filter_map(|name| table.index_named(name)).collect()
    };
    let wanted: Vec<usize> = [named(IndexHintKind::Use), named(IndexHintKind::Force)].concat();
    let restricted = hints.iter().any(|h| h.kind != IndexHintKind::Ignore);
    let ignored = named(IndexHintKind::Ignore);
    (0..table.indexes().len())
        .filter(|at| !table.indexes()[*at].invisible && !table.indexes()[*at].parts.is_empty())
        .filter(|at| !restricted || wanted.contains(at))
        .filter(|at| !ignored.contains(at))
        .collect()
}

/// A candidate path and which conjuncts it absorbs.
struct Candidate {
    access: Access,
    absorbed: Vec<usize>,
    rows: f64,
    cost: f64,
}

/// Chooses how to read `table` in `slot`, given the conjuncts that concern it and the slots whose
/// rows are not known by then, its own among them. All conjuncts end up in `filter` or `implied`.
#[must_use]
pub fn choose(
    table: &Arc<Table>,
    slot: u16,
    conjuncts: Vec<Expr>,
    missing: &SlotSet,
    hints: &[IndexHint],
) -> TableAccess {
    let total = (table.rows_estimate() as f64).max(1000.0);
    let facts: Vec<Option<(usize, Says<'_>)>> =
        conjuncts.iter().map(|c| says(c, slot, missing, table)).collect();
    let mut best: Option<Candidate> = None;
    let mut possible = Vec::new();
    for index in candidates(table, hints) {
        let Some(candidate) = candidate(table, index, &facts, total) else { continue };
        possible.push(index);
        if best.as_ref().is_none_or(|b| candidate.cost < b.cost) {
            best = Some(candidate);
        }
    }
    let forced = hints.iter().any(|h| h.kind == IndexHintKind::Force);
    let best = best.filter(|b| forced || b.cost <= total * 1.2).unwrap_or(Candidate {
        access: Access::Full { index: 0 },
        absorbed: Vec::new(),
        rows: total,
        cost: total,
    });
    let Candidate { access, absorbed, rows, .. } = best;
    drop(facts);
    let (mut filter, mut implied) = (Vec::new(), Vec::new());
    for (at, conjunct) in conjuncts.into_iter().enumerate() {
        if absorbed.contains(&at) { implied.push(conjunct) } else { filter.push(conjunct) }
    }
    TableAccess { access, reverse: false, filter, implied, rows, possible }
}

fn candidate(
    table: &Table,
    index: usize,
    facts: &[Option<(usize, Says<'_>)>],
    total: f64,
) -> Option<Candidate> {
    let definition = &table.indexes()[index];
    let of = |column: usize| {
        facts.iter().enumerate().filter_map(move |(at, fact)| match fact {
            Some((c, says)) if *c == column => Some((at, says)),
            _ => None,
        })
    };
    let mut equal = Vec::new();
    let mut absorbed = Vec::new();
    let mut plain = true;
    for part in &definition.parts {
        let Some((at, expr, null_safe)) = of(part.column).find_map(|(at, says)| match says {
            Says::Equal(expr, null_safe) => Some((at, *expr, *null_safe)),
            _ => None,
        }) else {
            break;
        };
        plain &= !null_safe && part.prefix.is_none();
        if part.prefix.is_none() {
            absorbed.push(at);
        }
        equal.push(Equal { expr: expr.clone(), null_safe });
    }
    let unique = definition.kind != IndexKind::Plain;
    let lookup = if definition.clustered { 1.0 } else { 1.3 };
    if unique && plain && equal.len() == definition.parts.len() {
        let key = equal.into_iter().map(|e| e.expr).collect();
        return Some(Candidate { access: Access::Point { index, key }, absorbed, rows: 1.0, cost: lookup });
    }
    let depth = equal.len() as i32;
    let share = |parts: i32| -> f64 {
        let full = parts as usize >= definition.parts.len();
        // What ANALYZE TABLE counted is better than any rule.
        if let Some(distinct) = table.cardinality(index, parts as usize) {
            return (total / distinct.max(1) as f64).max(1.0);
        }
        let rows = if unique && full { 1.0 } else { total * 0.05f64.powi(parts) };
        rows.max(if unique && full { 1.0 } else { 2.0 })
    };
    let next = definition.parts.get(equal.len());
    if let Some(part) = next {
        if let Some((at, list)) = of(part.column).find_map(|(at, says)| match says {
            Says::In(list) => Some((at, *list)),
            _ => None,
        }) {
            if part.prefix.is_none() {
                absorbed.push(at);
            }
            let rows = share(depth + 1) * list.len() as f64;
            let access = Access::List { index, equal, list: list.to_vec() };
            return Some(Candidate { access, absorbed, rows, cost: rows * lookup });
        }
        let (low, high) = bounds(part.column, facts, part.prefix.is_none(), &mut absorbed);
        if low.is_some() || high.is_some() {
            let narrow = if low.is_some() && high.is_some() { 0.1 } else { 0.3 };
            let rows = (share(depth).min(total) * narrow).max(2.0);
            let access = Access::Range { index, equal, low, high };
            return Some(Candidate { access, absorbed, rows, cost: rows * lookup });
        }
        if let Some((pattern, escape)) = of(part.column).find_map(|(_, says)| match says {
            Says::Like(pattern, escape) => Some((*pattern, *escape)),
            _ => None,
        }) {
            let rows = (share(depth).min(total) * 0.2).max(2.0);
            let access = Access::Prefix { index, equal, pattern: pattern.clone(), escape };
            return Some(Candidate { access, absorbed, rows, cost: rows * lookup });
        }
    }
    if equal.is_empty() {
        return None;
    }
    let rows = share(depth);
    let access = Access::Range { index, equal, low: None, high: None };
    Some(Candidate { access, absorbed, rows, cost: rows * lookup })
}

/// The first lower and the first upper bound that the conditions put on a column; others stay in
/// the filter.
fn bounds(
    column: usize,
    facts: &[Option<(usize, Says<'_>)>],
    absorb: bool,
    absorbed: &mut Vec<usize>,
) -> (Option<Bound>, Option<Bound>) {
    let (mut low, mut high) = (None, None);
    for (at, fact) in facts.iter().enumerate() {
        let Some((c, says)) = fact else { continue };
        if *c != column {
            continue;
        }
        let used = match says {
            Says::Between(from, to) if low.is_none() && high.is_none() => {
                low = Some(Bound { expr: (*from).clone(), inclusive: true });
                high = Some(Bound { expr: (*to).clone(), inclusive: true });
                true
            }
            Says::Low(expr, inclusive) if low.is_none() => {
                low = Some(Bound { expr: (*expr).clone(), inclusive: *inclusive });
                true
            }
            Says::High(expr, inclusive) if high.is_none() => {
                high = Some(Bound { expr: (*expr).clone(), inclusive: *inclusive });
                true
            }
            _ => false,
        };
        if used && absorb {
            absorbed.push(at);
        }
    }
    (low, high)
}

impl TableAccess {
    /// Whether at most one row can come.
    #[must_use]
    pub fn is_point(&self) -> bool {
        matches!(self.access, Access::Point { .. })
    }

    /// The index that is read.
    #[must_use]
    pub fn index(&self) -> usize {
        match &self.access {
            Access::Full { index }
            | Access::Point { index, .. }
            | Access::Range { index, .. }
            | Access::Prefix { index, .. }
            | Access::List { index, .. } => *index,
        }
    }

    /// How many leading parts of the index are fixed to one value.
    #[must_use]
    pub fn fixed_parts(&self) -> usize {
        match &self.access {
            Access::Range { equal, .. } | Access::Prefix { equal, .. } => equal.len(),
            _ => 0,
        }
    }

    /// Whether the rows come in the wanted order, or would if read backwards: then sets `reverse`.
    /// `keys` are columns of the table and whether they descend.
    pub fn delivers(&mut self, table: &Table, keys: &[(usize, bool)]) -> bool {
        if self.is_point() {
            return true;
        }
        if matches!(self.access, Access::List { .. }) {
            return false;
        }
        match order_of(table, self.index(), self.fixed_parts(), keys) {
            Some(reverse) => {
                self.reverse = reverse;
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
        for index in candidates(table, hints) {
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
