//! The tables that HANDLER has opened, and how far each has been read. Nothing of them is locked between statements: who finds another definition
//! than the one that was read begins anew.

use super::NamedLocks;
use crate::catalog::Table;
use crate::error::SqlResult;
use crate::memory::{Account, MemoryLimits, SessionMemory};
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a locked table beside its names.
const LOCKED: usize = 256;
/// Bytes of one beside its names and its place.
const HANDLER: usize = 1024;

/// A session's own locks and tables, whatever its transactions do.
#[derive(Debug, Default)]
pub struct Held {
    /// GET_LOCK; `None` outside of a session.
    pub(crate) locks: Option<NamedLocks>,
    /// HANDLER .. OPEN.
    pub handlers: Handlers,
    /// LOCK TABLES.
    pub(crate) locked: Option<LockedNames>,
    /// The table that CREATE TABLE .. SELECT fills meanwhile.
    pub(crate) creating: Option<Arc<str>>,
}

/// The names that LOCK TABLES has locked tables by: only by these may they be used, and each once in a statement.
#[derive(Debug)]
pub(crate) struct LockedNames {
    /// Another one for each LOCK TABLES, for plans are made for one.
    pub number: u64,
    /// Database, name, and whether it is locked for writing.
    pub names: Vec<(String, String, bool)>,
    /// Their memory, given back with the locks.
    _account: Account,
}

/// The numbers of all sessions' LOCK TABLES.
static LOCKS: AtomicU64 = AtomicU64::new(1);

impl LockedNames {
    /// Of a LOCK TABLES.
    ///
    /// # Errors
    /// 3170: there is no memory for them.
    pub(crate) fn new(
        names: Vec<(String, String, bool)>,
        memory: &Arc<SessionMemory>,
        limits: MemoryLimits,
    ) -> SqlResult<LockedNames> {
        let mut account = Account::new(memory);
        account
            .grow_exactly(names.iter().map(|(db, name, _)| LOCKED + db.len() + name.len()).sum(), limits)?;
        Ok(LockedNames { number: LOCKS.fetch_add(1, Ordering::Relaxed), names, _account: account })
    }

    /// Follows a table to another name.
    pub(crate) fn rename(&mut self, from: (&str, &str), to: (&str, &str)) {
        for (db, name, _) in self.names.iter_mut().filter(|(db, name, _)| (&**db, &**name) == from) {
            (*db, *name) = (to.0.to_owned(), to.1.to_owned());
        }
        self.number = LOCKS.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether a name is locked, and for writing.
    pub(crate) fn find(&self, db: &str, alias: &str) -> Option<bool> {
        self.names.iter().find(|(schema, name, _)| schema == db && name == alias).map(|(_, _, write)| *write)
    }
}

/// The open ones, by their names in lower case.
#[derive(Debug, Default)]
pub struct Handlers {
    open: HashMap<String, Handler>,
}

/// A table that is open.
#[derive(Debug)]
pub(crate) struct Handler {
    pub db: String,
    /// Its definition when it was opened or read last.
    pub table: Arc<Table>,
    /// `None`: nothing of it was read.
    pub place: Option<Place>,
    /// Its memory, given back when it is closed.
    _account: Account,
}

/// How far a table has been read.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The index in whose order; `None` is the table's own.
    pub index: Option<usize>,
    /// The entry of the row that was read last, or a key between two.
    pub key: Bytes,
    /// It is a row's: what comes next is behind it.
    pub is_row: bool,
}

impl Handlers {
    /// The open table of a name.
    pub(crate) fn get(&mut self, alias: &str) -> Option<&mut Handler> {
        self.open.get_mut(&alias.to_lowercase())
    }

    /// Opens one.
    ///
    /// # Errors
    /// 3170: there is no memory for it.
    pub(crate) fn open(
        &mut self,
        (db, alias): (String, &str),
        table: Arc<Table>,
        memory: &Arc<SessionMemory>,
        limits: MemoryLimits,
    ) -> SqlResult<()> {
        let mut account = Account::new(memory);
        account.grow_exactly(HANDLER + db.len() + 2 * alias.len(), limits)?;
        let handler = Handler { db, table, place: None, _account: account };
        self.open.insert(alias.to_lowercase(), handler);
        Ok(())
    }

    /// Closes one; false if it is not open.
    pub(crate) fn close(&mut self, alias: &str) -> bool {
        self.open.remove(&alias.to_lowercase()).is_some()
    }

    /// Closes those of a table, whatever they are called.
    pub(crate) fn close_table(&mut self, db: &str, name: &str) {
        self.open.retain(|_, handler| handler.db != db || *handler.table.def.name != *name);
    }

    /// Closes those of a database.
    pub(crate) fn close_database(&mut self, db: &str) {
        self.open.retain(|_, handler| handler.db != db);
    }

    /// Closes all.
    pub(crate) fn close_all(&mut self) {
        self.open = HashMap::new();
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// FLUSH TABLES: those that go on begin anew. `None`: all.
    pub fn flush(&mut self, named: Option<(&str, &str)>) {
        for handler in self.open.values_mut() {
            if named.is_none_or(|(db, name)| handler.db == db && *handler.table.def.name == *name) {
                handler.place = None;
            }
        }
    }
}
