//! FROM as the planner gets it. Inner joins of any shape are one list of items and conditions (a `Nest`), which the planner may
//! read in any order. The inner side of an outer join is a nest of its own.

use super::virtual_table::VirtualTable;
use crate::catalog::Table;
use crate::expr::is_volatile;
use crate::expr::subquery::Subplan;
use crate::expr::{Expr, Kind, SlotSet};
use crate::storage::{LockMode, WaitPolicy};
use omnibus_parser::ast::IndexHint;
use std::sync::Arc;

/// Tables that are inner-joined, and the conditions on them.
#[derive(Clone, Debug, Default)]
pub struct Nest {
    /// Members, in the order written.
    pub items: Vec<Item>,
    /// Conjuncts.
    pub conditions: Vec<Expr>,
    /// The conditions and checks of views among them.
    pub views: OfViews,
}

/// The conditions and checks of the views whose tables stand in a nest.
#[derive(Clone, Debug, Default)]
pub struct OfViews {
    /// The order of its rows, of one that is alone.
    pub order: Vec<(Expr, bool)>,
    /// The places of their conditions among the nest's.
    pub conditions: Vec<std::ops::Range<usize>>,
    /// The conditions of rows that are written through them.
    pub checks: Vec<Expr>,
}

/// A member of a nest.
#[derive(Clone, Debug)]
pub enum Item {
    /// One table.
    Table(Box<TableItem>),
    /// The inner side of an outer join.
    Outer {
        /// The tables inside.
        nest: Nest,
        /// Its slots.
        slots: Vec<u16>,
        /// Slots that must be read before.
        required: SlotSet,
    },
}

/// A table to be read.
#[derive(Clone, Debug)]
pub struct TableItem {
    /// Its slot.
    pub slot: u16,
    /// Its name in EXPLAIN.
    pub alias: Arc<str>,
    /// Its kind.
    pub source: ItemSource,
    /// USE, FORCE and IGNORE INDEX.
    pub hints: Vec<IndexHint>,
    /// Locks to take.
    pub lock: LockMode,
    /// When they are taken.
    pub wait: WaitPolicy,
    /// Slots that must be read before: what LATERAL reads, what stands left of STRAIGHT_JOIN.
    pub after: SlotSet,
}

/// The source of a table item.
#[derive(Clone)]
pub enum ItemSource {
    /// A stored table.
    Table(Arc<Table>),
    /// A derived table or common table expression.
    Derived {
        /// Its query, which is planned.
        plan: Arc<dyn Subplan>,
        /// The outer slots that it reads.
        outer: SlotSet,
        /// Where its rows are kept, if others read them as well.
        store: Option<usize>,
    },
    /// A computed table.
    Virtual(Arc<dyn VirtualTable>),
    /// A recursive reference.
    Recursion(usize),
}

impl std::fmt::Debug for ItemSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("table")
    }
}

impl Nest {
    /// The name in EXPLAIN of the table in a slot.
    #[must_use]
    pub fn alias_of(&self, slot: u16) -> Option<Arc<str>> {
        self.items.iter().find_map(|item| match item {
            Item::Table(table) => (table.slot == slot).then(|| table.alias.clone()),
            Item::Outer { nest, .. } => nest.alias_of(slot),
        })
    }

    /// Whether its rows may be others each time.
    pub(crate) fn is_volatile(&self) -> bool {
        self.conditions.iter().any(is_volatile)
            || self.items.iter().any(|item| match item {
                Item::Table(table) => matches!(&table.source, ItemSource::Derived { plan, outer, .. }
                    if plan.is_volatile() && !outer.is_empty()),
                Item::Outer { nest, .. } => nest.is_volatile(),
            })
    }

    /// Has the rows of these slots locked for being changed.
    pub fn lock_exclusively(&mut self, slots: &[u16]) {
        for item in &mut self.items {
            match item {
                Item::Table(table) if slots.contains(&table.slot) => table.lock = LockMode::Exclusive,
                Item::Table(_) => {}
                Item::Outer { nest, .. } => nest.lock_exclusively(slots),
            }
        }
    }

    /// The strongest lock that a table of it takes.
    #[must_use]
    pub fn locks(&self) -> LockMode {
        let mut strongest = LockMode::None;
        for item in &self.items {
            let this = match item {
                Item::Table(table) => table.lock,
                Item::Outer { nest, .. } => nest.locks(),
            };
            if this == LockMode::Exclusive || strongest == LockMode::None {
                strongest = this;
            }
        }
        strongest
    }
}

impl Item {
    /// Its slots.
    pub(crate) fn slots(&self) -> SlotSet {
        match self {
            Item::Table(table) => SlotSet::of(table.slot),
            Item::Outer { slots, .. } => slots.iter().copied().collect(),
        }
    }

    /// Has it read after these slots.
    pub(crate) fn read_after(&mut self, slots: &SlotSet) {
        match self {
            Item::Table(table) => table.after.extend(slots),
            Item::Outer { required, .. } => required.extend(slots),
        }
    }
}

/// Whether an expression is a column of a slot.
pub(crate) fn column_of(e: &Expr, wanted: u16) -> Option<usize> {
    match &e.kind {
        Kind::Column { slot, column, .. } if *slot == wanted => Some(usize::from(*column)),
        _ => None,
    }
}
