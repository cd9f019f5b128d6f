//! Which columns of its tables a block reads: an index that has them all answers without the rows.

use crate::expr::SlotSet;
use crate::expr::node::{Expr, Kind};
use crate::select::from::{Item, ItemSource, Nest};
use std::collections::HashMap;

/// The columns that a block reads, by slot.
#[derive(Debug, Default)]
pub(crate) struct Needed {
    columns: HashMap<u16, Vec<u16>>,
    /// Slots that something else reads, nobody says of which columns.
    whole: SlotSet,
}

impl Needed {
    /// Takes up what an expression reads, subqueries inside it among it.
    pub(crate) fn add(&mut self, e: &Expr) {
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
    pub(crate) fn add_nest(&mut self, nest: &Nest) {
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
