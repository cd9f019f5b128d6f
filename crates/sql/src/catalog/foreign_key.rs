//! A foreign key: columns of a table that name a row of another. Which tables refer to one is the catalog's to know
//! ([`super::Catalog::children`]).
//!
//! The other table is known by name, as in MySQL: under `foreign_key_checks=0` it may be missing for a while.

use super::{Table, TableDef, same_name};
use std::sync::Arc;

/// The action on rows whose parent goes or gets another key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReferenceAction {
    /// Refused. There is no difference to RESTRICT, since nothing is checked later than at once.
    #[default]
    NoAction,
    /// Refused.
    Restrict,
    /// They go, or change along.
    Cascade,
    /// Their columns become NULL.
    SetNull,
}

impl ReferenceAction {
    /// As ON DELETE and ON UPDATE write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ReferenceAction::NoAction => "NO ACTION",
            ReferenceAction::Restrict => "RESTRICT",
            ReferenceAction::Cascade => "CASCADE",
            ReferenceAction::SetNull => "SET NULL",
        }
    }

    /// Whether rows of the child change.
    #[must_use]
    pub fn changes_rows(self) -> bool {
        matches!(self, ReferenceAction::Cascade | ReferenceAction::SetNull)
    }
}

/// A FOREIGN KEY constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKey {
    /// Unique in its database; compared without case.
    pub name: Arc<str>,
    /// Columns of this table.
    pub columns: Vec<usize>,
    /// The database of the table that they refer to.
    pub parent_db: Arc<str>,
    /// That table.
    pub parent: Arc<str>,
    /// Its columns, one for each of `columns`.
    pub parent_columns: Vec<Arc<str>>,
    /// When the parent's row is deleted.
    pub on_delete: ReferenceAction,
    /// When its key changes.
    pub on_update: ReferenceAction,
}

impl ForeignKey {
    /// Whether it refers to this table.
    #[must_use]
    pub fn refers_to(&self, db: &str, table: &str) -> bool {
        *self.parent_db == *db && *self.parent == *table
    }

    /// The positions of the parent's columns in its definition, if all are there.
    #[must_use]
    pub fn positions_in(&self, parent: &TableDef) -> Option<Vec<usize>> {
        let position =
            |name: &Arc<str>| parent.columns.iter().position(|column| same_name(&column.name, name));
        self.parent_columns.iter().map(position).collect()
    }
}

impl TableDef {
    /// An index that begins with whole columns in this order: the primary key or a unique one of just these, else any.
    #[must_use]
    pub fn index_over(&self, columns: &[usize]) -> Option<usize> {
        let begins = |at: &usize| {
            let parts = &self.indexes[*at].parts;
            parts.len() >= columns.len()
                && parts
                    .iter()
                    .zip(columns)
                    .all(|(part, column)| part.column == *column && part.prefix.is_none())
        };
        let exact = |at: &usize| self.indexes[*at].unique() && self.indexes[*at].parts.len() == columns.len();
        let mut found = (0..self.indexes.len()).filter(begins);
        found.clone().find(exact).or_else(|| found.next())
    }
}

/// A foreign key, and the table that has it.
#[derive(Clone, Debug)]
pub struct Child {
    /// The table.
    pub table: Arc<Table>,
    /// The foreign key's place among its table's.
    pub key: usize,
}

impl Child {
    /// The foreign key.
    #[must_use]
    pub fn foreign_key(&self) -> &ForeignKey {
        &self.table.def.foreign_keys[self.key]
    }
}
