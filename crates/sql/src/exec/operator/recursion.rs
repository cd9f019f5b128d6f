//! WITH RECURSIVE: the rows of the seeds, then those that a step makes of the rows of the step before, until there are none.

use super::Consumer;
use super::limit::Bounds;
use super::set_operation::{key_of, operand};
use crate::error::{ExecResult, SqlError};
use crate::expr::subquery::SubqueryState;
use crate::expr::types::Family;
use crate::expr::{Context, ExprType, charset};
use crate::memory::Account;
use crate::plan::QueryPlan;
use crate::plan::physical::Recursive;
use crate::rows::Flow;
use crate::rows::collected::{Rows, RowsBuilder};
use crate::rows::distinct::KEY_COST;
use foldhash::fast::RandomState;
use omnibus_value::Value;
use std::collections::HashSet;
use std::rc::Rc;

/// The rows of a recursive common table expression that were found before. They stay in memory: each step asks for them.
struct Found {
    rows: HashSet<Box<[u8]>, RandomState>,
    account: Account,
}

impl Found {
    fn is_new(&mut self, row: &[Value], types: &[ExprType], cx: &Context<'_>) -> ExecResult<bool> {
        let key = key_of(row, types);
        if self.rows.contains(&key[..]) {
            return Ok(false);
        }
        self.account.grow(key.len() + KEY_COST, &cx.session.settings)?;
        Ok(self.rows.insert(key.into()))
    }
}

/// Runs a recursive common table expression.
pub(super) fn run(
    recursive: &Recursive,
    mut bounds: Bounds,
    cx: &mut Context<'_>,
    out: &mut Consumer<'_>,
) -> ExecResult<Flow> {
    let mut found = recursive
        .distinct
        .then(|| Found { rows: HashSet::default(), account: Account::new(&cx.session.connection.memory) });
    let mut rows = step(&recursive.seeds, recursive, &mut found, cx, false)?;
    let most = cx.session.settings.cte_max_recursion_depth;
    for _ in 0..=most {
        if rows.is_empty() {
            cx.subqueries[recursive.id] = SubqueryState::Unknown;
            return Ok(Flow::Continue);
        }
        let mut reader = rows.read();
        while let Some(row) = reader.next_row()? {
            if bounds.give(&row, cx, out)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        cx.storage.check_killed()?;
        cx.subqueries[recursive.id] = SubqueryState::Table(rows);
        rows = step(&recursive.steps, recursive, &mut found, cx, true)?;
    }
    Err(SqlError::new(
        3636,
        b"HY000",
        format!("Recursive query aborted after {} iterations. Try increasing @@cte_max_recursion_depth to a larger value.", most.saturating_add(1)),
    )
    .into())
}

/// Cuts a text of a step to what the seeds' column holds: strict mode refuses it.
fn fit(value: &mut Value, ty: &ExprType, name: &str, number: u64, cx: &Context<'_>) -> ExecResult<()> {
    let (Family::String, Value::Bytes(text)) = (ty.family(), &*value) else { return Ok(()) };
    let (longest, collation) = (ty.column.length as usize, ty.column.collation);
    if ty.column.kind.is_lob() || text.len() <= longest {
        return Ok(());
    }
    let end = charset::char_range(text, 0, longest, collation).end;
    if end == text.len() {
        return Ok(());
    }
    if cx.session.settings.strict() {
        return Err(SqlError::data_too_long(name, number).into());
    }
    *value = Value::Bytes(text.slice(..end));
    Ok(())
}

/// Runs these parts and keeps the rows that were not found before.
fn step(
    parts: &[QueryPlan],
    recursive: &Recursive,
    found: &mut Option<Found>,
    cx: &mut Context<'_>,
    again: bool,
) -> ExecResult<Rc<Rows>> {
    let types = &recursive.types;
    let mut rows = RowsBuilder::new(cx);
    let narrow = again && !cx.session.settings.mariadb;
    let mut number = 0;
    for plan in parts {
        operand(plan, types, cx, &mut |cx, mut row| {
            number += 1;
            if narrow {
                for ((value, ty), name) in row.iter_mut().zip(types).zip(&recursive.names) {
                    fit(value, ty, name, number, cx)?;
                }
            }
            let new = match found {
                None => true,
                Some(found) => found.is_new(&row, types, cx)?,
            };
            if new {
                rows.push(row.into(), cx)?;
            }
            Ok(Flow::Continue)
        })?;
    }
    Ok(Rc::new(rows.finish()?))
}
