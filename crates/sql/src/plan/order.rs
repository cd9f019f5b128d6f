//! Orders that come for nothing: an index whose order is the one that ORDER BY, MIN or MAX wants.

use crate::expr::Expr;
use crate::select::from::column_of;
use crate::select::plan::{Grouping, Node, NodeSource, SortBy, SortKey};
use omnibus_parser::ast::AggregateKind;

/// Whether the first table can be read so that the rows come in the wanted order; makes it so.
pub(crate) fn rows_in_order(nodes: &mut [Node], order: &[SortKey], outputs: &[Expr], limited: bool) -> bool {
    let Some(Node::Scan(scan)) = nodes.first_mut() else { return false };
    if scan.keep.is_some() {
        return false;
    }
    let slot = scan.slot;
    let NodeSource::Table { table, path, .. } = &mut scan.source else { return false };
    let mut keys = Vec::with_capacity(order.len());
    for key in order {
        let e = match &key.expr {
            SortBy::Output(at) => &outputs[*at],
            SortBy::Expr(e) => e,
        };
        match column_of(e, slot) {
            Some(column) => keys.push((column, key.descending)),
            None => return false,
        }
    }
    if path.delivers(table, &keys) {
        return true;
    }
    // Through another index every row costs a look-up: worth it only if few are wanted.
    limited && path.scan_in_order(table, &keys, &[])
}

/// Whether a lone MIN or MAX can be had by reading an index from its end; makes it so.
pub(crate) fn extreme_first(nodes: &mut [Node], grouping: &Grouping) -> bool {
    let ([Node::Scan(scan)], [spec]) = (nodes, &grouping.aggregates[..]) else { return false };
    let descending = match spec.kind {
        AggregateKind::Min => false,
        AggregateKind::Max => true,
        _ => return false,
    };
    let slot = scan.slot;
    let (NodeSource::Table { table, path, .. }, None) = (&mut scan.source, &scan.keep) else { return false };
    let Some(column) = spec.args.first().and_then(|e| column_of(e, slot)) else { return false };
    let keys = [(column, descending)];
    path.delivers(table, &keys) || path.scan_in_order(table, &keys, &[])
}
