//! VALUES: rows of expressions.

use super::Consumer;
use super::limit::Bounds;
use crate::error::ExecResult;
use crate::expr::{Context, Expr};
use crate::rows::Flow;

/// Gives the rows.
pub(super) fn run(
    rows: &[Vec<Expr>],
    mut bounds: Bounds,
    cx: &mut Context<'_>,
    out: &mut Consumer<'_>,
) -> ExecResult<Flow> {
    let mut values = Vec::new();
    for row in rows {
        values.clear();
        cx.tick()?;
        for e in row {
            values.push(e.eval(cx)?);
        }
        if bounds.give(&values, cx, out)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    Ok(Flow::Continue)
}
