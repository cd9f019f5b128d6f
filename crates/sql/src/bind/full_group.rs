//! ONLY_FULL_GROUP_BY: what the select list may contain beside aggregates and grouped expressions.
//!
//! A column passes if it is grouped, or its table's primary or unique key is (functional
//! dependence), or WHERE fixes it to a constant.

use super::binder::BlockScope;
use super::scope::Source;
use crate::error::{SqlError, SqlResult};
use crate::expr::node::CompareOp;
use crate::expr::{Expr, Kind};
use crate::logical::window::Windows;

/// Checks the select list.
///
/// # Errors
/// 1055, or 1140 without GROUP BY.
pub(super) fn check(
    scope: &BlockScope,
    group: &[Expr],
    outputs: &[Expr],
    order: &[(Expr, bool)],
    conditions: &[Expr],
) -> SqlResult<()> {
    for (number, output) in outputs.iter().enumerate() {
        let Some(column) = offender(scope, group, output, conditions) else { continue };
        if group.is_empty() {
            return Err(SqlError::mix_of_group_func_and_fields());
        }
        return Err(SqlError::wrong_field_with_group(number + 1, "SELECT list", column_name(scope, column)));
    }
    if group.is_empty() {
        // There is one row to order.
        return Ok(());
    }
    for (number, (e, _)) in order.iter().enumerate() {
        if outputs.iter().any(|output| output.same(e)) {
            continue;
        }
        if let Some(column) = offender(scope, group, e, conditions) {
            return Err(SqlError::wrong_field_with_group(
                number + 1,
                "ORDER BY clause",
                column_name(scope, column),
            ));
        }
    }
    Ok(())
}

/// Checks what window functions read.
///
/// # Errors
/// As `check`.
pub(super) fn check_windows(
    scope: &BlockScope,
    group: &[Expr],
    outputs: &[Expr],
    windows: &Windows,
    conditions: &[Expr],
) -> SqlResult<()> {
    for window in &windows.windows {
        let order = window.order.iter().map(|(e, _)| e);
        let mut read = window.partition.iter().chain(order).chain(&window.inputs);
        let Some(column) = read.find_map(|e| offender(scope, group, e, conditions)) else { continue };
        if group.is_empty() {
            return Err(SqlError::mix_of_group_func_and_fields());
        }
        let number = outputs.iter().position(|output| output.slots().contains(windows.slot)).unwrap_or(0);
        return Err(SqlError::wrong_field_with_group(number + 1, "SELECT list", column_name(scope, column)));
    }
    Ok(())
}

/// Checks what a SELECT DISTINCT is ordered by: columns that it selects.
///
/// # Errors
/// 3065.
pub(super) fn check_distinct(scope: &BlockScope, outputs: &[Expr], order: &[(Expr, bool)]) -> SqlResult<()> {
    for (number, (e, _)) in order.iter().enumerate() {
        let Some(column) = offender(scope, outputs, e, &[]) else { continue };
        let name = column_name(scope, column);
        return Err(SqlError::new(
            3065,
            b"HY000",
            format!(
                "Expression #{} of ORDER BY clause is not in SELECT list, references column '{name}' which is not in SELECT list; this is incompatible with DISTINCT",
                number + 1
            ),
        ));
    }
    Ok(())
}

/// A column as messages name it, by its table's place in the scope and its own in the table.
fn column_name(scope: &BlockScope, (table, column): (usize, usize)) -> String {
    let table = &scope.scope.tables[table];
    format!("{}.{}.{}", table.schema, table.alias, table.column_name(column))
}

/// The first column inside that is not determined by the group: table position and column.
fn offender(scope: &BlockScope, group: &[Expr], e: &Expr, conditions: &[Expr]) -> Option<(usize, usize)> {
    if group.iter().any(|g| g.same(e)) {
        return None;
    }
    if let Kind::Call(def, _) = &e.kind
        && def.name == "ANY_VALUE"
    {
        return None;
    }
    if let Kind::Column { slot, column, .. } = &e.kind {
        let at = scope.scope.tables.iter().position(|t| t.slot == *slot)?;
        let column = usize::from(*column);
        return (!determined(scope, group, at, conditions) && !fixed(e, group, conditions))
            .then_some((at, column));
    }
    let mut found = None;
    let mut look = |child: &Expr| {
        if found.is_none() {
            found = offender(scope, group, child, conditions);
        }
    };
    e.children(&mut look);
    if let Kind::Subquery(subquery) = &e.kind {
        subquery.outer_columns.iter().for_each(look);
    }
    found
}

/// Whether a unique key of a table is grouped or fixed.
fn determined(scope: &BlockScope, group: &[Expr], at: usize, conditions: &[Expr]) -> bool {
    let table = &scope.scope.tables[at];
    // It has no rows, so anything determines them. Dump programs group it under any `sql_mode`.
    if table.schema.eq_ignore_ascii_case("information_schema") && table.alias.eq_ignore_ascii_case("FILES") {
        return true;
    }
    let Source::Table(stored) = &table.source else { return false };
    stored.indexes().iter().any(|index| {
        index.unique()
            && !index.parts.is_empty()
            && index.parts.iter().all(|part| {
                let column = table.expr(part.column);
                !stored.columns()[part.column].nullable
                    && (group.iter().any(|g| g.same(&column)) || fixed(&column, group, conditions))
            })
    })
}

/// Whether WHERE makes a column equal to a constant or to something grouped.
fn fixed(column: &Expr, group: &[Expr], conditions: &[Expr]) -> bool {
    conditions.iter().any(|condition| match &condition.kind {
        Kind::Compare(CompareOp::Eq, _, pair) => {
            let [a, b] = &**pair;
            let other = if a.same(column) {
                b
            } else if b.same(column) {
                a
            } else {
                return false;
            };
            other.is_fixed() || group.iter().any(|g| g.same(other))
        }
        _ => false,
    })
}
