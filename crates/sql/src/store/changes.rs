//! What a transaction is about to change: its writes with the memory they take, and what its commit defines.

use super::definition::OpenDefinition;
use super::lock::LockSet;
use super::memory::TrxMemory;
use super::statement::StatementScope;
use super::trx::ROW_TICKS;
use crate::catalog::{Catalog, TableState};
use crate::error::{ExecResult, SqlError, SqlResult};
use omnibus_engine::WriteSet;
use std::sync::Arc;

/// See the module's text.
pub(crate) struct Changes {
    pub(crate) writes: WriteSet,
    pub(super) memory: TrxMemory,
    /// A table that its commit makes.
    pub(super) definition: Option<Box<OpenDefinition>>,
    /// Rows added and removed, per table, for estimates only: a rolled back statement's stay in.
    pub(super) deltas: Vec<(Arc<TableState>, i64)>,
}

impl Changes {
    pub(super) fn new(memory: TrxMemory) -> Changes {
        Changes { writes: WriteSet::default(), memory, definition: None, deltas: Vec::new() }
    }

    /// The transaction is over.
    pub(super) fn end(&mut self) {
        self.definition = None;
        self.writes.clear();
        self.memory.ended();
        self.deltas.clear();
    }

    /// The commit that follows makes this true.
    pub(crate) fn open_definition(&mut self, definition: OpenDefinition) {
        self.definition = Some(Box::new(definition));
    }

    /// The catalog that an open definition of this transaction makes.
    pub(crate) fn open_catalog(&self) -> Option<&Arc<Catalog>> {
        self.definition.as_ref().map(|definition| definition.catalog())
    }

    /// Counts a row that was locked or changed.
    pub(super) fn touch(&mut self, statement: &StatementScope, locks: &LockSet) -> ExecResult<()> {
        let room = &statement.attempt.room;
        if room.is_full(&self.writes) {
            self.spill(statement)?;
        }
        if let Err(refused) = self.memory.touched(room, &self.writes, &locks.owned) {
            self.make_room(refused, statement, locks)?;
        }
        locks.budget.spend(ROW_TICKS)
    }

    /// A limit has no room: writes go to a file. If that gives back little, record locks become those of whole indexes.
    #[cold]
    fn make_room(
        &mut self,
        refused: SqlError,
        statement: &StatementScope,
        locks: &LockSet,
    ) -> ExecResult<()> {
        let room = &statement.attempt.room;
        let (held, locked) = (self.writes.held() as u64, locks.owned.memory() as u64);
        let spills = room.may_spill(held);
        if spills {
            self.spill(statement)?;
        }
        let widened = (held < locked / 4 || !spills) && locks.owned.widen() > 0;
        if !spills && !widened {
            return Err(refused.into());
        }
        if widened {
            tracing::info!(
                session = locks.owned.id(),
                "a transaction's row locks do not fit memory: it locks whole indexes"
            );
        }
        self.memory.touched(room, &self.writes, &locks.owned)?;
        self.memory.undone(room, &self.writes);
        Ok(())
    }

    /// Moves the writes to a file, where a statement may wait for a disk.
    #[cold]
    fn spill(&mut self, statement: &StatementScope) -> ExecResult<()> {
        statement.waits().may_block()?;
        self.memory.spill(&statement.attempt.room, &mut self.writes)?;
        self.memory.undone(&statement.attempt.room, &self.writes);
        Ok(())
    }

    /// Moves the writes to a file, if they are many: for who counts no rows, and may block.
    pub(crate) fn relieve(&mut self, statement: &StatementScope) -> SqlResult<()> {
        self.memory.relieve(&statement.attempt.room, &mut self.writes)
    }

    /// Notes that a table gained or lost a row.
    pub(super) fn count_row(&mut self, state: &Arc<TableState>, delta: i64) {
        match self.deltas.iter_mut().find(|(of, _)| Arc::ptr_eq(of, state)) {
            Some((_, sum)) => *sum += delta,
            None => self.deltas.push((state.clone(), delta)),
        }
    }
}
