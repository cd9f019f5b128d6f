//! Operators that give results: rows of values, from rows in the frame and from other results.

use super::expressions::{Clause, Visit};
use super::frame::FrameOperator;
use super::query::QueryPlan;
use super::scan::Scan;
use crate::expr::{Expr, ExprType};
use crate::logical::{Limit, SetOperation, SortKey};
use std::sync::Arc;

/// An operator that gives results.
#[derive(Debug)]
pub enum ResultOperator {
    /// A select list.
    Project(Box<Project>),
    /// DISTINCT.
    Distinct(Box<Distinct>),
    /// ORDER BY.
    Sort(Box<Sort>),
    /// LIMIT and OFFSET.
    Limit(Box<Limited>),
    /// UNION, INTERSECT, EXCEPT, or a query in parentheses with clauses of its own.
    SetOperation(Box<Compound>),
    /// VALUES ROW(..), ..
    Values(Vec<Vec<Expr>>),
    /// WITH RECURSIVE: seed, then steps until nothing new comes.
    Recursion(Box<Recursive>),
}

impl Default for ResultOperator {
    /// No rows.
    fn default() -> ResultOperator {
        ResultOperator::Values(Vec::new())
    }
}

/// Computes results of rows in the frame.
#[derive(Debug)]
pub struct Project {
    /// The select list, and columns that an INSERT reads beside it.
    pub outputs: Vec<Expr>,
    /// The rows.
    pub input: FrameOperator,
}

/// Gives results that are equal in their first columns once.
#[derive(Debug)]
pub struct Distinct {
    /// The results.
    pub project: Project,
    /// How many columns tell them apart.
    pub width: usize,
}

/// Gives results in order.
#[derive(Debug)]
pub struct Sort {
    /// The keys.
    pub keys: Vec<SortKey>,
    /// Their types.
    pub types: Vec<ExprType>,
    /// The slot that gets a result before keys are computed of it; else they are of the row that it was computed of.
    pub slot: Option<u16>,
    /// Results that are equal in the keys are equal to DISTINCT.
    pub unites: bool,
    /// The results.
    pub input: ResultOperator,
}

/// Gives some of the results, by their number. It stands below no other operator.
#[derive(Debug)]
pub struct Limited {
    /// The number of rows, and how many are left out before them.
    pub limit: Limit,
    /// The results.
    pub input: ResultOperator,
}

/// A set operation.
#[derive(Debug)]
pub struct Compound {
    /// First operand.
    pub left: QueryPlan,
    /// Further operands.
    pub rest: Vec<(SetOperation, QueryPlan)>,
    /// Types that rows are brought to; empty if they are alike already.
    pub types: Vec<ExprType>,
}

/// A recursive common table expression.
#[derive(Debug)]
pub struct Recursive {
    /// The parts that do not refer to it.
    pub seeds: Vec<QueryPlan>,
    /// The parts that do.
    pub steps: Vec<QueryPlan>,
    /// UNION DISTINCT.
    pub distinct: bool,
    /// Where the rows of the last step are.
    pub id: usize,
    /// Column types.
    pub types: Vec<ExprType>,
    /// Names of the columns.
    pub names: Vec<Arc<str>>,
}

impl ResultOperator {
    /// The one operator from which it takes results.
    #[must_use]
    pub fn input(&self) -> Option<&ResultOperator> {
        match self {
            ResultOperator::Sort(of) => Some(&of.input),
            ResultOperator::Limit(of) => Some(&of.input),
            ResultOperator::Project(_)
            | ResultOperator::Distinct(_)
            | ResultOperator::SetOperation(_)
            | ResultOperator::Values(_)
            | ResultOperator::Recursion(_) => None,
        }
    }

    /// Its select list, if it is of one SELECT.
    #[must_use]
    pub fn project(&self) -> Option<&Project> {
        match self {
            ResultOperator::Project(project) => Some(project),
            ResultOperator::Distinct(distinct) => Some(&distinct.project),
            _ => self.input()?.project(),
        }
    }

    /// As `project`, to compute more.
    pub fn project_mut(&mut self) -> Option<&mut Project> {
        match self {
            ResultOperator::Project(project) => Some(project),
            ResultOperator::Distinct(distinct) => Some(&mut distinct.project),
            ResultOperator::Sort(of) => of.input.project_mut(),
            ResultOperator::Limit(of) => of.input.project_mut(),
            ResultOperator::SetOperation(_) | ResultOperator::Values(_) | ResultOperator::Recursion(_) => {
                None
            }
        }
    }

