//! ORDER BY of a SELECT block: positions, aliases and expressions, and where aggregates may stand in it. That of a set operation is in
//! `compound`.

use super::aliases::{lone_alias, selected_expr};
use super::binder::Binder;
use super::block::Clause;
use super::query::{position, set_aggregates};
use super::windows;
use crate::error::{SqlError, SqlResult};
use crate::expr::Expr;
use crate::logical::{SortBy, SortKey};
use omnibus_parser::ast::Query;

/// Binds ORDER BY of the block, whose outputs are known; whether each descends.
///
/// # Errors
/// Unknown names; 3029 for an aggregate where nothing else is aggregated, in the mysql dialect.
pub(super) fn order_by(
    binder: &mut Binder<'_>,
    query: &Query,
    outputs: &[Expr],
    grouped: bool,
) -> SqlResult<Vec<(Expr, bool)>> {
    binder.set_clause(Clause::Order);
    windows::allow_windows(binder, true);
    let aggregated = grouped || has_aggregates(binder);
    let mut order = Vec::with_capacity(query.order_by.len());
    for item in &query.order_by {
        let named = match position(&item.expr, outputs.len(), "order clause")? {
            Some(at) => Some(outputs[at].clone()),
            None => lone_alias(binder, &item.expr)?,
        };
        let e = named.map_or_else(|| selected_expr(binder, &item.expr, outputs), Ok)?;
        // What a window function is given may be aggregated by it alone.
        if !aggregated
            && has_aggregates(binder)
            && !binder.session.settings.mariadb
            && !windows::is_windowed(binder, &e)
        {
            return Err(SqlError::aggregate_order_non_agg_query(order.len() + 1));
        }
        order.push((e, item.descending));
    }
    set_aggregates(binder, false);
    windows::allow_windows(binder, false);
    Ok(order)
}

/// Whether an aggregate of the block has been bound.
fn has_aggregates(binder: &Binder<'_>) -> bool {
    binder.blocks.last().is_some_and(|block| !block.aggregates.is_empty())
}

/// How a query sorts by an expression: by the output column that is the same, where there is one.
pub(super) fn sort_key(
    binder: &Binder<'_>,
    e: Expr,
    descending: bool,
    outputs: &[Expr],
) -> SqlResult<SortKey> {
    binder.session.budget.spend_plan(outputs.len() as u32)?;
    let collation = e.ty.column.collation;
    let expr = match outputs.iter().position(|output| output.same(&e)) {
        Some(at) => SortBy::Output(at),
        None => SortBy::Expr(e),
    };
    Ok(SortKey { expr, descending, collation })
}
