//! How many rows a condition leaves: by the samples and counts of an index (`catalog::statistics`), else by rules.

use super::access::{Interval, Part, Tail};
use super::condition::{Says, says};
use crate::catalog::{IndexKind, IndexStatistics, Table};
use crate::expr::SlotSet;
use crate::expr::like::LikeMatcher;
use crate::expr::node::{CompareOp, Expr, IsKind, Kind};
use crate::plan::key::{self, BoundValue, KeyRange};
use crate::storage::Scan;
use omnibus_value::Value;
use omnibus_value::temporal::Zone;

/// Rows of a table that nobody has counted.
const UNKNOWN_ROWS: f64 = 1000.0;
/// The share of a range whose ends are known only when the statement runs. An index is worth it then: if the guess is wrong,
/// reading through it costs some scans, and scanning instead of reading ten rows any number of indexes.
const LATER_RANGE: f64 = 0.05;
/// The share of a range with both ends known, where nothing is known of the column.
const BOTH_ENDS: f64 = 0.1;
/// The same with one end.
const ONE_END: f64 = 0.3;
/// The same for the beginning of a text.
const BEGINNING: f64 = 0.1;
/// The share of the rows with one value of an index part of which nothing is known.
const ONE_VALUE: f64 = 0.05;
/// The same of a column without an index.
const ONE_VALUE_UNINDEXED: f64 = 0.1;
/// The share of the rows for which any other condition is true.
const ANYTHING: f64 = 0.5;

/// What is known when a plan is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    /// The session's zone, for TIMESTAMP columns.
    pub zone: Zone,
}

/// The value of an expression, if it is known by now. Plans of prepared statements are kept for other values of `?`.
fn value_of(e: &Expr) -> Option<Value> {
    match &e.kind {
        Kind::Const(value) => Some(value.clone()),
        _ => None,
    }
}

impl Known {
    /// About how many rows a table has.
    pub(crate) fn rows(self, table: &Table) -> f64 {
        match table.rows_estimate() {
            0 => UNKNOWN_ROWS,
            rows => rows as f64,
        }
    }

    /// Rows with one value of the leading `parts` of an index.
    fn rows_of_value(self, table: &Table, index: usize, parts: usize, total: f64) -> f64 {
        let definition = &table.indexes()[index];
        if definition.kind != IndexKind::Plain && parts >= definition.parts.len() {
            return 1.0;
        }
        if let Some(distinct) = table.cardinality(index, parts) {
            return (total / distinct.max(1) as f64).max(1.0);
        }
        (total * ONE_VALUE.powi(parts as i32)).max(2.0).min(total)
    }

    /// Rows of a piece of an index, and in how many pieces they lie.
    pub(crate) fn interval(self, table: &Table, index: usize, interval: &Interval, total: f64) -> (f64, f64) {
        let most = total.max(1.0);
        if let Some(rows) = self.sampled(table, index, interval, total) {
            return (rows.clamp(1.0, most), 1.0);
        }
        let pieces: f64 = interval
            .parts
            .iter()
            .map(|part| if let Part::Any(list) = part { list.len() as f64 } else { 1.0 })
            .product();
        let before = match interval.parts.len() {
            0 => total,
            parts => self.rows_of_value(table, index, parts, total),
        };
        let now = |bound: &Option<super::access::Bound>| {
            bound.as_ref().is_none_or(|bound| value_of(&bound.expr).is_some())
        };
        let share = match &interval.tail {
            Tail::Whole => 1.0,
            Tail::Between { low, high } if !now(low) || !now(high) => LATER_RANGE,
            Tail::Between { low: Some(_), high: Some(_) } => BOTH_ENDS,
            Tail::Between { .. } => ONE_END,
            Tail::Begins { .. } => BEGINNING,
        };
        ((before * pieces * share).clamp(1.0, most), pieces)
    }

    /// Rows of a piece whose values are known, by the samples of the index.
    fn sampled(self, table: &Table, index: usize, interval: &Interval, total: f64) -> Option<f64> {
        let statistics = table.statistics()?;
        let known = statistics.indexes.get(&table.indexes()[index].space.0)?;
        let mut values = Vec::with_capacity(interval.parts.len());
        for part in &interval.parts {
            let Part::One(equal) = part else { return None };
            values.push((value_of(&equal.expr)?, equal.null_safe));
        }
        let range = match &interval.tail {
            Tail::Whole => key::range(table, index, &values, None, None, self.zone),
            Tail::Between { low, high } => {
                let bound = |bound: &Option<super::access::Bound>| match bound {
                    None => Some(None),
                    Some(b) => Some(Some(BoundValue { value: value_of(&b.expr)?, inclusive: b.inclusive })),
                };
                let (low, high) = (bound(low)?, bound(high)?);
                key::range(table, index, &values, low.as_ref(), high.as_ref(), self.zone)
            }
            Tail::Begins { pattern, escape } => {
                let Value::Bytes(text) = value_of(pattern)? else { return None };
                let matcher = LikeMatcher::new(&text, *escape, pattern.ty.column.collation);
                key::prefix_range(table, index, &values, matcher.prefix(), self.zone)
            }
        };
        let KeyRange::Scan(scan, _) = range else { return Some(0.0) };
        let share = share(known, &scan)?;
        if !matches!(interval.tail, Tail::Whole) {
            return Some(share * total);
        }
        // A value that fills a bucket has been seen more than once; of others the average says more.
        let average = self.rows_of_value(table, index, values.len(), total);
        Some(if share >= known.bucket() { share * total } else { average.min(known.bucket() * total) })
    }

