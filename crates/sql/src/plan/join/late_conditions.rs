//! Conditions with a subquery that runs for each row: asked where the fewest rows come by, not as soon as they can be.
//!
//! `EXISTS (... WHERE x = t.a)` reads one table of a join only, but what it costs is paid for every row of it that is met, and a
//! table joined later may leave one row in a hundred. They take no part in the search for an order.

use super::node::Node;
use crate::expr::is_volatile;
use crate::expr::node::CompareOp;
use crate::expr::{Expr, Kind, SlotSet};
use crate::logical::nest::{Item, ItemSource, Nest};
use crate::storage::LockMode;

/// The state of a plan when a node's rows have come.
pub(super) struct Step {
    /// Slots that are not read by then.
    pub missing: SlotSet,
    /// Rows so far.
    pub rows: f64,
}

/// Takes the conditions that wait out of a nest, and brings the others into the order in which they cost. Rows that are locked are
/// locked as late as can be: nothing waits there.
pub(super) fn take(nest: &mut Nest) -> Vec<Expr> {
    if nest.items.is_empty() || nest.conditions.iter().any(is_volatile) {
        return Vec::new();
    }
    nest.conditions.sort_by_key(weight);
    if nest.locks() != LockMode::None {
        return Vec::new();
    }
    let (late, rest): (Vec<Expr>, Vec<Expr>) =
        std::mem::take(&mut nest.conditions).into_iter().partition(|c| waits(c, &nest.items));
    nest.conditions = rest;
    late
}

/// Gives each condition to the node behind which the fewest rows are left, of those that have all that it reads.
pub(super) fn place(late: Vec<Expr>, steps: &[Step], nodes: &mut [Node]) {
    for condition in late {
        let slots = condition.slots();
        let ready = steps.iter().position(|step| !slots.meets(&step.missing)).unwrap_or(steps.len() - 1);
        let fewest = (ready..steps.len()).min_by(|a, b| steps[*a].rows.total_cmp(&steps[*b].rows));
        let at = fewest.unwrap_or(ready);
        // Rows before this node: of the first one nobody knows how often it is asked.
        let often = if at == 0 { f64::INFINITY } else { steps[at].rows };
        match &mut nodes[at] {
            Node::Outer(outer) => outer.filter.push(condition),
            Node::Read(scan, keep) => {
                let own = slots.within(&SlotSet::of(scan.slot));
                let early = own && scan.stored().is_some_and(|(_, path)| path.rows < often);
                let list = match keep {
                    Some(keep) if !early => &mut keep.filter,
                    _ => scan.filter_mut(),
                };
                list.push(condition);
            }
        }
    }
}

/// Whether a subquery inside runs for each row, and no index could use what the condition says: that of an EXISTS is looked for where it
/// has no other table to wait for.
fn waits(condition: &Expr, items: &[Item]) -> bool {
    let alone =
        items.len() == 1 && matches!(&condition.kind, Kind::Subquery(subquery) if subquery.set.is_some());
    weight(condition) == 3 && !alone && !feeds_an_index(condition, items)
}

/// How much asking costs, roughly.
fn weight(condition: &Expr) -> u8 {
    let mut weight = 0;
    condition.walk(&mut |e| {
        weight = weight.max(match &e.kind {
            Kind::Subquery(subquery) if !subquery.outer_slots.is_empty() => 3,
            Kind::Subquery(_) => 2,
            Kind::Like(_) | Kind::Regexp(_) | Kind::Call(..) | Kind::Or(_) => 1,
            _ => 0,
        });
    });
    weight
}

/// Whether a condition compares a column of an index with something.
fn feeds_an_index(condition: &Expr, items: &[Item]) -> bool {
    let Kind::Compare(op, _, pair) = &condition.kind else { return false };
    *op != CompareOp::Ne && pair.iter().any(|side| is_indexed(side, items))
}

fn is_indexed(e: &Expr, items: &[Item]) -> bool {
    let Kind::Column { slot, column, .. } = &e.kind else { return false };
    items.iter().any(|item| match item {
        Item::Outer { .. } => false,
        Item::Table(table) => match &table.source {
            ItemSource::Table(stored) if table.slot == *slot => stored
                .indexes()
                .iter()
                .any(|index| index.parts.iter().any(|part| part.column == usize::from(*column))),
            _ => false,
        },
    })
}
