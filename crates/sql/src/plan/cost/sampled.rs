//! The share of a table's rows that meet a condition, counted among sampled rows (`catalog::RowSample`).
//!
//! For what no index answers: `name LIKE '%green%'`, a column against another one, a value of a column without an index. Only conditions
//! on one table whose values are all known are counted; a plan of a prepared statement is kept for other values of `?`. What was
//! counted is remembered for the plan, because a search for a join order asks again and again.

use crate::catalog::{RowSample, Table};
use crate::error::{Interrupt, SqlError, SqlResult};
use crate::expr::functions::{SESSION, VOLATILE};
use crate::expr::{Context, Expr, Kind, Row, Slot, SlotSet};
use crate::state::SessionState;
use crate::storage::NoStorage;
use std::cell::RefCell;
use std::sync::Arc;

/// Fewer rows say nothing, unless they are all there are.
const FEWEST: usize = 8;
/// Matches from which the count of a combination is better than the product of its parts.
const ENOUGH: usize = 4;

/// The counts of sampled rows that one plan has asked for.
pub(crate) struct Sampled<'s> {
    session: &'s SessionState,
    state: RefCell<Samples>,
}

#[derive(Default)]
struct Samples {
    scratch: Option<Box<SessionState>>,
    known: Vec<(u16, Expr, Option<Count>)>,
    /// A count was given up because the statement has to go on where it may block.
    interrupted: bool,
}

/// How many rows of a sample meet a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::plan) struct Count {
    matches: usize,
    of: usize,
    /// The sample is the whole table.
    whole: bool,
}

impl Count {
    /// The share of the table's rows. Of none in a sample there may still be some in the table.
    pub(in crate::plan) fn share(self) -> f64 {
        let (matches, of) = (self.matches as f64, self.of as f64);
        if self.whole { matches.max(0.5) / of } else { (matches + 0.5) / (of + 1.0) }
    }

    /// Whether so many rows match and so many do not that what a combination's parts say adds nothing.
    pub(in crate::plan) fn is_sure(self) -> bool {
        self.whole || (ENOUGH..=self.of - ENOUGH).contains(&self.matches)
    }
}

impl<'s> Sampled<'s> {
    pub(crate) fn new(session: &'s SessionState) -> Sampled<'s> {
        Sampled { session, state: RefCell::default() }
    }

    /// A plan for which rows could not all be asked is not the one that the next attempt makes.
    ///
    /// # Errors
    /// That the statement has to go on where it may block.
    pub(in crate::plan) fn finish(&self) -> SqlResult<()> {
        if self.state.borrow().interrupted { Err(SqlError::needs_blocking()) } else { Ok(()) }
    }

    /// How many rows of a table's sample meet a condition; `None` if there is no sample, or it cannot be said yet.
    pub(in crate::plan) fn count(&self, table: &Arc<Table>, slot: u16, condition: &Expr) -> Option<Count> {
        let sample = table.sample().filter(|sample| !sample.rows.is_empty())?;
        let whole = sample.is_whole();
        if !whole && sample.rows.len() < 2 * FEWEST || !is_countable(condition, slot) {
            return None;
        }
        let state = &mut *self.state.borrow_mut();
        if let Some((_, _, count)) =
            state.known.iter().find(|(of, known, _)| *of == slot && known.same(condition))
        {
            return *count;
        }
        let count = self.matches(&sample, table, slot, condition, state);
        let count = count.map(|matches| Count { matches, of: sample.rows.len(), whole });
        state.known.push((slot, condition.clone(), count));
        count
    }

    /// `None` if a row cannot be asked: the statement will say why.
    fn matches(
        &self,
        sample: &RowSample,
        table: &Arc<Table>,
        slot: u16,
        condition: &Expr,
        state: &mut Samples,
    ) -> Option<usize> {
        let session = self.session;
        let scratch = state.scratch.get_or_insert_with(|| Box::new(session.aside()));
        let mut storage = NoStorage;
        let mut cx = Context::new(scratch, &mut storage, &[]);
        cx.reserve(usize::from(slot) + 1, 0);
        let mut matches = 0;
        for row in &sample.rows {
            cx.frame[usize::from(slot)] = Slot { table: Some(table.clone()), row: Row::Image(row.clone()) };
            match condition.eval_bool(&mut cx) {
                Ok(result) => matches += usize::from(result == Some(true)),
                Err(interrupt) => {
                    state.interrupted |= matches!(interrupt, Interrupt::NeedBlocking);
                    return None;
                }
            }
        }
        cx.session.diagnostics.clear();
        Some(matches)
    }
}

/// Whether a condition reads rows of one slot and nothing else.
fn is_countable(condition: &Expr, slot: u16) -> bool {
    let slots = condition.slots();
    if !slots.contains(slot) || !slots.within(&SlotSet::of(slot)) {
        return false;
    }
    let mut countable = true;
    condition.walk(&mut |e| {
        countable &= match &e.kind {
            Kind::RowKey(_)
            | Kind::Present(_)
            | Kind::Once(..)
            | Kind::Subquery(_)
            | Kind::Assign(_)
            | Kind::UserVariable(_)
            | Kind::SystemVariable(_)
            | Kind::ServerCall(..)
            | Kind::Sequence(_)
            | Kind::Stored(_)
            | Kind::Local(_)
            | Kind::Param(_) => false,
            Kind::Call(def, _) => def.traits & (VOLATILE | SESSION) == 0,
            _ => true,
        };
    });
    countable
}
