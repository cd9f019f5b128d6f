//! Table locks: of statements for the length of their transaction, and those that outlive it (LOCK TABLES, FLUSH TABLES WITH
//! READ LOCK).

use super::backup_lock::InstanceLock;
use super::lock::{LockSet, Waits};
use super::trx::{Trx, TrxContext, need_replan};
use crate::api::Budget;
use crate::catalog::{Table, View};
use crate::error::{ExecResult, SqlError, SqlResult};
use omnibus_locks::TableMode;
use std::sync::Arc;

/// A table or view that LOCK TABLES locks.
pub(crate) enum Locked {
    Table(Arc<Table>),
    View(Arc<View>),
}

impl Locked {
    fn id(&self) -> u64 {
        match self {
            Locked::Table(table) => table.def.id,
            Locked::View(view) => view.def.id,
        }
    }

    fn is_stale(&self) -> bool {
        match self {
            Locked::Table(table) => table.is_stale(),
            Locked::View(view) => view.is_stale(),
        }
    }
}

/// Tables and how they are locked.
type TableLocks = Vec<(u64, TableMode)>;

/// LOCK TABLES or FLUSH TABLES WITH READ LOCK is in force: the session's, whatever becomes of its transactions.
struct HeldTables {
    tables: TableLocks,
    /// It is FLUSH TABLES WITH READ LOCK.
    read_lock: bool,
}

/// The locks of a session: its transaction's, and those that outlive it.
pub(crate) struct SessionLocks {
    pub(super) shared: Arc<TrxContext>,
    pub(crate) rows: LockSet,
    /// Tables locked by this transaction. None while others are held.
    pub(super) tables: TableLocks,
    held: Option<HeldTables>,
    /// A trigger runs, whose tables are locked beside those that LOCK TABLES names.
    pub(crate) beside: bool,
    pub(crate) backup: InstanceLock,
    /// The table that a definition statement lets others use meanwhile, and what it holds of it.
    pub(super) aside: Option<(u64, TableMode)>,
    /// A commit is on its way, which will release the locks when its versions are installed. Whoever released them sooner would let
    /// others read what it is about to replace. With the tables that it drops, which LOCK TABLES has until it is known to be done.
    pub(super) handed_over: Option<Vec<u64>>,
}

impl SessionLocks {
    pub(super) fn new(shared: &Arc<TrxContext>, session: u64, budget: Arc<Budget>) -> SessionLocks {
        SessionLocks {
            rows: LockSet::new(shared, session, budget),
            tables: Vec::new(),
            held: None,
            beside: false,
            backup: InstanceLock::new(shared),
            aside: None,
            handed_over: None,
            shared: shared.clone(),
        }
    }

    /// A statement begins. The ticket of the one before should have been waited for. If it was not, the commit keeps its
    /// locks to itself, and this statement waits for them like anybody.
    pub(super) fn begin_statement(&mut self) {
        if self.handed_over.is_some() && self.held.is_none() && Arc::strong_count(&self.rows.owned) > 1 {
            self.rows.replace();
        }
    }

    /// The transaction is over: what neither its commit nor LOCK TABLES has goes.
    pub(super) fn end(&mut self) {
        self.aside = None;
        self.tables.clear();
        match (self.handed_over.is_some(), self.held.is_some()) {
            (true, _) => {}
            (false, true) => {
                self.rows.owned.release_records();
                self.unlock_definitions();
            }
            (false, false) => self.rows.owned.release_all(),
        }
    }

    /// LOCK TABLES names what the session uses; what a foreign key looks at is locked beside that.
    pub(super) fn lock_relation(&mut self, waits: Waits, id: u64, mode: TableMode) -> ExecResult<()> {
        if self.holds_table(id, mode) {
            return Ok(());
        }
        self.rows.lock_table_id(waits, id, mode)?;
        if self.held.is_none() && !self.tables.iter().any(|(held, _)| *held == id) {
            self.tables.push((id, mode));
        }
        Ok(())
    }

    /// LOCK TABLES: all at once or none. They outlive transactions until `unlock_tables`.
    ///
    /// # Errors
    /// Lock waits; 1615 if a definition changed meanwhile.
    pub(crate) fn lock_tables(
        &mut self,
        waits: Waits,
        mut tables: Vec<(Locked, TableMode)>,
    ) -> ExecResult<()> {
        // A name that stands for two aliases is locked once, in the stronger mode.
        tables.sort_by_key(|(table, mode)| (table.id(), std::cmp::Reverse(table_mode_rank(*mode))));
        tables.dedup_by_key(|(table, _)| table.id());
        let wanted: Vec<_> = tables.iter().map(|(table, mode)| (table.id(), *mode)).collect();
        self.lock_together(waits, &wanted, &mut Vec::new())?;
        if tables.iter().any(|(table, _)| table.is_stale()) {
            return Err(need_replan().into());
        }
        // Who had the locks before may have given them back ahead of the device: its rows are there for readers, too.
        self.shared.await_snapshot_of(self.shared.port.numbered(), self.rows.budget.kill())?;
        self.tables.clear();
        self.held = Some(HeldTables { tables: wanted, read_lock: self.has_read_lock() });
        Ok(())
    }

    /// Whether LOCK TABLES is in force.
    #[must_use]
    pub fn has_locked_tables(&self) -> bool {
        self.held.is_some()
    }

    /// Tables that are locked by their names: under LOCK TABLES those, else the transaction's.
    pub(super) fn named(&mut self) -> &mut TableLocks {
        match &mut self.held {
            Some(held) => &mut held.tables,
            None => &mut self.tables,
        }
    }

