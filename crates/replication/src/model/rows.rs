//! Changes of a table's rows, and the table.

use omnibus_format::DecodeError;
use omnibus_format::events::{ColumnMetadata, PrimaryKeyPart, RowsKind};
use omnibus_format::field::FieldType;
use omnibus_format::row::{RowChange, RowShape};
use std::ops::ControlFlow;

/// A table as the one who changed it sees it.
pub trait TableView {
    /// Database.
    fn database(&self) -> &[u8];
    /// Name.
    fn name(&self) -> &[u8];
    /// Types of its columns, as they are encoded.
    fn columns(&self) -> &[FieldType];
    /// Whether a column may be NULL.
    fn nullable(&self, column: usize) -> bool;
    /// Sign, collation, name, labels: what is known of them.
    fn metadata(&self, column: usize) -> &ColumnMetadata;
    /// Columns of the primary key in key order; empty when unknown or none.
    fn primary_key(&self) -> &[PrimaryKeyPart];
    /// How its rows are encoded.
    fn shape(&self) -> &RowShape;
}

/// Rows of one table that one statement inserted, changed or deleted.
pub trait RowsView {
    /// The table.
    fn table(&self) -> &dyn TableView;
    /// What happened to all of them.
    fn kind(&self) -> RowsKind;
    /// When the statement began: microseconds since 1970.
    fn timestamp_us(&self) -> i64;
    /// Columns in before images: a bitmap, the first column in the lowest bit. Empty for inserts.
    fn columns_before(&self) -> &[u8];
    /// Whether after images may have changes inside JSON documents in place of the documents
    /// ([`omnibus_format::row::RowImage::json_diffs`]).
    fn has_json_diffs(&self) -> bool {
        false
    }
    /// Columns in after images. Empty for deletions.
    fn columns_after(&self) -> &[u8];
    /// The rows in order, until `each` breaks off.
    ///
    /// # Errors
    /// The images are damaged; what was given before is right.
    fn each(&self, each: &mut dyn FnMut(RowChange<'_>) -> ControlFlow<()>) -> Result<(), DecodeError>;
    /// `foreign_key_checks` of the statement.
    fn foreign_key_checks(&self) -> bool {
        true
    }
    /// `unique_checks` of the statement.
    fn unique_checks(&self) -> bool {
        true
    }
    /// Whether a row that is inserted may take the place of one that is there.
    fn may_replace(&self) -> bool {
        false
    }
    /// About how many rows the whole statement changes, for engines that prepare for many.
    fn expected_rows(&self) -> Option<u64> {
        None
    }
    /// The statement's text, if it was kept.
    fn query(&self) -> Option<&[u8]> {
        None
    }
    /// Whether the statement ends with these rows.
    fn ends_statement(&self) -> bool;
}
