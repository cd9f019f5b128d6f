//! How many rows a query gives, for who reads them: the query around a derived table, and conditions that ask a subquery.
//!
//! `join::order` says how many rows the loops of a block give; here is what groups, HAVING, DISTINCT and LIMIT make of them.

use super::estimate::Known;
use crate::catalog::Table;
use crate::expr::{Expr, Kind};
use crate::logical::{Limit, SetOperation};
use crate::plan::physical::{Block, Body, Node, NodeSource, QueryPlan};
use omnibus_value::Value;
use omnibus_value::temporal::Zone;
use std::sync::Arc;

/// Rows that become one group, where nothing is known of what they are grouped by.
const GROUP: f64 = 5.0;
/// Rows of a recursion, of whose steps nothing is known.
pub(in crate::plan) const OF_RECURSION: f64 = 100.0;
/// The share of the groups that meet HAVING. Groups are asked for to find the few that stand out.
const HAVING: f64 = 0.1;

/// Rows expected of a block whose loops give `joined` rows.
pub(in crate::plan) fn of_block(block: &Block, joined: f64, zone: Zone) -> f64 {
    let known = Known { zone, sampled: None };
    let mut rows = match &block.grouping {
        Some(grouping) if grouping.keys.is_empty() => 1.0,
        Some(grouping) => groups(&block.nodes, &grouping.keys, joined, known),
        None => joined,
    };
    if block.having.is_some() {
        rows *= HAVING;
    }
    if block.distinct {
        rows = groups(&block.nodes, &block.outputs[..block.width], rows, known);
    }
    if let Some(Value::Int(most)) = block.limit.count.as_ref().and_then(Expr::as_const) {
        rows = rows.min(*most as f64);
    }
    rows.max(1.0)
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
    let Body::Block(block) = &plan.body else { return false };
    let Some(output) = block.outputs.get(column) else { return false };
    match &block.grouping {
        Some(grouping) if grouping.rollup.is_none() => {
            matches!(&grouping.keys[..], [only] if only.same(output))
        }
        _ => block.distinct && block.width == 1,
    }
}

/// Into how many groups rows fall.
fn groups(nodes: &[Node], keys: &[Expr], rows: f64, known: Known<'_>) -> f64 {
    let (mut product, mut all_known) = (1.0, true);
    for key in keys.iter().filter(|key| key.as_const().is_none()) {
        match values_of(nodes, key, known) {
            Some(values) => product *= values,
            None => all_known = false,
        }
    }
    if all_known { product.min(rows) } else { f64::max(product, rows / GROUP).min(rows) }
}

/// How many values a column has, by an index that begins with it.
fn values_of(nodes: &[Node], key: &Expr, known: Known<'_>) -> Option<f64> {
    let Kind::Column { slot, column, .. } = &key.kind else { return None };
    let table = table_of(nodes, *slot)?;
    known.values(table, usize::from(*column))
}

fn table_of(nodes: &[Node], slot: u16) -> Option<&Arc<Table>> {
    nodes.iter().find_map(|node| match node {
        Node::Outer(outer) => table_of(&outer.nodes, slot),
        Node::Scan(scan) => match &scan.source {
            NodeSource::Table { table, .. } if scan.slot == slot => Some(table),
            _ => None,
        },
    })
}
