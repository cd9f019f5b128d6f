//! HANDLER: a table read by hand, row by row.

use super::{BinaryOp, Expr, Ident, Limit, ObjectName};

/// A HANDLER statement.
#[derive(Clone, Debug, PartialEq)]
pub enum HandlerStatement {
    /// OPEN.
    Open { table: ObjectName, alias: Option<Ident> },
    /// READ.
    Read(HandlerRead),
    /// CLOSE.
    Close(Ident),
}

/// HANDLER .. READ.
#[derive(Clone, Debug, PartialEq)]
pub struct HandlerRead {
    /// The name under which the table was opened.
    pub alias: Ident,
    /// The index whose order is read; the table's own order without one.
    pub index: Option<Ident>,
    pub step: HandlerStep,
    pub filter: Option<Expr>,
    pub limit: Option<Limit>,
}

/// The place that a read begins at.
#[derive(Clone, Debug, PartialEq)]
pub enum HandlerStep {
    First,
    Next,
    Previous,
    Last,
    /// The first row, in the order of reading, whose key compares so with values.
    Key {
        op: BinaryOp,
        values: Vec<Expr>,
    },
}

impl HandlerStatement {
    /// Name as in Com_ status variables.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            HandlerStatement::Open { .. } => "ha_open",
            HandlerStatement::Read(_) => "ha_read",
            HandlerStatement::Close(_) => "ha_close",
        }
    }
}
