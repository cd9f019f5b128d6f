//! The target of a worker: executes at once, and commits when it is its transaction's turn.
//!
//! While it waits it holds row locks. Where an earlier transaction needs one of them, which write sets cannot always
//! foresee, the later one gives way: it is rolled back and tried again when its turn has come. So the two never wait for
//! each other.

use super::applying::Applying;
use super::threads::Doing;
use omnibus_commit::Ticket;
use omnibus_format::events::XaPrepare;
use omnibus_replication::changes::{ApplyError, ApplyTarget, Position};
use omnibus_replication::model::{RowsView, StatementView, TrxHeader};
use omnibus_replication::replica::Turn;
use omnibus_sql::apply::Applier;
use std::time::Duration;

/// How long a worker waits for its turn before it looks whether it is in the way.
const PATIENCE: Duration = Duration::from_millis(5);

/// Why a transaction did not come to its commit, besides errors of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interrupted {
    /// An earlier transaction needs a lock that it holds.
    GaveWay,
    /// Applying ends.
    Stopped,
}

pub(super) struct Ordered<'a> {
    pub(super) applier: &'a mut Applier,
    pub(super) applying: &'a Applying,
    /// The worker's number.
    pub(super) slot: usize,
    pub(super) place: Turn,
    pub(super) interrupted: Option<Interrupted>,
}

impl Ordered<'_> {
    fn my_turn(&mut self) -> Result<(), ApplyError> {
        self.applying.slots[self.slot].lane.doing(Doing::Turn);
        loop {
            let interrupted = match self.applying.turns.wait(self.place.number - 1, PATIENCE) {
                Some(true) => return Ok(()),
                None => Interrupted::Stopped,
                Some(false) if self.applying.is_in_the_way(self.slot, self.place.number) => {
                    Interrupted::GaveWay
                }
                Some(false) => continue,
            };
            self.interrupted = Some(interrupted);
            return Err(ApplyError::new(1213, "an earlier transaction goes first"));
        }
    }
}

impl ApplyTarget for Ordered<'_> {
    type Ticket = Ticket;

    fn begin(&mut self, trx: &TrxHeader) -> Result<(), ApplyError> {
        self.applier.begin(trx)
    }

    fn ends_with(&mut self, position: Option<&Position>) {
        self.applier.ends_with(position);
    }

    fn statement(&mut self, statement: &dyn StatementView) -> Result<(), ApplyError> {
        self.applier.statement(statement)
    }

    fn rows(&mut self, rows: &dyn RowsView) -> Result<(), ApplyError> {
        self.applier.rows(rows)
    }

    fn commit(&mut self, position: Option<&Position>) -> Result<Ticket, ApplyError> {
        self.my_turn()?;
        self.applier.commit(position)
    }

    fn prepare(&mut self, xid: &XaPrepare<'_>, position: Option<&Position>) -> Result<Ticket, ApplyError> {
        self.my_turn()?;
        self.applier.prepare(xid, position)
    }

    fn rollback(&mut self) {
        self.applier.rollback();
    }
}
