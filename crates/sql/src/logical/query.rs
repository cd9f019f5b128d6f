//! The tree of a query expression.
//!
//! Made by `bind`, used up by `crate::plan::physical_plan`. Each part is bound; what a part says does not depend on how it will be run.

use super::nest::Nest;
use super::window::Windows;
use crate::api::ResultColumn;
use crate::expr::functions::aggregate::AggregateSpec;
use crate::expr::{Expr, ExprType};
use crate::text_file::Outfile;
use omnibus_parser::ast::{AssignTarget, Hint};

/// A query expression and its result.
#[derive(Debug)]
pub struct Query {
    /// Its form.
    pub body: Body,
    /// Result columns.
    pub columns: Vec<ResultColumn>,
    /// Their types as expressions.
    pub types: Vec<ExprType>,
    /// SELECT ... INTO @a, @b.
    pub into: Vec<AssignTarget>,
    /// SELECT ... INTO OUTFILE or DUMPFILE.
    pub(crate) outfile: Option<Box<Outfile>>,
}

/// The forms of query.
#[derive(Debug)]
pub enum Body {
    /// One SELECT.
    Block(Box<Block>),
    /// UNION, INTERSECT, EXCEPT, or a query in parentheses with clauses of its own.
    Compound(Box<Compound>),
    /// VALUES ROW(..), ..
    Values(Vec<Vec<Expr>>),
    /// WITH RECURSIVE: seed, then steps until nothing new comes.
    Recursive(Box<Recursive>),
}

/// One SELECT block.
#[derive(Debug, Default)]
pub struct Block {
    /// FROM and WHERE.
    pub nest: Nest,
    /// The slots of its tables.
    pub slots: Vec<u16>,
    /// GROUP BY or aggregates.
    pub grouping: Option<Grouping>,
    /// HAVING.
    pub having: Option<Expr>,
    /// Window functions.
    pub windows: Option<Windows>,
    /// Select list, and columns that an INSERT reads beside it.
    pub outputs: Vec<Expr>,
    /// DISTINCT.
    pub distinct: bool,
    /// ORDER BY.
    pub order: Vec<SortKey>,
    /// LIMIT.
    pub limit: Limit,
    /// STRAIGHT_JOIN, of the whole block.
    pub straight: bool,
    /// Its optimizer hints.
    pub hints: Vec<Hint>,
}

/// GROUP BY and aggregates.
#[derive(Debug)]
pub struct Grouping {
    /// The values that make a group; empty: all rows are one.
    pub keys: Vec<Expr>,
    /// The results that are computed of each.
    pub aggregates: Vec<AggregateSpec>,
    /// The slot of these results; meaningless without aggregates.
    pub slot: Option<u16>,
    /// WITH ROLLUP: the slot that has the keys of a group, NULL for those it is not by, and behind them 1 for each of those.
    pub rollup: Option<u16>,
}

/// One ORDER BY member.
#[derive(Clone, Debug)]
pub struct SortKey {
    /// The sort key.
    pub expr: SortBy,
    /// DESC.
    pub descending: bool,
    /// For text.
    pub collation: u16,
}

/// The kinds of sort keys.
#[derive(Clone, Debug)]
pub enum SortBy {
    /// An output column.
    Output(usize),
    /// An expression over the frame.
    Expr(Expr),
}

impl SortKey {
    /// Its expression, if it is no place among the outputs.
    #[must_use]
    pub fn expression(&self) -> Option<&Expr> {
        match &self.expr {
            SortBy::Output(_) => None,
            SortBy::Expr(e) => Some(e),
        }
    }

    /// The expression by which outputs are sorted.
    #[must_use]
    pub fn of_outputs<'e>(&'e self, outputs: &'e [Expr]) -> &'e Expr {
        match &self.expr {
            SortBy::Output(at) => &outputs[*at],
            SortBy::Expr(e) => e,
        }
    }
}

/// LIMIT and OFFSET, evaluated when the query starts.
#[derive(Clone, Debug, Default)]
pub struct Limit {
    /// How many.
    pub count: Option<Expr>,
    /// After how many.
    pub offset: Option<Expr>,
}

/// A set operation.
#[derive(Debug)]
pub struct Compound {
    /// First operand.
    pub left: Query,
    /// Further operands.
    pub rest: Vec<(SetOperation, Query)>,
    /// The result's row, for ORDER BY.
    pub slot: u16,
    /// ORDER BY.
    pub order: Vec<SortKey>,
    /// LIMIT.
    pub limit: Limit,
}

/// The operation on an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOperation {
    /// UNION ALL.
    UnionAll,
    /// UNION.
    Union,
    /// INTERSECT, and INTERSECT ALL if set.
    Intersect(bool),
    /// EXCEPT, and EXCEPT ALL if set.
    Except(bool),
}

/// A recursive common table expression.
#[derive(Debug)]
pub struct Recursive {
    /// The parts that do not refer to it.
    pub seeds: Vec<Query>,
    /// The parts that do.
    pub steps: Vec<Query>,
    /// UNION DISTINCT.
    pub distinct: bool,
    /// Where the rows of the last step are.
    pub id: usize,
}

impl Query {
    /// A query without INTO.
    #[must_use]
    pub fn new(body: Body, columns: Vec<ResultColumn>, types: Vec<ExprType>) -> Query {
        Query { body, columns, types, into: Vec::new(), outfile: None }
    }
}
