//! The last step of planning: operators for the clauses of a block, from its joins upwards, and of a set operation.
//!
//! WHERE without tables, groups, HAVING, windows, the select list, DISTINCT, ORDER BY, LIMIT: in this order rows pass them. Which of them there are, and
//! of which kind, is decided here and before, for all runs.

use super::physical::{
    Compound, Distinct, Filter, FrameOperator, FrameSort, GroupBy, GroupPlan, If, Limited, Project,
    ResultOperator, Scan, Sort, Source, Step, WindowRows,
};
use super::rules::needed;
use crate::catalog::charset::is_character;
use crate::expr::{Expr, ExprType, SlotSet, is_volatile};
use crate::logical::{Limit, SortBy, SortKey, Windows};

/// A block whose tables are joined.
pub(super) struct Clauses {
    /// Conditions that read no table of this block.
    pub constants: Vec<Expr>,
    pub joins: FrameOperator,
    /// The slots of its tables.
    pub slots: Vec<u16>,
    pub grouping: Option<GroupPlan>,
    pub having: Option<Expr>,
    pub windows: Option<Windows>,
    pub outputs: Vec<Expr>,
    pub distinct: bool,
    /// ORDER BY, empty if the rows come in order already.
    pub order: Vec<SortKey>,
    pub limit: Limit,
}

impl Clauses {
    /// Its operators.
    pub(super) fn operators(self) -> ResultOperator {
        let sorts_first = !self.order.is_empty() && self.sorts_before_outputs();
        let Clauses {
            constants,
            joins,
            slots,
            grouping,
            having,
            windows,
            outputs,
            distinct,
            mut order,
            limit,
        } = self;
        let mut filled = Vec::new();
        joins.scans(&mut |scan| filled.push(scan.slot));
        let mut input = joins;
        if !constants.is_empty() {
            input = FrameOperator::If(Box::new(If { conditions: constants, input }));
        }
        if let Some(grouping) = grouping {
            input = FrameOperator::Group(Box::new(GroupBy { grouping, slots: filled, input }));
        }
        if let Some(condition) = having {
            input = FrameOperator::Filter(Box::new(Filter { condition, input }));
        }
        if let Some(windows) = windows {
            input = FrameOperator::Window(Box::new(WindowRows { windows, input }));
        }
        if sorts_first {
            let computed =
                |key: SortKey| SortKey { expr: SortBy::Expr(key.of_outputs(&outputs).clone()), ..key };
            let keys = order.drain(..).map(computed).collect();
            input = FrameOperator::Sort(Box::new(FrameSort { keys, slots, input }));
        }
        let (width, project) = (outputs.len(), Project { outputs, input });
        let operator = match distinct {
            true => ResultOperator::Distinct(Box::new(Distinct { project, width })),
            false => ResultOperator::Project(Box::new(project)),
        };
        limited(sorted(operator, order), limit)
    }

    /// Whether rows are sorted before outputs are computed of them. That shows in outputs that depend on the order in which they are
    /// computed, and MySQL does it where it can sort the rows of the first table of several rows alone.
    fn sorts_before_outputs(&self) -> bool {
        let Some(own) = first_of_several(&self.joins) else { return false };
        let plain = self.grouping.is_none() && self.windows.is_none() && !self.distinct;
        let early = |e: &Expr| !is_volatile(e) && e.slots().within(&own);
        plain
            && !self.having.iter().any(is_volatile)
            && self.outputs.iter().any(is_volatile)
            && self.order.iter().all(|key| early(key.of_outputs(&self.outputs)))
    }
}

/// The slot of the first table of several rows, if none of an outer join is before it.
fn first_of_several(joins: &FrameOperator) -> Option<SlotSet> {
    let mut first = None;
    joins.steps(&mut |step| match step {
        Step::Read(scan, _) if is_one_row(scan) => {}
        Step::Read(scan, _) => {
            first.get_or_insert(Some(scan.slot));
        }
        Step::Outer(_) => {
            first.get_or_insert(None);
        }
    });
    first.flatten().map(SlotSet::of)
}

