//! Cursors: a query's rows, kept until the cursor is closed. They count with the session's memory.

use crate::api::{ResultColumn, RowSink, SessionSettings};
use crate::error::SqlResult;
use crate::expr::eval;
use crate::memory::{Account, SessionMemory, memory_of};
use omnibus_value::{ColumnType, Value};
use std::sync::Arc;

/// An open cursor.
pub(super) struct Cursor {
    pub types: Vec<ColumnType>,
    rows: Vec<Box<[Value]>>,
    at: usize,
    account: Account,
}

impl Cursor {
    /// The next row.
    pub(super) fn next(&mut self) -> Option<Box<[Value]>> {
        let row = self.rows.get_mut(self.at).map(std::mem::take)?;
        self.at += 1;
        Some(row)
    }
}

/// Where the rows of a cursor's query go.
pub(super) struct CursorSink<'a> {
    cursor: Cursor,
    settings: &'a SessionSettings,
}

impl<'a> CursorSink<'a> {
    pub(super) fn new(memory: &Arc<SessionMemory>, settings: &'a SessionSettings) -> CursorSink<'a> {
        let cursor = Cursor { types: Vec::new(), rows: Vec::new(), at: 0, account: Account::new(memory) };
        CursorSink { cursor, settings }
    }

    /// The cursor before its first row.
    pub(super) fn open(self) -> Cursor {
        self.cursor
    }
}

impl RowSink for CursorSink<'_> {
    fn columns(&mut self, columns: &[ResultColumn]) -> SqlResult<()> {
        self.cursor.types = columns.iter().map(|column| column.ty.clone()).collect();
        self.cursor.rows.clear();
        Ok(())
    }

    fn row(&mut self, values: &[Value]) -> SqlResult<()> {
        let row: Box<[Value]> = values.iter().cloned().map(eval::own).collect();
        self.cursor.account.grow(memory_of(&row), self.settings)?;
        self.cursor.rows.push(row);
        Ok(())
    }
}
