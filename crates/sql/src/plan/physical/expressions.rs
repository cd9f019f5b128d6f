//! The expressions of a plan's operators, by the clauses that they are of.

use crate::expr::Expr;

/// The clauses of a query, in the order of its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Clause {
    /// The select list, or a row of VALUES.
    Output,
    /// The arguments of aggregates.
    Aggregate,
    /// The windows of functions, and what these read.
    Window,
    /// Conditions of WHERE and ON.
    Where,
    /// Such conditions that no table is read for.
    Constant,
    /// GROUP BY.
    GroupBy,
    /// HAVING.
    Having,
    /// ORDER BY of the query.
    OrderBy,
    /// LIMIT and OFFSET.
    Limit,
    /// Inside of a key or an aggregate: what has no place of its own in the text, as the value of a condition that is a key.
    Inside,
}

/// Sees expressions.
pub type Visit<'v, 'p> = &'v mut dyn FnMut(Clause, &'p Expr);
