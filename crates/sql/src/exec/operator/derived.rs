//! Derived tables: the rows of a query, collected, and kept for the next loop if they do not depend on rows outside.

use super::Joined;
use super::filter::meets;
use crate::error::ExecResult;
use crate::expr::subquery::{Subplan, SubqueryState};
use crate::expr::{Context, Expr, Row, SlotSet, eval};
use crate::rows::Flow;
use crate::rows::collected::{Rows, RowsBuilder};
use std::rc::Rc;

/// The rows of a derived table.
pub(super) fn rows(
    plan: &dyn Subplan,
    id: usize,
    outer: &SlotSet,
    cx: &mut Context<'_>,
) -> ExecResult<Rc<Rows>> {
    if let Some(rows) = kept(cx, id) {
        return Ok(rows);
    }
    let mut rows = RowsBuilder::new(cx);
    plan.run(cx, &mut |cx, row| {
        rows.push(row.iter().cloned().map(eval::own).collect(), cx)?;
        Ok(Flow::Continue)
    })?;
    let rows = Rc::new(rows.finish()?);
    if outer.is_empty() {
        cx.subqueries[id] = SubqueryState::Table(rows.clone());
    }
    Ok(rows)
}

/// The rows of a table that were made before.
pub(super) fn kept(cx: &Context<'_>, id: usize) -> Option<Rc<Rows>> {
    match &cx.subqueries[id] {
        SubqueryState::Table(rows) => Some(rows.clone()),
        _ => None,
    }
}

/// Puts rows that meet conditions into a slot, one by one.
pub(super) fn push(
    rows: &Rc<Rows>,
    slot: u16,
    filter: &[Expr],
    cx: &mut Context<'_>,
    joined: &mut Joined<'_>,
) -> ExecResult<Flow> {
    let mut reader = rows.read();
    while let Some(row) = reader.next_row()? {
        cx.tick()?;
        cx.frame[usize::from(slot)].row = Row::Values(row);
        if meets(filter, cx)? && joined(cx)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    Ok(Flow::Continue)
}
