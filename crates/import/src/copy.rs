//! Copies rows, with a session at either side for each worker.
//!
//! A worker reads a piece of a table in the order of its key and writes statements of about a megabyte, each in a transaction
//! that also counts it (`crate::state`). If the target goes away, it is connected to again, for a while, and the count says
//! whether the statement is there; the source's rows wait meanwhile. If the source goes away, its snapshot is gone, and with it
//! all tables that are not done.

use crate::check;
use crate::error::ImportError;
use crate::pieces::{Piece, Pieces};
use crate::progress::{Progress, say};
use crate::quote;
use crate::session::{Server, Session};
use crate::state;
use crate::table::{Form, Table};
use crate::workers;
use omnibus_replication::client::ClientError;
use omnibus_replication::client::rows::RowView;
use std::time::{Duration, Instant};

/// The length in bytes from which a statement takes no further row.
const STATEMENT: usize = 1 << 20;
/// The longest absence of a target that is waited for.
const PATIENCE: Duration = Duration::from_secs(600);
/// Attempts at a statement that meets somebody else's locks.
const TRIES: u32 = 10;
const RETRY: Duration = Duration::from_millis(500);

/// Copies all rows of `tables`, as the sessions of a snapshot see them.
pub(crate) fn rows(
    tables: &[Table],
    sources: &mut [Session],
    target: &Server,
    chunk: u64,
) -> Result<(), ImportError> {
    let pieces = Pieces::of(tables, chunk);
    workers::run("copied", tables, sources, &pieces, |number, source, progress| {
        work(number, tables, source, target, &pieces, progress)
    })
}

fn work(
    number: usize,
    tables: &[Table],
    source: &mut Session,
    target: &Server,
    pieces: &Pieces,
    progress: &Progress,
) -> Result<(), ImportError> {
    // Text comes in the bytes of its own character set.
    source.run("SET SESSION character_set_results = NULL")?;
    let mut writer = Writer::open(number, target)?;
    while let Some(mut piece) = pieces.take() {
        let table = &tables[piece.table];
        pieces.split(source, table, &mut piece)?;
        let there = table.resumed && writer.has(table, &piece, source, progress)?;
        if !there {
            copy_piece(table, &piece, source, &mut writer, progress)?;
        }
        if pieces.done(piece.table) {
            writer.finish(table)?;
            progress.tables_done.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }
    Ok(())
}

fn copy_piece(
    table: &Table,
    piece: &Piece,
    source: &mut Session,
    writer: &mut Writer<'_>,
    progress: &Progress,
) -> Result<(), ImportError> {
    let forms: Vec<Form> = table.copied().map(|column| column.form()).collect();
    // A table whose columns are all computed has rows, too.
    let select = if forms.is_empty() { "1".to_owned() } else { table.select() };
    let condition = piece.range.condition(&table.key);
    source.begin(&format!("SELECT {select} FROM {}{}{condition}", table.name.quoted(), table.by_key()))?;
    let head = table.insert();
    let mut statement = Vec::new();
    let (mut rows, mut bytes) = (0, 0);
    while let Some(row) = source.next()? {
        statement.extend_from_slice(if statement.is_empty() { head.as_bytes() } else { b"," });
        bytes += row.len() as u64;
        rows += 1;
        put_row(&mut statement, row, &forms).map_err(|error| ImportError::Server {
            server: "the source",
            doing: format!("a row of {}", table.name),
            error,
        })?;
        if statement.len() >= STATEMENT {
            writer.write(table, &statement)?;
            statement.clear();
            // A long row leaves a long buffer.
            statement.shrink_to(4 * STATEMENT);
            progress.add(std::mem::take(&mut rows), std::mem::take(&mut bytes));
        }
    }
    if !statement.is_empty() {
        writer.write(table, &statement)?;
    }
    progress.add(rows, bytes);
    Ok(())
}

/// Appends a row as it stands behind VALUES.
fn put_row(out: &mut Vec<u8>, mut row: RowView<'_>, forms: &[Form]) -> Result<(), ClientError> {
    out.push(b'(');
    for (at, form) in forms.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        match (row.next_value()?, form) {
            (None, _) => out.extend_from_slice(b"NULL"),
            // Only what is a number stands there without quotes, whatever a source says.
            (Some(value), Form::Number) if is_number(value) => out.extend_from_slice(value),
            (Some(value), Form::Number | Form::Quoted) => quote::put(value, out),
            (Some(value), Form::Bytes) => {
                out.extend_from_slice(b"_binary");
                quote::put(value, out);
            }
        }
    }
    out.push(b')');
    Ok(())
}

fn is_number(value: &[u8]) -> bool {
    !value.is_empty() && value.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'.'))
}

/// The target's side of a worker.
struct Writer<'a> {
    number: usize,
    target: &'a Server,
    session: Session,
    batches: u64,
    /// The table about whose values a word was said.
    told: Option<String>,
}

