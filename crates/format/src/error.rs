//! The error of every decoder here: the expected element and the byte offset in the input.
//!
//! It is neither an I/O error nor a verdict on a file: `scan` decides whether a file is damaged.

/// The bytes do not follow the format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {offset}")]
pub struct DecodeError {
    /// Byte offset in the slice given to the decoder (for event bodies: from the body's start).
    pub offset: usize,
    /// The violated rule, or the element that was being read when the bytes ended.
    pub what: &'static str,
}

impl DecodeError {
    /// Builds an error at `offset`.
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
    /// The reason why the value does not fit.
    pub what: &'static str,
}
