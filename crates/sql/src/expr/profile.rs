//! Measures of a plan's parts while it ran: for EXPLAIN ANALYZE. Without a profile it costs a branch a reading of a table.
//!
//! A part, an operator or a query, is known by where it is in the plan, which stays in its place as long as it runs. What others do with a row of it,
//! the loops inside among them, is not its own time.

use super::Context;
use super::subquery::Consumer;
use crate::error::ExecResult;
use crate::rows::Flow;
use std::collections::HashMap;
use std::ptr::from_ref;
use std::time::{Duration, Instant};

/// The measure of a part, all loops together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measure {
    /// How often it was begun.
    pub loops: u64,
    /// Rows that it gave.
    pub rows: u64,
    /// Rows that tables and indexes gave it.
    pub examined: u64,
    /// Time to the first rows.
    pub first: Duration,
    /// Time to the end.
    pub total: Duration,
}

/// A run's measures.
#[derive(Debug, Default)]
pub struct Profile {
    measures: HashMap<usize, Measure>,
}

impl Profile {
    /// Of a part; none if it never began.
    #[must_use]
    pub fn of<T>(&self, part: &T) -> Option<&Measure> {
        self.measures.get(&from_ref(part).addr())
    }
}

/// One loop.
struct Watch {
    begun: Instant,
    /// Examined before, or outside.
    examined: u64,
    outside: Duration,
    first: Option<Duration>,
    rows: u64,
}

impl Watch {
    fn begin(cx: &Context<'_>) -> Watch {
        let examined = cx.session.budget.tally.examined();
        Watch { begun: Instant::now(), examined, outside: Duration::ZERO, first: None, rows: 0 }
    }

    fn own_time(&self) -> Duration {
        self.begun.elapsed().saturating_sub(self.outside)
    }

    /// Gives a row on.
    fn row(
        &mut self,
        cx: &mut Context<'_>,
        out: impl FnOnce(&mut Context<'_>) -> ExecResult<Flow>,
    ) -> ExecResult<Flow> {
        self.rows += 1;
        self.first = Some(self.first.unwrap_or_else(|| self.own_time()));
        let (left, examined) = (Instant::now(), cx.session.budget.tally.examined());
        let flow = out(cx);
        self.outside += left.elapsed();
        self.examined += cx.session.budget.tally.examined() - examined;
        flow
    }

    fn end(self, part: usize, cx: &mut Context<'_>) {
        let (total, examined) = (self.own_time(), cx.session.budget.tally.examined() - self.examined);
        let Some(profile) = &mut cx.profile else { return };
        let measure = profile.measures.entry(part).or_default();
        measure.loops += 1;
        measure.rows += self.rows;
        measure.examined += examined;
        measure.first += self.first.unwrap_or(total);
        measure.total += total;
    }
}

/// Runs a part that gives rows in the frame.
///
/// # Errors
/// The part's.
pub fn joined<T>(
    part: &T,
    cx: &mut Context<'_>,
    out: &mut (dyn FnMut(&mut Context<'_>) -> ExecResult<Flow> + '_),
    run: impl FnOnce(&mut Context<'_>, &mut dyn FnMut(&mut Context<'_>) -> ExecResult<Flow>) -> ExecResult<Flow>,
) -> ExecResult<Flow> {
    if cx.profile.is_none() {
        return run(cx, out);
    }
    let mut watch = Watch::begin(cx);
    let flow = run(cx, &mut |cx| watch.row(cx, &mut *out))?;
    watch.end(from_ref(part).addr(), cx);
    Ok(flow)
}

/// Runs a part that gives results.
///
/// # Errors
/// The part's.
pub fn given<T>(
    part: &T,
    cx: &mut Context<'_>,
    out: &mut Consumer<'_>,
    run: impl FnOnce(&mut Context<'_>, &mut Consumer<'_>) -> ExecResult<Flow>,
) -> ExecResult<Flow> {
    if cx.profile.is_none() {
        return run(cx, out);
    }
    let mut watch = Watch::begin(cx);
    let flow = run(cx, &mut |cx, row| watch.row(cx, |cx| out(cx, row)))?;
    watch.end(from_ref(part).addr(), cx);
    Ok(flow)
}
