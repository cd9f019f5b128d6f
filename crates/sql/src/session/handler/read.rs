//! HANDLER .. READ.

use super::not_open;
use super::place::{end_of, of_row, scan};
use crate::api::{AccessCheck, Outcome, ResultColumn, RowWork};
use crate::bind::uses::UsesCell;
use crate::bind::{Binder, query};
use crate::catalog::Table;
use crate::dml::{Planner, Run, TargetTable, cast_into};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::context::Row;
use crate::expr::is_volatile;
use crate::expr::node::Expr;
use crate::session::{Call, StatementContext};
use crate::state::Place;
use crate::storage::{LockMode, Scan, Storage};
use bytes::Bytes;
use omnibus_parser::ast::{self, HandlerRead, HandlerStep, SelectItem};
use omnibus_value::Value;
use std::sync::Arc;

/// Rows that are read at once where some are passed over.
const BATCH: usize = 64;

/// A READ, bound.
struct Reading {
    target: TargetTable,
    /// Of the order that is read; `None`: the table's own.
    index: Option<usize>,
    /// All columns.
    outputs: Vec<Expr>,
    columns: Vec<ResultColumn>,
    key: Vec<Expr>,
    filter: Option<Expr>,
    limit: Option<Expr>,
    offset: Option<Expr>,
}

pub(super) fn read(
    cx: &mut StatementContext<'_>,
    tree: &HandlerRead,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    let (table, before) = current(cx, tree)?;
    let reading = bind(cx, tree, &table, call.access)?;
    cx.enter();
    cx.trx.start_query(std::slice::from_ref(&table))?;
    let mut run = Run { trx: cx.trx, state: cx.state, params: call.params };
    let key = reading.key_values(&mut run)?;
    let offset = reading.number(reading.offset.as_ref(), 0, &mut run)?;
    let wanted = reading.number(reading.limit.as_ref(), 1, &mut run)?.saturating_add(offset);
    let mut scan = scan(&table, reading.index, &tree.step, &key, before.as_ref());
    call.sink.columns(&reading.columns)?;
    let place = reading.rows((offset, wanted), &mut scan, &mut run, call)?;
    if let Some(handler) = cx.state.held.handlers.get(&tree.alias) {
        handler.table = table;
        handler.place = place.or(before);
    }
    Ok(Outcome::rows())
}

/// The open table, as it is now, and how far it was read.
fn current(cx: &mut StatementContext<'_>, tree: &HandlerRead) -> SqlResult<(Arc<Table>, Option<Place>)> {
    let catalog = cx.catalog();
    let Some(handler) = cx.state.held.handlers.get(&tree.alias) else { return Err(not_open(&tree.alias)) };
    let table = catalog.table(&handler.db, &handler.table.def.name)?.clone();
    let same = Arc::ptr_eq(&table, &handler.table);
    Ok((table, handler.place.clone().filter(|_| same)))
}

fn bind(
    cx: &StatementContext<'_>,
    tree: &HandlerRead,
    table: &Arc<Table>,
    access: &dyn AccessCheck,
) -> SqlResult<Reading> {
    let index = match &tree.index {
        None => None,
        Some(name) => {
            let found = table.index_named(name);
            Some(found.ok_or_else(|| SqlError::key_does_not_exist(name, &tree.alias))?)
        }
    };
    let catalog = cx.catalog();
    let uses = UsesCell::default();
    let planner = Planner {
        session: cx.state,
        catalog: &catalog,
        access,
        virtuals: cx.database.virtual_tables(),
        params: None,
        uses: &uses,
        read_lock: LockMode::None,
    };
    let (mut binder, slot) = planner.binder(table, Some(&tree.alias));
    let (outputs, columns) = query::returning(&mut binder, &[SelectItem::Wildcard])?;
    let key = match &tree.step {
        HandlerStep::Key { values, .. } => {
            let most = index.map_or(0, |index| table.indexes()[index].parts.len());
            if values.len() > most {
                return Err(SqlError::too_many_key_parts(most));
            }
            values.iter().map(|value| constant(&mut binder, value)).collect::<SqlResult<_>>()?
        }
        _ => Vec::new(),
    };
    let filter = tree.filter.as_ref().map(|filter| binder.expr(filter)).transpose()?;
    let limit = tree.limit.as_ref().map(|limit| binder.expr(&limit.count)).transpose()?;
    let offset = tree.limit.as_ref().and_then(|limit| limit.offset.as_ref());
    let offset = offset.map(|offset| binder.expr(offset)).transpose()?;
    if binder.collected.subqueries > 0 {
        return Err(SqlError::parse_error("HANDLER .. READ has no subqueries"));
    }
    let target = TargetTable::new(table.clone(), slot, &binder);
    Ok(Reading { target, index, outputs, columns, key, filter, limit, offset })
}

