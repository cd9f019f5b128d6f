//! An index: its parts, its space, and how its keys are made.

use omnibus_engine::SpaceId;
use std::sync::Arc;

/// The kind of an index: its promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    /// PRIMARY KEY; always first and clustered.
    Primary,
    /// UNIQUE.
    Unique,
    /// Neither.
    Plain,
}

/// One column of an index.
#[derive(Clone, Debug)]
pub struct IndexPart {
    /// The place of the column in the table.
    pub column: usize,
    /// Prefix length in characters (bytes for binary strings), if not the whole column.
    pub prefix: Option<u32>,
    /// DESC.
    pub descending: bool,
}

/// An index of a table.
#[derive(Clone, Debug)]
pub struct Index {
    /// "PRIMARY" for the primary key; compared without case.
    pub name: Arc<str>,
    /// Its kind.
    pub kind: IndexKind,
    /// Its columns, in key order.
    pub parts: Vec<IndexPart>,
    /// Where its entries are.
    pub space: SpaceId,
    /// Whether this index holds the rows themselves.
    pub clustered: bool,
    /// INVISIBLE: not used by the planner.
    pub invisible: bool,
    /// Made for a foreign key that had no index to use; dropped when the table gets one that serves.
    pub of_foreign_key: bool,
    /// COMMENT.
    pub comment: Arc<str>,
}

impl Index {
    /// Whether equal keys are refused (NULL parts excepted).
    #[must_use]
    pub fn unique(&self) -> bool {
        self.kind != IndexKind::Plain
    }
}
