//! Expressions that belong to a definition: DEFAULT (..), generated columns, CHECK.

use omnibus_parser::ast;
use std::sync::Arc;

/// An expression over a table's own columns, in a form that means the same in every session.
#[derive(Clone, Debug)]
pub struct StoredExpr {
    /// As SHOW CREATE TABLE writes it, without the parentheses around it.
    pub text: Arc<str>,
    /// The tree that is bound wherever rows are written.
    pub tree: Arc<ast::Expr>,
}

/// `GENERATED ALWAYS AS (expression)`. Its value is computed when a row is written, and stored, VIRTUAL or not: readers, row events
/// and recovery see a column like any other.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The expression.
    pub expr: StoredExpr,
    /// Whether STORED was written.
    pub stored: bool,
}

/// `CONSTRAINT name CHECK (expression)`.
#[derive(Clone, Debug)]
pub struct Check {
    /// Its name, unlike that of the table's others.
    pub name: Arc<str>,
    /// The condition: a row for which it is false is refused.
    pub expr: StoredExpr,
    /// NOT ENFORCED: it is only shown.
    pub enforced: bool,
}
