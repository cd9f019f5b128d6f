//! Events of servers before MySQL 5.0, for reading only: START_V3, LOAD, NEW_LOAD, CREATE_FILE, SLAVE, and QUERY
//! without status variables.
//!
//! Their headers are those of version 4; files of version 1 (13-byte headers, MySQL 3.23) are not read. A log of
//! version 3 begins with START_V3 instead of FORMAT_DESCRIPTION and has no checksums, and the position in a header is
//! the event's start.

use std::borrow::Cow;

use crate::cursor::Reader;
use crate::error::DecodeError;
use crate::event_type::EventType;
use crate::header::EventHeader;
use omnibus_value::literal;

/// The first event of a file of version 3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartV3 {
    /// 3; 1 from MySQL 3.23.
    pub binlog_version: u16,
    /// Version string of the writing server.
    pub server_version: String,
    /// Seconds since 1970 when the file was begun.
    pub create_timestamp: u32,
}

impl StartV3 {
    /// Decodes the body.
    ///
    /// # Errors
    /// The bytes are truncated or malformed.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        let binlog_version = r.u16("binlog version")?;
        let version = r.take(50, "server version")?;
        let len = version.iter().position(|&b| b == 0).unwrap_or(version.len());
        let server_version = String::from_utf8_lossy(&version[..len]).into_owned();
        Ok(Self { binlog_version, server_version, create_timestamp: r.u32("creation time")? })
    }
}

/// SLAVE: the source that a replica followed. Only MySQL 3.23 and 4.0 wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlaveStart<'a> {
    /// The replica's position in that file.
    pub position: u64,
    /// The source's port.
    pub port: u16,
    /// The source's host.
    pub host: &'a [u8],
    /// The source's file.
    pub file: &'a [u8],
}

impl<'a> SlaveStart<'a> {
    /// Decodes the body.
    ///
    /// # Errors
    /// The bytes are truncated or malformed.
    pub fn decode(body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        let (position, port) = (r.u64("position")?, r.u16("port")?);
        let host = r.until_nul("host")?;
        let file = r.rest();
        let len = file.iter().position(|&b| b == 0).unwrap_or(file.len());
        Ok(Self { position, port, host, file: &file[..len] })
    }
}

/// `opt_flags` bits.
const OPTIONALLY_ENCLOSED: u8 = 2;
const REPLACE: u8 = 4;
const IGNORE: u8 = 8;

/// LOAD DATA in the form of its clauses: LOAD (MySQL 3.23), NEW_LOAD and CREATE_FILE (4.0, 4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldLoad<'a> {
    /// Connection id.
    pub thread_id: u32,
    /// Duration in seconds.
    pub exec_time: u32,
    /// The file that CREATE_FILE begins.
    pub file_id: Option<u32>,
    /// IGNORE n LINES.
    pub skip_lines: u32,
    /// Default database.
    pub database: &'a [u8],
    /// The table.
    pub table: &'a [u8],
    /// Columns that the statement names.
    pub columns: Vec<&'a [u8]>,
    /// The file's name where the statement was executed.
    pub file_name: &'a [u8],
    /// FIELDS TERMINATED BY, ENCLOSED BY; LINES TERMINATED BY, STARTING BY; ESCAPED BY.
    separators: [&'a [u8]; 5],
    options: u8,
    /// CREATE_FILE: the file's first bytes.
    pub data: &'a [u8],
}

impl<'a> OldLoad<'a> {
    /// Decodes the body of any of the three.
    ///
    /// # Errors
    /// The bytes are truncated or malformed.
    pub fn decode(event_type: EventType, body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        let (thread_id, exec_time, skip_lines) =
            (r.u32("thread id")?, r.u32("execution time")?, r.u32("lines to skip")?);
        let (table_len, database_len) = (r.u8("table length")?, r.u8("database length")?);
        let column_count = r.u32("column count")? as usize;
        let file_id = match event_type {
            EventType::CREATE_FILE => Some(r.u32("file id")?),
            _ => None,
        };
        let (separators, options) = separators(&mut r, event_type == EventType::LOAD)?;
        let lengths = r.take(column_count, "column lengths")?;
        let mut columns = Vec::with_capacity(column_count);
        for &len in lengths {
            columns.push(r.take(usize::from(len), "column name")?);
            r.u8("column name end")?;
        }
        let table = r.take(usize::from(table_len), "table")?;
        r.u8("table end")?;
        let database = r.take(usize::from(database_len), "database")?;
        r.u8("database end")?;
        // Behind a CREATE_FILE's file name comes the block; behind the others' nothing.
        let rest = r.rest();
        let len = rest.iter().position(|&b| b == 0).unwrap_or(rest.len());
        let (file_name, data) = (&rest[..len], rest.get(len + 1..).unwrap_or_default());
        Ok(Self {
            thread_id,
            exec_time,
            file_id,
            skip_lines,
            database,
            table,
            columns,
            file_name,
            separators,
            options,
            data,
        })
    }

