//! Results that are read row by row, for programs that copy tables: the connection holds one row at a time, however
//! many there are.

use super::connection::{Connection, MAX_ANSWER, Row};
use super::error::ClientError;
use omnibus_wire::reply::is_eof;
use omnibus_wire::text_row::decode_text_row;
use omnibus_wire::{ErrPacket, OkPacket, Reader};

/// The maximum size in bytes of a row: that of a value, and what surrounds it.
const MAX_ROW: usize = (1 << 30) + (1 << 16);

/// The result of a statement without rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Rows changed.
    pub affected: u64,
    /// Number of warnings.
    pub warnings: u16,
}

/// A row as it came, valid until the next one is read.
#[derive(Debug)]
pub struct RowView<'a> {
    rest: Reader<'a>,
}

impl<'a> RowView<'a> {
    /// Returns the next value; `None` is NULL.
    ///
    /// # Errors
    /// The row has no further value, or is cut off.
    pub fn next_value(&mut self) -> Result<Option<&'a [u8]>, ClientError> {
        if self.rest.rest().first() == Some(&0xFB) {
            self.rest.u8("NULL")?;
            return Ok(None);
        }
        Ok(Some(self.rest.lenenc_bytes("column value")?))
    }

    /// The number of bytes that are left.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rest.len()
    }

    /// Returns whether no value is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

/// Executes a statement, whose rows are dropped if it has any.
///
/// # Errors
/// The server's error, or the connection's.
pub fn execute(connection: &mut Connection, sql: &[u8]) -> Result<Outcome, ClientError> {
    match start_rows(connection, sql)? {
        Begun::Done(outcome) => Ok(outcome),
        Begun::Rows(_) => {
            while next_row(connection)?.is_some() {}
            Ok(Outcome::default())
        }
    }
}

/// Sends a query whose rows [`next_row`] then reads; all of them have to be read before another
/// statement.
///
/// # Errors
/// The server's error, or the connection's.
pub fn begin_rows(connection: &mut Connection, sql: &[u8]) -> Result<(), ClientError> {
    match start_rows(connection, sql)? {
        Begun::Rows(_) => Ok(()),
        Begun::Done(_) => Err(ClientError::Malformed("no rows where rows were asked for".into())),
    }
}

/// Reads the next row; `None` at the end.
///
/// # Errors
/// The server's error, or the connection's.
pub fn next_row(connection: &mut Connection) -> Result<Option<RowView<'_>>, ClientError> {
    next(connection, MAX_ROW)
}

fn next(connection: &mut Connection, max: usize) -> Result<Option<RowView<'_>>, ClientError> {
    let capabilities = connection.capabilities;
    let packet = connection.read(max, false)?;
    if is_eof(packet, capabilities) {
        return Ok(None);
    }
    if packet.first() == Some(&0xFF) {
        return Err(ErrPacket::decode(packet)?.into());
    }
    Ok(Some(RowView { rest: Reader::new(packet) }))
}

/// Executes a query, and returns the names of its columns and all rows.
///
/// # Errors
/// The server's error, or the connection's.
pub fn query_with_names(
    connection: &mut Connection,
    sql: &str,
) -> Result<(Vec<String>, Vec<Row>), ClientError> {
    let Begun::Rows(names) = start_rows(connection, sql.as_bytes())? else {
        return Ok((Vec::new(), Vec::new()));
    };
    let (mut rows, mut size) = (Vec::new(), 0);
    while let Some(row) = next(connection, MAX_ANSWER)? {
        size += row.len() + 1;
        if size > MAX_ANSWER {
            return Err(ClientError::Malformed("an answer without end".into()));
        }
        rows.push(decode_text_row(row.rest.rest(), names.len())?);
    }
    Ok((names, rows))
}

fn start_rows(connection: &mut Connection, sql: &[u8]) -> Result<Begun, ClientError> {
    connection.command(|out| {
        out.push(0x03);
        out.extend_from_slice(sql);
    })?;
    let capabilities = connection.capabilities;
    let first = connection.read_packet()?;
    match first.first() {
        Some(0x00) => {
            let ok = OkPacket::decode(first, capabilities)?;
            return Ok(Begun::Done(Outcome { affected: ok.affected, warnings: ok.warnings }));
        }
        Some(0xFF) => return Err(ErrPacket::decode(first)?.into()),
        Some(0xFB) => return Err(ClientError::Malformed("a request for a file".into())),
        _ => {}
    }
    let mut names = Vec::new();
    loop {
        let packet = connection.read_packet()?;
        if is_eof(packet, capabilities) {
            return Ok(Begun::Rows(names));
        }
        names.push(column_name(packet)?);
    }
}

/// The start of a result: a statement's end, or the names of the columns of rows that follow.
enum Begun {
    Done(Outcome),
    Rows(Vec<String>),
}

/// Reads the name in a column's definition, which stands behind catalog, database, table and original table.
fn column_name(definition: &[u8]) -> Result<String, ClientError> {
    let mut reader = Reader::new(definition);
    for before in ["catalog", "database", "table", "original table"] {
        reader.lenenc_bytes(before)?;
    }
    Ok(String::from_utf8_lossy(reader.lenenc_bytes("column")?).into_owned())
}
