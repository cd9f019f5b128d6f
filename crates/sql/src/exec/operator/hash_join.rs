//! Hash join: an inner table without a usable index is read once, kept by the columns that it is joined by, and looked up for each row
//! of the tables before it.

use super::filter::meets;
use super::{Joined, scan};
use crate::error::ExecResult;
use crate::expr::subquery::SubqueryState;
use crate::expr::{Context, Expr, in_place};
use crate::plan::physical::{HashJoin, Keep, Scan};
use crate::rows::Flow;
use crate::rows::kept::{KeptBuilder, KeptRows};
use std::rc::Rc;

/// Looks a kept table up; reads it first if that has not been done.
pub(super) fn run(join: &HashJoin, cx: &mut Context<'_>, joined: &mut Joined<'_>) -> ExecResult<Flow> {
    cx.check_stack()?;
    let HashJoin { scan, keep, .. } = join;
    let kept = match &cx.subqueries[keep.id] {
        SubqueryState::Kept(kept) => kept.clone(),
        _ => {
            let kept = Rc::new(read(scan, keep, cx)?);
            cx.subqueries[keep.id] = SubqueryState::Kept(kept.clone());
            kept
        }
    };
    let mut key = std::mem::take(&mut cx.key);
    key.clear();
    if !write_key(&keep.probe, &keep.collations, cx, &mut key)? {
        cx.key = key;
        return Ok(Flow::Continue);
    }
    let found = kept.find(&key);
    // The loops inside may want the buffer, too.
    let key = if found.is_in_memory() {
        cx.key = key;
        Vec::new()
    } else {
        key
    };
    for nth in 0..found.count() {
        cx.tick()?;
        let Some(row) = kept.row(&key, &found, nth)? else { continue };
        cx.frame[usize::from(scan.slot)].row = row;
        if meets(&keep.filter, cx)? && joined(cx)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    Ok(Flow::Continue)
}

fn read(scan: &Scan, keep: &Keep, cx: &mut Context<'_>) -> ExecResult<KeptRows> {
    let mut kept = KeptBuilder::new(cx);
    let mut key = Vec::new();
    scan::run(scan, None, cx, &mut |cx| {
        key.clear();
        if write_key(&keep.own, &keep.collations, cx, &mut key)? {
            let row = cx.frame[usize::from(scan.slot)].row.clone();
            kept.push(&key, &row, cx)?;
        }
        Ok(Flow::Continue)
    })?;
    Ok(kept.finish()?)
}

/// Appends the key of a kept row; false if a part is NULL, which equals nothing.
fn write_key(
    parts: &[Expr],
    collations: &[u16],
    cx: &mut Context<'_>,
    key: &mut Vec<u8>,
) -> ExecResult<bool> {
    for (part, collation) in parts.iter().zip(collations) {
        if in_place::write_key(part, *collation, cx, key)? {
            return Ok(false);
        }
    }
    Ok(true)
}
