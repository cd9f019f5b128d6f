//! `--flashback`: inverts the rows of a log, so that executing the output undoes the log's changes.
//!
//! Inserts become deletions, deletions become inserts, updates have their images swapped; rows, events, statements and
//! transactions are in reverse order. Everything is in memory until the log has been read. Only rows with all columns
//! can be inverted; statements and definitions cannot, and are refused.

use std::collections::HashMap;
use std::io::{self, Write};

use omnibus_format::cursor::put_lenenc;
use omnibus_format::events::{ROWS_FLAG_STMT_END, Rows, RowsKind, TableMap};
use omnibus_format::row::{Images, RowShape};
use omnibus_format::{DecodeError, EventType, RawEvent};

use super::sql_text::{base64, with_body};

/// The changes read so far.
#[derive(Default)]
pub(super) struct Flashback {
    tables: HashMap<u64, RowShape>,
    /// TABLE_MAP events of the statement.
    maps: Vec<u8>,
    /// The statement's rows, turned round, in their own order; the header is the original event's.
    rows: Vec<(Vec<u8>, EventType, Vec<u8>)>,
    /// The transaction's statements, each as it is to be executed.
    statements: Vec<Vec<u8>>,
    transactions: Vec<Vec<Vec<u8>>>,
    format: Vec<u8>,
    checksums: bool,
}

/// Why rows cannot be turned round.
pub(super) enum Stuck {
    Damaged(DecodeError),
    /// A column is missing.
    Partial,
}

impl From<DecodeError> for Stuck {
    fn from(error: DecodeError) -> Stuck {
        Stuck::Damaged(error)
    }
}

impl Flashback {
    /// A file's head.
    pub(super) fn format(&mut self, format: &[u8], checksums: bool) {
        self.format = format.to_vec();
        self.checksums = checksums;
    }

    /// A table of the rows that follow.
    pub(super) fn table(&mut self, event: &[u8], map: &TableMap) {
        self.tables.insert(map.table_id, RowShape::of_table_map(map));
        self.maps.extend_from_slice(event);
    }

    /// Rows of a statement.
    pub(super) fn rows(&mut self, event: &RawEvent<'_>, rows: Rows<'_>) -> Result<(), Stuck> {
        if let Some(shape) = self.tables.get(&rows.table_id) {
            let (kind, body) = turned(event, rows, shape)?;
            self.rows.push((event.bytes.to_vec(), kind, body));
        }
        if rows.flags & ROWS_FLAG_STMT_END != 0 {
            self.end_statement(event);
        }
        Ok(())
    }

    fn end_statement(&mut self, event: &RawEvent<'_>) {
        let mut statement = std::mem::take(&mut self.maps);
        let rows = std::mem::take(&mut self.rows);
        let last = rows.len().saturating_sub(1);
        for (n, (original, kind, mut body)) in rows.into_iter().rev().enumerate() {
            let flag = ROWS_FLAG_STMT_END.to_le_bytes();
            for (byte, flag) in body[6..8].iter_mut().zip(flag) {
                *byte = if n == last { *byte | flag } else { *byte & !flag };
            }
            let original = RawEvent { bytes: &original, ..*event };
            statement.extend_from_slice(&with_body(&original, kind, &body, self.checksums));
        }
        if last > 0 || !statement.is_empty() {
            self.statements.push(statement);
        }
    }

    /// The transaction is complete.
    pub(super) fn commit(&mut self) {
        if !self.statements.is_empty() {
            self.transactions.push(std::mem::take(&mut self.statements));
        }
    }

    /// The transaction never happened.
    pub(super) fn roll_back(&mut self) {
        self.statements.clear();
        self.maps.clear();
        self.rows.clear();
    }

    /// Prints all changes, last first.
    pub(super) fn print(&mut self, out: &mut impl Write) -> io::Result<()> {
        let mut format = Some(std::mem::take(&mut self.format));
        for statements in std::mem::take(&mut self.transactions).into_iter().rev() {
            out.write_all(b"BEGIN\n/*!*/;\n")?;
            for statement in statements.into_iter().rev() {
                out.write_all(b"BINLOG '\n")?;
                if let Some(format) = format.take() {
                    base64(&format, out)?;
                }
                base64(&statement, out)?;
                out.write_all(b"'\n/*!*/;\n")?;
            }
            out.write_all(b"COMMIT\n/*!*/;\n")?;
        }
        Ok(())
    }
}

/// The type and body of the event that takes another one's changes back.
fn turned(event: &RawEvent<'_>, rows: Rows<'_>, shape: &RowShape) -> Result<(EventType, Vec<u8>), Stuck> {
    if rows.partial {
        return Err(Stuck::Partial);
    }
    let own = event.header.event_type;
    let kind = match rows.kind {
        RowsKind::Write => EventType(own.0 + 2),
        RowsKind::Delete => EventType(own.0 - 2),
        RowsKind::Update => own,
    };
    let head = if own.0 >= EventType::WRITE_ROWS.0 { 8 + 2 + rows.extra.len() } else { 8 };
    let mut body = event.body.get(..head).unwrap_or_default().to_vec();
    put_lenenc(&mut body, rows.columns as u64);
    // After images become before images.
    body.extend_from_slice(rows.after);
    body.extend_from_slice(rows.before);
    let mut turned: Vec<[&[u8]; 2]> = Vec::new();
    for change in Images::new(rows, shape)? {
        let change = change?;
        if [&change.before, &change.after].into_iter().flatten().any(|image| !image.is_full(shape)) {
            return Err(Stuck::Partial);
        }
        turned.push([change.after, change.before].map(|image| image.map_or(&[][..], |image| image.bytes)));
    }
    for [first, second] in turned.into_iter().rev() {
        body.extend_from_slice(first);
        body.extend_from_slice(second);
    }
    Ok((kind, body))
}
