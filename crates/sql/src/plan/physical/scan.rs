//! Reading one table, the leaf of a plan: the source of its rows, and the conditions that are asked as they are read.

use super::path::TableAccess;
use crate::catalog::Table;
use crate::expr::subquery::Subplan;
use crate::expr::{Expr, SlotSet};
use crate::logical::VirtualTable;
use crate::storage::{LockMode, WaitPolicy};
use std::fmt;
use std::sync::Arc;

/// One table instance being read.
#[derive(Debug)]
pub struct Scan {
    /// The slot of the frame that its row is in.
    pub slot: u16,
    /// Its name in EXPLAIN.
    pub alias: Arc<str>,
    /// The source of rows.
    pub source: Source,
}

/// The rows that a scan reads.
pub enum Source {
    /// A stored table.
    Table {
        /// The table.
        table: Arc<Table>,
        /// The way to its rows.
        path: TableAccess,
        /// Locks.
        lock: LockMode,
        /// When they are taken.
        wait: WaitPolicy,
    },
    /// A derived table.
    Derived {
        /// Its query.
        plan: Arc<dyn Subplan>,
        /// Conditions on its rows.
        filter: Vec<Expr>,
        /// Where its rows are kept.
        id: usize,
        /// Outer slots that it reads: not kept then.
        outer_slots: SlotSet,
    },
    /// A computed table.
    Virtual {
        /// The table.
        table: Arc<dyn VirtualTable>,
        /// Conditions on its rows.
        filter: Vec<Expr>,
        /// Where its rows are kept.
        id: usize,
    },
    /// A recursive common table expression's own rows of the last step.
    Recursion {
        /// Where they are.
        id: usize,
        /// Conditions on its rows.
        filter: Vec<Expr>,
    },
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Table { table, path, .. } => write!(f, "{} {path:?}", table.def.name),
            Source::Derived { plan, .. } => write!(f, "derived {plan:?}"),
            Source::Virtual { .. } => f.write_str("virtual"),
            Source::Recursion { .. } => f.write_str("recursion"),
        }
    }
}

impl Scan {
    /// The table, if it is a stored one, and the way to its rows.
    #[must_use]
    pub fn stored(&self) -> Option<(&Arc<Table>, &TableAccess)> {
        match &self.source {
            Source::Table { table, path, .. } => Some((table, path)),
            _ => None,
        }
    }

    /// As `stored`, to choose another way.
    pub fn stored_mut(&mut self) -> Option<(&Arc<Table>, &mut TableAccess)> {
        match &mut self.source {
            Source::Table { table, path, .. } => Some((table, path)),
            _ => None,
        }
    }

    /// The conditions that are asked of each row as it is read.
    #[must_use]
    pub fn filter(&self) -> &[Expr] {
        match &self.source {
            Source::Table { path, .. } => &path.filter,
            Source::Derived { filter, .. }
            | Source::Virtual { filter, .. }
            | Source::Recursion { filter, .. } => filter,
        }
    }

    /// As `filter`, to add to them.
    pub fn filter_mut(&mut self) -> &mut Vec<Expr> {
        match &mut self.source {
            Source::Table { path, .. } => &mut path.filter,
            Source::Derived { filter, .. }
            | Source::Virtual { filter, .. }
            | Source::Recursion { filter, .. } => filter,
        }
    }

    /// The slots of queries around that its source reads, nobody says which columns of them.
    #[must_use]
    pub fn outer_slots(&self) -> Option<&SlotSet> {
        match &self.source {
            Source::Derived { outer_slots, .. } => Some(outer_slots),
            Source::Virtual { table, .. } => table.outer(),
            _ => None,
        }
    }
}
