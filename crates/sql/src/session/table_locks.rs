//! LOCK TABLES, FLUSH TABLES ... WITH READ LOCK, LOCK INSTANCE and their ends: locks that outlive transactions. On a thread that may
//! block.

use super::{Call, SqlSession, StatementContext};
use crate::api::{Mode, Outcome, Priv};
use crate::bind;
use crate::catalog::sequence::sequences_of;
use crate::error::{ExecResult, Interrupt, SqlError, SqlResult};
use crate::memory::MemoryLimits;
use crate::state::LockedNames;
use crate::store::{Locked, is_locked, not_locked, only_read_locked, tables_are_locked};
use omnibus_locks::TableMode;
use omnibus_parser::ast::{Flush, FlushTarget, ObjectName, TableLock};
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// How often it is looked whether the last writer has ended.
const LOOK: Duration = Duration::from_millis(2);

pub(super) fn lock_tables(
    cx: &mut StatementContext<'_>,
    tables: &[TableLock],
    call: &Call<'_>,
) -> ExecResult<Outcome> {
    if call.mode == Mode::Inline {
        return Err(Interrupt::NeedBlocking);
    }
    cx.trx.locks.unlock_tables();
    cx.commit_before_definition()?;
    let mut names = locked_names(cx, tables)?;
    let catalog = cx.catalog();
    let mut wanted = Vec::with_capacity(tables.len());
    for lock in tables {
        let db = cx.schema_of(&lock.table)?;
        if cx.trx.temp.table(&db, &lock.table.name).is_none() {
            call.access.check(&db, Some(&lock.table.name), Priv::LockTables)?;
            call.access.check(&db, Some(&lock.table.name), Priv::Select)?;
        }
        if ["information_schema", "performance_schema"].contains(&&*db) {
            continue;
        }
        let mode = if lock.write { TableMode::Exclusive } else { TableMode::Shared };
        if let Some(view) = catalog.find_view(&db, &lock.table.name) {
            let outline = bind::outline(view, cx.state, &catalog, cx.database.virtual_tables())?;
            let behind = outline.tables.iter().map(|table| &table.def);
            names.extend(behind.map(|def| (def.db.to_string(), def.name.to_string(), lock.write)));
            wanted.extend(outline.tables.into_iter().map(|table| (Locked::Table(table), mode)));
            let own = view.def.id;
            wanted.extend(outline.views.into_iter().map(|view| {
                let mode = if view.def.id == own { mode } else { TableMode::Shared };
                (Locked::View(view), mode)
            }));
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
    let names = LockedNames::new(names, &cx.state.connection.memory, MemoryLimits::of(&cx.state.settings))?;
    cx.trx.locks.lock_tables(cx.trx.statement.waits(), wanted)?;
    cx.state.held.locked = Some(names);
    Ok(Outcome::ok())
}

/// The names of LOCK TABLES; 1066 if one stands there twice.
fn locked_names(cx: &StatementContext<'_>, tables: &[TableLock]) -> SqlResult<Vec<(String, String, bool)>> {
    let mut names: Vec<(String, String, bool)> = Vec::with_capacity(tables.len());
    let mut known = HashSet::with_capacity(tables.len());
    for lock in tables {
        let alias = lock.alias.as_ref().unwrap_or(&lock.table.name);
        let db = cx.schema_of(&lock.table)?;
        if !known.insert((db.clone(), &**alias)) {
            return Err(SqlError::nonuniq_table(alias));
        }
        names.push((db, alias.to_string(), lock.write));
    }
    Ok(names)
}

pub(super) fn unlock_tables(cx: &mut StatementContext<'_>) -> ExecResult<Outcome> {
    if !cx.trx.locks.has_locked_tables() {
        return Ok(Outcome::ok());
    }
    // A transaction begun under the read lock goes on; LOCK TABLES ends with its transaction.
    let goes_on = cx.trx.locks.has_read_lock() && cx.trx.is_open();
    cx.trx.locks.unlock_tables();
    let ticket = if goes_on { None } else { cx.commit_now()? };
    Ok(Outcome { wait: ticket, ..Outcome::ok() })
}

/// LOCK INSTANCE FOR BACKUP: definitions of others wait, changes of rows do not. The server has checked the privilege.
pub(super) fn lock_instance(cx: &mut StatementContext<'_>, call: &Call<'_>) -> ExecResult<Outcome> {
    if call.mode == Mode::Inline {
        return Err(Interrupt::NeedBlocking);
    }
    let defines = cx.trx.transaction.open_catalog().is_some();
    cx.trx.locks.lock_instance(cx.trx.statement.waits(), defines)?;
    // What definitions made is durable before anybody copies files.
    cx.trx.floor().see_everything();
    Ok(Outcome::ok())
}

/// FLUSH TABLES WITH READ LOCK, or with a list of tables: nothing is cached that could be flushed, so that only the
/// locks remain. The server has checked the privilege, and runs every other FLUSH itcx.
pub(super) fn flush_with_read_lock(
    cx: &mut StatementContext<'_>,
    flush: &Flush,
    call: &Call<'_>,
) -> ExecResult<Outcome> {
    if cx.trx.locks.has_locked_tables() && !cx.trx.locks.has_read_lock() {
        return Err(tables_are_locked().into());
    }
    for target in &flush.targets {
        let FlushTarget::Tables { tables, read_lock, for_export } = target else {
            return Err(SqlError::not_supported_yet("FLUSH of several things WITH READ LOCK").into());
        };
        let locks_them = *read_lock || *for_export;
        if tables.is_empty() {
            cx.state.held.handlers.flush(None);
            return if locks_them { lock_everything(cx, call) } else { Ok(Outcome::ok()) };
        }
        for table in tables {
            let db = cx.schema_of(table)?;
            cx.state.held.handlers.flush(Some((&db, &table.name)));
        }
        if !locks_them {
            continue;
        }
        let locks: Vec<_> = tables
            .iter()
            .map(|table| TableLock { table: table.clone(), alias: None, write: false, local: false })
            .collect();
        lock_tables(cx, &locks, call)?;
    }
    Ok(Outcome::ok())
}

fn lock_everything(cx: &mut StatementContext<'_>, call: &Call<'_>) -> ExecResult<Outcome> {
    if call.mode == Mode::Inline {
        return Err(Interrupt::NeedBlocking);
    }
    if cx.trx.locks.has_read_lock() {
        return Ok(Outcome::ok());
    }
    cx.trx.locks.unlock_tables();
    cx.commit_before_definition()?;
    let patience = cx.state.settings.metadata_lock_wait_timeout_ms;
    cx.trx.locks.take_read_lock(cx.trx.statement.waits())?;
    let begun = Instant::now();
    while cx.trx.locks.rows.others_write() {
        let stopped = match begun.elapsed() >= Duration::from_millis(patience) {
            true => Err(SqlError::lock_wait_timeout()),
            false => cx.trx.budget.kill().check(),
        };
        if let Err(error) = stopped {
            cx.trx.locks.unlock_tables();
            return Err(error.into());
        }
        std::thread::sleep(LOOK);
    }
    // What they wrote is durable before anybody copies files or reads the log's position.
    cx.trx.floor().see_everything();
    Ok(Outcome::ok())
}

/// Fails if LOCK TABLES is in force without a WRITE lock of what FLUSH TABLES is for: the tables that it names, or all that are locked.
///
/// # Errors
/// 1099, 1100.
pub fn check_flush(session: &mut SqlSession, tables: &[ObjectName]) -> SqlResult<()> {
    let cx = session.context();
    if !cx.trx.locks.has_locked_tables() || cx.trx.locks.has_read_lock() {
        return Ok(());
    }
    let catalog = cx.catalog();
    if tables.is_empty() {
        let named = catalog.tables().map(|table| (table.def.id, &*table.def.name));
        return named.into_iter().try_for_each(|(id, name)| match is_locked(&cx.trx.locks, id) {
            Some(false) => Err(only_read_locked(name)),
            _ => Ok(()),
        });
    }
    for name in tables {
        let found = catalog.find_table(&cx.schema_of(name)?, &name.name);
        match found.and_then(|table| is_locked(&cx.trx.locks, table.def.id)) {
            Some(true) => {}
            Some(false) => return Err(only_read_locked(&name.name)),
            None => return Err(not_locked(&name.name)),
        }
    }
    Ok(())
}
