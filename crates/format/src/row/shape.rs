//! `RowShape`: a table's column types, precomputed for encoding and decoding full rows.

use bytes::Bytes;
use omnibus_value::{ColumnKind, ColumnType, FixedKind, Value};

use super::bitmap::{is_set, none_set};
use crate::cursor::le_uint;
use crate::error::{DecodeError, EncodeError};
use crate::events::TableMap;
use crate::field::{FieldType, code, decode_field, encode_field};

/// One column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnShape {
    /// Type and metadata.
    pub field: FieldType,
    /// UNSIGNED.
    pub unsigned: bool,
    /// BINARY(n): its trailing zeros are not stored, and are added when decoding.
    padded: bool,
    /// The kind of a UUID or address column, which is stored without its trailing zeros.
    kind: Option<FixedKind>,
    /// Cached: bytes of a fixed-length field, or `VARIABLE`.
    fixed: u16,
    /// Cached: bytes of the length prefix.
    prefix: u8,
}

const BINARY_COLLATION: u16 = 63;
const VARIABLE: u16 = u16::MAX;

impl ColumnShape {
    /// Creates a column of that type.
    pub fn new(field: FieldType, unsigned: bool) -> Self {
        let fixed = field.fixed_len().map_or(VARIABLE, |len| len as u16);
        Self { field, unsigned, padded: false, kind: None, fixed, prefix: field.prefix_len() as u8 }
    }

    /// Returns the column with a collation: the binary one makes CHAR bytes BINARY.
    pub fn with_collation(mut self, collation: u16) -> Self {
        self.padded = self.field.code == code::STRING && collation == BINARY_COLLATION;
        self
    }

    /// Returns the column with the kind of its values; only UUIDs and addresses have values other than their bytes.
    pub fn with_kind(mut self, kind: ColumnKind) -> Self {
        self.kind = FixedKind::of(kind);
        self
    }

    /// Decodes the column's field bytes; strings are slices made by `slice`.
    ///
    /// # Errors
    /// The bytes are truncated or malformed.
    #[inline]
    pub fn decode(&self, bytes: &[u8], slice: impl FnOnce(&[u8]) -> Bytes) -> Result<Value, DecodeError> {
        let value = decode_field(self.field, self.unsigned, bytes, slice)?;
        match value {
            Value::Bytes(bytes) if let Some(kind) = self.kind => {
                let whole = kind.from_stored(&bytes).map(Value::Fixed);
                whole.ok_or(DecodeError::new(0, "UUID or address"))
            }
            Value::Bytes(text) if self.padded && text.len() < usize::from(self.field.meta) => {
                let mut padded = text.to_vec();
                padded.resize(usize::from(self.field.meta), 0);
                Ok(Value::Bytes(padded.into()))
            }
            value => Ok(value),
        }
    }

    /// Appends the field bytes of a value that is not NULL.
    ///
    /// # Errors
    /// The value does not fit the column; `out` may then hold a part of the field.
    #[inline]
    pub fn encode(&self, value: &Value, out: &mut Vec<u8>) -> Result<(), &'static str> {
        match value {
            Value::Bytes(text) if self.padded => {
                let len = text.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1);
                encode_field(self.field, self.unsigned, &Value::Bytes(text.slice(..len)), out)
            }
            Value::Fixed(fixed) if self.kind == Some(fixed.kind()) => {
                let stored = fixed.stored();
                out.push(stored.len() as u8);
                out.extend_from_slice(stored);
                Ok(())
            }
            value => encode_field(self.field, self.unsigned, value, out),
        }
    }

    /// Bytes of the field at the start of `bytes`; `None` when it runs past the end.
    #[inline]
    pub fn len(&self, bytes: &[u8]) -> Option<usize> {
        let len = match self.fixed {
            VARIABLE if self.prefix == 0 => return None,
            VARIABLE => {
                let prefix = usize::from(self.prefix);
                prefix + le_uint(bytes.get(..prefix)?) as usize
            }
            fixed => usize::from(fixed),
        };
        (len <= bytes.len()).then_some(len)
    }
}

/// The columns of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowShape {
    columns: Vec<ColumnShape>,
    /// Element `k` is the number of field bytes of the first `k` columns in a row without NULLs, as far as they are of fixed length.
    lead: Vec<u32>,
}