    /// 0 error, 1 IGNORE, 2 REPLACE.
    pub fn duplicate_handling(&self) -> u8 {
        if self.options & REPLACE != 0 { 2 } else { u8::from(self.options & IGNORE != 0) }
    }

    /// Returns the statement as text and the byte range of the file name in it, in the form of EXECUTE_LOAD_QUERY.
    pub fn statement(&self) -> (Vec<u8>, (u32, u32)) {
        let mut sql = b"LOAD DATA ".to_vec();
        let from = sql.len() as u32;
        sql.extend_from_slice(b"INFILE ");
        literal::write_quoted(self.file_name, &mut sql);
        sql.extend_from_slice(match self.duplicate_handling() {
            1 => b" IGNORE",
            2 => b" REPLACE",
            _ => b"",
        });
        sql.extend_from_slice(b" INTO");
        let to = sql.len() as u32;
        sql.extend_from_slice(b" TABLE ");
        literal::write_name(self.table, &mut sql);
        let [fields, enclosed, lines, starting, escaped] = self.separators;
        let optionally = self.options & OPTIONALLY_ENCLOSED != 0;
        clause(b" FIELDS TERMINATED BY ", fields, &mut sql);
        clause(if optionally { b" OPTIONALLY ENCLOSED BY " } else { b" ENCLOSED BY " }, enclosed, &mut sql);
        clause(b" ESCAPED BY ", escaped, &mut sql);
        clause(b" LINES TERMINATED BY ", lines, &mut sql);
        if !starting.is_empty() {
            clause(b" STARTING BY ", starting, &mut sql);
        }
        if self.skip_lines > 0 {
            sql.extend_from_slice(format!(" IGNORE {} LINES", self.skip_lines).as_bytes());
        }
        for (n, column) in self.columns.iter().enumerate() {
            sql.extend_from_slice(if n == 0 { b" (" } else { b", " });
            literal::write_name(column, &mut sql);
        }
        if !self.columns.is_empty() {
            sql.push(b')');
        }
        (sql, (from, to))
    }
}

/// Reads the five separators and the options. LOAD has one byte for each, and bits that mark the empty ones.
fn separators<'a>(r: &mut Reader<'a>, single: bool) -> Result<([&'a [u8]; 5], u8), DecodeError> {
    let mut found: [&[u8]; 5] = [&[]; 5];
    for separator in &mut found {
        *separator = if single { r.take(1, "separator")? } else { r.short_bytes("separator")? };
    }
    let options = r.u8("options")?;
    if single {
        let empty = r.u8("empty separators")?;
        for (n, separator) in found.iter_mut().enumerate() {
            if empty & 1 << n != 0 {
                *separator = &[];
            }
        }
    }
    Ok((found, options))
}

fn clause(words: &[u8], text: &[u8], sql: &mut Vec<u8>) {
    sql.extend_from_slice(words);
    literal::write_quoted(text, sql);
}

/// Converts the QUERY events of a stream that may be of version 3 to version 4.
#[derive(Clone, Copy, Debug, Default)]
pub struct Modern {
    old: bool,
}

impl Modern {
    /// Returns the body of the next event in the form of version 4.
    pub fn body<'a>(&mut self, header: &EventHeader, body: &'a [u8]) -> Cow<'a, [u8]> {
        match header.event_type {
            EventType::START_V3 => self.old = true,
            EventType::FORMAT_DESCRIPTION => self.old = false,
            // Thread, time, length of the database's name, error; then, in version 4, the length of the variables.
            EventType::QUERY if self.old && body.len() >= 11 => {
                let mut whole = Vec::with_capacity(body.len() + 2);
                whole.extend_from_slice(&body[..11]);
                whole.extend_from_slice(&[0, 0]);
                whole.extend_from_slice(&body[11..]);
                return Cow::Owned(whole);
            }
            _ => {}
        }
        Cow::Borrowed(body)
    }
}
