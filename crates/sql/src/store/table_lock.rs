//! Table locks: of statements for the length of their transaction, and those that outlive it (LOCK TABLES, FLUSH TABLES WITH
//! READ LOCK).

use super::trx::{Trx, need_replan};
use crate::catalog::{Table, View};
use crate::error::{ExecResult, SqlError, SqlResult};
use omnibus_locks::{Request, TableMode};
use std::sync::Arc;

/// What LOCK TABLES locks.
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

impl Trx {
    /// LOCK TABLES: all at once or none. They outlive transactions until `unlock_tables`.
    ///
    /// # Errors
    /// Lock waits; 1615 if a definition changed meanwhile.
    pub(crate) fn lock_tables(&mut self, mut tables: Vec<(Locked, TableMode)>) -> ExecResult<()> {
        // A name that stands for two aliases is locked once, in the stronger mode.
        tables.sort_by_key(|(table, mode)| (table.id(), std::cmp::Reverse(table_mode_rank(*mode))));
        tables.dedup_by_key(|(table, _)| table.id());
        let wanted: Vec<_> = tables.iter().map(|(table, mode)| (table.id(), *mode)).collect();
        self.lock_together(&wanted, &mut Vec::new())?;
        if tables.iter().any(|(table, _)| table.is_stale()) {
            return Err(need_replan().into());
        }
        // Who had the locks before may have given them back ahead of the device: its rows are there for readers, too.
        self.await_snapshot_of(self.shared.port.numbered())?;
        self.tables = wanted;
        self.locked_tables = true;
        Ok(())
    }

    /// Whether LOCK TABLES is in force.
    #[must_use]
    pub fn has_locked_tables(&self) -> bool {
        self.locked_tables
    }

    /// UNLOCK TABLES: the table locks go with the commit or rollback that must follow.
    pub fn unlock_tables(&mut self) {
        self.locked_tables = false;
        if std::mem::take(&mut self.read_lock) {
            self.locks.open_gate();
        }
    }

    /// Locks a table for this transaction and checks that `table` is still what it is called.
    ///
    /// # Errors
    /// Waits as any lock; 1615 if the definition changed meanwhile: plan again; 1100 under LOCK
    /// TABLES if the table was not among them.
    pub fn lock_table(&mut self, table: &Table, mode: TableMode) -> ExecResult<()> {
        self.check_branch()?;
        if table.temporary {
            return Ok(());
        }
        self.lock_named(table.def.id, &table.def.name, mode)?;
        if table.is_stale() {
            return Err(need_replan().into());
        }
        Ok(())
    }

    /// Keeps the views of a statement as they are until the transaction ends, so that the log has them in an order that others
    /// can follow.
    ///
    /// # Errors
    /// As `lock_table`.
    pub(crate) fn lock_views(&mut self, views: &[Arc<View>]) -> ExecResult<()> {
        for view in views {
            self.lock_named(view.def.id, &view.def.name, TableMode::IntentShared)?;
            if view.is_stale() {
                return Err(need_replan().into());
            }
        }
        Ok(())
    }

    fn lock_named(&mut self, id: u64, name: &str, mode: TableMode) -> ExecResult<()> {
        if self.holds_table(id, mode) {
            return Ok(());
        }
        let held = self.held_table(id);
        if self.read_lock {
            return if mode == TableMode::IntentShared {
                self.lock_table_id(id, mode)
            } else {
                Err(read_locked().into())
            };
        }
        if self.locked_tables && held.is_none() {
            return Err(not_locked(name).into());
        }
        if self.locked_tables && held == Some(TableMode::Shared) {
            return Err(only_read_locked(name).into());
        }
        self.lock_table_id(id, mode)?;
        self.tables.retain(|(held, _)| *held != id);
        self.tables.push((id, mode));
        Ok(())
    }

    fn held_table(&self, id: u64) -> Option<TableMode> {
        self.tables.iter().find(|(held, _)| *held == id).map(|(_, mode)| *mode)
    }

    /// Whether the transaction has a table locked as strongly as this.
    pub(super) fn holds_table(&self, id: u64, mode: TableMode) -> bool {
        self.held_table(id).is_some_and(|held| table_mode_rank(held) >= table_mode_rank(mode))
    }

    /// Locks a table by its number, whatever it is. What is waited for first may be the gate in front of all writers.
    pub(crate) fn lock_table_id(&mut self, id: u64, mode: TableMode) -> ExecResult<()> {
        loop {
            match self.locks.lock_table(id, mode) {
                Request::Granted { .. } => return Ok(()),
                wait => self.await_lock(wait)?,
            };
        }
    }

    /// Whether FLUSH TABLES WITH READ LOCK is in force.
    #[must_use]
    pub fn has_read_lock(&self) -> bool {
        self.read_lock
    }

    /// Fails if this session has locked itself out with FLUSH TABLES WITH READ LOCK.
    pub(crate) fn check_no_read_lock(&self) -> SqlResult<()> {
        if self.read_lock { Err(read_locked()) } else { Ok(()) }
    }

    /// FLUSH TABLES WITH READ LOCK, first half: nobody begins to write. In force when `others_write` is false.
    pub(crate) fn take_read_lock(&mut self) -> ExecResult<()> {
        let request = self.locks.close_gate();
        if let Err(error) = self.await_lock(request) {
            self.locks.open_gate();
            return Err(error);
        }
        self.read_lock = true;
        self.locked_tables = true;
        Ok(())
    }

    /// Whether some transaction writes.
    pub(crate) fn others_write(&self) -> bool {
        self.locks.others_write()
    }

    /// Locks that outlive transactions are the session's when what was written under others' before is published, since
    /// plain reads follow: the reply that grants them waits for it.
    pub(crate) fn see_everything(&self) {
        self.floor.see_everything();
    }
}

pub(super) fn not_locked(table: &str) -> SqlError {
    SqlError::new(1100, b"HY000", format!("Table '{table}' was not locked with LOCK TABLES"))
}

pub(super) fn only_read_locked(table: &str) -> SqlError {
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
