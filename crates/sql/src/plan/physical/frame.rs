//! Operators that give rows in the frame: tables and their joins, conditions, groups, windows, and the sort in front of outputs whose values depend
//! on their order.

use super::expressions::{Clause, Visit};
use super::path::Access;
use super::path::TableAccess;
use super::scan::{Scan, Source};
use crate::catalog::Table;
use crate::expr::Expr;
use crate::expr::functions::aggregate::AggregateSpec;
use crate::expr::is_volatile;
use crate::logical::{SortKey, Windows};
use omnibus_parser::ast::AggregateKind;
use std::sync::Arc;

/// An operator that gives rows in the frame.
#[derive(Debug)]
pub enum FrameOperator {
    /// One row, which no table is read for.
    OneRow,
    /// All rows, or none.
    If(Box<If>),
    /// The rows of one table.
    Scan(Box<Scan>),
    /// For each row of one operator those of another.
    NestedLoop(Box<NestedLoop>),
    /// For each row those of a table that are found by a hash key.
    HashJoin(Box<HashJoin>),
    /// For each row those of another operator, or one of NULLs.
    OuterJoin(Box<OuterJoin>),
    /// The rows that meet HAVING.
    Filter(Box<Filter>),
    /// GROUP BY and aggregates.
    Group(Box<GroupBy>),
    /// The rows with the results of window functions.
    Window(Box<WindowRows>),
    /// The rows in order.
    Sort(Box<FrameSort>),
}

/// Conditions that read no table of their block: asked once, before any is read.
#[derive(Debug)]
pub struct If {
    /// All of them must be met.
    pub conditions: Vec<Expr>,
    /// The rows.
    pub input: FrameOperator,
}

/// A join by reading one table again for each row.
#[derive(Debug)]
pub struct NestedLoop {
    /// The rows before.
    pub left: FrameOperator,
    /// The operator that runs for each of them.
    pub right: FrameOperator,
}

/// An inner table without a usable index: read once, hashed by its join columns, then looked up.
#[derive(Debug)]
pub struct HashJoin {
    /// The rows before; `None`: the table is looked up for those around the joins.
    pub left: Option<FrameOperator>,
    /// The table.
    pub scan: Scan,
    /// How its rows are kept and found.
    pub keep: Keep,
}

/// The hash table of a join.
#[derive(Debug)]
pub struct Keep {
    /// Where the rows are kept.
    pub id: usize,
    /// Columns of this table.
    pub own: Vec<Expr>,
    /// The expressions of tables read before that they equal.
    pub probe: Vec<Expr>,
    /// Collations of the equalities.
    pub collations: Vec<u16>,
    /// Conditions that read other tables too; checked on lookup.
    pub filter: Vec<Expr>,
}

/// An outer join.
#[derive(Debug)]
pub struct OuterJoin {
    /// The rows before; `None`: the row around the joins.
    pub left: Option<FrameOperator>,
    /// The inner side, which runs for each of them; conditions of ON are inside.
    pub inner: FrameOperator,
    /// Conditions of ON that read only tables outside.
    pub on: Vec<Expr>,
    /// Slots to fill with NULLs when nothing matched.
    pub slots: Vec<u16>,
    /// Conditions of WHERE on the result.
    pub filter: Vec<Expr>,
}

/// HAVING.
#[derive(Debug)]
pub struct Filter {
    /// The condition.
    pub condition: Expr,
    /// The rows.
    pub input: FrameOperator,
}

/// GROUP BY and aggregates.
#[derive(Debug)]
pub struct GroupBy {
    /// The groups.
    pub grouping: GroupPlan,
    /// The slots that the tables below fill.
    pub slots: Vec<u16>,
    /// The rows.
    pub input: FrameOperator,
}

/// The groups, and what is computed of them.
#[derive(Debug)]
pub struct GroupPlan {
    /// The expressions that make a group; empty: all rows are one.
    pub keys: Vec<Expr>,
    /// The aggregates of each.
    pub aggregates: Vec<AggregateSpec>,
    /// Where the results go; meaningless without aggregates.
    pub slot: Option<u16>,
    /// The slots whose rows stand for the group.
    pub row_slots: Vec<u16>,
    /// The way to the groups.
    pub method: GroupMethod,
}

/// How rows become groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupMethod {
    /// All rows are one group.
    All,
    /// The same, of rows that come so that the first value that is not NULL is the MIN or MAX wanted.
    First,
    /// By hash key.
    Hash,
    /// Rows of a group come one after another.
    Stream,
    /// WITH ROLLUP: the slot that has the keys of a group, NULL for those it is not by, and behind them 1 for each of those.
    Rollup(u16),
}

impl GroupPlan {
    /// Whether what makes a group, or is computed of it, may be another value each time.
    pub(crate) fn is_volatile(&self) -> bool {
        let mut of_aggregates =
            self.aggregates.iter().flat_map(|a| a.args.iter().chain(a.order.iter().map(|(e, _)| e)));
        self.keys.iter().any(is_volatile) || of_aggregates.any(is_volatile)
    }
}

