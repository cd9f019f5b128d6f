//! ORDER BY in front of outputs whose values depend on the order in which they are computed: `@n := @n + 1`, RAND(), NEXTVAL.
//!
//! The rows of the frame are sorted, and outputs are computed of those that are given, in the order in which they are given.
//! A row on its way is a record of its slots, as it is between windows. Always a whole sort: who numbers rows wants most of them.

use super::Consumer;
use super::output::Emitter;
use crate::error::ExecResult;
use crate::expr::{Context, Expr};
use crate::logical::{SortBy, SortKey};
use crate::plan::physical::Block;
use crate::rows::Flow;
use crate::rows::codec;
use crate::sort::{ExternalSort, KeyForm, Part};

/// Gathers rows of the frame, and gives what is computed of them in order.
pub(super) struct LateOutputs<'p> {
    slots: &'p [u16],
    order: &'p [SortKey],
    outputs: &'p [Expr],
    sort: ExternalSort,
    key: Vec<u8>,
    record: Vec<u8>,
}

impl<'p> LateOutputs<'p> {
    /// For the rows of a block, which are in `slots`.
    pub(super) fn new(block: &'p Block, slots: &'p [u16], cx: &Context<'_>) -> LateOutputs<'p> {
        let (order, outputs) = (&block.order[..], &block.outputs[..]);
        let part = |key: &SortKey| Part::new(&sorted_by(key, outputs).ty, key.collation, key.descending);
        let form = KeyForm::new(order.iter().map(part).collect());
        let sort = ExternalSort::new(form, cx);
        LateOutputs { slots, order, outputs, sort, key: Vec::new(), record: Vec::new() }
    }

    /// Takes up the row in the frame.
    pub(super) fn add(&mut self, cx: &mut Context<'_>) -> ExecResult<()> {
        cx.tick()?;
        let mut keys = Vec::with_capacity(self.order.len());
        for key in self.order {
            keys.push(sorted_by(key, self.outputs).eval(cx)?);
        }
        self.key.clear();
        self.sort.form().write(keys.iter(), &mut self.key);
        self.record.clear();
        for slot in self.slots {
            codec::write_row(&cx.frame[usize::from(*slot)].row, &mut self.record);
        }
        self.sort.add(&self.key, &self.record, cx)
    }

    /// Gives the rows in order; LIMIT is the emitter's.
    pub(super) fn finish(
        self,
        mut emitter: Emitter,
        cx: &mut Context<'_>,
        out: &mut Consumer<'_>,
    ) -> ExecResult<Flow> {
        let mut sorted = self.sort.finish(cx)?;
        while let Some((_, mut record)) = sorted.next_record()? {
            cx.tick()?;
            for slot in self.slots {
                cx.frame[usize::from(*slot)].row = codec::read_row(&mut record)?;
            }
            if emitter.emit(self.outputs, cx, out)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Continue)
    }
}

fn sorted_by<'p>(key: &'p SortKey, outputs: &'p [Expr]) -> &'p Expr {
    match &key.expr {
        SortBy::Output(at) => &outputs[*at],
        SortBy::Expr(e) => e,
    }
}
