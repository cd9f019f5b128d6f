//! The locks of a definition statement: the tables that it names, each for itself, and then the one lock that makes
//! definitions wait for each other. On a thread that may block.
//!
//! Tables come first, so that a definition that waits for one keeps no other definition waiting; under LOCK TABLES they are
//! there already. What a name means is looked up before and after: somebody may have given it to another table meanwhile.
//! Locks that are held are kept then, because those who wait behind them must not get in between.

use super::lock::Waits;
use super::table_lock::SessionLocks;
use crate::catalog::{Catalog, Table};
use crate::error::{ExecResult, Interrupt, SqlError};
use omnibus_locks::TableMode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often a definition looks whether there is room.
const LOOK: Duration = Duration::from_millis(50);

/// How often the locks are given up and asked for again because of a deadlock. Two definitions, or LOCK TABLES, that meet
/// need one attempt more, and beside many writers it may be several; a deadlock that comes back is the statement's error.
const ATTEMPTS: u32 = 100;

/// The names whose definitions a statement changes.
#[derive(Clone, Copy)]
pub(crate) enum Names<'a> {
    /// Tables, by database and name; those that are there are locked, in this order.
    Tables(&'a [(String, String)]),
    /// A database with all its tables.
    Database(&'a str),
}

impl Names<'_> {
    /// The numbers of what is there of it, views among it, and of the tables that foreign keys connect to it.
    fn find(self, catalog: &Catalog) -> Vec<u64> {
        let mut found: Vec<u64> = self.tables(catalog).iter().map(|table| table.def.id).collect();
        found.extend(self.views(catalog));
        found
    }

    fn tables(self, catalog: &Catalog) -> Vec<Arc<Table>> {
        let mut found = self.named(catalog);
        let mut related: Vec<Arc<Table>> = Vec::new();
        for table in &found {
            let parents = table.def.foreign_keys.iter();
            related
                .extend(parents.filter_map(|key| catalog.find_table(&key.parent_db, &key.parent).cloned()));
            related.extend(
                catalog.children(&table.def.db, &table.def.name).into_iter().map(|child| child.table),
            );
        }
        // Those that wait for a table of a name that is new.
        if let Names::Tables(names) = self {
            let children = names.iter().flat_map(|(db, name)| catalog.children(db, name));
            related.extend(children.map(|child| child.table));
        }
        for table in related {
            if !found.iter().any(|other| other.def.id == table.def.id) {
                found.push(table);
            }
        }
        found
    }

    fn views(self, catalog: &Catalog) -> Vec<u64> {
        match self {
            Names::Tables(names) => {
                let found = names.iter().filter_map(|(db, name)| catalog.find_view(db, name));
                found.map(|view| view.def.id).collect()
            }
            Names::Database(name) => catalog
                .schemas
                .get(name)
                .map_or_else(Vec::new, |schema| schema.views.values().map(|view| view.def.id).collect()),
        }
    }

    fn named(self, catalog: &Catalog) -> Vec<Arc<Table>> {
        match self {
            Names::Tables(names) => {
                names.iter().filter_map(|(db, name)| catalog.find_table(db, name).cloned()).collect()
            }
            Names::Database(name) => catalog
                .schemas
                .get(name)
                .map_or_else(Vec::new, |schema| schema.tables.values().cloned().collect()),
        }
    }
}

/// A definition that finds the disk full waits before it locks anything: behind its locks others would wait, who only read.
fn wait_for_room(locks: &SessionLocks) -> ExecResult<()> {
    let kill = locks.rows.budget.kill();
    kill.while_committing(|| {
        while locks.shared.port.waits_for_room() {
            kill.sleep(Instant::now() + LOOK)?;
        }
        Ok(())
    })
}

