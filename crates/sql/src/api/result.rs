//! Results of statements: columns and rows into a sink, and the outcome.

use crate::error::SqlResult;
use omnibus_value::{ColumnType, Value};
use std::fmt;
use std::sync::Arc;

/// One column of a result set, as the protocol's column definition needs it.
#[derive(Clone, Debug)]
pub struct ResultColumn {
    /// Schema of the base table, empty if none.
    pub schema: Arc<str>,
    /// Alias of the table.
    pub table: Arc<str>,
    /// Base table.
    pub org_table: Arc<str>,
    /// Alias of the column.
    pub name: Arc<str>,
    /// Base column.
    pub org_name: Arc<str>,
    /// Its type.
    pub ty: ColumnType,
    /// Protocol flags (`flag` constants).
    pub flags: u16,
}

/// Column definition flags of the protocol.
pub mod flag {
    /// NOT NULL.
    pub const NOT_NULL: u16 = 1;
    /// Part of the primary key.
    pub const PRI_KEY: u16 = 2;
    /// A unique key.
    pub const UNIQUE_KEY: u16 = 4;
    /// Part of a non-unique key.
    pub const MULTIPLE_KEY: u16 = 8;
    /// BLOB or TEXT.
    pub const BLOB: u16 = 16;
    /// UNSIGNED.
    pub const UNSIGNED: u16 = 32;
    /// ZEROFILL.
    pub const ZEROFILL: u16 = 64;
    /// Binary collation.
    pub const BINARY: u16 = 128;
    /// ENUM.
    pub const ENUM: u16 = 256;
    /// AUTO_INCREMENT.
    pub const AUTO_INCREMENT: u16 = 512;
    /// TIMESTAMP.
    pub const TIMESTAMP: u16 = 1024;
    /// SET.
    pub const SET: u16 = 2048;
    /// No default value.
    pub const NO_DEFAULT_VALUE: u16 = 4096;
    /// Changes on update.
    pub const ON_UPDATE_NOW: u16 = 8192;
}

/// Where result rows go. `columns` comes once, before any row.
pub trait RowSink {
    /// The result set's columns.
    fn columns(&mut self, columns: &[ResultColumn]) -> SqlResult<()>;
    /// One row, one value a column.
    fn row(&mut self, values: &[Value]) -> SqlResult<()>;
    /// A statement of a procedure begins, which may have a result.
    fn result_begins(&mut self) {}
    /// The result is complete, and more follows; `out`: its one row is the OUT parameters.
    fn result_ends(&mut self, _warnings: u16, _out: bool) -> SqlResult<()> {
        Ok(())
    }
    /// The statement failed: what there is of its result is taken back. False if some of it was sent.
    fn result_fails(&mut self) -> bool {
        true
    }
}

/// The text of an OK packet.
#[derive(Debug, Default)]
pub enum Info {
    /// None.
    #[default]
    None,
    /// An UPDATE's.
    Updated {
        /// Rows found.
        matched: u64,
        /// Rows that are different now.
        changed: u64,
        /// Warnings.
        warnings: u64,
    },
    /// That of an INSERT of several rows, or of an ALTER TABLE that copies.
    Inserted {
        /// Rows given.
        records: u64,
        /// Rows that met another one.
        duplicates: u64,
        /// Warnings.
        warnings: u64,
    },
    /// Any other's.
    Text(String),
}

impl Info {
    /// Writes it into the room given, if it is not there already.
    pub fn bytes<'i>(&'i self, room: &'i mut [u8; Info::ROOM]) -> &'i [u8] {
        let parts = match self {
            Info::None => return b"",
            Info::Text(text) => return text.as_bytes(),
            Info::Updated { matched, changed, warnings } => {
                [("Rows matched: ", matched), ("  Changed: ", changed), ("  Warnings: ", warnings)]
            }
            Info::Inserted { records, duplicates, warnings } => {
                [("Records: ", records), ("  Duplicates: ", duplicates), ("  Warnings: ", warnings)]
            }
        };
        let mut len = 0;
        // Three numbers of 20 digits and their names fit. Each UPDATE has this text: formatting it costs a fiftieth of a commit.
        for (name, number) in parts {
            let mut digits = [0; 20];
            for part in [name.as_bytes(), omnibus_value::text::digits(*number, &mut digits)] {
                room[len..len + part.len()].copy_from_slice(part);
                len += part.len();
            }
        }
        &room[..len]
    }

    /// Bytes that a text without a string of its own has at most.
    pub const ROOM: usize = 112;
}

impl fmt::Display for Info {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut room = [0; Info::ROOM];
        f.write_str(&String::from_utf8_lossy(self.bytes(&mut room)))
    }
}

impl From<String> for Info {
    fn from(text: String) -> Info {
        Info::Text(text)
    }
}

/// A statement's end.
#[derive(Debug)]
pub struct Outcome {
    /// Whether a result set was sent to the sink (then the reply ends with EOF, not OK).
    pub result_set: bool,
    /// Rows changed (or found, under CLIENT_FOUND_ROWS).
    pub affected: u64,
    /// LAST_INSERT_ID of this statement, 0 if none.
    pub last_insert_id: u64,
    /// The OK packet's text, for example "Rows matched: 1  Changed: 1  Warnings: 0".
    pub info: Info,
    /// The commit that must be durable before the reply may leave (COMMIT-2).
    pub wait: Option<omnibus_commit::Ticket>,
}

impl Outcome {
    /// An OK without rows.
    #[must_use]
    pub fn ok() -> Outcome {
        Outcome { result_set: false, affected: 0, last_insert_id: 0, info: Info::None, wait: None }
    }

    /// The end of a result set.
    #[must_use]
    pub fn rows() -> Outcome {
        Outcome { result_set: true, ..Outcome::ok() }
    }
}
