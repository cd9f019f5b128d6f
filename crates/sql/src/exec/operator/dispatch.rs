//! From an operator of a plan to what runs it.
//!
//! Here is also where EXPLAIN ANALYZE has rows counted ([`crate::expr::profile`]): those of tables and joins, of conditions without a table, and of groups.

use super::limit::Bounds;
use super::{
    Consumer, Joined, distinct, filter, frame_sort, group, hash_join, limit, outer_join, project, recursion,
    scan, set_operation, sort, values, window,
};
use crate::error::ExecResult;
use crate::expr::Context;
use crate::expr::profile;
use crate::plan::physical::{FrameOperator, ResultOperator};
use crate::rows::Flow;

/// Gives those results that are within `bounds`.
pub(super) fn results(
    operator: &ResultOperator,
    bounds: Bounds,
    cx: &mut Context<'_>,
    out: &mut Consumer<'_>,
) -> ExecResult<Flow> {
    match operator {
        ResultOperator::Project(project) => project::run(project, bounds, cx, out),
        ResultOperator::Distinct(distinct) => distinct::run(distinct, bounds, cx, out),
        ResultOperator::Sort(sort) => sort::run(sort, bounds, cx, out),
        ResultOperator::Limit(limited) => limit::run(limited, cx, out),
        ResultOperator::SetOperation(compound) => set_operation::run(compound, bounds, cx, out),
        ResultOperator::Values(rows) => values::run(rows, bounds, cx, out),
        ResultOperator::Recursion(recursive) => recursion::run(recursive, bounds, cx, out),
    }
}

/// Puts rows into the frame. No more than `wanted` will be taken.
pub(super) fn frame(
    operator: &FrameOperator,
    wanted: Option<usize>,
    cx: &mut Context<'_>,
    each: &mut Joined<'_>,
) -> ExecResult<Flow> {
    cx.check_stack()?;
    match operator {
        FrameOperator::OneRow => profile::joined(operator, cx, each, |cx, each| each(cx)),
        FrameOperator::Scan(scan) => {
            profile::joined(operator, cx, each, |cx, each| scan::run(scan, wanted, cx, each))
        }
        FrameOperator::NestedLoop(join) => {
            frame(&join.left, None, cx, &mut |cx| frame(&join.right, None, cx, each))
        }
        FrameOperator::HashJoin(join) => for_each(join.left.as_ref(), cx, &mut |cx| {
            profile::joined(operator, cx, each, |cx, each| hash_join::run(join, cx, each))
        }),
        FrameOperator::OuterJoin(join) => for_each(join.left.as_ref(), cx, &mut |cx| {
            profile::joined(operator, cx, each, |cx, each| outer_join::run(join, cx, each))
        }),
        FrameOperator::If(of) => match filter::meets(&of.conditions, cx)? {
            true => profile::joined(operator, cx, each, |cx, each| frame(&of.input, wanted, cx, each)),
            false => Ok(Flow::Continue),
        },
        FrameOperator::Filter(of) => {
            frame(&of.input, None, cx, &mut |cx| filter::pass(&of.condition, cx, each))
        }
        FrameOperator::Group(of) => profile::joined(operator, cx, each, |cx, each| group::run(of, cx, each)),
        FrameOperator::Window(of) => window::run(of, cx, each),
        FrameOperator::Sort(of) => frame_sort::run(of, cx, each),
    }
}

/// Runs the right side of a join for the rows of the left one, or for the row that is there.
fn for_each(left: Option<&FrameOperator>, cx: &mut Context<'_>, right: &mut Joined<'_>) -> ExecResult<Flow> {
    match left {
        Some(left) => frame(left, None, cx, right),
        None => right(cx),
    }
}
