//! Prices of reading: the constants by which the planner compares ways to the same rows.
//!
//! The unit is a microsecond of the server's CPU on the 2-core machine of docs/use/benchmarks.md, release build, rows of about 100
//! bytes that are in memory. ROW, LOOKUP and CONDITION are measured, by `bench/queries.py` (its part "constants"), which looks at some of
//! the others too; those are estimates beside them. Only their ratios matter, and a factor of two in one of them changes few plans.

use crate::expr::subquery::Visited;
use crate::plan::physical::{FrameOperator, Project, QueryPlan, ResultOperator, Source, Step};
use omnibus_value::Value;

/// A row of a scan along the clustered index: read, decoded as far as a condition needs.
pub const ROW: f64 = 0.25;
/// A row found through a secondary index beside its entry: a search in the clustered one.
pub const LOOKUP: f64 = 3.0;
/// A search by a complete key.
pub const POINT: f64 = 1.0;
/// The beginning of a range: an iterator over the parts of an engine, and its first row.
pub const RANGE: f64 = 2.5;
/// A condition on a row.
pub const CONDITION: f64 = 0.05;
/// A row put into a hash table.
pub const HASH_BUILD: f64 = 0.4;
/// A search in a hash table.
pub const HASH_PROBE: f64 = 0.15;
/// A row given out of a hash table.
pub const HASH_ROW: f64 = 0.1;
/// A row locked: what it keeps others from costs more than locking it.
pub const LOCK: f64 = 3.0;
/// The saving from which on a scan is preferred to an index: small tables grow while plans are kept.
pub const GROWTH: f64 = 20.0;
/// Searches by a complete key that are not worth a hash table, whatever is searched.
pub const FEW: f64 = 50.0;

/// The rough cost of running a query: conditions behind the paths do not make its loops fewer. Queries of FROM that were met before are not priced
/// again: a common table expression runs once, and one that names another twice, which does the same, has 2^n paths to the last.
pub fn of_plan(plan: &QueryPlan, visited: &mut Visited) -> f64 {
    match (plan.root.project(), &plan.root) {
        (Some(project), root) => {
            of_joins(project.input.joins(), visited).min(first_rows(root, project).unwrap_or(f64::MAX))
        }
        (None, ResultOperator::Values(_) | ResultOperator::Recursion(_)) => plan.rows * ROW,
        (None, root) => {
            let operands = root.operands();
            let (left, rest) = operands.split_at(1.min(operands.len()));
            let rest = rest.iter().map(|plan| of_plan(plan, visited)).sum::<f64>();
            rest + left.iter().map(|plan| of_plan(plan, visited)).sum::<f64>()
        }
    }
}

/// The price of reading no more than LIMIT wants, if one table is read and its rows go straight out. Where they must meet conditions, every
/// other one is taken to do so.
fn first_rows(root: &ResultOperator, project: &Project) -> Option<f64> {
    let Value::Int(most) = root.limit()?.count.as_ref()?.as_const()? else { return None };
    let (table, path) = project.input.only_table()?;
    let gathers = |operator: &FrameOperator| {
        matches!(operator, FrameOperator::Group(_) | FrameOperator::Filter(_) | FrameOperator::Sort(_))
    };
    let straight = !root.sorts() && !project.input.chain().any(gathers);
    let in_place = path.covered || table.indexes()[path.index()].clustered;
    let rows = *most as f64 * if path.filter.is_empty() { 1.0 } else { 2.0 };
    straight.then(|| ranges(1.0, rows, in_place))
}

fn of_joins(joins: &FrameOperator, visited: &mut Visited) -> f64 {
    let (mut cost, mut rows) = (0.0, 1.0);
    joins.steps(&mut |step| {
        let (scan, keep) = match step {
            Step::Read(scan, keep) => (scan, keep),
            Step::Outer(outer) => {
                cost += rows * of_joins(&outer.inner, visited);
                return;
            }
        };
        match (&scan.source, keep) {
            (Source::Table { path, .. }, Some(_)) => {
                cost += path.cost + path.rows * HASH_BUILD + rows * HASH_PROBE;
            }
            (Source::Table { table, path, .. }, None) => {
                cost += rows * path.cost;
                rows *= path.expected(table);
            }
            (Source::Derived { plan, .. }, _) => {
                let made = if visited.add(&**plan) { plan.cost(visited) } else { 0.0 };
                cost += made + rows * plan.rows() * ROW;
            }
            (Source::Virtual { .. } | Source::Recursion { .. }, _) => cost += rows * ROW,
        }
    });
    cost
}

/// All rows of a table.
#[must_use]
pub fn scan(rows: f64) -> f64 {
    RANGE + rows * ROW
}

/// `ranges` pieces of an index with `rows` rows in all.
#[must_use]
pub fn ranges(ranges: f64, rows: f64, clustered: bool) -> f64 {
    ranges * RANGE + rows * (ROW + if clustered { 0.0 } else { LOOKUP })
}

/// A search by a complete unique key.
#[must_use]
pub fn point(clustered: bool) -> f64 {
    if clustered { POINT } else { POINT + LOOKUP }
}
