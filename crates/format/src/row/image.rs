//! Projects a full image to some of its columns by copying bytes (MINIMAL, NOBLOB images).

use super::bitmap::count_bits;
use super::shape::RowShape;
use crate::error::DecodeError;
use crate::row::is_set;

/// Appends the image of the columns in `bits` of the full image `row`.
///
/// # Errors
/// The bytes are truncated or malformed.
pub fn project(shape: &RowShape, row: &[u8], bits: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
    let start = out.len();
    if row.len() < shape.null_bytes() {
        return Err(DecodeError::new(row.len(), "null bitmap"));
    }
    out.resize(start + count_bits(bits, shape.len()).div_ceil(8), 0);
    let mut at = shape.null_bytes();
    let mut present = 0;
    for i in 0..shape.len() {
        let len = match shape.skip(row, i, at) {
            Ok(len) => len,
            Err(error) => {
                out.truncate(start);
                return Err(error);
            }
        };
        if is_set(bits, i) {
            if is_set(row, i) {
                out[start + present / 8] |= 1 << (present % 8);
            } else {
                out.extend_from_slice(&row[at..at + len]);
            }
            present += 1;
        }
        at += len;
    }
    Ok(())
}
