//! Changes of a table's rows, and the table.

use omnibus_format::DecodeError;
use omnibus_format::events::{ColumnMetadata, PrimaryKeyPart, RowsKind};
use omnibus_format::field::FieldType;
use omnibus_format::row::{RowChange, RowShape};
use std::ops::ControlFlow;

/// A table as the server that changed it defines it.
pub trait TableView {
    /// The database's name.
    fn database(&self) -> &[u8];
    /// The table's name.
    fn name(&self) -> &[u8];
    /// The encoded types of its columns.
    fn columns(&self) -> &[FieldType];
    /// Returns whether a column may be NULL.
    fn nullable(&self, column: usize) -> bool;
    /// The known sign, collation, name and labels of a column.
    fn metadata(&self, column: usize) -> &ColumnMetadata;
    /// The columns of the primary key in key order; empty if unknown or none.
    fn primary_key(&self) -> &[PrimaryKeyPart];
    /// The encoding of its rows.
    fn shape(&self) -> &RowShape;
}

/// Rows of one table that one statement inserted, changed or deleted.
pub trait RowsView {
    /// The table.
    fn table(&self) -> &dyn TableView;
    /// The kind of change, the same for all rows.
    fn kind(&self) -> RowsKind;
    /// The statement's start in microseconds since 1970.
    fn timestamp_us(&self) -> i64;
    /// The columns in before images as a bitmap, the first column in the lowest bit. Empty for inserts.
    fn columns_before(&self) -> &[u8];
    /// Returns whether after images may have changes inside JSON documents in place of the documents
    /// ([`omnibus_format::row::RowImage::json_diffs`]).
    fn has_json_diffs(&self) -> bool {
        false
    }
    /// The columns in after images. Empty for deletions.
    fn columns_after(&self) -> &[u8];
    /// Passes the rows in order to `each`, until it breaks.
    ///
    /// # Errors
    /// The images are damaged; the rows passed before are right.
    fn each(&self, each: &mut dyn FnMut(RowChange<'_>) -> ControlFlow<()>) -> Result<(), DecodeError>;
    /// `foreign_key_checks` of the statement.
    fn foreign_key_checks(&self) -> bool {
        true
    }
    /// `unique_checks` of the statement.
    fn unique_checks(&self) -> bool {
        true
    }
    /// Returns whether an inserted row may replace an existing one.
    fn may_replace(&self) -> bool {
        false
    }
    /// The approximate number of rows that the whole statement changes, for engines that prepare for many.
    fn expected_rows(&self) -> Option<u64> {
        None
    }
    /// The statement's text, if it was kept.
    fn query(&self) -> Option<&[u8]> {
        None
    }
    /// Returns whether the statement ends with these rows.
    fn ends_statement(&self) -> bool;
}
