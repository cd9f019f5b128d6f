//! EXISTS as IN: what a correlated subquery asks by equalities with columns outside, as rows that do not depend on these.
//!
//! `EXISTS (SELECT * FROM u WHERE u.a = t.a AND u.b > 3)` is true for the rows of `t` for which `t.a IN (SELECT a FROM u WHERE b > 3)`
//! is. Both are planned: by itself EXISTS looks `u` up for each row of `t`; as a set it costs all of `u` once and next to nothing for
//! each row, and an index of `t` may find its rows. Which is better depends on how many rows of `t` come by: the planner says from how
//! many on (`plan::set_instead`), and the statement counts as it runs (`expr::subquery`).

use super::binder::Binder;
use super::block::BlockScope;
use super::query::{Clauses, planned};
use super::subquery;
use crate::error::SqlResult;
use crate::expr::is_volatile;
use crate::expr::node::CompareOp;
use crate::expr::subquery::{Member, RowSet, Subquery, SubqueryKind};
use crate::expr::{Expr, ExprType, Kind, SlotSet};
use crate::logical::nest::{Item, ItemSource, Nest};
use crate::logical::{self, Block, Body};
use crate::plan::{Reader, SetInstead, set_instead};
use crate::storage::LockMode;
use omnibus_parser::ast::Select;
use std::sync::Arc;

/// An EXISTS that is bound, and what has been found of it.
pub(crate) struct Sought {
    /// How many blocks are around its own.
    depth: usize,
    /// The set, once its block has been bound.
    pub found: Option<Found>,
}

/// A set of rows, and what they are compared with.
pub(crate) struct Found {
    query: logical::Query,
    operands: Vec<Expr>,
    members: Vec<(ExprType, u16)>,
}

impl Sought {
    pub(crate) fn at(depth: usize) -> Sought {
        Sought { depth, found: None }
    }
}

/// Whether the block that is bound is that of an EXISTS, for which `*` without a table is a row like any other.
pub(super) fn is_asked(binder: &Binder<'_>) -> bool {
    binder.around.exists.as_ref().is_some_and(|sought| sought.depth + 1 == binder.blocks.len())
}

/// Finds the set of the block that has just been bound, if it is that of an EXISTS and can be one.
pub(super) fn seek(binder: &mut Binder<'_>, select: &Select, clauses: &Clauses, block: &BlockScope) {
    match &mut binder.around.exists {
        // Blocks of a view may stand as deep; its own is the last.
        Some(sought) if sought.depth == binder.blocks.len() => sought.found = None,
        _ => return,
    }
    let plain = clauses.group.is_empty()
        && clauses.having.is_none()
        && clauses.limit.count.is_none()
        && clauses.limit.offset.is_none()
        && block.aggregates.is_empty()
        && !clauses.outputs.iter().any(is_volatile)
        && clauses.nest.locks() == LockMode::None;
    let slots: Vec<u16> = block.scope.tables.iter().filter(|t| t.has_rows()).map(|t| t.slot).collect();
    let own: SlotSet = slots.iter().copied().collect();
    if !plain || clauses.nest.items.is_empty() || !reads_own(&clauses.nest.items, &own) {
        return;
    }
    let (mut operands, mut outputs, mut members) = (Vec::new(), Vec::new(), Vec::new());
    let mut conditions = Vec::with_capacity(clauses.nest.conditions.len());
    for condition in &clauses.nest.conditions {
        if is_volatile(condition) {
            return;
        }
        if condition.slots().within(&own) {
            conditions.push(condition.clone());
            continue;
        }
        let Some((inner, outer, collation)) = equality(condition, &own) else { return };
        operands.push(outer.clone());
        outputs.push(inner.clone());
        members.push((inner.ty.clone(), collation));
    }
    if operands.is_empty() {
        return;
    }
    let types: Vec<ExprType> = outputs.iter().map(|e| e.ty.clone()).collect();
    let columns = outputs.iter().map(|e| binder.result_column(e, Arc::from(""))).collect();
    let block = Block {
        nest: Nest { conditions, ..clauses.nest.clone() },
        slots,
        outputs,
        straight: select.options.straight_join,
        hints: select.hints.clone(),
        ..Block::default()
    };
    let query = logical::Query::new(Body::Block(Box::new(block)), columns, types);
    if let Some(sought) = &mut binder.around.exists {
        sought.found = Some(Found { query, operands, members });
    }
}

/// Whether nothing inside of joins reads what is outside of the block.
fn reads_own(items: &[Item], own: &SlotSet) -> bool {
    items.iter().all(|item| match item {
        Item::Table(table) => match &table.source {
            ItemSource::Table(_) => true,
            ItemSource::Derived { outer, .. } => outer.within(own),
            ItemSource::Virtual(_) | ItemSource::Recursion(_) => false,
        },
        Item::Outer { nest, .. } => {
            let all = |e: &Expr| e.slots().within(own) && !is_volatile(e);
            nest.conditions.iter().all(all) && reads_own(&nest.items, own)
        }
    })
}

/// The sides of an equality of something inside and something outside, and its collation.
fn equality<'e>(condition: &'e Expr, own: &SlotSet) -> Option<(&'e Expr, &'e Expr, u16)> {
    let Kind::Compare(CompareOp::Eq, collation, pair) = &condition.kind else { return None };
    let [a, b] = &**pair;
    let inner = |e: &Expr| e.slots().meets(own) && e.slots().within(own);
    let outer = |e: &Expr| !e.slots().meets(own) && has_no_subquery(e);
    let sides = match () {
        () if inner(a) && outer(b) => (a, b),
        () if inner(b) && outer(a) => (b, a),
        () => return None,
    };
    Some((sides.0, sides.1, *collation))
}

pub(super) fn has_no_subquery(e: &Expr) -> bool {
    let mut none = true;
    e.walk(&mut |e| none &= !matches!(e.kind, Kind::Subquery(_)));
    none
}

/// The set that an EXISTS can become, and when; `None` if it would be large, or its members are not compared as they are hashed.
///
/// # Errors
/// Those of planning.
pub(super) fn row_set(
    binder: &mut Binder<'_>,
    found: Found,
    exists: &Subquery,
) -> SqlResult<Option<Box<RowSet>>> {
    let Found { query, operands, members } = found;
    let plan = planned(binder, query, Reader::Query)?;
    let room = binder.session.settings.tmp_table_size;
    let Some(SetInstead { after, cost }) = set_instead(&*exists.plan, &plan, room) else { return Ok(None) };
    let slot = binder.new_slot();
    let kind = SubqueryKind::In { negated: false };
    let ty = ExprType::boolean().nullable(true);
    let Kind::Subquery(list) =
        subquery::subquery_of(binder, &Arc::new(plan), Default::default(), kind, ty).kind
    else {
        return Ok(None);
    };
    let member = |(at, (ty, collation)): (usize, (ExprType, u16))| Member {
        compared: Expr { kind: Kind::Column { slot, column: at as u16, utc: false }, ty },
        collation,
    };
    let members = members.into_iter().enumerate().map(member).collect();
    let list = Subquery { operands, members, slot, ..*list };
    Ok(list.is_list().then(|| Box::new(RowSet { list, after, cost })))
}
