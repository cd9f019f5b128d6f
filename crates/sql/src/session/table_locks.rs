//! LOCK TABLES, FLUSH TABLES ... WITH READ LOCK, LOCK INSTANCE and their ends: locks that outlive transactions. On a thread that may
//! block.

use super::{Call, SqlSession};
use crate::api::{Mode, Outcome, Priv};
use crate::bind;
use crate::catalog::sequence::sequences_of;
use crate::error::{ExecResult, Interrupt, SqlError};
use crate::store::{Locked, tables_are_locked};
use omnibus_locks::TableMode;
use omnibus_parser::ast::{Flush, FlushTarget, TableLock};
use std::time::{Duration, Instant};

/// How often it is looked whether the last writer has ended.
const LOOK: Duration = Duration::from_millis(2);

impl SqlSession {
    pub(super) fn lock_tables(&mut self, tables: &[TableLock], call: &Call<'_>) -> ExecResult<Outcome> {
        if call.mode == Mode::Inline {
            return Err(Interrupt::NeedBlocking);
        }
        self.trx.locks.unlock_tables();
        self.commit_before_definition()?;
        let catalog = self.catalog();
        let mut wanted = Vec::with_capacity(tables.len());
        for lock in tables {
            let db = self.schema_of(&lock.table)?;
            if self.trx.temp.table(&db, &lock.table.name).is_none() {
                call.access.check(&db, Some(&lock.table.name), Priv::LockTables)?;
                call.access.check(&db, Some(&lock.table.name), Priv::Select)?;
            }
            if ["information_schema", "performance_schema"].contains(&&*db) {
                continue;
            }
            let mode = if lock.write { TableMode::Exclusive } else { TableMode::Shared };
            if let Some(view) = catalog.find_view(&db, &lock.table.name) {
                let outline = bind::outline(view, &self.state, &catalog, self.database.virtual_tables())?;
                wanted.extend(outline.tables.into_iter().map(|table| (Locked::Table(table), mode)));
                wanted.extend(outline.views.into_iter().map(|view| (Locked::View(view), TableMode::Shared)));
                continue;
            }
            let table = catalog.table(&db, &lock.table.name)?.clone();
            if table.temporary {
                continue;
            }
            // What its defaults take numbers from is locked with it.
            for (db, name) in sequences_of(&table) {
                let found = catalog.find_table(&db, &name).filter(|found| found.def.is_sequence());
                wanted.extend(found.map(|found| (Locked::Table(found.clone()), TableMode::IntentExclusive)));
            }
            wanted.push((Locked::Table(table), mode));
        }
        self.trx.locks.lock_tables(wanted)?;
        Ok(Outcome::ok())
    }

    pub(super) fn unlock_tables(&mut self) -> ExecResult<Outcome> {
        if !self.trx.locks.has_locked_tables() {
            return Ok(Outcome::ok());
        }
        // A transaction begun under the read lock goes on; LOCK TABLES ends with its transaction.
        let goes_on = self.trx.locks.has_read_lock() && self.trx.is_open();
        self.trx.locks.unlock_tables();
        let ticket = if goes_on { None } else { self.commit_now()? };
        Ok(Outcome { wait: ticket, ..Outcome::ok() })
    }

    /// LOCK INSTANCE FOR BACKUP: definitions of others wait, changes of rows do not. The server has checked the privilege.
    pub(super) fn lock_instance(&mut self, call: &Call<'_>) -> ExecResult<Outcome> {
        if call.mode == Mode::Inline {
            return Err(Interrupt::NeedBlocking);
        }
        let defines = self.trx.changes.open_catalog().is_some();
        self.trx.locks.lock_instance(defines)?;
        // What definitions made is durable before anybody copies files.
        self.trx.see_everything();
        Ok(Outcome::ok())
    }

    /// FLUSH TABLES WITH READ LOCK, or with a list of tables: nothing is cached that could be flushed, so that only the
    /// locks remain. The server has checked the privilege, and runs every other FLUSH itself.
    pub(super) fn flush_with_read_lock(&mut self, flush: &Flush, call: &Call<'_>) -> ExecResult<Outcome> {
        if self.trx.locks.has_locked_tables() && !self.trx.locks.has_read_lock() {
            return Err(tables_are_locked().into());
        }
        for target in &flush.targets {
            let FlushTarget::Tables { tables, .. } = target else {
                return Err(SqlError::not_supported_yet("FLUSH of several things WITH READ LOCK").into());
            };
            if tables.is_empty() {
                return self.lock_everything(call);
            }
            let locks: Vec<_> = tables
                .iter()
                .map(|table| TableLock { table: table.clone(), alias: None, write: false, local: false })
                .collect();
            self.lock_tables(&locks, call)?;
        }
        Ok(Outcome::ok())
    }

    fn lock_everything(&mut self, call: &Call<'_>) -> ExecResult<Outcome> {
        if call.mode == Mode::Inline {
            return Err(Interrupt::NeedBlocking);
        }
        if self.trx.locks.has_read_lock() {
            return Ok(Outcome::ok());
        }
        self.trx.locks.unlock_tables();
        self.commit_before_definition()?;
        let patience = self.state.settings.metadata_lock_wait_timeout_ms;
        self.trx.locks.take_read_lock()?;
        let begun = Instant::now();
        while self.trx.locks.rows.others_write() {
            let stopped = match begun.elapsed() >= Duration::from_millis(patience) {
                true => Err(SqlError::lock_wait_timeout()),
                false => self.trx.check_killed(),
            };
            if let Err(error) = stopped {
                self.trx.locks.unlock_tables();
                return Err(error.into());
            }
            std::thread::sleep(LOOK);
        }
        // What they wrote is durable before anybody copies files or reads the log's position.
        self.trx.see_everything();
        Ok(Outcome::ok())
    }
}
