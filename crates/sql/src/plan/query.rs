//! The one way into the planner: from a query that is bound to a plan that runs.
//!
//! Parts of a query expression are planned from the inside out. Of a block: which columns are read (`rules::needed`), in which order its tables
//! are and along which paths (`join`), what of ORDER BY and GROUP BY these give for nothing (`order`), what its aggregates share
//! (`rules::shared`), which operators all that becomes (`operators`), and how many rows come (`cost`).

use super::operators::{self, Clauses};
use super::physical::{
    Compound, FrameOperator, GroupMethod, GroupPlan, OfStatement, QueryPlan, Recursive, ResultOperator,
};
use super::rules::needed::Needed;
use super::rules::shared;
use super::{cost, join, order};
use crate::error::SqlResult;
use crate::expr::{Expr, SlotSet, is_volatile};
use crate::logical::{self, SortBy, SortKey};
use crate::state::SessionState;
use crate::storage::LockMode;

/// The taker of a query's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// A statement, which takes them as they come.
    Statement,
    /// The query around it, to which it matters how many they are.
    Query,
    /// EXISTS, which looks at one.
    Exists,
}

/// The surroundings of a query.
pub(crate) struct Planning<'p> {
    pub session: &'p SessionState,
    /// Counts the subqueries of the statement, and the tables kept for its joins.
    pub subqueries: &'p mut usize,
    pub reader: Reader,
}

/// Facts of the rows that a plan gives.
struct Yield {
    volatile: bool,
    locks: LockMode,
    rows: f64,
}

/// Plans a query expression.
///
/// # Errors
/// The statement's budget is used up; what evaluating its conditions on sampled rows meets.
pub(crate) fn physical_plan(query: logical::Query, planning: &mut Planning<'_>) -> SqlResult<QueryPlan> {
    let mut plan = planning.query(query)?;
    if planning.reader == Reader::Exists {
        plan.root = operators::first_of(std::mem::take(&mut plan.root), plan.volatile);
    }
    Ok(plan)
}

impl Planning<'_> {
    fn query(&mut self, query: logical::Query) -> SqlResult<QueryPlan> {
        let logical::Query { body, columns, types, into, outfile } = query;
        let (root, yields) = match body {
            logical::Body::Block(block) => self.block(*block)?,
            logical::Body::Values(rows) => values(rows),
            logical::Body::Compound(compound) => {
                let logical::Compound { left, rest, slot, order, limit } = *compound;
                let left = self.query(left)?;
                let rest = rest.into_iter().map(|(operation, query)| Ok((operation, self.query(query)?)));
                let rest = rest.collect::<SqlResult<Vec<_>>>()?;
                let yields = Yield {
                    volatile: left.volatile
                        || rest.iter().any(|(_, plan)| plan.volatile)
                        || order.iter().any(varies),
                    locks: rest.iter().fold(left.locks, |most, (_, plan)| most.max(plan.locks)),
                    rows: cost::of_compound(&left, &rest, &limit),
                };
                let compound = Compound { left, rest, types: types.clone() };
                (operators::of_compound(compound, slot, order, limit), yields)
            }
            logical::Body::Recursive(recursive) => {
                let logical::Recursive { seeds, steps, distinct, id } = *recursive;
                let seeds = seeds.into_iter().map(|query| self.query(query)).collect::<SqlResult<_>>()?;
                let steps = steps.into_iter().map(|query| self.query(query)).collect::<SqlResult<_>>()?;
                let names = columns.iter().map(|column| column.name.clone()).collect();
                let recursive = Recursive { seeds, steps, distinct, id, types: types.clone(), names };
                let yields = Yield { volatile: false, locks: LockMode::None, rows: cost::OF_RECURSION };
                (ResultOperator::Recursion(Box::new(recursive)), yields)
            }
        };
        Ok(QueryPlan {
            root,
            columns: columns.into(),
            types,
            statement: OfStatement::default(),
            volatile: yields.volatile,
            into,
            outfile,
            late_limit: None,
            locks: yields.locks,
            rows: yields.rows,
        })
    }

    fn block(&mut self, block: logical::Block) -> SqlResult<(ResultOperator, Yield)> {
        let needed = Needed::of_logical(&block);
        let logical::Block {
            nest,
            slots,
            grouping,
            having,
            windows,
            outputs,
            distinct,
            mut order,
            limit,
            straight,
            hints,
        } = block;
        let own: SlotSet = slots.iter().copied().collect();
        let locks = nest.locks();
        let rest = join::Rest { own: &own, straight, hints: &hints, needed: &needed, read: self.is_read() };
        let mut planned = join::plan(self.session, self.subqueries, nest, &rest)?;
        let mut grouping = grouping.map(|grouping| with_rows(grouping, &slots));
        if windows.is_none() {
            in_order(&mut planned.joins, grouping.as_mut(), &mut order, &outputs, limit.count.is_some());
        }
        grouping.iter_mut().for_each(|g| shared::compute_once(&mut g.aggregates, self.subqueries));
        let mut volatile = planned.volatile || vary(&outputs, &having, &grouping, &order);
        windows.iter().for_each(|windows| windows.visit(&mut |e| volatile |= is_volatile(e)));
        let join::Planned { joins, constants, rows, .. } = planned;
        let clauses =
            Clauses { constants, joins, slots, grouping, having, windows, outputs, distinct, order, limit };
        let root = clauses.operators();
        let rows = cost::of_block(&root, rows, self.session.settings.zone);
        Ok((root, Yield { volatile, locks, rows }))
    }

    /// Whether it matters how many rows come.
    fn is_read(&self) -> bool {
        self.reader != Reader::Statement
    }
}

