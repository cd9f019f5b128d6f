//! Stored rows <-> values.

use super::versions::{Origin, Reading, RowVersions, Versions};
use crate::catalog::Column;
use crate::error::{SqlError, SqlResult};
use bytes::Bytes;
use omnibus_format::row::ColumnShape;
use omnibus_format::{DecodeError, RowShape};
use omnibus_value::{ColumnType, Value, shared};
use std::borrow::Cow;
use std::cell::RefCell;

/// Rows up to about this size are made in a buffer that the thread keeps.
const SCRATCH_MAX: usize = 4096;

/// A table's row format. Reads rows of all the table's versions, writes the newest.
#[derive(Debug)]
pub struct RowCodec {
    shape: RowShape,
    /// Rows of about this size have been seen in the definition: fixed parts only.
    typical: usize,
    versions: Option<Box<Versions>>,
    /// The shape that row events have of it, if columns of it are hidden.
    outer: Option<RowShape>,
}

/// A column of a stored row.
#[derive(Clone, Copy, Debug)]
pub enum Stored<'r> {
    /// NULL.
    Null,
    /// Its type and its bytes.
    Field(&'r ColumnShape, &'r [u8]),
    /// The row may be of an earlier form: it must be decoded.
    Elsewhere,
}

impl RowCodec {
    /// From the columns, in order.
    #[must_use]
    pub fn new(columns: &[Column], versions: &RowVersions) -> RowCodec {
        let shape = RowShape::new(columns.iter().map(|column| &column.ty));
        let typical = shape.null_bytes() + columns.len() * 16;
        let hidden = columns.iter().any(Column::is_hidden);
        let outer = columns.iter().filter(|column| !column.is_hidden()).map(|column| &column.ty);
        let outer = hidden.then(|| RowShape::new(outer));
        RowCodec { typical, shape, versions: Versions::new(versions), outer }
    }

    /// The format crate's view.
    #[must_use]
    pub fn shape(&self) -> &RowShape {
        &self.shape
    }

    /// The format of the images that row events have.
    #[must_use]
    pub fn image_shape(&self) -> &RowShape {
        self.outer.as_ref().unwrap_or(&self.shape)
    }

    /// Whether row events lack columns of it: what is stored cannot be told from them.
    #[must_use]
    pub fn has_hidden(&self) -> bool {
        self.outer.is_some()
    }

    /// All values.
    ///
    /// # Errors
    /// The bytes are damaged.
    pub fn decode(&self, row: &Bytes) -> SqlResult<Vec<Value>> {
        let mut values = Vec::with_capacity(self.shape.len());
        self.decode_into(row, &mut values)?;
        Ok(values)
    }

    /// All values into a vector, which is emptied first.
    ///
    /// # Errors
    /// The bytes are damaged.
    pub fn decode_into(&self, row: &Bytes, values: &mut Vec<Value>) -> SqlResult<()> {
        values.clear();
        let Some(versions) = &self.versions else {
            return self.shape.decode_row_into(row, values).map_err(damaged);
        };
        match versions.of(row)? {
            Reading::Newest(row) => self.shape.decode_row_into(&row, values).map_err(damaged),
            Reading::Earlier(shape, origins, row) => {
                let stored = shape.decode_row(&row).map_err(damaged)?;
                values.extend(origins.iter().map(|origin| match origin {
                    Origin::Stored(at) => stored[*at].clone(),
                    Origin::Value(value) => value.clone(),
                }));
                Ok(())
            }
        }
    }

    /// One value.
    ///
    /// # Errors
    /// The bytes are damaged.
    pub fn decode_column(&self, row: &Bytes, column: usize) -> SqlResult<Value> {
        let Some(versions) = &self.versions else { return self.shape.column(row, column).map_err(damaged) };
        match versions.of(row)? {
            Reading::Newest(row) => self.shape.column(&row, column).map_err(damaged),
            Reading::Earlier(shape, origins, row) => match &origins[column] {
                Origin::Stored(at) => shape.column(&row, *at).map_err(damaged),
                Origin::Value(value) => Ok(value.clone()),
            },
        }
    }

