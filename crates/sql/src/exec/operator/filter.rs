//! Conditions on the row in the frame.

use super::Joined;
use crate::error::ExecResult;
use crate::expr::{Context, Expr};
use crate::rows::Flow;

/// Whether the row meets all of them.
pub(super) fn meets(conditions: &[Expr], cx: &mut Context<'_>) -> ExecResult<bool> {
    for condition in conditions {
        if condition.eval_bool(cx)? != Some(true) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Gives the row on if it meets a condition.
pub(super) fn pass(condition: &Expr, cx: &mut Context<'_>, each: &mut Joined<'_>) -> ExecResult<Flow> {
    if condition.eval_bool(cx)? == Some(true) { each(cx) } else { Ok(Flow::Continue) }
}
