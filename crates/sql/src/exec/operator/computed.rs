//! Computed tables: `information_schema`, JSON_TABLE, tables of numbers.

use super::filter::meets;
use super::{Joined, derived};
use crate::error::ExecResult;
use crate::expr::subquery::SubqueryState;
use crate::expr::{Context, Expr, Row};
use crate::logical::{Asked, Numbers, VirtualTable};
use crate::rows::Flow;
use omnibus_value::Value;
use std::rc::Rc;

/// Reads a computed table.
pub(super) fn run(
    table: &dyn VirtualTable,
    id: usize,
    slot: u16,
    filter: &[Expr],
    cx: &mut Context<'_>,
    joined: &mut Joined<'_>,
) -> ExecResult<Flow> {
    if let Some(numbers) = table.numbers() {
        return count(numbers, slot, filter, cx, joined);
    }
    let rows = match derived::kept(cx, id) {
        Some(rows) => rows,
        None => {
            let rows = Rc::new(table.rows(Asked { slot, conditions: filter }, cx)?);
            if table.outer().is_none() {
                cx.subqueries[id] = SubqueryState::Table(rows.clone());
            }
            rows
        }
    };
    derived::push(&rows, slot, filter, cx, joined)
}

/// Numbers, which need not be kept.
fn count(
    numbers: Numbers,
    slot: u16,
    filter: &[Expr],
    cx: &mut Context<'_>,
    joined: &mut Joined<'_>,
) -> ExecResult<Flow> {
    for number in numbers.iter() {
        cx.tick()?;
        cx.frame[usize::from(slot)].row = Row::Values(Rc::from([Value::UInt(number)]));
        if meets(filter, cx)? && joined(cx)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    Ok(Flow::Continue)
}
