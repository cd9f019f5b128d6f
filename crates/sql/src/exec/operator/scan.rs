//! The rows of one table, each into the table's slot: a stored one along its path, or one that the statement makes.

use super::{Joined, computed, derived};
use crate::error::ExecResult;
use crate::exec::reader::RowReader;
use crate::expr::{Context, Row, Slot};
use crate::plan::physical::{Scan, Source};
use crate::rows::Flow;

/// Reads a table. No more than `limit` rows of it will be wanted.
pub(super) fn run(
    scan: &Scan,
    limit: Option<usize>,
    cx: &mut Context<'_>,
    joined: &mut Joined<'_>,
) -> ExecResult<Flow> {
    match &scan.source {
        Source::Table { table, path, lock, wait } => {
            let slot = usize::from(scan.slot);
            if cx.frame[slot].table.is_none() {
                cx.frame[slot] = Slot { table: Some(table.clone()), row: Row::Unset };
            }
            // With further conditions a LIMIT says nothing about how many rows must be read.
            let limit = limit.filter(|_| path.filter.is_empty());
            let mut reader = RowReader::open(table, path, *lock, *wait, limit, scan.slot, cx)?;
            while reader.step(scan.slot, cx)? {
                if joined(cx)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
            Ok(Flow::Continue)
        }
        Source::Derived { plan, filter, id, outer_slots } => {
            let rows = derived::rows(&**plan, *id, outer_slots, cx)?;
            derived::push(&rows, scan.slot, filter, cx, joined)
        }
        Source::Virtual { table, filter, id } => computed::run(&**table, *id, scan.slot, filter, cx, joined),
        Source::Recursion { id, filter } => {
            let rows = derived::kept(cx, *id).unwrap_or_default();
            derived::push(&rows, scan.slot, filter, cx, joined)
        }
    }
}
