//! The one error of every decoder here: what was expected, and at which byte of the input.
//!
//! Not an I/O error and not a verdict on a file: `scan` decides what damage means.

/// A decoder met bytes that do not follow the format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {offset}")]
pub struct DecodeError {
    /// Byte offset in the slice given to the decoder (for event bodies: from the body's start).
    pub offset: usize,
    /// What was wrong, or what was being read when the bytes ended.
    pub what: &'static str,
}

impl DecodeError {
    /// An error at `offset`.
    pub fn new(offset: usize, what: &'static str) -> Self {
        Self { offset, what }
    }
}

/// A value cannot be written as the column's field bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {what}")]
pub struct EncodeError {
    /// Zero-based column number.
    pub column: usize,
    /// Why it does not fit.
    pub what: &'static str,
}
