//! How many rows a condition leaves: by the samples and counts of an index (`catalog::statistics`), else by rules.

use super::sampled::{Count, Sampled};
use crate::catalog::{IndexKind, IndexStatistics, Table};
use crate::expr::SlotSet;
use crate::expr::node::{CompareOp, Expr, IsKind, Kind};
use crate::expr::subquery::SubqueryKind;
use crate::logical::nest::column_of;
use crate::plan::physical::TableAccess;
use crate::plan::physical::key::{self, BoundValue, Fit, KeyRange};
use crate::plan::physical::path::{Bound, Equal, Interval, Part, Tail};
use crate::plan::rules::condition::{Says, says};
use crate::state::SessionState;
use crate::storage::Scan;
use omnibus_value::Value;
use omnibus_value::temporal::UTC;
use omnibus_value::temporal::Zone;
use std::sync::Arc;

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
pub(in crate::plan) const ANYTHING: f64 = 0.5;

/// The sources of an estimate when a plan is made.
#[derive(Clone, Copy)]
pub(crate) struct Known<'s> {
    /// The session's zone, for TIMESTAMP columns.
    pub zone: Zone,
    /// The samples of rows; `None` where nobody asks for more than indexes do.
    pub sampled: Option<&'s Sampled<'s>>,
}

/// The value of an expression, if it is known by now. Plans of prepared statements are kept for other values of `?`.
fn value_of(e: &Expr) -> Option<Value> {
    match &e.kind {
        Kind::Const(value) => Some(value.clone()),
        _ => None,
    }
}

