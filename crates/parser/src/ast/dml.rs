//! INSERT, REPLACE, UPDATE, DELETE, LOAD DATA.

use bytes::Bytes;

use super::{
    ColumnRef, Expr, FileFormat, Hint, Ident, Limit, ObjectName, OrderItem, Query, SelectItem, TableRef, With,
};

/// LOW_PRIORITY, HIGH_PRIORITY, DELAYED: accepted, without effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    #[default]
    Normal,
    Low,
    High,
    Delayed,
}

/// INSERT and REPLACE.
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    pub replace: bool,
    /// Those about tables are those of the first SELECT as well, if there is one.
    pub hints: Vec<Hint>,
    pub priority: Priority,
    pub ignore: bool,
    pub table: ObjectName,
    pub partitions: Vec<Ident>,
    /// Empty: all columns, in table order. From the SET form: its left sides.
    pub columns: Vec<Ident>,
    pub source: InsertSource,
    pub row_alias: Option<RowAlias>,
    pub on_duplicate: Vec<Assignment>,
    /// MariaDB RETURNING.
    pub returning: Vec<SelectItem>,
}

/// Where inserted rows come from.
#[derive(Clone, Debug, PartialEq)]
pub enum InsertSource {
    /// Rows; a row may be empty (`VALUES ()`). A value may be `Expr::Default`.
    Values(Vec<Vec<Expr>>),
    Query(Box<Query>),
}

/// `AS new [(a, b)]` behind VALUES.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowAlias {
    pub name: Ident,
    pub columns: Vec<Ident>,
}

/// `column = value`; the value may be `Expr::Default`.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    pub column: ColumnRef,
    pub value: Expr,
}

/// UPDATE. Single-table when `tables` is exactly one `TableRef::Table`.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    pub with: Option<Box<With>>,
    pub hints: Vec<Hint>,
    pub low_priority: bool,
    pub ignore: bool,
    pub tables: Vec<TableRef>,
    pub assignments: Vec<Assignment>,
    pub filter: Option<Expr>,
    pub order_by: Vec<OrderItem>,
    pub limit: Option<Limit>,
}

/// DELETE.
#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    pub with: Option<Box<With>>,
    pub hints: Vec<Hint>,
    pub low_priority: bool,
    pub quick: bool,
    pub ignore: bool,
    /// Multi-table form: tables or aliases to delete from. Empty: the single-table form.
    pub targets: Vec<ObjectName>,
    pub from: Vec<TableRef>,
    pub filter: Option<Expr>,
    pub order_by: Vec<OrderItem>,
    pub limit: Option<Limit>,
    /// MariaDB RETURNING.
    pub returning: Vec<SelectItem>,
}

/// LOAD DATA.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadData {
    pub priority: LoadPriority,
    pub local: bool,
    pub file: Bytes,
    pub duplicates: OnDuplicate,
    pub table: ObjectName,
    pub partitions: Vec<Ident>,
    pub charset: Option<Ident>,
    pub format: FileFormat,
    pub ignore_lines: u64,
    /// Empty: all columns.
    pub columns: Vec<LoadTarget>,
    pub assignments: Vec<Assignment>,
}

/// LOW_PRIORITY or CONCURRENT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoadPriority {
    #[default]
    Normal,
    Low,
    Concurrent,
}

/// REPLACE or IGNORE of LOAD DATA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDuplicate {
    #[default]
    Error,
    Ignore,
    Replace,
}

/// Where a loaded field goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadTarget {
    Column(Ident),
    Variable(Ident),
}