fn values(rows: Vec<Vec<Expr>>) -> (ResultOperator, Yield) {
    let volatile = rows.iter().flatten().any(is_volatile);
    let yields = Yield { volatile, locks: LockMode::None, rows: rows.len() as f64 };
    (ResultOperator::Values(rows), yields)
}

/// Groups of rows of these slots.
fn with_rows(grouping: logical::Grouping, slots: &[u16]) -> GroupPlan {
    let logical::Grouping { keys, aggregates, slot, rollup } = grouping;
    let row_slots = slots.to_vec();
    let method = match rollup {
        _ if keys.is_empty() => GroupMethod::All,
        Some(slot) => GroupMethod::Rollup(slot),
        None => GroupMethod::Hash,
    };
    GroupPlan { keys, aggregates, slot, row_slots, method }
}

/// Uses the order in which the first table can be read: for ORDER BY, for groups, for a lone MIN or MAX.
fn in_order(
    joins: &mut FrameOperator,
    grouping: Option<&mut GroupPlan>,
    order: &mut Vec<SortKey>,
    outputs: &[Expr],
    limited: bool,
) {
    let Some(grouping) = grouping else {
        if !order.is_empty() && order::rows_in_order(joins, order, outputs, limited) {
            order.clear();
        }
        return;
    };
    match grouping.method {
        GroupMethod::All => {
            if order::extreme_first(joins, grouping) {
                grouping.method = GroupMethod::First;
            }
            order.clear();
        }
        GroupMethod::Hash => {
            let sorted = order::groups_in_order(joins, grouping, order, outputs);
            if sorted.is_some() {
                grouping.method = GroupMethod::Stream;
            }
            if sorted == Some(true) {
                order.clear();
            }
        }
        GroupMethod::First | GroupMethod::Stream | GroupMethod::Rollup(_) => {}
    }
}

/// Whether a block's clauses may give other values each time.
fn vary(outputs: &[Expr], having: &Option<Expr>, grouping: &Option<GroupPlan>, order: &[SortKey]) -> bool {
    outputs.iter().chain(having).any(is_volatile)
        || grouping.as_ref().is_some_and(GroupPlan::is_volatile)
        || order.iter().any(varies)
}

fn varies(key: &SortKey) -> bool {
    matches!(&key.expr, SortBy::Expr(e) if is_volatile(e))
}