    /// The bytes of a column of text where they lie; `None` if it must be decoded, `Some(None)` if it is NULL.
    ///
    /// # Errors
    /// The bytes are damaged.
    pub fn text<'r>(&self, row: &'r [u8], column: usize) -> SqlResult<Option<Option<&'r [u8]>>> {
        let Some(versions) = &self.versions else { return self.shape.text(row, column).map_err(damaged) };
        match versions.of_slice(row)? {
            Reading::Newest(row) => self.shape.text(row, column).map_err(damaged),
            Reading::Earlier(shape, origins, row) => match &origins[column] {
                Origin::Stored(at) => shape.text(row, *at).map_err(damaged),
                Origin::Value(_) => Ok(None),
            },
        }
    }

    /// A column as it lies in a row.
    ///
    /// # Errors
    /// The bytes are damaged.
    #[inline]
    pub fn field<'r>(&'r self, row: &'r [u8], column: usize) -> SqlResult<Stored<'r>> {
        if self.versions.is_some() {
            return Ok(Stored::Elsewhere);
        }
        let found = self.shape.field(row, column).map_err(damaged)?;
        Ok(found.map_or(Stored::Null, |(shape, bytes)| Stored::Field(shape, bytes)))
    }

    /// The row of these values, which must be of the columns' types.
    ///
    /// # Errors
    /// A value does not fit its column: a bug in the caller's casts.
    pub fn encode(&self, values: &[Value]) -> SqlResult<Bytes> {
        thread_local! {
            static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        let strings: usize =
            values.iter().map(|value| if let Value::Bytes(text) = value { text.len() } else { 0 }).sum();
        let expected = self.typical + strings;
        if expected > SCRATCH_MAX {
            let mut out = Vec::with_capacity(expected);
            self.put(values, &mut out)?;
            return Ok(out.into());
        }
        SCRATCH.with_borrow_mut(|out| {
            out.clear();
            self.put(values, out)?;
            Ok(shared(out))
        })
    }

    fn put(&self, values: &[Value], out: &mut Vec<u8>) -> SqlResult<()> {
        if let Some(versions) = &self.versions {
            versions.head(out);
        }
        encode_image(&self.shape, values, out)
    }

    /// A stored row as row events have it: the columns of the newest version and nothing else.
    ///
    /// # Errors
    /// The bytes are damaged.
    pub fn image<'r>(&self, row: &'r Bytes) -> SqlResult<Cow<'r, Bytes>> {
        if let Some(outer) = &self.outer {
            let mut out = Vec::with_capacity(self.typical + row.len());
            encode_image(outer, &self.decode(row)?[..outer.len()], &mut out)?;
            return Ok(Cow::Owned(out.into()));
        }
        let Some(versions) = &self.versions else { return Ok(Cow::Borrowed(row)) };
        if let Reading::Newest(image) = versions.of(row)? {
            return Ok(Cow::Owned(image));
        }
        let mut out = Vec::with_capacity(self.typical + row.len());
        encode_image(&self.shape, &self.decode(row)?, &mut out)?;
        Ok(Cow::Owned(out.into()))
    }

    /// The row to store of an image that a row event has.
    #[must_use]
    pub fn of_image(&self, image: Bytes) -> Bytes {
        let Some(versions) = &self.versions else { return image };
        let mut out = Vec::with_capacity(image.len() + 4);
        versions.head(&mut out);
        out.extend_from_slice(&image);
        out.into()
    }
}

fn encode_image(shape: &RowShape, values: &[Value], out: &mut Vec<u8>) -> SqlResult<()> {
    shape.encode_row_into(values, out).map_err(|error| {
        tracing::error!(column = error.column, what = error.what, "a value does not fit its column");
        SqlError::internal(format!("column {} cannot be stored: {}", error.column, error.what))
    })
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
