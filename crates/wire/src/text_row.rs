//! Rows of the text protocol: every value as a length-encoded string, NULL as 0xFB.

use crate::buf::{put_lenenc_bytes, put_lenenc_with};
use crate::value_text;
use omnibus_value::{ColumnType, Value};

/// Appends one value. TIMESTAMP is in the session's zone already.
pub fn put_text(out: &mut Vec<u8>, value: &Value, ty: &ColumnType) {
    match value {
        Value::Null => out.push(0xFB),
        Value::Bytes(bytes) => put_lenenc_bytes(out, bytes),
        other => put_lenenc_with(out, |out| value_text::put(out, other, ty)),
    }
}

/// Appends a row's payload. `values` and `types` are of one length.
pub fn put_text_row<'a>(out: &mut Vec<u8>, values: &[Value], types: impl Iterator<Item = &'a ColumnType>) {
    for (value, ty) in values.iter().zip(types) {
        put_text(out, value, ty);
    }
}

/// Reads a row's payload as a client does: `None` is NULL.
pub fn decode_text_row(payload: &[u8], columns: usize) -> Result<Vec<Option<Vec<u8>>>, crate::DecodeError> {
    let mut r = crate::Reader::new(payload);
    let mut row = Vec::new();
    for _ in 0..columns {
        if r.rest().first() == Some(&0xFB) {
            r.u8("NULL")?;
            row.push(None);
        } else {
            row.push(Some(r.lenenc_bytes("column value")?.to_vec()));
        }
    }
    Ok(row)
}
