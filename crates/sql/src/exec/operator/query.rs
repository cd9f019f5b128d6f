//! A query: its topmost operator, for a statement or for the query around it.

use super::limit::Bounds;
use super::{Consumer, dispatch};
use crate::api::ResultColumn;
use crate::error::ExecResult;
use crate::exec::explain::describe;
use crate::expr::outline::{Line, Numbers, Outliner};
use crate::expr::subquery::{Subplan, Visited};
use crate::expr::{Context, profile};
use crate::plan::QueryPlan;
use crate::plan::physical::FrameOperator;
use crate::rows::Flow;

impl Subplan for QueryPlan {
    fn run(&self, cx: &mut Context<'_>, out: &mut Consumer<'_>) -> ExecResult<Flow> {
        run(self, cx, out)
    }

    fn is_volatile(&self) -> bool {
        self.volatile
    }

    fn rows(&self) -> f64 {
        self.rows
    }

    fn cost(&self, visited: &mut Visited) -> f64 {
        crate::plan::cost::of_plan(self, visited)
    }

    fn columns(&self) -> &[ResultColumn] {
        &self.columns
    }

    fn is_unique(&self, column: usize) -> bool {
        crate::plan::cost::is_unique(self, column)
    }

    fn reads_no_table(&self) -> bool {
        self.root.project().is_some_and(|of| matches!(of.input.joins(), FrameOperator::OneRow))
    }

    fn number(&self, id: Option<u64>, numbers: &mut Numbers) {
        describe::number(self, id, numbers);
    }

    fn outline(&self, out: &mut Outliner<'_>) -> Line {
        describe::query(self, out)
    }
}

/// Runs a query for the outer rows now in the frame.
///
/// # Errors
/// Whatever evaluation or storage meets, interrupts among them.
pub fn run(plan: &QueryPlan, cx: &mut Context<'_>, out: &mut Consumer<'_>) -> ExecResult<Flow> {
    let skipped = cx.skipped;
    let flow = run_outermost(plan, cx, out);
    cx.skipped = skipped;
    flow
}

/// Runs a query that is a statement: what its OFFSET leaves out is counted.
pub(in crate::exec) fn run_outermost(
    plan: &QueryPlan,
    cx: &mut Context<'_>,
    out: &mut Consumer<'_>,
) -> ExecResult<Flow> {
    cx.check_stack()?;
    profile::given(plan, cx, out, |cx, out| dispatch::results(&plan.root, Bounds::ALL, cx, out))
}
