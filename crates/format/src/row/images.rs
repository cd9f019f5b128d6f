//! Iterates over the images of a rows event.

use bytes::Bytes;
use omnibus_value::Value;

use super::bitmap::{count_bits, is_set};
use super::json_diff::JsonDiffs;
use super::shape::RowShape;
use crate::error::DecodeError;
use crate::events::{Rows, RowsKind};
use crate::field::code;

/// One image inside a rows event: its columns and its bytes.
#[derive(Clone, Copy, Debug)]
pub struct RowImage<'a> {
    /// Columns present.
    pub columns: &'a [u8],
    /// Null bitmap (one bit per present column) and fields.
    pub bytes: &'a [u8],
    /// The bytes in front of an after image of PARTIAL_UPDATE_ROWS: options, and a bit per JSON column that has changes
    /// instead of a document. Otherwise empty.
    pub prefix: &'a [u8],
}

impl<'a> RowImage<'a> {
    /// Returns whether every column is present and complete, so that `bytes` is a full row.
    pub fn is_full(&self, shape: &RowShape) -> bool {
        count_bits(self.columns, shape.len()) == shape.len() && !self.is_partial()
    }

    /// Returns whether a column may have changes of its document instead of the document.
    #[inline]
    pub fn is_partial(&self) -> bool {
        self.prefix.len() > 1
    }

    /// Returns whether the JSON column of this number, counted among the table's JSON columns, has changes instead of
    /// its document.
    #[inline]
    pub fn has_diffs(&self, document: usize) -> bool {
        self.prefix.get(1..).is_some_and(|bits| is_set(bits, document))
    }

    /// Returns the columns with changes instead of documents, and the changes. NULL is never partial.
    ///
    /// # Errors
    /// The image is truncated or malformed.
    pub fn json_diffs(&self, shape: &RowShape) -> Result<Vec<(usize, JsonDiffs<'a>)>, DecodeError> {
        let mut found = Vec::new();
        if self.is_partial() {
            self.fields(shape, |i, _, field, partial| {
                if let (Some(field), true) = (field, partial) {
                    // Behind the field's own length.
                    found.push((i, JsonDiffs(field.get(4..).unwrap_or_default())));
                }
                Ok(())
            })?;
        }
        Ok(found)
    }

    /// Calls `each` for the present columns in order: column number, offset of its field, the field (`None` for NULL),
    /// and whether the field is changes of a document.
    fn fields(
        &self,
        shape: &RowShape,
        mut each: impl FnMut(usize, usize, Option<&'a [u8]>, bool) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        let mut at = count_bits(self.columns, shape.len()).div_ceil(8);
        let (mut present, mut documents) = (0, 0);
        for (i, column) in shape.columns().iter().enumerate() {
            let mut partial = false;
            // There is a bit for each, present or not.
            if column.field.code == code::JSON {
                partial = self.has_diffs(documents);
                documents += 1;
            }
            if !is_set(self.columns, i) {
                continue;
            }
            let null = is_set(self.bytes, present);
            present += 1;
            if null {
                each(i, at, None, partial)?;
                continue;
            }
            let rest = self.bytes.get(at..).unwrap_or_default();
            let len = column.len(rest).ok_or(DecodeError::new(at, "field"))?;
            each(i, at, Some(&rest[..len]), partial)?;
            at += len;
        }
        Ok(())
    }

    /// Returns values by column; `None` for columns that are not present, and for documents with partial changes
    /// ([`Self::json_diffs`]). Strings are copied.
    ///
    /// # Errors
    /// The image is truncated or malformed.
    pub fn decode(&self, shape: &RowShape) -> Result<Vec<Option<Value>>, DecodeError> {
        let mut values = Vec::with_capacity(shape.len());
        self.decode_some(shape, |_| true, &mut values)?;
        Ok(values)
    }

    /// As [`Self::decode`], appended to `values`, with `None` for columns that are not `wanted`.
    ///
    /// # Errors
    /// The bytes are truncated or malformed.
    pub fn decode_some(
        &self,
        shape: &RowShape,
        wanted: impl Fn(usize) -> bool,
        values: &mut Vec<Option<Value>>,
    ) -> Result<(), DecodeError> {
        let start = values.len();
        values.resize(start + shape.len(), None);
        self.fields(shape, |i, at, field, partial| {
            if !wanted(i) {
                return Ok(());
            }
            values[start + i] = match field {
                None => Some(Value::Null),
                Some(_) if partial => None,
                Some(field) => {
                    let value = shape.columns()[i].decode(field, Bytes::copy_from_slice);
                    Some(value.map_err(|e| DecodeError::new(at + e.offset, e.what))?)
                }
            };
            Ok(())
        })
    }
}

/// The change of one row.
#[derive(Clone, Copy, Debug)]
pub struct RowChange<'a> {
    /// The row before (UPDATE, DELETE).
    pub before: Option<RowImage<'a>>,
    /// The row after (WRITE, UPDATE).
    pub after: Option<RowImage<'a>>,
}

