//! The output of a block: the select list, computed of the row in the frame, into results; sorted first if the block is ordered.

use super::Consumer;
use super::distinct::Once;
use super::late_outputs::LateOutputs;
use super::limit::Limit;
use super::sort::Sorter;
use crate::error::ExecResult;
use crate::expr::{Context, Expr};
use crate::plan::physical::Block;
use crate::rows::Flow;
use omnibus_value::Value;

/// Where the rows of a block go.
pub(super) enum Output<'p> {
    Plain(Box<Emitter>),
    Sorted(Box<Sorter<'p>>),
    Late(Box<LateOutputs<'p>>, Box<Emitter>),
}

impl<'p> Output<'p> {
    pub(super) fn new(block: &'p Block, limit: Limit, cx: &Context<'_>) -> Output<'p> {
        let emitter = || Box::new(Emitter::new(block, limit, cx));
        match &block.late_outputs {
            _ if block.order.is_empty() => Output::Plain(emitter()),
            None => Output::Sorted(Box::new(Sorter::new(block, limit, cx))),
            Some(slots) => Output::Late(Box::new(LateOutputs::new(block, slots, cx)), emitter()),
        }
    }

    /// Takes the row in the frame.
    pub(super) fn give(
        &mut self,
        block: &Block,
        cx: &mut Context<'_>,
        out: &mut Consumer<'_>,
    ) -> ExecResult<Flow> {
        match self {
            Output::Plain(emitter) => emitter.emit(&block.outputs, cx, out),
            Output::Sorted(sorter) => {
                as_output(cx, |cx| sorter.add(&block.outputs, cx))?;
                Ok(Flow::Continue)
            }
            Output::Late(rows, _) => {
                rows.add(cx)?;
                Ok(Flow::Continue)
            }
        }
    }

    /// Gives what waited for the last row.
    pub(super) fn finish(self, cx: &mut Context<'_>, out: &mut Consumer<'_>) -> ExecResult<Flow> {
        match self {
            Output::Plain(emitter) => emitter.finish(cx, out),
            Output::Sorted(sorter) => sorter.finish(cx, out),
            Output::Late(rows, emitter) => rows.finish(*emitter, cx, out),
        }
    }
}

/// Evaluates what a query selects.
fn as_output<T>(cx: &mut Context<'_>, evaluate: impl FnOnce(&mut Context<'_>) -> T) -> T {
    let strict = cx.strict;
    cx.strict |= cx.query.strict_outputs;
    let done = evaluate(cx);
    cx.strict = strict;
    done
}

/// Computes outputs, and gives those that DISTINCT, OFFSET and LIMIT leave, in the order in which the rows come.
pub(super) struct Emitter {
    limit: Limit,
    distinct: Option<Once>,
    values: Vec<Value>,
    /// The consumer, or LIMIT, has had enough.
    stopped: bool,
}

impl Emitter {
    pub(super) fn new(block: &Block, limit: Limit, cx: &Context<'_>) -> Emitter {
        Emitter {
            limit,
            distinct: block.distinct.then(|| Once::new(&block.outputs[..block.width], cx)),
            values: Vec::with_capacity(block.outputs.len()),
            stopped: false,
        }
    }

    pub(super) fn emit(
        &mut self,
        outputs: &[Expr],
        cx: &mut Context<'_>,
        out: &mut Consumer<'_>,
    ) -> ExecResult<Flow> {
        // A row that is left out need not be computed, unless it counts as one that has been seen.
        if self.distinct.is_none() && self.limit.skips(cx) {
            return Ok(Flow::Continue);
        }
        self.values.clear();
        as_output(cx, |cx| {
            for e in outputs {
                let value = e.eval(cx)?;
                self.values.push(value);
            }
            ExecResult::Ok(())
        })?;
        if let Some(distinct) = &mut self.distinct
            && !distinct.is_first(&self.values, cx)?
        {
            return Ok(Flow::Continue);
        }
        let flow = self.limit.give(&self.values, cx, out)?;
        self.stopped = flow == Flow::Stop;
        Ok(flow)
    }

    /// Gives what DISTINCT put off.
    pub(super) fn finish(mut self, cx: &mut Context<'_>, out: &mut Consumer<'_>) -> ExecResult<Flow> {
        if self.stopped {
            return Ok(Flow::Stop);
        }
        let Some(distinct) = self.distinct.take() else { return Ok(Flow::Continue) };
        distinct.finish(cx, &mut |cx, values| self.limit.give(&values, cx, out))
    }
}