impl SessionLocks {
    /// Takes all locks of a definition statement; what the catalog then says of the names stays true until it commits.
    ///
    /// # Errors
    /// Lock waits; under LOCK TABLES 1100, 1099 and 1192 for what is not locked.
    pub(crate) fn lock_for_definition(&self, waits: Waits, names: Names<'_>) -> ExecResult<()> {
        if self.has_locked_tables() {
            self.check_locked(names)?;
        }
        wait_for_room(self)?;
        let begun = Instant::now();
        let mut held: Vec<u64> = Vec::new();
        let mut attempts = 0;
        loop {
            self.backup.wait_for_others(waits.patience, self.rows.budget.kill())?;
            let found = names.find(&self.shared.catalog.load());
            let wanted: Vec<_> = found.into_iter().map(|id| (id, TableMode::Exclusive)).collect();
            if !self.has_locked_tables() {
                self.lock_together(waits, &wanted, &mut held)?;
            }
            match self.lock_definitions(waits) {
                Ok(true) => {
                    let now = names.find(&self.shared.catalog.load());
                    if self.has_locked_tables() || now.iter().all(|id| held.contains(id)) {
                        return Ok(());
                    }
                    self.unlock_definitions();
                }
                // A backup has begun. Nobody waits for it behind this statement's locks.
                Ok(false) => self.release_tables(&mut held),
                // Whoever adds an index beside writers asks for this lock a second time, behind those who wait, with its table locked.
                Err(Interrupt::Error(error)) if error.code == 1213 && attempts < ATTEMPTS => {
                    self.release_tables(&mut held);
                    attempts += 1;
                }
                Err(error) => return Err(error),
            }
            if begun.elapsed() >= waits.patience.definitions {
                return Err(SqlError::lock_wait_timeout().into());
            }
        }
    }

    /// Locks tables one after the other, in this order. Deadlocks are solved by giving up those that this call, or one
    /// before it for the same statement, has locked (`held`), and beginning again.
    pub(crate) fn lock_together(
        &self,
        waits: Waits,
        wanted: &[(u64, TableMode)],
        held: &mut Vec<u64>,
    ) -> ExecResult<()> {
        let mut attempts = 0;
        'again: loop {
            for (id, mode) in wanted {
                if held.contains(id) {
                    continue;
                }
                match self.lock_one(waits, *id, *mode) {
                    Ok(()) => held.push(*id),
                    Err(Interrupt::Error(error)) if error.code == 1213 && attempts < ATTEMPTS => {
                        self.release_tables(held);
                        attempts += 1;
                        continue 'again;
                    }
                    Err(error) => return Err(error),
                }
            }
            return Ok(());
        }
    }

    pub(super) fn lock_one(&self, waits: Waits, id: u64, mode: TableMode) -> ExecResult<()> {
        if mode != TableMode::Exclusive {
            return self.rows.lock_table_id(waits, id, mode);
        }
        self.announce_definition(waits, id)?;
        let locked = self.rows.lock_table_id(waits, id, mode);
        self.end_announcement(id);
        locked
    }

    pub(super) fn release_tables(&self, held: &mut Vec<u64>) {
        for id in held.drain(..) {
            self.release_defined(id);
        }
    }

    /// Whether the tables that a definition names are locked as it needs them.
    pub(super) fn check_locked(&self, names: Names<'_>) -> ExecResult<()> {
        let Names::Tables(names) = names else { return Err(tables_are_locked().into()) };
        let catalog = self.shared.catalog.load();
        for (db, name) in names {
            let table = catalog.find_table(db, name).map(|table| table.def.id);
            let found = table.or_else(|| catalog.find_view(db, name).map(|view| view.def.id));
            match found.and_then(|found| self.held_table(found)) {
                Some(TableMode::Exclusive) => {}
                Some(_) => return Err(super::table_lock::only_read_locked(name).into()),
                None => return Err(super::table_lock::not_locked(name).into()),
            }
        }
        Ok(())
    }

    /// Under LOCK TABLES, a table that takes the place of a locked one is locked as that was.
    pub(crate) fn lock_successor(&mut self, waits: Waits, id: u64) -> ExecResult<()> {
        if self.has_locked_tables() {
            self.rows.lock_table_id(waits, id, TableMode::Exclusive)?;
            self.named().push((id, TableMode::Exclusive));
        }
        Ok(())
    }
}

/// 1192: LOCK TABLES or a transaction is in the way.
pub(crate) fn tables_are_locked() -> SqlError {
    let message =
        "Can't execute the given command because you have active locked tables or an active transaction";
    SqlError::new(1192, b"HY000", message)
}
