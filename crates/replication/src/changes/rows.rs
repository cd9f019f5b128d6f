//! Binlog row events as views, which decode on request.

use crate::model::{RowsView, TableView};
use omnibus_format::DecodeError;
use omnibus_format::events::{
    ColumnMetadata, PrimaryKeyPart, ROWS_FLAG_FOREIGN_KEYS_ARE_KEPT, ROWS_FLAG_NO_FOREIGN_KEY_CHECKS,
    ROWS_FLAG_RELAXED_UNIQUE_CHECKS, ROWS_FLAG_STMT_END, Rows, RowsKind, TableMap,
};
use omnibus_format::field::FieldType;
use omnibus_format::row::{Images, RowChange, RowShape};
use std::ops::ControlFlow;

/// A TABLE_MAP event, and the encoding of its table's rows.
#[derive(Clone, Debug)]
pub struct EventTable {
    /// The event.
    pub map: TableMap,
    shape: RowShape,
}

impl EventTable {
    /// Creates the table of a decoded event.
    #[must_use]
    pub fn new(map: TableMap) -> EventTable {
        let shape = RowShape::of_table_map(&map);
        EventTable { map, shape }
    }
}

impl TableView for EventTable {
    fn database(&self) -> &[u8] {
        &self.map.database
    }
    fn name(&self) -> &[u8] {
        &self.map.table
    }
    fn columns(&self) -> &[FieldType] {
        &self.map.columns
    }
    fn nullable(&self, column: usize) -> bool {
        self.map.nullable.get(column).copied().unwrap_or(true)
    }
    fn metadata(&self, column: usize) -> &ColumnMetadata {
        static NOTHING: ColumnMetadata = ColumnMetadata {
            unsigned: None,
            collation: None,
            name: None,
            labels: Vec::new(),
            geometry_type: None,
            visible: None,
        };
        self.map.metadata.get(column).unwrap_or(&NOTHING)
    }
    fn primary_key(&self) -> &[PrimaryKeyPart] {
        &self.map.primary_key
    }
    fn shape(&self) -> &RowShape {
        &self.shape
    }
}

/// A rows event and its table.
#[derive(Clone, Copy, Debug)]
pub struct EventRows<'a> {
    pub(super) table: &'a EventTable,
    pub(super) rows: Rows<'a>,
    pub(super) timestamp_us: i64,
    pub(super) query: Option<&'a [u8]>,
    pub(super) may_replace: bool,
}

impl<'a> EventRows<'a> {
    /// Combines rows with their table; `timestamp` is the one in their header.
    #[must_use]
    pub fn new(table: &'a EventTable, rows: Rows<'a>, timestamp: u32) -> EventRows<'a> {
        let timestamp_us = i64::from(timestamp) * 1_000_000;
        EventRows { table, rows, timestamp_us, query: None, may_replace: false }
    }
}

impl RowsView for EventRows<'_> {
    fn table(&self) -> &dyn TableView {
        self.table
    }
    fn kind(&self) -> RowsKind {
        self.rows.kind
    }
    fn timestamp_us(&self) -> i64 {
        self.timestamp_us
    }
    fn columns_before(&self) -> &[u8] {
        self.rows.before
    }
    fn columns_after(&self) -> &[u8] {
        self.rows.after
    }
    fn each(&self, each: &mut dyn FnMut(RowChange<'_>) -> ControlFlow<()>) -> Result<(), DecodeError> {
        for change in Images::new(self.rows, &self.table.shape)? {
            if each(change?).is_break() {
                break;
            }
        }
        Ok(())
    }
    fn has_json_diffs(&self) -> bool {
        self.rows.partial
    }
    fn foreign_key_checks(&self) -> bool {
        let unchecked = ROWS_FLAG_NO_FOREIGN_KEY_CHECKS | ROWS_FLAG_FOREIGN_KEYS_ARE_KEPT;
        self.rows.flags & unchecked == 0
    }
    fn unique_checks(&self) -> bool {
        self.rows.flags & ROWS_FLAG_RELAXED_UNIQUE_CHECKS == 0
    }
    fn may_replace(&self) -> bool {
        self.may_replace
    }
    fn query(&self) -> Option<&[u8]> {
        self.query
    }
    fn ends_statement(&self) -> bool {
        self.rows.flags & ROWS_FLAG_STMT_END != 0
    }
}
