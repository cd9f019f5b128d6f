//! One SELECT: from its tables by way of groups, HAVING and windows to its output.

use super::group;
use super::limit::Limit;
use super::output::Output;
use super::window::Stage;
use super::{Consumer, Joined, filter, nested_loop};
use crate::error::ExecResult;
use crate::expr::Context;
use crate::expr::profile::{self, Step};
use crate::plan::physical::Block;
use crate::rows::Flow;

/// Runs a block.
pub(super) fn run(block: &Block, cx: &mut Context<'_>, out: &mut Consumer<'_>) -> ExecResult<Flow> {
    let limit = Limit::of(&block.limit, cx)?;
    if limit.count == 0 {
        return Ok(Flow::Continue);
    }
    // Only a plain LIMIT bounds what the innermost loop may read ahead.
    let plain = block.grouping.is_none()
        && block.windows.is_none()
        && block.order.is_empty()
        && block.having.is_none()
        && !block.distinct;
    let read_limit = plain.then(|| limit.offset.saturating_add(limit.count));
    let mut output = Output::new(block, limit, cx);
    match &block.windows {
        None => rows(block, read_limit, cx, &mut |cx| output.give(block, cx, out))?,
        Some(windows) => {
            let mut stage = Stage::new(windows, cx);
            rows(block, None, cx, &mut |cx| stage.add(cx).map(|()| Flow::Continue))?;
            stage.finish(cx, &mut |cx| output.give(block, cx, out))?
        }
    };
    output.finish(cx, out)
}

/// The rows of a block, grouped or not, that meet HAVING.
fn rows(block: &Block, limit: Option<u64>, cx: &mut Context<'_>, each: &mut Joined<'_>) -> ExecResult<Flow> {
    let grouped = |grouping, cx: &mut Context<'_>, each: &mut Joined<'_>| {
        profile::joined(block, Step::Grouped, cx, each, |cx, each| group::run(block, grouping, cx, each))
    };
    match (&block.grouping, &block.having) {
        (None, None) => nested_loop::run(block, limit, cx, each),
        (None, Some(having)) => nested_loop::run(block, limit, cx, &mut |cx| filter::pass(having, cx, each)),
        (Some(grouping), None) => grouped(grouping, cx, each),
        (Some(grouping), Some(having)) => grouped(grouping, cx, &mut |cx| filter::pass(having, cx, each)),
    }
}
