//! Holders of locks and those who wait for them, by the names of tables and indexes.

use omnibus_locks::{LockTarget, TableLockInfo, WaitInfo};
use omnibus_sql::catalog::Table;
use omnibus_sql::{Database, locked_table};
use std::sync::Arc;

/// A session that waits for a lock.
#[derive(Clone, Debug)]
pub struct LockedOut {
    /// Its connection.
    pub waiter: u64,
    /// Connections that it waits for.
    pub blockers: Vec<u64>,
    /// The lock's mode.
    pub mode: &'static str,
    /// The table's database; empty if it is gone.
    pub db: String,
    /// The table.
    pub table: String,
    /// Since when.
    pub waited: std::time::Duration,
}

impl LockedOut {
    /// `db.table`.
    #[must_use]
    pub fn table_name(&self) -> String {
        if self.table.is_empty() { String::new() } else { format!("{}.{}", self.db, self.table) }
    }
}

/// A table's lock, with the names that it stands for.
#[derive(Clone, Debug)]
pub struct TableLocked {
    /// `db` and name; `None`: all tables (FLUSH TABLES WITH READ LOCK).
    pub table: Option<(String, String)>,
    /// The connection.
    pub owner: u64,
    /// `IS`, `IX`, `S`, `SIX` or `X`.
    pub mode: &'static str,
    /// It has it.
    pub granted: bool,
}

/// Returns the sessions that wait for a lock now.
pub(crate) fn lock_waits(database: &Database) -> Vec<LockedOut> {
    let catalog = database.catalog();
    let of_space = |space: u32| {
        let has = |table: &&Arc<Table>| table.indexes().iter().any(|index| index.space.0 == space);
        catalog.tables().find(has).cloned()
    };
    let named = |wait: WaitInfo| {
        let found = match wait.target {
            LockTarget::Record { space, .. } | LockTarget::Range { space } => of_space(space),
            LockTarget::Gate => None,
            LockTarget::Table { table } => {
                let table = locked_table(table);
                catalog.tables().find(|found| found.def.id == table).cloned()
            }
        };
        let (db, table) = match found {
            Some(table) => (table.def.db.to_string(), table.def.name.to_string()),
            None => Default::default(),
        };
        let WaitInfo { waiter, blockers, mode, waited, .. } = wait;
        LockedOut { waiter, blockers, mode, db, table, waited }
    };
    database.locks().waits().into_iter().map(named).collect()
}

/// Returns the sessions that have, or want, a table's lock.
pub(crate) fn table_locks(database: &Database) -> Vec<TableLocked> {
    let catalog = database.catalog();
    let name = |id: u64| {
        let table = catalog.tables().find(|table| table.def.id == locked_table(id));
        table.map(|table| (table.def.db.to_string(), table.def.name.to_string()))
    };
    let named = |lock: TableLockInfo| {
        let TableLockInfo { table, owner, mode, granted } = lock;
        // The lock that keeps other definitions away from a build, and that they wait for.
        let mode = if table.is_some_and(|id| id != locked_table(id)) { "SU" } else { mode };
        // What is no table is the order of definitions among themselves.
        let table = table.map(name).map_or(Some(None), |found| found.map(Some))?;
        Some(TableLocked { table, owner, mode, granted })
    };
    database.locks().table_locks().into_iter().filter_map(named).collect()
}

/// Lines for SHOW STATUS: row locks and memory, by the names that monitoring knows. Does not block.
pub(crate) fn counters(database: &Database) -> Vec<(String, String)> {
    let locks = database.locks().stats();
    let locks = [
        ("Innodb_row_lock_current_waits", locks.current_waits),
        ("Innodb_row_lock_waits", locks.waits),
        ("Innodb_row_lock_time", locks.wait_us_total / 1000),
        ("Innodb_row_lock_time_avg", locks.wait_us_total / 1000 / locks.waits.max(1)),
        ("Innodb_row_lock_time_max", locks.wait_us_max / 1000),
        ("Innodb_row_lock_timeouts", locks.timeouts),
        ("Innodb_deadlocks", locks.deadlocks),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_string()));
    [&locks[..], &database.memory().counters()].concat()
}
