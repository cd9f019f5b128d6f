//! Stored rows <-> values.

use crate::catalog::Column;
use crate::error::{SqlError, SqlResult};
use bytes::Bytes;
use omnibus_format::{DecodeError, RowShape};
use omnibus_value::{ColumnType, Value};

/// A table's row format.
#[derive(Debug)]
pub struct RowCodec {
    shape: RowShape,
    /// Rows of about this size have been seen in the definition: fixed parts only.
    typical: usize,
}

impl RowCodec {
    /// From the columns, in order.
    #[must_use]
    pub fn new(columns: &[Column]) -> RowCodec {
        let shape = RowShape::new(columns.iter().map(|column| &column.ty));
        RowCodec { typical: shape.null_bytes() + columns.len() * 16, shape }
    }

    /// The format crate's view.
    #[must_use]
    pub fn shape(&self) -> &RowShape {
        &self.shape
    }

    /// All values.
    ///
    /// # Errors
    /// The bytes are damaged.
    pub fn decode(&self, row: &Bytes) -> SqlResult<Vec<Value>> {
        self.shape.decode_row(row).map_err(damaged)
    }

    /// All values into a vector, which is emptied first.
    ///
    /// # Errors
    /// The bytes are damaged.
    pub fn decode_into(&self, row: &Bytes, values: &mut Vec<Value>) -> SqlResult<()> {
        values.clear();
        self.shape.decode_row_into(row, values).map_err(damaged)
    }

    /// One value.
    ///
    /// # Errors
    /// The bytes are damaged.
    pub fn decode_column(&self, row: &Bytes, column: usize) -> SqlResult<Value> {
        self.shape.column(row, column).map_err(damaged)
    }

    /// The bytes of a column of text where they lie; `None` if it must be decoded, `Some(None)` if it is NULL.
    ///
    /// # Errors
    /// The bytes are damaged.
    pub fn text<'r>(&self, row: &'r [u8], column: usize) -> SqlResult<Option<Option<&'r [u8]>>> {
        self.shape.text(row, column).map_err(damaged)
    }

    /// The row of these values, which must be of the columns' types.
    ///
    /// # Errors
    /// A value does not fit its column: a bug in the caller's casts.
    pub fn encode(&self, values: &[Value]) -> SqlResult<Bytes> {
        let strings: usize =
            values.iter().map(|value| if let Value::Bytes(text) = value { text.len() } else { 0 }).sum();
        let mut out = Vec::with_capacity(self.typical + strings);
        self.shape.encode_row_into(values, &mut out).map_err(|error| {
            tracing::error!(column = error.column, what = error.what, "a value does not fit its column");
            SqlError::internal(format!("column {} cannot be stored: {}", error.column, error.what))
        })?;
        Ok(out.into())
    }
}

fn damaged(error: DecodeError) -> SqlError {
    tracing::error!(%error, "a stored row is damaged");
    SqlError::new(1034, b"HY000", format!("Incorrect row data: {error}"))
}

/// A value as text, for messages and definitions.
#[must_use]
pub fn text(value: &Value, ty: &ColumnType) -> String {
    crate::catalog::charset::text(value, ty)
}
