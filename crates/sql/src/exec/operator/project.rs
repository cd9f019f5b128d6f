//! A select list, computed of the row in the frame.

use super::Consumer;
use super::dispatch;
use super::limit::Bounds;
use crate::error::ExecResult;
use crate::expr::{Context, Expr};
use crate::plan::physical::Project;
use crate::rows::Flow;
use omnibus_value::Value;

/// Gives the results within bounds, in the order in which the rows come.
pub(super) fn run(
    project: &Project,
    mut bounds: Bounds,
    cx: &mut Context<'_>,
    out: &mut Consumer<'_>,
) -> ExecResult<Flow> {
    let mut values = Vec::with_capacity(project.outputs.len());
    dispatch::frame(&project.input, bounds.wanted(), cx, &mut |cx| {
        // A row that is left out need not be computed.
        if bounds.skips(cx) {
            return Ok(Flow::Continue);
        }
        compute(&project.outputs, &mut values, cx)?;
        bounds.give(&values, cx, out)
    })
}

/// Gives the result of each row to an operator that may write behind its columns.
pub(super) fn each(
    project: &Project,
    cx: &mut Context<'_>,
    mut give: impl FnMut(&mut Context<'_>, &mut Vec<Value>) -> ExecResult<Flow>,
) -> ExecResult<Flow> {
    let mut values = Vec::with_capacity(project.outputs.len());
    dispatch::frame(&project.input, None, cx, &mut |cx| {
        compute(&project.outputs, &mut values, cx)?;
        give(cx, &mut values)
    })
}

fn compute(outputs: &[Expr], values: &mut Vec<Value>, cx: &mut Context<'_>) -> ExecResult<()> {
    values.clear();
    as_output(cx, |cx| {
        for e in outputs {
            let value = e.eval(cx)?;
            values.push(value);
        }
        Ok(())
    })
}

/// Evaluates what a query selects.
pub(super) fn as_output<T>(cx: &mut Context<'_>, evaluate: impl FnOnce(&mut Context<'_>) -> T) -> T {
    let strict = cx.strict;
    cx.strict |= cx.query.strict_outputs;
    let done = evaluate(cx);
    cx.strict = strict;
    done
}