impl<'a> Writer<'a> {
    fn open(number: usize, target: &'a Server) -> Result<Writer<'a>, ImportError> {
        let mut session = target.session()?;
        state::begin_worker(&mut session, number)?;
        Ok(Writer { number, target, session, batches: 0, told: None })
    }

    /// Writes a statement's rows, once.
    fn write(&mut self, table: &Table, statement: &[u8]) -> Result<(), ImportError> {
        let mut strict = true;
        let mut tries = 0;
        loop {
            match self.attempt(statement, strict) {
                Ok(()) => {
                    self.batches += 1;
                    return Ok(());
                }
                Err(error) if error.is_lost() => {
                    if self.reconnect(&error)? {
                        self.batches += 1;
                        return Ok(());
                    }
                }
                // A deadlock or a lock wait timeout: somebody else was at the table.
                Err(error) if matches!(error.code(), Some(1205 | 1213)) && tries < TRIES => {
                    tries += 1;
                    self.session.run("ROLLBACK")?;
                }
                Err(error) if strict && is_about_a_value(&error) => {
                    self.session.run("ROLLBACK")?;
                    if self.told.as_deref() != Some(&table.name.table) {
                        say(&format!(
                            "{}: {error}: written as far as the target can; the check tells what differs",
                            table.name
                        ));
                        self.told = Some(table.name.table.clone());
                    }
                    strict = false;
                }
                Err(error) if error.code() == Some(1153) => return Err(too_long(table, statement.len())),
                Err(error) => return Err(error),
            }
        }
    }

    fn attempt(&mut self, statement: &[u8], strict: bool) -> Result<(), ImportError> {
        if !strict {
            self.session.run("SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'")?;
        }
        self.session.run("START TRANSACTION")?;
        self.session.run_bytes(statement)?;
        self.session.run(&state::count_batch(self.number, self.batches + 1))?;
        self.session.run("COMMIT")?;
        if !strict {
            self.session.run(crate::schema::TARGET_MODE)?;
        }
        Ok(())
    }

    /// Connects again. Returns whether the batch that was being written is committed.
    fn reconnect(&mut self, lost: &ImportError) -> Result<bool, ImportError> {
        if self.number == 0 {
            say(&format!("{lost}; trying again for {} minutes", PATIENCE.as_secs() / 60));
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            std::thread::sleep(RETRY);
            let found = self.target.session().and_then(|mut session| {
                let there = state::batches(&mut session, self.number)?;
                self.session = session;
                Ok(there)
            });
            match found {
                Ok(there) if there == self.batches + 1 => return Ok(true),
                Ok(there) if there == self.batches => return Ok(false),
                Ok(there) => {
                    return Err(ImportError::Refused(format!(
                        "the target had committed {} batches of worker {} and has {there} now: it loses what it acknowledges \
                         (sync_binlog=0 and a power cut?). Drop what was imported and the database omnibus_import, and start again",
                        self.batches, self.number
                    )));
                }
                Err(error) if error.is_lost() && Instant::now() < deadline => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns whether the target has the source's rows of a piece. If not, what it has there is deleted.
    fn has(
        &mut self,
        table: &Table,
        piece: &Piece,
        source: &mut Session,
        progress: &Progress,
    ) -> Result<bool, ImportError> {
        let wanted = check::sums(source, table, piece, false)?;
        let there = loop {
            match check::sums(&mut self.session, table, piece, false) {
                Err(error) if error.is_lost() => drop(self.reconnect(&error)?),
                other => break other?,
            }
        };
        if there == wanted {
            let rows = wanted.first().and_then(|n| n.parse().ok()).unwrap_or(0);
            progress.add(rows, rows.saturating_mul(table.bytes / table.rows.max(1)));
            return Ok(true);
        }
        let delete = format!("DELETE FROM {}{}", table.name.quoted(), piece.range.condition(&table.key));
        self.write(table, delete.as_bytes())?;
        Ok(false)
    }

    /// Remembers that a table is whole.
    fn finish(&mut self, table: &Table) -> Result<(), ImportError> {
        loop {
            match state::finish(&mut self.session, &table.name) {
                Err(error) if error.is_lost() => drop(self.reconnect(&error)?),
                other => return other,
            }
        }
    }
}

/// Returns whether the target objects to a value that its source holds: bytes that are no characters, a member of an ENUM that
/// is none, a date outside of what strict modes take.
fn is_about_a_value(error: &ImportError) -> bool {
    matches!(error.code(), Some(1264 | 1265 | 1292 | 1366 | 1406 | 1411 | 3854))
}

fn too_long(table: &Table, length: usize) -> ImportError {
    ImportError::Refused(format!(
        "{}: a row takes a statement of {length} bytes, which is more than the target's max_allowed_packet. There: \
         SET GLOBAL max_allowed_packet = 1073741824; then run this again",
        table.name
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_digits_stand_without_quotes() {
        assert!(is_number(b"-12.50") && is_number(b"00007") && !is_number(b"1 OR 1") && !is_number(b""));
    }
}
