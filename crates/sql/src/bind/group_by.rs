//! GROUP BY of a SELECT block: positions, names of the select list and expressions, and that no aggregate is among them.

use super::aliases::{grouped_name, not_grouped, selected_expr};
use super::binder::Binder;
use super::query::position;
use super::rollup;
use crate::error::{SqlError, SqlResult};
use crate::expr::Expr;
use omnibus_parser::ast::{self, Select, SelectItem};
use omnibus_parser::print;
use std::sync::Arc;

/// Binds GROUP BY; returns for each of its members the output that it names, too.
///
/// # Errors
/// 1056 for an aggregate, and those of its expressions.
pub(super) fn group_keys(
    binder: &mut Binder<'_>,
    select: &Select,
    outputs: &[Expr],
    names: &[Arc<str>],
) -> SqlResult<(Vec<Expr>, Vec<Option<usize>>)> {
    let mut group: Vec<Expr> = Vec::with_capacity(select.group_by.len());
    let mut grouped_outputs = Vec::with_capacity(select.group_by.len());
    for item in &select.group_by {
        let place = position(&item.expr, outputs.len(), "group statement")?;
        refuse_aggregate(binder, place, outputs, names)?;
        let named = match place {
            Some(at) => Some(outputs[at].clone()),
            None => grouped_name(binder, &item.expr)?,
        };
        let key = named.map_or_else(|| group_key(binder, &item.expr, &select.items, outputs), Ok)?;
        grouped_outputs.push(place.or_else(|| rollup::output_of(&item.expr, &key, names, outputs)));
        group.push(key);
    }
    Ok((group, grouped_outputs))
}

/// An expression to group by, which may have no aggregate: 1056 for one that is selected.
fn group_key(
    binder: &mut Binder<'_>,
    e: &ast::Expr,
    items: &[SelectItem],
    outputs: &[Expr],
) -> SqlResult<Expr> {
    let selected = |item: &SelectItem| matches!(item, SelectItem::Expr { expr, .. } if expr == e);
    let refused = || SqlError::wrong_group_field(String::from_utf8_lossy(&print::sql(e)));
    let key = selected_expr(binder, e, outputs).map_err(|error| match (error.code, e) {
        (1111, _) if items.iter().any(selected) => refused(),
        (_, ast::Expr::Column(column)) => not_grouped(error, &column.name),
        _ => error,
    })?;
    // An aggregate of a block around this one has found its place there.
    if items.iter().any(selected) && !matches!(e, ast::Expr::Column(_)) && binder.asked().is_aggregated(&key)
    {
        return Err(refused());
    }
    Ok(key)
}

/// Refuses an output with an aggregate as what is grouped by.
fn refuse_aggregate(
    binder: &Binder<'_>,
    place: Option<usize>,
    outputs: &[Expr],
    names: &[Arc<str>],
) -> SqlResult<()> {
    match place {
        Some(at) if binder.asked().is_aggregated(&outputs[at]) => {
            Err(SqlError::wrong_group_field(&*names[at]))
        }
        _ => Ok(()),
    }
}
