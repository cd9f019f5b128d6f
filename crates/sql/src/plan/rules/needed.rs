//! The columns of its tables that a block reads: an index that has them all answers without the rows.

use crate::expr::SlotSet;
use crate::expr::functions::aggregate::AggregateSpec;
use crate::expr::node::{Expr, Kind};
use crate::logical::nest::{Item, ItemSource, Nest};
use crate::logical::{self, SortBy, SortKey, Windows};
use crate::plan::physical::{Access, FrameOperator, ResultOperator, Scan, Source};
use crate::storage::LockMode;
use std::collections::HashMap;

/// The columns that a block reads, by slot.
#[derive(Debug, Default)]
pub(crate) struct Needed {
    columns: HashMap<u16, Vec<u16>>,
    /// Slots that something else reads, nobody says of which columns.
    whole: SlotSet,
}

/// Has indexes answer alone where conditions read nothing else: of a block whose rows nobody looks at.
pub(crate) fn cover(rows: &mut FrameOperator) {
    let mut needed = Needed::default();
    rows.expressions(&mut |_, e| needed.add(e));
    rows.scans(&mut |scan| needed.add_outer(scan));
    rows.scans_mut(&mut |scan| {
        let slot = scan.slot;
        if let Source::Table { table, path, lock: LockMode::None, .. } = &mut scan.source
            && let Access::Ranges(ranges) = &path.access
            && needed.of(slot).is_some_and(|columns| table.covers(ranges.index, columns))
        {
            path.covered = true;
        }
    });
}

impl Needed {
    /// Columns that a block reads which is not planned yet.
    pub(in crate::plan) fn of_logical(block: &logical::Block) -> Needed {
        let mut needed = Needed::default();
        needed.add_nest(&block.nest);
        block.outputs.iter().chain(&block.having).for_each(|e| needed.add(e));
        if let Some(grouping) = &block.grouping {
            needed.add_grouping(&grouping.keys, &grouping.aggregates);
        }
        needed.add_behind(block.windows.as_ref(), &block.order);
        needed
    }

    /// The columns that a plan's operators read, those of its operands not among them.
    pub(crate) fn of_plan(root: &ResultOperator) -> Needed {
        let mut needed = Needed::default();
        root.expressions(&mut |_, e| needed.add(e));
        root.scans(&mut |scan| needed.add_outer(scan));
        needed
    }

    fn add_outer(&mut self, scan: &Scan) {
        scan.outer_slots().into_iter().for_each(|outer| self.whole.extend(outer));
    }

    fn add_grouping(&mut self, keys: &[Expr], aggregates: &[AggregateSpec]) {
        keys.iter().for_each(|e| self.add(e));
        for aggregate in aggregates {
            aggregate.args.iter().chain(aggregate.order.iter().map(|(e, _)| e)).for_each(|e| self.add(e));
        }
    }

    fn add_behind(&mut self, windows: Option<&Windows>, order: &[SortKey]) {
        if let Some(windows) = windows {
            windows.visit(&mut |e| self.add(e));
        }
        for key in order {
            if let SortBy::Expr(e) = &key.expr {
                self.add(e);
            }
        }
    }

    /// Takes up what an expression reads, subqueries inside it among it.
    fn add(&mut self, e: &Expr) {
        e.walk(&mut |e| match &e.kind {
            Kind::Column { slot, column, .. } => {
                let columns = self.columns.entry(*slot).or_default();
                if !columns.contains(column) {
                    columns.push(*column);
                }
            }
            Kind::Subquery(subquery) => subquery.outer_columns.iter().for_each(|e| self.add(e)),
            _ => {}
        });
    }

    /// Takes up what the conditions of a nest read, and its derived tables.
    fn add_nest(&mut self, nest: &Nest) {
        nest.conditions.iter().for_each(|e| self.add(e));
        for item in &nest.items {
            match item {
                Item::Outer { nest, .. } => self.add_nest(nest),
                Item::Table(table) => {
                    if let ItemSource::Derived { outer, .. } = &table.source {
                        self.whole.extend(outer);
                    }
                }
            }
        }
    }

    /// The columns of a slot, if it is known which.
    pub(crate) fn of(&self, slot: u16) -> Option<&[u16]> {
        (!self.whole.contains(slot)).then(|| self.columns.get(&slot).map_or(&[][..], |columns| &columns[..]))
    }
}