/// Iterates over the rows of an event. Ends after the first error.
#[derive(Clone, Debug)]
pub struct Images<'a> {
    rows: Rows<'a>,
    shape: &'a RowShape,
    at: usize,
    failed: bool,
}

impl<'a> Images<'a> {
    /// Creates an iterator over `rows`, whose table has `shape`.
    ///
    /// # Errors
    /// The column counts differ.
    pub fn new(rows: Rows<'a>, shape: &'a RowShape) -> Result<Self, DecodeError> {
        if rows.columns != shape.len() {
            return Err(DecodeError::new(rows.rows_offset, "column count other than TABLE_MAP's"));
        }
        Ok(Self { rows, shape, at: 0, failed: false })
    }

    /// Reads the options in front of an after image, and a bit for each JSON column of the table.
    fn prefix(&mut self) -> Result<&'a [u8], DecodeError> {
        let bytes = &self.rows.rows[self.at..];
        let error = |what| DecodeError::new(self.rows.rows_offset + self.at, what);
        let documents = match bytes.first() {
            Some(0) => 0,
            Some(1) => self.shape.columns().iter().filter(|column| column.field.code == code::JSON).count(),
            _ => return Err(error("row value options")),
        };
        let prefix = bytes.get(..1 + documents.div_ceil(8)).ok_or_else(|| error("partial columns"))?;
        self.at += prefix.len();
        Ok(prefix)
    }

    fn image(&mut self, columns: &'a [u8], partial: bool) -> Result<RowImage<'a>, DecodeError> {
        let prefix = if partial { self.prefix()? } else { &[] };
        let bytes = &self.rows.rows[self.at..];
        let error = |at: usize, what| DecodeError::new(self.rows.rows_offset + self.at + at, what);
        let nulls = count_bits(columns, self.shape.len()).div_ceil(8);
        if bytes.len() < nulls {
            return Err(error(bytes.len(), "null bitmap"));
        }
        let mut at = nulls;
        let mut present = 0;
        for (i, column) in self.shape.columns().iter().enumerate() {
            if !is_set(columns, i) {
                continue;
            }
            if !is_set(bytes, present) {
                at += column.len(&bytes[at..]).ok_or_else(|| error(at, "field"))?;
            }
            present += 1;
        }
        self.at += at;
        Ok(RowImage { columns, bytes: &bytes[..at], prefix })
    }

    fn change(&mut self) -> Result<RowChange<'a>, DecodeError> {
        let mut change = RowChange { before: None, after: None };
        let before = self.at;
        if self.rows.kind != RowsKind::Write {
            change.before = Some(self.image(self.rows.before, false)?);
        }
        if self.rows.kind != RowsKind::Delete {
            change.after = Some(self.image(self.rows.after, self.rows.partial)?);
        }
        // A table whose images take no bytes would never end.
        if self.at == before {
            return Err(DecodeError::new(self.rows.rows_offset + self.at, "row without columns"));
        }
        Ok(change)
    }
}

impl<'a> Iterator for Images<'a> {
    type Item = Result<RowChange<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.at >= self.rows.rows.len() {
            return None;
        }
        let change = self.change();
        self.failed = change.is_err();
        Some(change)
    }
}