    /// UNLOCK TABLES: the table locks go with the commit or rollback that must follow.
    pub fn unlock_tables(&mut self) {
        let Some(held) = self.held.take() else { return };
        self.tables = held.tables;
        if held.read_lock {
            self.rows.owned.open_gate();
        }
    }

    /// Keeps the views of a statement as they are until the transaction ends, so that the log has them in an order that others
    /// can follow.
    ///
    /// # Errors
    /// As `lock_table`.
    pub(crate) fn lock_views(&mut self, waits: Waits, views: &[Arc<View>]) -> ExecResult<()> {
        for view in views {
            self.lock_named(waits, view.def.id, &view.def.name, TableMode::IntentShared)?;
            if view.is_stale() {
                return Err(need_replan().into());
            }
        }
        Ok(())
    }

    pub(super) fn lock_named(
        &mut self,
        waits: Waits,
        id: u64,
        name: &str,
        mode: TableMode,
    ) -> ExecResult<()> {
        if self.holds_table(id, mode) {
            return Ok(());
        }
        let held = self.held_table(id);
        if self.has_read_lock() {
            return if mode == TableMode::IntentShared {
                self.rows.lock_table_id(waits, id, mode)
            } else {
                Err(read_locked().into())
            };
        }
        if self.held.is_some() && held.is_none() {
            return Err(not_locked(name).into());
        }
        if self.held.is_some() && held == Some(TableMode::Shared) {
            return Err(only_read_locked(name).into());
        }
        self.rows.lock_table_id(waits, id, mode)?;
        let tables = self.named();
        tables.retain(|(held, _)| *held != id);
        tables.push((id, mode));
        Ok(())
    }

    pub(super) fn held_table(&self, id: u64) -> Option<TableMode> {
        let tables = self.held.as_ref().map_or(&self.tables, |held| &held.tables);
        tables.iter().find(|(held, _)| *held == id).map(|(_, mode)| *mode)
    }

    /// Whether the transaction has a table locked as strongly as this.
    pub(super) fn holds_table(&self, id: u64, mode: TableMode) -> bool {
        self.held_table(id).is_some_and(|held| table_mode_rank(held) >= table_mode_rank(mode))
    }

    /// Whether FLUSH TABLES WITH READ LOCK is in force.
    #[must_use]
    pub fn has_read_lock(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.read_lock)
    }

    /// Fails if this session has locked itself out with FLUSH TABLES WITH READ LOCK.
    pub(crate) fn check_no_read_lock(&self) -> SqlResult<()> {
        if self.has_read_lock() { Err(read_locked()) } else { Ok(()) }
    }

    /// FLUSH TABLES WITH READ LOCK, first half: nobody begins to write. In force when `others_write` is false.
    pub(crate) fn take_read_lock(&mut self, waits: Waits) -> ExecResult<()> {
        let request = self.rows.owned.close_gate();
        if let Err(error) = self.rows.await_lock(waits, request) {
            self.rows.owned.open_gate();
            return Err(error);
        }
        let tables = std::mem::take(self.named());
        self.held = Some(HeldTables { tables, read_lock: true });
        Ok(())
    }
}

/// Tables are gone. Who had no others locked may use any again.
pub(super) fn forget_tables(locks: &mut SessionLocks, gone: &[u64]) {
    let tables = locks.named();
    let before = tables.len();
    tables.retain(|(id, _)| !gone.contains(id));
    if tables.is_empty() && before > 0 && locks.has_locked_tables() && !locks.has_read_lock() {
        locks.unlock_tables();
    }
}

impl Trx {
    /// Locks a table for this transaction and checks that `table` is still what it is called.
    ///
    /// # Errors
    /// Waits as any lock; 1615 if the definition changed meanwhile: plan again; 1100 under LOCK
    /// TABLES if the table was not among them.
    pub fn lock_table(&mut self, table: &Table, mode: TableMode) -> ExecResult<()> {
        self.branch.check_active()?;
        if table.temporary {
            return Ok(());
        }
        let (waits, id) = (self.statement.waits(), table.def.id);
        let beside = self.locks.beside && self.locks.has_locked_tables() && !self.locks.has_read_lock();
        if beside && self.locks.held_table(id).is_none() {
            self.locks.lock_relation(waits, id, mode)?;
        } else {
            self.locks.lock_named(waits, id, &table.def.name, mode)?;
        }
        if table.is_stale() {
            return Err(need_replan().into());
        }
        Ok(())
    }
}

/// Whether LOCK TABLES has a table, and for writing.
pub(crate) fn is_locked(locks: &SessionLocks, id: u64) -> Option<bool> {
    locks.held_table(id).map(|mode| mode == TableMode::Exclusive)
}

pub(crate) fn not_locked(table: &str) -> SqlError {
    SqlError::new(1100, b"HY000", format!("Table '{table}' was not locked with LOCK TABLES"))
}

pub(crate) fn only_read_locked(table: &str) -> SqlError {
    let message = format!("Table '{table}' was locked with a READ lock and can't be updated");
    SqlError::new(1099, b"HY000", message)
}

fn read_locked() -> SqlError {
    SqlError::new(1223, b"HY000", "Can't execute the query because you have a conflicting read lock")
}

fn table_mode_rank(mode: TableMode) -> u8 {
    match mode {
        TableMode::IntentShared => 0,
        TableMode::Shared => 1,
        TableMode::IntentExclusive => 2,
        TableMode::Exclusive => 3,
    }
}
