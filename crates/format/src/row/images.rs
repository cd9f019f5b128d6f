//! Walking the images of a rows event.

use bytes::Bytes;
use omnibus_value::Value;

use super::bitmap::{count_bits, is_set};
use super::shape::RowShape;
use crate::error::DecodeError;
use crate::events::{Rows, RowsKind};

/// One image inside a rows event: which columns it has and its bytes.
#[derive(Clone, Copy, Debug)]
pub struct RowImage<'a> {
    /// Columns present.
    pub columns: &'a [u8],
    /// Null bitmap (one bit per present column) and fields.
    pub bytes: &'a [u8],
}

impl RowImage<'_> {
    /// Whether every column is present, so that `bytes` is a full row.
    pub fn is_full(&self, shape: &RowShape) -> bool {
        count_bits(self.columns, shape.len()) == shape.len()
    }

    /// Values by column; `None` for columns that are not present. Strings are copied.
    pub fn decode(&self, shape: &RowShape) -> Result<Vec<Option<Value>>, DecodeError> {
        let mut at = count_bits(self.columns, shape.len()).div_ceil(8);
        let mut present = 0;
        let mut values = Vec::with_capacity(shape.len());
        for (i, column) in shape.columns().iter().enumerate() {
            if !is_set(self.columns, i) {
                values.push(None);
                continue;
            }
            let null = is_set(self.bytes, present);
            present += 1;
            if null {
                values.push(Some(Value::Null));
                continue;
            }
            let rest = self.bytes.get(at..).unwrap_or_default();
            let len = column.len(rest).ok_or(DecodeError::new(at, "field"))?;
            let value = column
                .decode(&rest[..len], Bytes::copy_from_slice)
                .map_err(|e| DecodeError::new(at + e.offset, e.what))?;
            values.push(Some(value));
            at += len;
        }
        Ok(values)
    }
}

/// What happened to one row.
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
    /// Rows of `rows`, whose table has `shape`. Fails when the column counts differ.
    pub fn new(rows: Rows<'a>, shape: &'a RowShape) -> Result<Self, DecodeError> {
        if rows.columns != shape.len() {
            return Err(DecodeError::new(rows.rows_offset, "column count other than TABLE_MAP's"));
        }
        Ok(Self { rows, shape, at: 0, failed: false })
    }

    fn image(&mut self, columns: &'a [u8]) -> Result<RowImage<'a>, DecodeError> {
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
        Ok(RowImage { columns, bytes: &bytes[..at] })
    }

    fn change(&mut self) -> Result<RowChange<'a>, DecodeError> {
        let mut change = RowChange { before: None, after: None };
        let before = self.at;
        if self.rows.kind != RowsKind::Write {
            change.before = Some(self.image(self.rows.before)?);
        }
        if self.rows.kind != RowsKind::Delete {
            change.after = Some(self.image(self.rows.after)?);
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
