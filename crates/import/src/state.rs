//! The memory of an import, in the database `omnibus_import` of the target.
//!
//! It changes in the transactions that it tells of, so that after any kill it is true: a table is `done` or will be copied
//! anew, and a worker's number of batches says whether the last one, whose COMMIT had no answer, is there.
//!
//! IMPORT-1: tables that are done are, all of them, the source's tables at one place of its log: the run's, or the channel's
//! once there is one. A table that is not done holds nothing that is relied on: it is dropped, or compared range by range.

use crate::error::ImportError;
use crate::facts::Position;
use crate::quote;
use crate::selection::TableName;
use crate::session::Session;
use std::collections::BTreeSet;

/// The stage of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Tables are being copied.
    Copy,
    /// All is copied; the log is followed, or was not to be.
    Follow,
}

impl Phase {
    fn name(self) -> &'static str {
        match self {
            Phase::Copy => "copy",
            Phase::Follow => "follow",
        }
    }
}

/// A run that was begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The source's identity.
    pub source: String,
    pub phase: Phase,
    pub at: Position,
    /// The choice of databases and tables, to recognise another one.
    pub selection: String,
}

const TABLES: [&str; 5] = [
    "CREATE DATABASE IF NOT EXISTS omnibus_import",
    "CREATE TABLE IF NOT EXISTS omnibus_import.run (id INT PRIMARY KEY, source VARBINARY(500) NOT NULL, \
     phase VARCHAR(10) NOT NULL, file VARBINARY(500) NOT NULL, offset BIGINT UNSIGNED NOT NULL, gtids LONGBLOB NOT NULL, \
     selection LONGBLOB NOT NULL)",
    "CREATE TABLE IF NOT EXISTS omnibus_import.done (name VARBINARY(600) PRIMARY KEY)",
    "CREATE TABLE IF NOT EXISTS omnibus_import.made (name VARBINARY(600) PRIMARY KEY, quoted VARBINARY(600) NOT NULL, \
     definition LONGBLOB NOT NULL)",
    "CREATE TABLE IF NOT EXISTS omnibus_import.worker (id INT PRIMARY KEY, batches BIGINT NOT NULL)",
];

/// Returns the run that the target knows of.
pub(crate) fn load(session: &mut Session) -> Result<Option<Run>, ImportError> {
    let sql = "SELECT source, phase, file, offset, gtids, selection FROM omnibus_import.run WHERE id = 1";
    let row = match session.first(sql) {
        Err(error) if matches!(error.code(), Some(1049 | 1146)) => return Ok(None),
        other => other?,
    };
    let Some(row) = row else { return Ok(None) };
    let [source, phase, file, offset, gtids, selection] = crate::table::take(row);
    let phase = if phase == "copy" { Phase::Copy } else { Phase::Follow };
    let at = Position { file, offset: offset.parse().unwrap_or(0), gtids };
    Ok(Some(Run { source, phase, at, selection }))
}

/// Stores the run.
pub(crate) fn save(session: &mut Session, run: &Run) -> Result<(), ImportError> {
    for sql in TABLES {
        session.run(sql)?;
    }
    session.run(&format!(
        "REPLACE INTO omnibus_import.run VALUES (1, {}, '{}', {}, {}, {}, {})",
        quote::text(&run.source),
        run.phase.name(),
        quote::text(&run.at.file),
        run.at.offset,
        quote::text(&run.at.gtids),
        quote::text(&run.selection)
    ))?;
    Ok(())
}

/// Returns the tables that are whole.
pub(crate) fn done(session: &mut Session) -> Result<BTreeSet<String>, ImportError> {
    Ok(session.texts("SELECT name FROM omnibus_import.done")?.into_iter().flatten().collect())
}

/// Remembers that a table is whole.
pub(crate) fn finish(session: &mut Session, table: &TableName) -> Result<(), ImportError> {
    let name = quote::text(&table.to_string());
    session.run(&format!("REPLACE INTO omnibus_import.done VALUES ({name})")).map(drop)
}

/// Forgets that a table is whole.
pub(crate) fn unfinish(session: &mut Session, name: &str) -> Result<(), ImportError> {
    session.run(&format!("DELETE FROM omnibus_import.done WHERE name = {}", quote::text(name))).map(drop)
}

/// A table that the import has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    pub name: String,
    /// The name as it stands in statements.
    pub quoted: String,
    /// The statement that made it.
    pub definition: String,
}

/// Remembers that the import makes a table, and so may drop it.
pub(crate) fn make(session: &mut Session, table: &TableName, definition: &str) -> Result<(), ImportError> {
    let (name, quoted) = (table.to_string(), table.quoted());
    let values = [&*name, &*quoted, definition].map(quote::text).join(", ");
    session.run(&format!("REPLACE INTO omnibus_import.made VALUES ({values})")).map(drop)
}

/// Returns the tables that the import has made.
pub(crate) fn made(session: &mut Session) -> Result<Vec<Made>, ImportError> {
    let rows = session.texts("SELECT name, quoted, definition FROM omnibus_import.made")?;
    let made = |[name, quoted, definition]: [String; 3]| Made { name, quoted, definition };
    Ok(rows.into_iter().map(crate::table::take).map(made).collect())
}

/// Gives a worker its row, with no batch.
pub(crate) fn begin_worker(session: &mut Session, worker: usize) -> Result<(), ImportError> {
    session.run(&format!("REPLACE INTO omnibus_import.worker VALUES ({worker}, 0)")).map(drop)
}

/// The statement that counts a batch, for the transaction that has its rows.
pub(crate) fn count_batch(worker: usize, batch: u64) -> String {
    format!("UPDATE omnibus_import.worker SET batches = {batch} WHERE id = {worker}")
}

/// Returns how many batches of a worker are committed.
pub(crate) fn batches(session: &mut Session, worker: usize) -> Result<u64, ImportError> {
    let value = session.value(&format!("SELECT batches FROM omnibus_import.worker WHERE id = {worker}"))?;
    Ok(value.parse().unwrap_or(0))
}

/// Removes everything that an import remembers.
pub(crate) fn forget(session: &mut Session) -> Result<(), ImportError> {
    session.run("DROP DATABASE IF EXISTS omnibus_import").map(drop)
}
