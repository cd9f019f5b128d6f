//! How many rows a query gives, for who reads them: the query around a derived table, and conditions that ask a subquery.
//!
//! `join::order` says how many rows the joins of a block give; here is what groups, HAVING, DISTINCT and LIMIT make of them.

use super::estimate::Known;
use crate::expr::{Expr, Kind};
use crate::logical::{Limit, SetOperation};
use crate::plan::physical::{FrameOperator, GroupMethod, QueryPlan, ResultOperator};
use omnibus_value::Value;
use omnibus_value::temporal::Zone;

/// Rows that become one group, where nothing is known of what they are grouped by.
const GROUP: f64 = 5.0;
/// Rows of a recursion, of whose steps nothing is known.
pub(in crate::plan) const OF_RECURSION: f64 = 100.0;
/// The share of the groups that meet HAVING. Groups are asked for to find the few that stand out.
const HAVING: f64 = 0.1;

/// Rows expected of a block whose joins give `joined` rows.
pub(in crate::plan) fn of_block(root: &ResultOperator, joined: f64, zone: Zone) -> f64 {
    of_results(root, joined, Known { zone, sampled: None }).max(1.0)
}

fn of_results(operator: &ResultOperator, joined: f64, known: Known<'_>) -> f64 {
    match operator {
        ResultOperator::Project(project) => of_frame(&project.input, joined, known),
        ResultOperator::Distinct(distinct) => {
            let (input, listed) = (&distinct.project.input, &distinct.project.outputs[..distinct.width]);
            groups(input, listed, of_frame(input, joined, known), known)
        }
        ResultOperator::Sort(of) => of_results(&of.input, joined, known),
        ResultOperator::Limit(of) => within(&of.limit, of_results(&of.input, joined, known)),
        ResultOperator::SetOperation(_) | ResultOperator::Values(_) | ResultOperator::Recursion(_) => joined,
    }
}

fn of_frame(operator: &FrameOperator, joined: f64, known: Known<'_>) -> f64 {
    let Some(input) = operator.input() else { return joined };
    let rows = of_frame(input, joined, known);
    match operator {
        FrameOperator::Group(group) if group.grouping.keys.is_empty() => 1.0,
        FrameOperator::Group(group) => groups(input, &group.grouping.keys, rows, known),
        FrameOperator::Filter(_) => rows * HAVING,
        _ => rows,
    }
}

/// So many rows, or what LIMIT leaves of them.
fn within(limit: &Limit, rows: f64) -> f64 {
    match limit.count.as_ref().and_then(Expr::as_const) {
        Some(Value::Int(most)) => rows.min(*most as f64),
        _ => rows,
    }
}

/// Rows expected of a set operation.
pub(in crate::plan) fn of_compound(
    left: &QueryPlan,
    rest: &[(SetOperation, QueryPlan)],
    limit: &Limit,
) -> f64 {
    let mut rows = left.rows;
    for (operation, plan) in rest {
        rows = match operation {
            SetOperation::UnionAll | SetOperation::Union => rows + plan.rows,
            SetOperation::Intersect(_) => rows.min(plan.rows),
            SetOperation::Except(_) => rows,
        };
    }
    match limit.count.as_ref().and_then(Expr::as_const) {
        Some(Value::Int(most)) => rows.min(*most as f64).max(1.0),
        _ => rows,
    }
}

/// Whether each value of an output column comes once: it is all that the rows are grouped by, or the only one of DISTINCT.
pub(crate) fn is_unique(plan: &QueryPlan, column: usize) -> bool {
    let Some(project) = plan.root.project() else { return false };
    let Some(output) = project.outputs.get(column) else { return false };
    match project.input.grouping() {
        Some(grouping) if !matches!(grouping.method, GroupMethod::Rollup(_)) => {
            matches!(&grouping.keys[..], [only] if only.same(output))
        }
        _ => plan.root.distinct().is_some_and(|distinct| distinct.width == 1),
    }
}

/// Into how many groups rows fall.
fn groups(tables: &FrameOperator, keys: &[Expr], rows: f64, known: Known<'_>) -> f64 {
    let (mut product, mut all_known) = (1.0, true);
    for key in keys.iter().filter(|key| key.as_const().is_none()) {
        match values_of(tables, key, known) {
            Some(values) => product *= values,
            None => all_known = false,
        }
    }
    if all_known { product.min(rows) } else { f64::max(product, rows / GROUP).min(rows) }
}

/// How many values a column has, by an index that begins with it.
fn values_of(tables: &FrameOperator, key: &Expr, known: Known<'_>) -> Option<f64> {
    let Kind::Column { slot, column, .. } = &key.kind else { return None };
    known.values(tables.table_of(*slot)?, usize::from(*column))
}