/// Window functions.
#[derive(Debug)]
pub struct WindowRows {
    /// The windows, a stage each.
    pub windows: Windows,
    /// The rows.
    pub input: FrameOperator,
}

/// ORDER BY in front of outputs whose values depend on the order in which they are computed.
#[derive(Debug)]
pub struct FrameSort {
    /// The keys; none of them is a place among the outputs.
    pub keys: Vec<SortKey>,
    /// The slots of a row.
    pub slots: Vec<u16>,
    /// The rows.
    pub input: FrameOperator,
}

/// A step of joins, in the order in which their tables are read.
#[derive(Clone, Copy)]
pub enum Step<'p> {
    /// A table, and the hash table in which it is looked up.
    Read(&'p Scan, Option<&'p Keep>),
    /// An outer join; the steps of its inner side are its own.
    Outer(&'p OuterJoin),
}

impl FrameOperator {
    /// The one operator from which it takes rows, if it does not join several.
    #[must_use]
    pub fn input(&self) -> Option<&FrameOperator> {
        match self {
            FrameOperator::If(of) => Some(&of.input),
            FrameOperator::Filter(of) => Some(&of.input),
            FrameOperator::Group(of) => Some(&of.input),
            FrameOperator::Window(of) => Some(&of.input),
            FrameOperator::Sort(of) => Some(&of.input),
            FrameOperator::OneRow
            | FrameOperator::Scan(_)
            | FrameOperator::NestedLoop(_)
            | FrameOperator::HashJoin(_)
            | FrameOperator::OuterJoin(_) => None,
        }
    }

    /// The operator, and those below it down to the joins.
    pub fn chain(&self) -> impl Iterator<Item = &FrameOperator> {
        std::iter::successors(Some(self), |operator| operator.input())
    }

    /// The joins at its end, or the only table, or the row without one.
    #[must_use]
    pub fn joins(&self) -> &FrameOperator {
        self.chain().last().unwrap_or(self)
    }

    /// The groups of its rows.
    #[must_use]
    pub fn grouping(&self) -> Option<&GroupPlan> {
        self.chain().find_map(|operator| match operator {
            FrameOperator::Group(group) => Some(&group.grouping),
            _ => None,
        })
    }

    /// The table that is read first, and only once.
    pub(in crate::plan) fn first_scan_mut(&mut self) -> Option<&mut Scan> {
        match self {
            FrameOperator::Scan(scan) => Some(scan),
            FrameOperator::NestedLoop(join) => join.left.first_scan_mut(),
            FrameOperator::HashJoin(join) => join.left.as_mut()?.first_scan_mut(),
            FrameOperator::OuterJoin(join) => join.left.as_mut()?.first_scan_mut(),
            FrameOperator::OneRow
            | FrameOperator::If(_)
            | FrameOperator::Filter(_)
            | FrameOperator::Group(_)
            | FrameOperator::Window(_)
            | FrameOperator::Sort(_) => None,
        }
    }

    /// Visits the steps of its joins.
    pub fn steps<'p>(&'p self, visit: &mut dyn FnMut(Step<'p>)) {
        match self {
            FrameOperator::Scan(scan) => visit(Step::Read(scan, None)),
            FrameOperator::NestedLoop(join) => {
                join.left.steps(visit);
                join.right.steps(visit);
            }
            FrameOperator::HashJoin(join) => {
                join.left.iter().for_each(|left| left.steps(visit));
                visit(Step::Read(&join.scan, Some(&join.keep)));
            }
            FrameOperator::OuterJoin(join) => {
                join.left.iter().for_each(|left| left.steps(visit));
                visit(Step::Outer(join));
            }
            _ => self.input().into_iter().for_each(|input| input.steps(visit)),
        }
    }

    /// Visits its tables in the order in which they are read.
    pub fn scans<'p>(&'p self, visit: &mut dyn FnMut(&'p Scan)) {
        self.steps(&mut |step| match step {
            Step::Read(scan, _) => visit(scan),
            Step::Outer(join) => join.inner.scans(visit),
        });
    }

    /// As `scans`, to change how they are read.
    pub fn scans_mut(&mut self, visit: &mut dyn FnMut(&mut Scan)) {
        match self {
            FrameOperator::OneRow => {}
            FrameOperator::Scan(scan) => visit(scan),
            FrameOperator::NestedLoop(join) => {
                join.left.scans_mut(visit);
                join.right.scans_mut(visit);
            }
            FrameOperator::HashJoin(join) => {
                join.left.iter_mut().for_each(|left| left.scans_mut(visit));
                visit(&mut join.scan);
            }
            FrameOperator::OuterJoin(join) => {
                join.left.iter_mut().for_each(|left| left.scans_mut(visit));
                join.inner.scans_mut(visit);
            }
            FrameOperator::If(of) => of.input.scans_mut(visit),
            FrameOperator::Filter(of) => of.input.scans_mut(visit),
            FrameOperator::Group(of) => of.input.scans_mut(visit),
            FrameOperator::Window(of) => of.input.scans_mut(visit),
            FrameOperator::Sort(of) => of.input.scans_mut(visit),
        }
    }

