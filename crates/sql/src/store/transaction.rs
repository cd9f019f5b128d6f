//! The state that ends with a transaction: its characteristics, what it is about to change, and what its commit makes true.
//!
//! A commit or rollback takes it ([`Transaction::take`]): a commit hands parts of it over, and the rest is dropped. Its events are in the
//! session's trx cache ([`super::log::TrxLog`]), which a commit takes along and a rollback empties: another one would count what all
//! sessions share.

use super::counters::Covers;
use super::definition::OpenDefinition;
use super::lock::LockSet;
use super::memory::TrxMemory;
use super::savepoint::Savepoints;
use super::statement::StatementScope;
use super::trx::ROW_TICKS;
use crate::api::Isolation;
use crate::catalog::{Catalog, TableState};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::storage::LockMode;
use bytes::Bytes;
use omnibus_commit::TrxCache;
use omnibus_engine::WriteSet;
use std::sync::Arc;

/// The characteristics that START TRANSACTION and its kin give a transaction.
#[derive(Clone, Copy)]
pub(super) struct Characteristics {
    /// START TRANSACTION or the first statement under autocommit=0 has opened it.
    pub open: bool,
    /// START TRANSACTION READ ONLY.
    pub read_only: bool,
    pub isolation: Isolation,
}

impl Characteristics {
    /// The lock that a read takes: plain reads lock at SERIALIZABLE inside a transaction.
    pub(super) fn lock_of(&self, lock: LockMode) -> LockMode {
        match lock {
            LockMode::None if self.open && self.isolation == Isolation::Serializable => LockMode::Share,
            lock => lock,
        }
    }

    /// Whether ranges are locked too.
    pub(super) fn locks_ranges(&self) -> bool {
        self.isolation >= Isolation::RepeatableRead
    }
}

/// See the module's text.
pub(crate) struct Transaction {
    pub(super) characteristics: Characteristics,
    pub(crate) writes: WriteSet,
    pub(super) memory: TrxMemory,
    pub(crate) savepoints: Savepoints,
    /// A table that its commit makes.
    pub(super) definition: Option<Box<OpenDefinition>>,
    /// Rows added and removed, per table, for estimates only: a rolled back statement's stay in.
    pub(super) deltas: Vec<(Arc<TableState>, i64)>,
    /// Counter rows among the writes.
    pub(super) covers: Vec<Covers>,
    /// Sequences whose rows it writes.
    pub(super) sequences: Vec<Arc<TableState>>,
    /// The key of a channel's position among the writes: no row event tells of it.
    pub(super) position: Option<Bytes>,
    /// It has an id that must not be forgotten, whatever else it has.
    pub(super) keeps_id: bool,
}

impl Transaction {
    /// None yet.
    pub(super) fn new(memory: TrxMemory, isolation: Isolation) -> Transaction {
        Transaction {
            characteristics: Characteristics { open: false, read_only: false, isolation },
            writes: WriteSet::default(),
            memory,
            savepoints: Savepoints::default(),
            definition: None,
            deltas: Vec::new(),
            covers: Vec::new(),
            sequences: Vec::new(),
            position: None,
            keeps_id: false,
        }
    }

    /// It is over, and none is in its place. The isolation level stays for a statement that ends it and goes on.
    pub(super) fn take(&mut self) -> Transaction {
        let next = Transaction::new(self.memory.another(), self.characteristics.isolation);
        let mut ended = std::mem::replace(self, next);
        if ended.deltas.is_empty() {
            // The list keeps its room.
            std::mem::swap(&mut self.deltas, &mut ended.deltas);
        }
        ended
    }

    /// Isolation and access mode.
    #[must_use]
    pub(crate) fn characteristics(&self) -> (Isolation, bool) {
        (self.characteristics.isolation, self.characteristics.read_only)
    }

    /// Whether ending it takes so long that it needs a thread that may block. `cache`: its events.
    pub(super) fn is_large(&self, cache: &TrxCache) -> bool {
        self.writes.is_spilled() || self.writes.entries() >= omnibus_commit::STAGED_KEYS || cache.is_large()
    }

    /// The counter rows that it still writes, and what else no row event tells of.
    ///
    /// # Errors
    /// The writes could not be read.
    pub(super) fn unlogged_keys(&mut self) -> SqlResult<Vec<Bytes>> {
        for covers in std::mem::take(&mut self.covers) {
            if let Some(key) = &covers.keys[0]
                && matches!(self.writes.get(key)?, Some(Some(_)))
            {
                self.covers.push(covers);
            }
        }
        let counters = self.covers.iter().flat_map(|covers| covers.keys.iter().flatten().cloned());
        Ok(counters.chain(self.position.iter().cloned()).collect())
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
        self.memory.touched();
        self.count(statement, locks)?;
        locks.budget.spend(ROW_TICKS)
    }

    /// Counts what it holds now.
    #[inline]
    pub(super) fn count(&mut self, statement: &StatementScope, locks: &LockSet) -> ExecResult<()> {
        match self.memory.count(&statement.attempt.room, &self.writes, &locks.owned) {
            Ok(()) => Ok(()),
            Err(refused) => self.make_room(refused, statement, locks),
        }
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
        self.memory.count(room, &self.writes, &locks.owned)?;
        self.memory.undone(&self.writes);
        Ok(())
    }

    /// Moves the writes to a file, where a statement may wait for a disk.
    #[cold]
    fn spill(&mut self, statement: &StatementScope) -> ExecResult<()> {
        statement.waits().may_block()?;
        self.memory.spill(&statement.attempt.room, &mut self.writes)?;
        self.memory.undone(&self.writes);
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