impl Known<'_> {
    /// About how many rows a table has.
    pub(crate) fn rows(self, table: &Table) -> f64 {
        match table.rows_estimate() {
            0 => UNKNOWN_ROWS,
            rows => rows as f64,
        }
    }

    /// Rows with one value of the leading `parts` of an index.
    pub(in crate::plan) fn rows_of_value(self, table: &Table, index: usize, parts: usize, total: f64) -> f64 {
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
        let pieces = pieces(interval);
        let before = match interval.parts.len() {
            0 => total,
            parts => self.rows_of_value(table, index, parts, total),
        };
        let now = |bound: &Option<Bound>| bound.as_ref().is_none_or(|bound| value_of(&bound.expr).is_some());
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
                let bound = |bound: &Option<Bound>| match bound {
                    None => Some(None),
                    Some(b) => Some(Some(BoundValue { value: value_of(&b.expr)?, inclusive: b.inclusive })),
                };
                let (low, high) = (bound(low)?, bound(high)?);
                key::range(table, index, &values, low.as_ref(), high.as_ref(), self.zone)
            }
            Tail::Begins { pattern, escape } => {
                let Value::Bytes(text) = value_of(pattern)? else { return None };
                key::prefix_range(table, index, &values, (&text, *escape), self.zone)
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
    pub(crate) fn selectivity(self, table: &Arc<Table>, slot: u16, condition: &Expr) -> f64 {
        let counted = || self.sampled.and_then(|sampled| sampled.count(table, slot, condition));
        let parts: &[Expr] = match &condition.kind {
            Kind::And(list) | Kind::Or(list) => list,
            Kind::Not(e) => std::slice::from_ref(&**e),
            _ => {
                let indexed = self.indexed(table, slot, condition);
                let known = indexed.or_else(|| self.in_histogram(table, slot, condition));
                let known = known.or_else(|| counted().map(Count::share));
                return known.unwrap_or_else(|| self.by_rule(table, slot, condition));
            }
        };
        if let Some(counted) = counted().filter(|count| count.is_sure()) {
            return counted.share();
        }
        let shares = parts.iter().map(|e| self.selectivity(table, slot, e));
        match &condition.kind {
            Kind::And(_) => shares.product(),
            Kind::Or(_) => 1.0 - shares.map(|share| 1.0 - share).product::<f64>(),
            _ => 1.0 - shares.sum::<f64>(),
        }
    }

    /// The part of the rows that meet a condition, by an index.
    fn indexed(self, table: &Table, slot: u16, condition: &Expr) -> Option<f64> {
        let (column, says) = says(condition, slot, &SlotSet::of(slot), table)?;
        let total = self.rows(table).max(1.0);
        let equal = |value: &Expr, null_safe| {
            let one = Equal { expr: value.clone(), null_safe };
            self.column(table, column, Interval { parts: vec![Part::One(one)], tail: Tail::Whole }, total)
        };
        match says {
            Says::Equal(value, null_safe) => equal(value, null_safe),
            Says::In(list) => {
                let shares: Option<f64> = list.iter().map(|value| equal(value, false)).sum();
                shares.map(|share| share.min(1.0))
            }
            Says::Like(..) => None,
            Says::Between(..) | Says::Low(..) | Says::High(..) => {
                self.column(table, column, range_of(says)?, total)
            }
        }
    }

    /// The part of the rows that meet a condition, by a histogram.
    fn in_histogram(self, table: &Arc<Table>, slot: u16, condition: &Expr) -> Option<f64> {
        if let Some((positive, column)) = negated(condition, slot) {
            let histogram = table.histogram(column)?;
            // NULL meets neither, but for IS NOT NULL.
            let nulls = if matches!(condition.kind, Kind::Is { .. }) { 0.0 } else { histogram.nulls() };
            return Some((1.0 - nulls - self.selectivity(table, slot, &positive)).clamp(0.0, 1.0));
        }
        let (column, says) = says(condition, slot, &SlotSet::of(slot), table)?;
        let equal = |value, null_safe| self.of_histogram(table, column, Asked::Equal(value, null_safe));
        match says {
            Says::Equal(value, null_safe) => equal(value, null_safe),
            Says::In(list) => {
                let shares: Option<f64> = list.iter().map(|value| equal(value, false)).sum();
                shares.map(|share| share.min(1.0))
            }
            Says::Like(..) => None,
            Says::Between(..) | Says::Low(..) | Says::High(..) => {
                let Tail::Between { low, high } = range_of(says)?.tail else { return None };
                self.of_histogram(table, column, Asked::Between(low.as_ref(), high.as_ref()))
            }
        }
    }

    /// The share of the rows by the histogram of a column; `None` without one, or if values are not known yet.
    fn of_histogram(self, table: &Table, at: usize, asked: Asked<'_>) -> Option<f64> {
        let histogram = table.histogram(at)?;
        let column = &table.columns()[at];
        let fitted = |e: &Expr| Some(key::fit(&value_of(e)?, column, self.zone));
        match asked {
            Asked::Equal(value, null_safe) => {
                let Some(fit) = fitted(value) else { return Some(histogram.any_value()) };
                Some(match fit {
                    Fit::Exact(value) => histogram.equal(&value, &column.ty),
                    Fit::Null if null_safe => histogram.nulls(),
                    Fit::Unknown => return None,
                    _ => 0.0,
                })
            }
            Asked::Between(low, high) => {
                // The share of what lies below an end.
                let below = |bound: &Bound, up_to: bool| {
                    Some(match fitted(&bound.expr)? {
                        Fit::Exact(value) => histogram.below(&value, &column.ty, up_to),
                        Fit::After(value) => histogram.below(&value, &column.ty, true),
                        Fit::Below => 0.0,
                        Fit::Above => 1.0 - histogram.nulls(),
                        Fit::Null | Fit::Unknown => return None,
                    })
                };
                let from = low.map_or(Some(0.0), |bound| below(bound, !bound.inclusive))?;
                let to = high.map_or(Some(1.0 - histogram.nulls()), |bound| below(bound, bound.inclusive))?;
                Some((to - from).max(0.0))
            }
        }
    }

    /// How many values a column has, by an index that begins with it.
    pub(in crate::plan) fn values(self, table: &Table, column: usize) -> Option<f64> {
        let begins = |index: &crate::catalog::Index| {
            index.parts.first().is_some_and(|part| part.column == column && part.prefix.is_none())
        };
        let index = table.indexes().iter().position(begins)?;
        let definition = &table.indexes()[index];
        if definition.unique() && definition.parts.len() == 1 {
            return Some(self.rows(table));
        }
        table.cardinality(index, 1).map(|values| values.max(1) as f64)
    }

    /// The share of the rows whose value of a column is among what a subquery gives.
    fn in_subquery(self, table: &Table, slot: u16, condition: &Expr) -> Option<f64> {
        let Kind::Subquery(subquery) = &condition.kind else { return None };
        let (SubqueryKind::In { negated }, [operand]) = (&subquery.kind, &subquery.operands[..]) else {
            return None;
        };
        let values = self.values(table, column_of(operand, slot)?)?;
        let share = (subquery.plan.rows() / values).min(1.0);
        Some(if *negated { 1.0 - share } else { share })
    }

    /// The part of the rows that meet a condition, by rule: nothing is known of the column.
    fn by_rule(self, table: &Table, slot: u16, condition: &Expr) -> f64 {
        let Some((_, says)) = says(condition, slot, &SlotSet::of(slot), table) else {
            return self.in_subquery(table, slot, condition).unwrap_or_else(|| by_rule(condition));
        };
        let total = self.rows(table).max(1.0);
        match says {
            Says::Equal(value, _) => unindexed(value, total),
            Says::In(list) => list.iter().map(|value| unindexed(value, total)).sum::<f64>().min(1.0),
            Says::Like(..) => BEGINNING,
            Says::Between(..) => BOTH_ENDS,
            Says::Low(..) | Says::High(..) => ONE_END,
        }
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

/// Of how many pieces an interval is made.
fn pieces(interval: &Interval) -> f64 {
    let count = |(at, part): (usize, &Part)| match part {
        Part::One(_) => 1.0,
        Part::Any(list) => list.len() as f64,
        Part::Among(among) => {
            let same = |part: &Part| matches!(part, Part::Among(a) if a.subquery.id == among.subquery.id);
            if interval.parts[..at].iter().any(same) { 1.0 } else { among.subquery.plan.rows() }
        }
    };
    interval.parts.iter().enumerate().map(count).product()
}

/// The demand of a condition on a column's values.
enum Asked<'e> {
    Equal(&'e Expr, bool),
    Between(Option<&'e Bound>, Option<&'e Bound>),
}

/// The condition that another one denies, and its column: of `<>`, NOT IN, NOT BETWEEN, IS NOT NULL.
fn negated(condition: &Expr, slot: u16) -> Option<(Expr, usize)> {
    let column_of = |e: &Expr| match &e.kind {
        Kind::Column { slot: s, column, .. } if *s == slot => Some(usize::from(*column)),
        _ => None,
    };
    let mut positive = condition.clone();
    let column = match &mut positive.kind {
        Kind::Compare(op @ CompareOp::Ne, _, pair) => {
            *op = CompareOp::Eq;
            column_of(&pair[0]).or_else(|| column_of(&pair[1]))
        }
        Kind::Between { negated: negated @ true, args, .. } => {
            *negated = false;
            column_of(&args[0])
        }
        Kind::In { negated: negated @ true, args, .. } => {
            *negated = false;
            column_of(&args[0])
        }
        Kind::Is { negated: negated @ true, what: IsKind::Null, expr } => {
            *negated = false;
            column_of(expr)
        }
        _ => return None,
    };
    Some((positive, column?))
}

/// The piece of an index that a comparison asks for.
fn range_of(says: Says<'_>) -> Option<Interval> {
    let bound = |e: &Expr, inclusive| Some(Bound { expr: e.clone(), inclusive });
    let (low, high) = match says {
        Says::Between(low, high) => (bound(low, true), bound(high, true)),
        Says::Low(e, inclusive) => (bound(e, inclusive), None),
        Says::High(e, inclusive) => (None, bound(e, inclusive)),
        _ => return None,
    };
    Some(Interval { parts: Vec::new(), tail: Tail::Between { low, high } })
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

/// How many of a hundred rows meet `filter`, as EXPLAIN says; `slot` is the table's.
pub(crate) fn filtered(path: &TableAccess, table: &Arc<Table>, slot: u16) -> f64 {
    let session = SessionState::default();
    let sampled = Sampled::new(&session);
    let known = Known { zone: UTC, sampled: Some(&sampled) };
    let share: f64 = path.filter.iter().map(|e| known.selectivity(table, slot, e)).product();
    (share * 100.0).clamp(0.01, 100.0)
}