    /// The stored table whose rows are in a slot.
    #[must_use]
    pub fn table_of(&self, slot: u16) -> Option<&Arc<Table>> {
        let mut found = None;
        self.scans(&mut |scan| {
            if scan.slot == slot {
                found = scan.stored().map(|(table, _)| table);
            }
        });
        found
    }

    /// The stored table that it reads, if it reads nothing else, and the way to its rows.
    #[must_use]
    pub fn only_table(&self) -> Option<(&Arc<Table>, &TableAccess)> {
        match self.joins() {
            FrameOperator::Scan(scan) => scan.stored(),
            _ => None,
        }
    }

    /// Whether a stored table is read without a key.
    pub(super) fn reads_all_of_a_table(&self) -> bool {
        let mut found = false;
        self.scans(&mut |scan| {
            found |= scan.stored().is_some_and(|(_, path)| matches!(path.access, Access::Full { .. }));
        });
        found
    }

    /// Whether it does nothing but count a table's rows, which MySQL asks its engine for.
    pub(super) fn counts_a_table(&self) -> bool {
        let FrameOperator::Group(of) = self else { return false };
        let counts = |of: &AggregateSpec| of.kind == AggregateKind::Count && of.args.is_empty();
        let mut conditions = false;
        of.input.expressions(&mut |_, _| conditions = true);
        let grouping = &of.grouping;
        matches!(of.input, FrameOperator::Scan(_))
            && !conditions
            && grouping.keys.is_empty()
            && grouping.aggregates.iter().all(counts)
    }

    /// Whether all rows are read before the first is given.
    pub(super) fn gathers(&self) -> bool {
        match self {
            FrameOperator::Group(_) | FrameOperator::Window(_) | FrameOperator::Sort(_) => true,
            FrameOperator::If(of) => of.input.gathers(),
            FrameOperator::Filter(of) => of.input.gathers(),
            _ => false,
        }
    }

    /// How many combinations of rows its tables make.
    pub(super) fn combinations(&self) -> f64 {
        let mut product = 1.0;
        self.steps(&mut |step| {
            product *= match step {
                Step::Outer(join) => join.inner.combinations(),
                Step::Read(scan, _) => match &scan.source {
                    Source::Table { table, path, .. } => path.expected(table),
                    Source::Derived { plan, .. } => plan.rows().max(1.0),
                    Source::Virtual { .. } | Source::Recursion { .. } => 1.0,
                },
            };
        });
        product
    }

    /// Visits its expressions, those of subqueries not among them.
    pub fn expressions<'p>(&'p self, visit: Visit<'_, 'p>) {
        match self {
            FrameOperator::OneRow => {}
            FrameOperator::Scan(scan) => of_scan(scan, visit),
            FrameOperator::NestedLoop(join) => {
                join.left.expressions(visit);
                join.right.expressions(visit);
            }
            FrameOperator::HashJoin(join) => {
                join.left.iter().for_each(|left| left.expressions(visit));
                of_scan(&join.scan, visit);
                let keep = &join.keep;
                let all = keep.own.iter().chain(&keep.probe).chain(&keep.filter);
                all.for_each(|e| visit(Clause::Where, e));
            }
            FrameOperator::OuterJoin(join) => {
                join.left.iter().for_each(|left| left.expressions(visit));
                join.on.iter().for_each(|e| visit(Clause::Where, e));
                join.inner.expressions(visit);
                join.filter.iter().for_each(|e| visit(Clause::Where, e));
            }
            FrameOperator::If(of) => {
                of.input.expressions(visit);
                of.conditions.iter().for_each(|e| visit(Clause::Constant, e));
            }
            FrameOperator::Filter(of) => {
                of.input.expressions(visit);
                visit(Clause::Having, &of.condition);
            }
            FrameOperator::Group(of) => {
                of.input.expressions(visit);
                of.grouping.keys.iter().for_each(|e| visit(Clause::GroupBy, e));
                for aggregate in &of.grouping.aggregates {
                    aggregate.args.iter().for_each(|e| visit(Clause::Aggregate, e));
                    aggregate.order.iter().for_each(|(e, _)| visit(Clause::Inside, e));
                }
            }
            FrameOperator::Window(of) => {
                of.input.expressions(visit);
                of.windows.visit(&mut |e| visit(Clause::Window, e));
            }
            FrameOperator::Sort(of) => {
                of.input.expressions(visit);
                of.keys.iter().filter_map(SortKey::expression).for_each(|e| visit(Clause::OrderBy, e));
            }
        }
    }
}

fn of_scan<'p>(scan: &'p Scan, visit: Visit<'_, 'p>) {
    if let Source::Table { path, .. } = &scan.source {
        path.implied.iter().for_each(|e| visit(Clause::Where, e));
        path.access.values(&mut |e| visit(Clause::Inside, e));
        if let Access::Union(branches) = &path.access {
            branches.iter().flat_map(|branch| &branch.conditions).for_each(|e| visit(Clause::Inside, e));
        }
    }
    scan.filter().iter().for_each(|e| visit(Clause::Where, e));
}