    /// The share of a table's rows that meet a condition, other tables' columns taken as values.
    pub(crate) fn selectivity(self, table: &Table, slot: u16, condition: &Expr) -> f64 {
        match &condition.kind {
            Kind::And(list) => return list.iter().map(|e| self.selectivity(table, slot, e)).product(),
            Kind::Or(list) => {
                let none: f64 = list.iter().map(|e| 1.0 - self.selectivity(table, slot, e)).product();
                return 1.0 - none;
            }
            Kind::Not(e) => return 1.0 - self.selectivity(table, slot, e),
            _ => {}
        }
        let Some((column, says)) = says(condition, slot, &SlotSet::of(slot), table) else {
            return by_rule(condition);
        };
        let total = self.rows(table).max(1.0);
        let equal = |value: &Expr, null_safe| {
            let one = super::access::Equal { expr: value.clone(), null_safe };
            self.column(table, column, Interval { parts: vec![Part::One(one)], tail: Tail::Whole }, total)
                .unwrap_or_else(|| unindexed(value, total))
        };
        let bound = |e: &Expr, inclusive| Some(super::access::Bound { expr: e.clone(), inclusive });
        let (low, high) = match says {
            Says::Equal(value, null_safe) => return equal(value, null_safe),
            Says::In(list) => {
                return list.iter().map(|value| equal(value, false)).sum::<f64>().min(1.0);
            }
            Says::Like(..) => return BEGINNING,
            Says::Between(low, high) => (bound(low, true), bound(high, true)),
            Says::Low(e, inclusive) => (bound(e, inclusive), None),
            Says::High(e, inclusive) => (None, bound(e, inclusive)),
        };
        let rule = if low.is_some() && high.is_some() { BOTH_ENDS } else { ONE_END };
        let interval = Interval { parts: Vec::new(), tail: Tail::Between { low, high } };
        self.column(table, column, interval, total).unwrap_or(rule)
    }

    /// The share of the rows in a piece of an index that begins with a column; `None` if there is no such index.
    fn column(self, table: &Table, column: usize, interval: Interval, total: f64) -> Option<f64> {
        let begins = |index: &crate::catalog::Index| {
            index.parts.first().is_some_and(|part| part.column == column && part.prefix.is_none())
        };
        let index = table.indexes().iter().position(begins)?;
        Some((self.interval(table, index, &interval, total).0 / total).min(1.0))
    }
}

/// The share of the entries that are in a range.
fn share(known: &IndexStatistics, scan: &Scan) -> Option<f64> {
    let (space, from) = scan.from.split_at_checked(4)?;
    let low = known.position(from)?;
    let high = scan.to.strip_prefix(space).map_or(Some(1.0), |to| known.position(to))?;
    Some((high - low).max(0.0))
}

/// The share of the rows with one value of a column without an index. Joins are by columns of many values.
fn unindexed(value: &Expr, total: f64) -> f64 {
    if value.slots().is_empty() { ONE_VALUE_UNINDEXED } else { (1.0 / total.sqrt()).min(ONE_VALUE_UNINDEXED) }
}

/// Conditions that no index could answer.
fn by_rule(condition: &Expr) -> f64 {
    let unless = |negated: bool, share: f64| if negated { 1.0 - share } else { share };
    match &condition.kind {
        Kind::Compare(CompareOp::Eq | CompareOp::NullSafeEq, ..) => ONE_VALUE_UNINDEXED,
        Kind::Compare(CompareOp::Ne, ..) => 1.0 - ONE_VALUE_UNINDEXED,
        Kind::Compare(..) => ONE_END,
        Kind::Between { negated, .. } => unless(*negated, BOTH_ENDS),
        Kind::In { args, negated, .. } => {
            unless(*negated, (ONE_VALUE_UNINDEXED * args.len().saturating_sub(1) as f64).min(ANYTHING))
        }
        Kind::Like(like) => unless(like.negated, BEGINNING),
        Kind::Is { what: IsKind::Null, negated, .. } => unless(*negated, ONE_VALUE_UNINDEXED),
        _ => ANYTHING,
    }
}