impl RowShape {
    /// Creates the shape of one of this server's tables.
    pub fn new<'a>(columns: impl IntoIterator<Item = &'a ColumnType>) -> Self {
        let shape = |c: &ColumnType| {
            ColumnShape::new(FieldType::of_column(c), c.unsigned)
                .with_collation(c.collation)
                .with_kind(c.kind)
        };
        Self::of(columns.into_iter().map(shape).collect())
    }

    fn of(columns: Vec<ColumnShape>) -> Self {
        let mut lead = vec![0];
        let mut end = 0;
        for column in columns.iter().take_while(|column| column.fixed != VARIABLE) {
            end += u32::from(column.fixed);
            lead.push(end);
        }
        Self { columns, lead }
    }

    /// Creates a shape from fields, for tools and tests.
    pub fn of_fields(fields: impl IntoIterator<Item = (FieldType, bool)>) -> Self {
        Self::of(fields.into_iter().map(|(f, u)| ColumnShape::new(f, u)).collect())
    }

    /// Creates the shape of a TABLE_MAP; columns without signedness metadata count as signed.
    pub fn of_table_map(map: &TableMap) -> Self {
        let unsigned = |i: usize| map.metadata.get(i).and_then(|m| m.unsigned).unwrap_or(false);
        // Without metadata (0) nobody knows, and CHAR is the better guess.
        let collation = |i: usize| map.metadata.get(i).and_then(|m| m.collation).unwrap_or(0);
        let shape = |(i, &f)| ColumnShape::new(f, unsigned(i)).with_collation(collation(i));
        Self::of(map.columns.iter().enumerate().map(shape).collect())
    }

    /// Number of columns.
    #[inline]
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Returns whether there are no columns.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// The columns.
    #[inline]
    pub fn columns(&self) -> &[ColumnShape] {
        &self.columns
    }

    /// Bytes of a full row's null bitmap.
    #[inline]
    pub fn null_bytes(&self) -> usize {
        self.columns.len().div_ceil(8)
    }

    /// Appends a full row image. `values` are in column order.
    ///
    /// # Errors
    /// A value does not fit its column; `out` is then unchanged.
    pub fn encode_row_into(&self, values: &[Value], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let start = out.len();
        if values.len() != self.columns.len() {
            return Err(EncodeError { column: values.len(), what: "wrong number of columns" });
        }
        out.resize(start + self.null_bytes(), 0);
        for (i, (column, value)) in self.columns.iter().zip(values).enumerate() {
            if matches!(value, Value::Null) {
                out[start + i / 8] |= 1 << (i % 8);
            } else if let Err(what) = column.encode(value, out) {
                out.truncate(start);
                return Err(EncodeError { column: i, what });
            }
        }
        Ok(())
    }

    /// Encodes a full row image.
    ///
    /// # Errors
    /// A value does not fit its column.
    pub fn encode_row(&self, values: &[Value]) -> Result<Vec<u8>, EncodeError> {
        let mut out = Vec::with_capacity(self.null_bytes() + 8 * values.len());
        self.encode_row_into(values, &mut out)?;
        Ok(out)
    }

    /// Decodes a full row; strings are slices of `row`.
    ///
    /// # Errors
    /// The row is truncated or malformed, or bytes follow the last column.
    pub fn decode_row(&self, row: &Bytes) -> Result<Vec<Value>, DecodeError> {
        let mut values = Vec::with_capacity(self.columns.len());
        self.decode_row_into(row, &mut values)?;
        Ok(values)
    }

    /// As [`RowShape::decode_row`], appending to a reused vector.
    ///
    /// # Errors
    /// As [`RowShape::decode_row`].
    pub fn decode_row_into(&self, row: &Bytes, values: &mut Vec<Value>) -> Result<(), DecodeError> {
        let mut at = self.null_bytes();
        if row.len() < at {
            return Err(DecodeError::new(row.len(), "null bitmap"));
        }
        for (i, column) in self.columns.iter().enumerate() {
            if is_set(row, i) {
                values.push(Value::Null);
                continue;
            }
            let len = column.len(&row[at..]).ok_or(DecodeError::new(at, "field"))?;
            values.push(decode_at(column, row, at, len)?);
            at += len;
        }
        if at != row.len() {
            return Err(DecodeError::new(at, "end of row"));
        }
        Ok(())
    }

    /// Decodes column `i` of a full row, skipping the columns before it. Strings are slices.
    ///
    /// # Errors
    /// The row is truncated or malformed.
    pub fn column(&self, row: &Bytes, i: usize) -> Result<Value, DecodeError> {
        let column = self.columns.get(i).ok_or(DecodeError::new(0, "column number"))?;
        match self.column_span(row, i)? {
            None => Ok(Value::Null),
            Some((at, end)) => decode_at(column, row, at, end - at),
        }
    }

    /// Decodes several columns of a full row in one pass and appends them to `values`; `wanted` must be ascending.
    ///
    /// # Errors
    /// The row is truncated or malformed.
    pub fn columns_into(
        &self,
        row: &Bytes,
        wanted: &[usize],
        values: &mut Vec<Value>,
    ) -> Result<(), DecodeError> {
        let mut at = self.null_bytes();
        if row.len() < at {
            return Err(DecodeError::new(row.len(), "null bitmap"));
        }
        let mut next = 0;
        for &target in wanted {
            if target < next {
                return Err(DecodeError::new(0, "column numbers not rising"));
            }
            for i in next..target {
                at += self.skip(row, i, at)?;
            }
            let column = self.columns.get(target).ok_or(DecodeError::new(0, "column number"))?;
            let len = self.skip(row, target, at)?;
            values.push(match is_set(row, target) {
                true => Value::Null,
                false => decode_at(column, row, at, len)?,
            });
            at += len;
            next = target + 1;
        }
        Ok(())
    }

    /// Returns start and end of column `i`'s field bytes in a full row; `None` if it is NULL.
    ///
    /// # Errors
    /// The row is truncated or malformed.
    pub fn column_span(&self, row: &[u8], i: usize) -> Result<Option<(usize, usize)>, DecodeError> {
        let mut at = self.null_bytes();
        if row.len() < at || i >= self.columns.len() {
            return Err(DecodeError::new(row.len(), "null bitmap"));
        }
        let known = self.lead.len().saturating_sub(1).min(i);
        let mut from = 0;
        if known > 0 && none_set(row, known) {
            from = known;
            at += self.lead[known] as usize;
        }
        for before in from..i {
            at += self.skip(row, before, at)?;
        }
        if is_set(row, i) {
            return Ok(None);
        }
        Ok(Some((at, at + self.skip(row, i, at)?)))
    }

    /// Returns the bytes of column `i` in place, if it is a text or byte column without padding; `Some(None)` if it is
    /// NULL.
    ///
    /// # Errors
    /// The bytes are truncated or malformed.
    pub fn text<'r>(&self, row: &'r [u8], i: usize) -> Result<Option<Option<&'r [u8]>>, DecodeError> {
        let column = self.columns.get(i).ok_or(DecodeError::new(0, "column number"))?;
        let plain = matches!(
            column.field.code,
            code::STRING
                | code::VAR_STRING
                | code::VARCHAR
                | code::BLOB
                | code::TINY_BLOB
                | code::MEDIUM_BLOB
                | code::LONG_BLOB
        );
        if column.padded || column.kind.is_some() || !plain {
            return Ok(None);
        }
        let Some((at, end)) = self.column_span(row, i)? else { return Ok(Some(None)) };
        Ok(Some(Some(&row[at + usize::from(column.prefix)..end])))
    }

    /// Returns column `i` of a full row and its field bytes; `None` if it is NULL.
    ///
    /// # Errors
    /// The row is truncated or malformed.
    #[inline]
    pub fn field<'r>(
        &self,
        row: &'r [u8],
        i: usize,
    ) -> Result<Option<(&ColumnShape, &'r [u8])>, DecodeError> {
        let Some((at, end)) = self.column_span(row, i)? else { return Ok(None) };
        // In range: `column_span` has looked.
        Ok(Some((&self.columns[i], &row[at..end])))
    }

    /// Returns the number of bytes of column `i` at `at`; 0 if it is NULL.
    #[inline]
    pub(super) fn skip(&self, row: &[u8], i: usize, at: usize) -> Result<usize, DecodeError> {
        if is_set(row, i) {
            return Ok(0);
        }
        let rest = row.get(at..).unwrap_or_default();
        let column = self.columns.get(i).ok_or(DecodeError::new(at, "column number"))?;
        column.len(rest).ok_or(DecodeError::new(at, "field"))
    }
}

#[inline]
pub(super) fn decode_at(
    column: &ColumnShape,
    row: &Bytes,
    at: usize,
    len: usize,
) -> Result<Value, DecodeError> {
    let bytes = &row[at..at + len];
    column.decode(bytes, |part| row.slice_ref(part)).map_err(|e| DecodeError::new(at + e.offset, e.what))
}