/// A derived table without a table, as `(SELECT @n := 0)` is.
fn is_one_row(scan: &Scan) -> bool {
    matches!(&scan.source, Source::Derived { plan, .. } if plan.reads_no_table())
}

/// The operators of a set operation, whose row is in `slot` while ORDER BY is computed of it.
pub(super) fn of_compound(
    compound: Compound,
    slot: u16,
    order: Vec<SortKey>,
    limit: Limit,
) -> ResultOperator {
    let computed = order.iter().any(|key| key.expression().is_some());
    let mut operator = sorted(ResultOperator::SetOperation(Box::new(compound)), order);
    if let ResultOperator::Sort(sort) = &mut operator {
        sort.slot = computed.then_some(slot);
    }
    limited(operator, limit)
}

fn sorted(input: ResultOperator, keys: Vec<SortKey>) -> ResultOperator {
    if keys.is_empty() {
        return input;
    }
    let ty = |key: &SortKey| match (&key.expr, &input) {
        (SortBy::Expr(e), _) => e.ty.clone(),
        (SortBy::Output(at), ResultOperator::SetOperation(compound)) => compound.types[*at].clone(),
        (SortBy::Output(at), input) => input.outputs()[*at].ty.clone(),
    };
    let types: Vec<ExprType> = keys.iter().map(ty).collect();
    let unites = input.distinct().is_some_and(|of| has_all(&keys, &of.project.outputs[..of.width]));
    ResultOperator::Sort(Box::new(Sort { keys, types, slot: None, unites, input }))
}

/// Whether rows that sort as equal are equal to DISTINCT: every column is sorted by, under its own collation.
/// Text only, for which comparing is what DISTINCT does.
fn has_all(keys: &[SortKey], outputs: &[Expr]) -> bool {
    let sorted = |(at, e): (usize, &Expr)| {
        let (text, collation) = (is_character(&e.ty.column), e.ty.column.collation);
        let by = |k: &SortKey| matches!(k.expr, SortBy::Output(by) if by == at) && k.collation == collation;
        text && keys.iter().any(by)
    };
    // Another key would tell rows apart that are equal.
    let listed = |k: &SortKey| matches!(k.expr, SortBy::Output(at) if at < outputs.len());
    keys.iter().all(listed) && outputs.iter().enumerate().all(sorted)
}

fn limited(input: ResultOperator, limit: Limit) -> ResultOperator {
    match limit.count.is_none() && limit.offset.is_none() {
        true => input,
        false => ResultOperator::Limit(Box::new(Limited { limit, input })),
    }
}

/// Has a query give one row at most, without what nobody sees of it: its order and, if its rows are those of its tables, its outputs.
/// `varies`: they are not the same each time.
pub(super) fn first_of(root: ResultOperator, varies: bool) -> ResultOperator {
    if root.project().is_none() || root.limit().is_some() {
        return root;
    }
    let root = match root {
        ResultOperator::Sort(sort) => sort.input,
        root => root,
    };
    let (mut project, distinct) = match root {
        ResultOperator::Project(project) => (*project, None),
        ResultOperator::Distinct(distinct) => (distinct.project, Some(distinct.width)),
        root => return root,
    };
    if let FrameOperator::Sort(sort) = project.input {
        project.input = sort.input;
    }
    let gathers =
        |operator: &FrameOperator| matches!(operator, FrameOperator::Group(_) | FrameOperator::Filter(_));
    let of_tables = !varies && !project.input.chain().any(gathers);
    if of_tables {
        project.outputs.clear();
        if let FrameOperator::Window(window) = project.input {
            project.input = window.input;
        }
        needed::cover(&mut project.input);
    }
    let input = match distinct.filter(|_| !of_tables) {
        Some(width) => ResultOperator::Distinct(Box::new(Distinct { project, width })),
        None => ResultOperator::Project(Box::new(project)),
    };
    limited(input, Limit { count: Some(Expr::integer(1)), offset: None })
}
