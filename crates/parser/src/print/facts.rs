//! Facts about a query that its printing finds.

use super::Printer;
use super::query::ViewText;
use crate::ast::{Ident, Select, SelectItem};

/// Kinds of things that a query has in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// An aggregate or a window function.
    pub aggregate: bool,
    /// A subquery in an expression.
    pub subquery: bool,
    /// A variable or parameter.
    pub variable: bool,
    /// `TABLE t` where its columns cannot be listed.
    pub table: bool,
    /// INTO.
    pub into: bool,
    /// `VALUES(column)`.
    pub values: bool,
    /// `CAST(.. AS .. ARRAY)`.
    pub array: bool,
    /// Tables that are written with their databases, once for each time.
    pub tables: Vec<(Ident, Ident)>,
}

impl Facts {
    /// The facts of a select list.
    #[must_use]
    pub fn of_list(select: &Select) -> Facts {
        let text = ViewText::default();
        let mut printer = Printer { view: Some(&text), ..Printer::default() };
        for item in &select.items {
            if let SelectItem::Expr { expr, .. } = item {
                printer.expr(expr);
            }
        }
        printer.facts
    }
}
