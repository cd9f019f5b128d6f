//! Orders that come for nothing: an index whose order is the one that ORDER BY, MIN or MAX wants.

use crate::catalog::{IndexKind, Table};
use crate::expr::Expr;
use crate::logical::SortKey;
use crate::logical::nest::column_of;
use crate::plan::access::usable_indexes;
use crate::plan::physical::{Access, FrameOperator, GroupPlan, TableAccess};
use omnibus_parser::ast::AggregateKind;

/// Whether the first table can be read so that the rows come in the wanted order; makes it so.
pub(super) fn rows_in_order(
    joins: &mut FrameOperator,
    order: &[SortKey],
    outputs: &[Expr],
    limited: bool,
) -> bool {
    let Some(scan) = joins.first_scan_mut() else { return false };
    let slot = scan.slot;
    let Some((table, path)) = scan.stored_mut() else { return false };
    let mut keys = Vec::with_capacity(order.len());
    for key in order {
        match column_of(key.of_outputs(outputs), slot) {
            Some(column) => keys.push((column, key.descending)),
            None => return false,
        }
    }
    if delivers(path, table, &keys) {
        return true;
    }
    // Through another index every row costs a look-up: worth it only if few are wanted.
    limited && scan_in_order(path, table, &keys)
}

/// Whether the first table is read so that the rows of a group come one after another: `Some(true)` if the groups come in the
/// order that ORDER BY wants, too.
pub(super) fn groups_in_order(
    joins: &mut FrameOperator,
    grouping: &GroupPlan,
    order: &[SortKey],
    outputs: &[Expr],
) -> Option<bool> {
    let scan = joins.first_scan_mut()?;
    let slot = scan.slot;
    let (table, path) = scan.stored_mut()?;
    // Two instants may be the same local time: a TIMESTAMP's order is not that of what is grouped by.
    let column = |e: &Expr| {
        column_of(e, slot).filter(|at| table.columns()[*at].ty.kind != omnibus_value::ColumnKind::Timestamp)
    };
    let keys: Vec<usize> = grouping.keys.iter().map(column).collect::<Option<_>>()?;
    let sorted: Option<Vec<(usize, bool)>> = order
        .iter()
        .map(|key| {
            let e = key.of_outputs(outputs);
            Some((column(e).filter(|at| keys.contains(at))?, key.descending))
        })
        .collect();
    if let Some(mut wanted) = sorted.filter(|sorted| !sorted.is_empty()) {
        let rest: Vec<usize> =
            keys.iter().copied().filter(|key| wanted.iter().all(|(at, _)| at != key)).collect();
        let descending = wanted.last().is_some_and(|(_, descending)| *descending);
        wanted.extend(rest.into_iter().map(|key| (key, descending)));
        if delivers(path, table, &wanted) {
            return Some(true);
        }
    }
    let plain: Vec<(usize, bool)> = keys.into_iter().map(|key| (key, false)).collect();
    delivers(path, table, &plain).then_some(order.is_empty())
}

/// Whether a lone MIN or MAX can be had by reading an index from its end; makes it so.
pub(super) fn extreme_first(joins: &mut FrameOperator, grouping: &GroupPlan) -> bool {
    let (FrameOperator::Scan(scan), [spec]) = (joins, &grouping.aggregates[..]) else { return false };
    let descending = match spec.kind {
        AggregateKind::Min => false,
        AggregateKind::Max => true,
        _ => return false,
    };
    let slot = scan.slot;
    let Some((table, path)) = scan.stored_mut() else { return false };
    let Some(column) = spec.args.first().and_then(|e| column_of(e, slot)) else { return false };
    let keys = [(column, descending)];
    delivers(path, table, &keys) || scan_in_order(path, table, &keys)
}

/// Whether the rows come in the wanted order, or would if read backwards: then sets `reverse`.
/// `keys` are columns of the table and whether they descend.
pub(crate) fn delivers(path: &mut TableAccess, table: &Table, keys: &[(usize, bool)]) -> bool {
    if path.is_point() {
        return true;
    }
    if matches!(path.access, Access::Union(_)) {
        return false;
    }
    match order_of(table, path.index(), path.fixed_parts(), keys) {
        Some(reverse) => {
            path.reverse = reverse;
            path.ordered = true;
            true
        }
        None => false,
    }
}

/// For a scan of the whole table: another index whose order is the wanted one.
fn scan_in_order(path: &mut TableAccess, table: &Table, keys: &[(usize, bool)]) -> bool {
    if !matches!(path.access, Access::Full { .. }) {
        return false;
    }
    for index in usable_indexes(table, &[]) {
        if table.indexes()[index].parts.iter().any(|p| p.prefix.is_some()) {
            continue;
        }
        if let Some(reverse) = order_of(table, index, 0, keys) {
            path.access = Access::Full { index };
            path.reverse = reverse;
            return true;
        }
    }
    false
}

/// Whether an index, behind `fixed` parts, has the order of `keys` forwards (`Some(false)`) or
/// backwards (`Some(true)`). A unique key's order decides everything behind it.
fn order_of(table: &Table, index: usize, fixed: usize, keys: &[(usize, bool)]) -> Option<bool> {
    let definition = &table.indexes()[index];
    if definition.parts.is_empty() {
        return None;
    }
    let decides = definition.kind != IndexKind::Plain
        && definition.parts.iter().all(|part| !table.columns()[part.column].nullable);
    let fixed_columns: Vec<usize> = definition.parts.iter().take(fixed).map(|p| p.column).collect();
    // A secondary index continues with the clustered key.
    let mut parts: Vec<(usize, bool, bool)> =
        definition.parts.iter().map(|p| (p.column, p.descending, p.prefix.is_some())).collect();
    if !definition.clustered && definition.kind == IndexKind::Plain {
        parts.extend(table.indexes()[0].parts.iter().map(|p| (p.column, p.descending, p.prefix.is_some())));
    }
    let mut reverse = None;
    let mut at = fixed;
    for (column, descending) in keys {
        if fixed_columns.contains(column) {
            continue;
        }
        let Some((part, part_descending, prefix)) = parts.get(at) else {
            return decides.then(|| reverse.unwrap_or(false));
        };
        if part != column || *prefix {
            return None;
        }
        let wanted = descending != part_descending;
        if *reverse.get_or_insert(wanted) != wanted {
            return None;
        }
        at += 1;
    }
    Some(reverse.unwrap_or(false))
}
