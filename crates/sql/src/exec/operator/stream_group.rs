//! GROUP BY of rows that come group by group: one group at a time, given out when the next begins.
//!
//! Needs no memory but one group's, and a LIMIT ends the reading. The plan says when (`GroupMethod::Stream`).

use super::group::Group;
use super::{Joined, dispatch};
use crate::error::ExecResult;
use crate::expr::{Context, Row, in_place};
use crate::memory::Account;
use crate::plan::physical::{GroupBy, GroupPlan};
use crate::rows::Flow;

/// Puts each group of rows that come group by group into the frame.
pub(super) fn run(of: &GroupBy, cx: &mut Context<'_>, each: &mut Joined<'_>) -> ExecResult<Flow> {
    let grouping = &of.grouping;
    let mut current: Option<(Group, Account)> = None;
    let (mut key, mut last) = (Vec::new(), Vec::new());
    let flow = dispatch::frame(&of.input, None, cx, &mut |cx| {
        key.clear();
        for e in &grouping.keys {
            in_place::write_key(e, e.ty.column.collation, cx, &mut key)?;
        }
        if key != last
            && let Some((group, _)) = current.take()
            && give(group, grouping, cx, each)? == Flow::Stop
        {
            return Ok(Flow::Stop);
        }
        if current.is_none() {
            std::mem::swap(&mut key, &mut last);
        }
        let (group, account) = current
            .get_or_insert_with(|| (Group::start(grouping, cx), Account::new(&cx.session.connection.memory)));
        group.add(grouping, account, cx)?;
        Ok(Flow::Continue)
    })?;
    match current.filter(|_| flow == Flow::Continue) {
        Some((group, _)) => give(group, grouping, cx, each),
        None => Ok(flow),
    }
}

/// Gives a finished group out. The loops are in the middle of the next one: their rows stay.
fn give(group: Group, grouping: &GroupPlan, cx: &mut Context<'_>, each: &mut Joined<'_>) -> ExecResult<Flow> {
    let slots = || grouping.row_slots.iter().map(|slot| usize::from(*slot));
    let rows: Vec<Row> = slots().map(|slot| cx.frame[slot].row.clone()).collect();
    group.enter(grouping, cx)?;
    let flow = each(cx)?;
    for (slot, row) in slots().zip(rows) {
        cx.frame[slot].row = row;
    }
    Ok(flow)
}
