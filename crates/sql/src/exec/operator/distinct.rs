//! DISTINCT over results that come one by one: the first of those that are equal is given, until memory is used up; the others are put off
//! to the end ([`crate::rows::distinct`]).

use super::limit::Bounds;
use super::{Consumer, project};
use crate::error::ExecResult;
use crate::expr::{Context, hash_key};
use crate::plan::physical::Distinct;
use crate::rows::distinct::{self, Seen};
use crate::rows::{Flow, codec};
use omnibus_value::Value;

/// Gives the results within bounds, in the order in which the rows come.
pub(super) fn run(
    distinct: &Distinct,
    mut bounds: Bounds,
    cx: &mut Context<'_>,
    out: &mut Consumer<'_>,
) -> ExecResult<Flow> {
    let mut once = Once::new(distinct, cx);
    let flow = project::each(&distinct.project, cx, |cx, row| match once.is_first(row, cx)? {
        true => bounds.give(row, cx, out),
        false => Ok(Flow::Continue),
    })?;
    if flow == Flow::Stop {
        return Ok(Flow::Stop);
    }
    once.finish(cx, &mut |cx, row| bounds.give(&row, cx, out))
}

/// Rows that have been seen.
pub(super) struct Once {
    seen: distinct::Distinct,
    collations: Vec<u16>,
    key: Vec<u8>,
}

impl Once {
    /// For rows that begin with the columns of a DISTINCT.
    pub(super) fn new(distinct: &Distinct, cx: &Context<'_>) -> Once {
        let listed = &distinct.project.outputs[..distinct.width];
        let collations = listed.iter().map(|e| e.ty.column.collation).collect();
        Once { seen: distinct::Distinct::new(cx), collations, key: Vec::new() }
    }

    /// Whether a row is to be given now.
    pub(super) fn is_first(&mut self, row: &[Value], cx: &mut Context<'_>) -> ExecResult<bool> {
        self.key.clear();
        for (value, collation) in row.iter().zip(&self.collations) {
            hash_key::write(value, *collation, &mut self.key);
        }
        Ok(self.seen.add(&self.key, |out| codec::write_values(row, out), cx)? == Seen::First)
    }

    /// Gives the rows that were put off.
    pub(super) fn finish(
        self,
        cx: &mut Context<'_>,
        each: &mut dyn FnMut(&mut Context<'_>, Vec<Value>) -> ExecResult<Flow>,
    ) -> ExecResult<Flow> {
        self.seen.finish(cx, each)
    }
}