    /// The expressions of its results, if it is of one SELECT.
    #[must_use]
    pub fn outputs(&self) -> &[Expr] {
        self.project().map_or(&[], |project| &project.outputs)
    }

    /// Its DISTINCT.
    #[must_use]
    pub fn distinct(&self) -> Option<&Distinct> {
        match self {
            ResultOperator::Distinct(distinct) => Some(distinct),
            _ => self.input()?.distinct(),
        }
    }

    /// Its LIMIT.
    #[must_use]
    pub fn limit(&self) -> Option<&Limit> {
        match self {
            ResultOperator::Limit(of) => Some(&of.limit),
            _ => None,
        }
    }

    /// Whether results are sorted.
    #[must_use]
    pub fn sorts(&self) -> bool {
        matches!(self, ResultOperator::Sort(_)) || self.input().is_some_and(ResultOperator::sorts)
    }

    /// Whether it is UNION ALL, which gives its operands' rows as they come.
    #[must_use]
    pub fn appends(&self) -> bool {
        match self {
            ResultOperator::SetOperation(compound) => {
                compound.rest.iter().all(|(kind, _)| matches!(kind, SetOperation::UnionAll))
            }
            _ => self.input().is_some_and(ResultOperator::appends),
        }
    }

    /// Takes its LIMIT away.
    pub fn take_limit(&mut self) -> Limit {
        match std::mem::take(self) {
            ResultOperator::Limit(of) => {
                *self = of.input;
                of.limit
            }
            whole => {
                *self = whole;
                Limit::default()
            }
        }
    }

    /// How many values a result has.
    #[must_use]
    pub fn width(&self) -> usize {
        match self {
            ResultOperator::Project(project) => project.outputs.len(),
            ResultOperator::Distinct(distinct) => distinct.project.outputs.len(),
            ResultOperator::Sort(of) => of.input.width(),
            ResultOperator::Limit(of) => of.input.width(),
            ResultOperator::SetOperation(compound) => compound.types.len(),
            ResultOperator::Values(rows) => rows.first().map_or(0, Vec::len),
            ResultOperator::Recursion(recursive) => recursive.types.len(),
        }
    }

    /// The queries that it takes results from.
    #[must_use]
    pub fn operands(&self) -> Vec<&QueryPlan> {
        match self {
            ResultOperator::SetOperation(compound) => {
                let rest = compound.rest.iter().map(|(_, plan)| plan);
                std::iter::once(&compound.left).chain(rest).collect()
            }
            ResultOperator::Recursion(recursive) => recursive.seeds.iter().chain(&recursive.steps).collect(),
            _ => self.input().map_or(Vec::new(), ResultOperator::operands),
        }
    }

    /// Visits its tables in the order in which they are read, those of operands not among them.
    pub fn scans<'p>(&'p self, visit: &mut dyn FnMut(&'p Scan)) {
        if let Some(project) = self.project() {
            project.input.scans(visit);
        }
    }

    /// Visits its expressions, those of operands and subqueries not among them.
    pub fn expressions<'p>(&'p self, visit: Visit<'_, 'p>) {
        match self {
            ResultOperator::Project(project) => project.expressions(visit),
            ResultOperator::Distinct(distinct) => distinct.project.expressions(visit),
            ResultOperator::Sort(of) => {
                of.input.expressions(visit);
                of.keys.iter().filter_map(SortKey::expression).for_each(|e| visit(Clause::OrderBy, e));
            }
            ResultOperator::Limit(of) => {
                of.input.expressions(visit);
                of.limit.count.iter().chain(&of.limit.offset).for_each(|e| visit(Clause::Limit, e));
            }
            ResultOperator::Values(rows) => rows.iter().flatten().for_each(|e| visit(Clause::Output, e)),
            ResultOperator::SetOperation(_) | ResultOperator::Recursion(_) => {}
        }
    }
}

impl Project {
    fn expressions<'p>(&'p self, visit: Visit<'_, 'p>) {
        self.outputs.iter().for_each(|e| visit(Clause::Output, e));
        self.input.expressions(visit);
    }
}