/// A value of a key: it is the same whatever row and whatever variable.
fn constant(binder: &mut Binder<'_>, value: &ast::Expr) -> SqlResult<Expr> {
    let expr = binder.expr(value)?;
    match expr.slots().is_empty() && !is_volatile(&expr) {
        true => Ok(expr),
        false => Err(SqlError::wrong_arguments("HANDLER ... READ")),
    }
}

impl Reading {
    /// The values of a READ by key, as the columns of the index store them.
    fn key_values(&self, run: &mut Run<'_>) -> ExecResult<Vec<Value>> {
        let Some(index) = self.index else { return Ok(Vec::new()) };
        let parts = &self.target.table.indexes()[index].parts;
        let mut values = Vec::with_capacity(self.key.len());
        for (expr, part) in self.key.iter().zip(parts) {
            let value = expr.eval(&mut self.target.exec(run, Row::Unset))?;
            let column = &self.target.table.columns()[part.column];
            // What does not fit is cut, and nothing is said of it.
            let said = run.state.diagnostics.clone();
            let stored = cast_into(value, expr, column, 1, true, run.state);
            run.state.diagnostics = said;
            values.push(stored?);
        }
        Ok(values)
    }

    fn number(&self, expr: Option<&Expr>, without: u64, run: &mut Run<'_>) -> ExecResult<u64> {
        let Some(expr) = expr else { return Ok(without) };
        match expr.eval(&mut self.target.exec(run, Row::Unset))? {
            Value::Int(value) if value >= 0 => Ok(value as u64),
            Value::UInt(value) => Ok(value),
            _ => Err(SqlError::wrong_arguments("LIMIT").into()),
        }
    }

    /// Sends rows that match, from `offset` on, until `wanted` were found. The place of the last that was looked at; `None` if none was.
    fn rows(
        &self,
        (offset, wanted): (u64, u64),
        scan: &mut Scan,
        run: &mut Run<'_>,
        call: &mut Call<'_>,
    ) -> ExecResult<Option<Place>> {
        let table = &self.target.table;
        let (mut found, mut place) = (0, None);
        while found < wanted {
            if scan.done {
                return Ok(Some(end_of(self.index, scan)));
            }
            let (mut keys, mut rows) = (Vec::new(), Vec::new());
            let want = usize::try_from(wanted - found).unwrap_or(BATCH).min(BATCH);
            run.trx.fetch_keyed(table, scan, &mut keys, &mut rows, want, false)?;
            for (key, row) in keys.iter().zip(rows) {
                if found == wanted {
                    break;
                }
                place = Some(of_row(table, self.index, &table.decode(&row)?, key));
                if let Some(values) = self.matching(row, run)? {
                    found += 1;
                    if found > offset {
                        call.sink.row(&values)?;
                    }
                }
            }
        }
        Ok(place)
    }

    /// The outputs of a row that meets the condition.
    fn matching(&self, row: Bytes, run: &mut Run<'_>) -> ExecResult<Option<Vec<Value>>> {
        let mut exec = self.target.exec(run, Row::Image(row));
        exec.tick()?;
        exec.session.budget.tally.step(RowWork::Forward);
        if let Some(filter) = &self.filter
            && filter.eval_bool(&mut exec)? != Some(true)
        {
            return Ok(None);
        }
        let values = self.outputs.iter().map(|e| e.eval(&mut exec));
        Ok(Some(values.collect::<ExecResult<Vec<_>>>()?))
    }
}
