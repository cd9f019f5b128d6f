//! Access paths: through which index, and along which ranges of it, a table is read.
//!
//! Plain data that a plan keeps; [`crate::plan::access`] chooses it, `exec::reader` reads along it.

use crate::catalog::Table;
use crate::expr::node::Expr;
use crate::expr::subquery::Subquery;
use std::sync::Arc;

/// One end of a range.
#[derive(Clone, Debug)]
pub struct Bound {
    /// Its value.
    pub expr: Expr,
    /// Whether the value is inside.
    pub inclusive: bool,
}

/// An equality on an index part; `null_safe` if NULL equals NULL.
#[derive(Clone, Debug)]
pub struct Equal {
    /// The value.
    pub expr: Expr,
    /// `<=>` or IS NULL.
    pub null_safe: bool,
}

/// The value that a leading part of an index is equal to.
#[derive(Clone, Debug)]
pub enum Part {
    /// One value.
    One(Equal),
    /// One of several (IN).
    Any(Vec<Expr>),
    /// One of those that a subquery gives (IN), which runs once.
    Among(Among),
}

/// A column of what a subquery gives. Parts that have columns of the same subquery take their values from one row of it.
#[derive(Clone, Debug)]
pub struct Among {
    /// `.. IN (SELECT ..)`, which reads nothing from outside.
    pub subquery: Arc<Subquery>,
    /// The place of the column in the row.
    pub member: usize,
    /// More rows of it than this are not looked up: to read all that the parts before leave costs less.
    pub most: usize,
    /// The cost of its rows, beside looking them up.
    pub cost: f64,
}

/// The condition on the index part behind the leading ones.
#[derive(Clone, Debug)]
pub enum Tail {
    /// Every value of it is read.
    Whole,
    /// It lies between bounds.
    Between {
        /// Lower bound.
        low: Option<Bound>,
        /// Upper bound.
        high: Option<Bound>,
    },
    /// It begins with what stands before the first wildcard of a LIKE pattern.
    Begins {
        /// The pattern.
        pattern: Expr,
        /// Its escape character.
        escape: Option<u32>,
    },
}

/// A piece of an index: leading parts with their values, and what is asked of the next one.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Leading parts.
    pub parts: Vec<Part>,
    /// The part behind them.
    pub tail: Tail,
}

/// Pieces of one index. They may overlap: a row in two of them is read once.
#[derive(Clone, Debug)]
pub struct IndexRanges {
    /// The place of the index.
    pub index: usize,
    /// The pieces; one at least.
    pub intervals: Vec<Interval>,
}

/// One branch of a union: where its rows are, and which rows are its own.
#[derive(Clone, Debug)]
pub struct UnionBranch {
    /// Pieces of an index that have all its rows.
    pub ranges: IndexRanges,
    /// The branch of the OR. A row belongs to the first branch of the union that it meets.
    pub conditions: Vec<Expr>,
}

/// How rows are found.
#[derive(Clone, Debug)]
pub enum Access {
    /// All rows, in the order of an index.
    Full {
        /// The place of the index.
        index: usize,
    },
    /// At most one row, by a complete unique key.
    Point {
        /// The place of the index.
        index: usize,
        /// Its values.
        key: Vec<Expr>,
    },
    /// Pieces of an index, in its order.
    Ranges(IndexRanges),
    /// The rows that several indexes find, each once, in no order.
    Union(Vec<UnionBranch>),
}

/// A table's access path and the conditions that go with it.
#[derive(Clone, Debug)]
pub struct TableAccess {
    /// The path.
    pub access: Access,
    /// Backwards.
    pub reverse: bool,
    /// The order in which its rows come is relied on.
    pub ordered: bool,
    /// The entries of the index say all that is wanted: no row is looked up.
    pub covered: bool,
    /// Conditions that every row must still meet.
    pub filter: Vec<Expr>,
    /// Conditions that the path itself guarantees, unless a key value could not be held exactly by
    /// its column.
    pub implied: Vec<Expr>,
    /// Rows expected of one reading, before `filter`.
    pub rows: f64,
    /// The cost of one reading, in the unit of [`crate::plan::cost`].
    pub cost: f64,
    /// Positions of indexes that conditions could use, for EXPLAIN.
    pub possible: Vec<usize>,
}

impl Interval {
    /// How many leading parts are fixed to one value.
    fn fixed_parts(&self) -> usize {
        self.parts.iter().take_while(|part| matches!(part, Part::One(_))).count()
    }

    /// Whether it is the rows of one value of its leading parts.
    #[must_use]
    pub fn is_equality(&self) -> bool {
        matches!(self.tail, Tail::Whole) && self.fixed_parts() == self.parts.len()
    }

    /// Visits the values.
    pub fn values<'e>(&'e self, visit: &mut dyn FnMut(&'e Expr)) {
        for part in &self.parts {
            match part {
                Part::One(equal) => visit(&equal.expr),
                Part::Any(list) => list.iter().for_each(&mut *visit),
                // It reads nothing from outside.
                Part::Among(_) => {}
            }
        }
        match &self.tail {
            Tail::Whole => {}
            Tail::Between { low, high } => low.iter().chain(high).for_each(|bound| visit(&bound.expr)),
            Tail::Begins { pattern, .. } => visit(pattern),
        }
    }
}

impl Access {
    /// Visits the values that keys are made of.
    pub fn values<'e>(&'e self, visit: &mut dyn FnMut(&'e Expr)) {
        match self {
            Access::Full { .. } => {}
            Access::Point { key, .. } => key.iter().for_each(visit),
            Access::Ranges(ranges) => ranges.intervals.iter().for_each(|interval| interval.values(visit)),
            Access::Union(branches) => {
                let intervals = branches.iter().flat_map(|branch| &branch.ranges.intervals);
                intervals.for_each(|interval| interval.values(visit));
            }
        }
    }
}

impl TableAccess {
    /// Whether at most one row can come.
    #[must_use]
    pub fn is_point(&self) -> bool {
        matches!(self.access, Access::Point { .. })
    }

    /// Rows that are read, at least one; never more than the table has, as far as anybody has counted.
    #[must_use]
    pub fn expected(&self, table: &Table) -> f64 {
        let most = table.rows_estimate().max(1) as f64;
        if self.is_point() { 1.0 } else { self.rows.min(most).max(1.0) }
    }

    /// The index that is read; the first of a union's.
    #[must_use]
    pub fn index(&self) -> usize {
        match &self.access {
            Access::Full { index } | Access::Point { index, .. } => *index,
            Access::Ranges(ranges) => ranges.index,
            Access::Union(branches) => branches.first().map_or(0, |branch| branch.ranges.index),
        }
    }

    /// How many leading parts of the index are fixed to one value.
    #[must_use]
    pub fn fixed_parts(&self) -> usize {
        match &self.access {
            Access::Ranges(IndexRanges { intervals, .. }) => match &intervals[..] {
                [only] => only.fixed_parts(),
                _ => 0,
            },
            _ => 0,
        }
    }
}
