//! LEFT JOIN: the inner side's rows for the outer row in the frame, or one of NULLs.

use super::filter::meets;
use super::{Joined, dispatch};
use crate::error::ExecResult;
use crate::expr::{Context, Row};
use crate::plan::physical::OuterJoin;
use crate::rows::Flow;

/// Runs the inner side.
pub(super) fn run(outer: &OuterJoin, cx: &mut Context<'_>, joined: &mut Joined<'_>) -> ExecResult<Flow> {
    let mut matched = false;
    if meets(&outer.on, cx)? {
        let flow = dispatch::frame(&outer.inner, None, cx, &mut |cx| {
            matched = true;
            if meets(&outer.filter, cx)? { joined(cx) } else { Ok(Flow::Continue) }
        })?;
        if flow == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    if matched {
        return Ok(Flow::Continue);
    }
    for slot in &outer.slots {
        cx.frame[usize::from(*slot)].row = Row::Nulls;
    }
    if meets(&outer.filter, cx)? { joined(cx) } else { Ok(Flow::Continue) }
}
